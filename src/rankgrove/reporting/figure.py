"""Making Matplotlib figures and writing them to files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rankgrove.errors import MissingExtraError, ParameterError
from rankgrove.files import atomic_output
from rankgrove.showing import in_notebook
from rankgrove.validation import refuse

INLINE = ("inline", "module://matplotlib_inline.backend_inline")

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(purpose: str, width: float = 8.0, height: float = 4.5) -> Figure:
    """Return an empty figure, or raise an error that says how to install Matplotlib.

    It has no window and is not in pyplot's list of figures. In a notebook with inline images it is
    a figure of pyplot, as in other libraries: a cell shows it even if it is not the cell's value.
    """
    try:
        import matplotlib.figure  # before Picture, which may be loaded already

        from rankgrove.reporting.picture import Picture
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", purpose) from None
    if in_notebook() and matplotlib.get_backend() in INLINE:
        from matplotlib import pyplot

        return pyplot.figure(FigureClass=Picture, figsize=(width, height), layout="constrained")
    return Picture(figsize=(width, height), layout="constrained")


def new_panels(
    owner: str, n: int, ax: Axes | None, width: float = 8.0, height: float = 4.5, **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its `n` panels side by side; a given `ax` is the only panel."""
    if ax is None:
        figure = new_figure("Plotting", width, height)
        return figure, list(figure.subplots(1, n, squeeze=False, **options)[0])
    if not hasattr(ax, "plot") or not hasattr(ax, "figure"):
        refuse("ax", owner, "axes of Matplotlib, such as plt.subplots()[1], or None", ax)
    if n > 1:
        refuse("ax", owner, f"None here: there are {n} panels", ax)
    return cast("Figure", ax.figure), [ax]


def log_x(axes: Axes) -> None:
    """Make the x axis logarithmic, with plain numbers that do not overlap."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    decades = math.log10(high / low)
    most = {0.8: (1.0, 1.5, 2.0, 3.0, 5.0, 7.0), 2.5: (1.0, 2.0, 5.0), 4.5: (1.0, 3.0)}
    steps = next((steps for limit, steps in most.items() if decades < limit), (1.0,))
    axes.xaxis.set_major_locator(LogLocator(subs=steps))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's ending, whole or not at all."""
    with atomic_output(path, pack=False) as out:
        figure.savefig(out, format=path.suffix.lstrip(".").lower(), dpi=150)


def check_plot(path: Path) -> None:
    """Refuse a plot that cannot be written before any work is done."""
    known = new_figure("--plot").canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        raise ParameterError(
            f"--plot writes png, svg or pdf, by the file's ending. Got {path.name!r}."
        )
