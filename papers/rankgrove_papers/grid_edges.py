"""How often the edge of a grid of parameters was chosen: then better values may lie beyond it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rankgrove.tuning.tables import markdown

OFTEN = 0.1  # a larger share of choices at an edge gets a warning
FLAT = 1e-4  # validation values that differ by no more count as equal


@dataclass(frozen=True)
class Choices:
    """The values that were chosen from a grid, one per fold or trial.

    Attributes
    ----------
    values : the chosen values
    grid : the values to choose from
    limits : ends of the grid beyond which no value exists, such as a share of 1; not edges
    curves : for every choice, the validation values over the whole grid in ascending order, if
        they are known. An edge is then not counted if the next value is equally good: with a
        very small C the ranking no longer depends on C, and nothing better lies beyond
    """

    values: Sequence[float]
    grid: Sequence[float]
    limits: Sequence[float] = ()
    curves: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        odd = sorted(set(self.values) - set(self.grid))
        if odd or not self.values:
            shown = odd or "no values"
            raise ValueError(f"chosen values must be in the grid {list(self.grid)}, not {shown}")

    def share_at(self, edge: Callable[[Sequence[float]], float]) -> float:
        """Return the share of the choices at one edge of the grid: ``min`` or ``max``."""
        value = edge(self.grid)
        if len(set(self.grid)) == 1 or value in self.limits:
            return 0.0
        at_edge = [i for i, chosen in enumerate(self.values) if chosen == value]
        return sum(not self._is_flat(i) for i in at_edge) / len(self.values)

    def _is_flat(self, i: int) -> bool:
        """Return whether the neighbour of the edge that choice `i` took is equally good."""
        if self.curves is None:
            return False
        curve = list(self.curves[i])
        edge, next_to_it = curve[:2] if self.values[i] == min(self.grid) else curve[:-3:-1]
        return abs(edge - next_to_it) <= FLAT

    @property
    def at_edges(self) -> float:
        """The share of the choices at either edge."""
        return self.share_at(min) + self.share_at(max)

    @property
    def most_often(self) -> float:
        """The value that was chosen most often; the lowest of equally frequent ones."""
        return max(sorted(set(self.grid)), key=list(self.values).count)


def edge_report(chosen: Mapping[str, Choices]) -> str:
    """Return a table of how often the edges of grids were chosen, and a warning in bold.

    The warning names the parameters with more than 10 % of the choices at an edge.

    Parameters
    ----------
    chosen : the choices by name: ``"SVM-map, C"``
    """
    rows = []
    for name, of_name in chosen.items():
        low, high = min(of_name.grid), max(of_name.grid)
        reach = f"{low:g} to {high:g}, {len(of_name.grid)} values"
        shares = [
            "no edge" if edge in of_name.limits else f"{of_name.share_at(which):.0%}"
            for edge, which in ((low, min), (high, max))
        ]
        rows.append([name, reach, f"{of_name.most_often:g}", *shares, len(of_name.values)])
    header = ["", "grid", "most often", "lowest chosen", "highest chosen", "choices"]
    text = f"How often the edge of a grid was chosen:\n\n{markdown(header, rows)}"
    if any(of_name.limits for of_name in chosen.values()):
        text += "\n\nNo edge: there are no values beyond it."
    if any(of_name.curves is not None for of_name in chosen.values()):
        text += (
            "\n\nNot counted: an edge whose neighbour in the grid does as well on the validation "
            f"data, to {FLAT:g}, so that nothing changes beyond it."
        )
    often = [
        f"{name} ({of_name.at_edges:.0%})"
        for name, of_name in chosen.items()
        if of_name.at_edges > OFTEN
    ]
    if often:
        text += (
            f"\n\n**At an edge in more than {OFTEN:.0%} of the choices: {', '.join(often)}. "
            "Values beyond the edge may be better.**"
        )
    return text
