"""Position bias in rankers: parameters, the bias of a fit, validation on clicks, model files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.model import sense
from rankgrove.objectives.clicks import check_clicks
from rankgrove.objectives.examination import n_linking, pair_cells, position_based, trust_based
from rankgrove.objectives.position_bias import (
    AdditiveBias,
    AffineBias,
    Cells,
    PositionBias,
    PositionTable,
    Propensities,
    RatioBias,
)
from rankgrove.rankers.declaring import Parameter, choice, integer, optional, real
from rankgrove.validation import refuse

if TYPE_CHECKING:
    from rankgrove.training.watch import Watched

Additive = Callable[[Cells], PositionBias]
_OF_SCORES = ("additive", "two_tower")  # what is added to scores: labels may be any numbers
METHODS = ("additive", "ratios", "ips", "affine")
_ELSEWHERE = {"lambdarank_unbiased": "ratios", "pal": "two_tower", "two-tower": "two_tower"}
_KINDS = (
    "None, an array of one number per position, a mapping of contexts to such arrays, a click "
    "model with examination_, or a log's check; for 'affine' arrays of two rows, alpha and beta"
)


def _given(name: str, owner: str, value: Any) -> None:
    """Refuse propensities of a wrong kind; their lengths are checked with the data."""
    if value is None or hasattr(value, "examination_"):
        return
    value = getattr(value, "examination", value)  # of a log's check
    for array in value.values() if isinstance(value, Mapping) else [value]:
        try:
            numbers = np.asarray(array, np.float64)
        except (TypeError, ValueError):
            refuse(name, owner, _KINDS, value)
        if numbers.ndim not in (1, 2) or not numbers.size or not np.isfinite(numbers).all():
            refuse(name, owner, _KINDS, value)


POSITION_BIAS: Any = Parameter(
    None,
    "how learning from clicks corrects for positions (the data has them, and labels are clicks): "
    '``"additive"``: a number per position is added to scores in training, learned with the trees; '
    '``"ratios"``: pairs are weighed by the ratios of Hu (2019), learned with the trees; '
    '``"ips"``: clicks are weighed by inverse propensities; ``"affine"``: clicks are corrected for '
    "trust in high positions too; None: labels are taken as they are",
    optional(choice(METHODS, _ELSEWHERE)),
)
PROPENSITIES: Any = Parameter(
    None,
    'of ``"ips"``, how often positions are examined: an array of one number per position, a '
    "mapping of contexts to such arrays, a trained click model (its ``examination_``), or a "
    "log's check; of "
    '``"affine"``, arrays of two rows, alpha and beta: P(click) = alpha * relevance + beta. None: '
    "estimated from documents of the training data that were shown at several positions",
    _given,
)
N_POSITIONS: Any = Parameter(
    None,
    "number of positions that are told apart: those further down count as the last one; None: all",
    optional(integer(low=1, high=10_000)),
)
POSITION_CLIP: Any = Parameter(
    10.0,
    "highest weight of a click, relative to one at the most examined position; also of Hu's ratios",
    real(low=1.0),
)
POSITION_L2: Any = Parameter(
    0.01,
    'of ``"additive"``: added to the sum of second derivatives of a position (times sigma '
    "squared), so that the numbers of rare positions stay near 0",
    real(low=0.0),
)
POSITION_NORM: Any = Parameter(
    1.0,
    'of ``"ratios"``: the p of the exponent 1 / (p + 1); the higher, the closer ratios are to 1',
    real(low=0.0),
)

_OF_NETS = _ELSEWHERE | {"additive": "two_tower"}


def _of_lists(name: str, owner: str, value: object) -> None:
    """Check a method of ListNet; say where those that weigh pairs are."""
    if isinstance(value, str) and _ELSEWHERE.get(value, value) in ("ratios", "ips", "affine"):
        rule = (
            f"'two_tower' or None: a loss of lists has no pairs to weigh. Use {value!r} with "
            "LambdaRank or LambdaMART"
        )
        refuse(name, owner, rule, value)
    choice(["two_tower"], _OF_NETS)(name, owner, value)


OF_NETS: Any = POSITION_BIAS(
    meaning="how learning from clicks corrects for positions (the data has them, and labels are "
    'clicks): ``"two_tower"``: a number per position is added to scores in training, learned with '
    'the net; ``"ratios"``: pairs are weighed by the ratios of Hu (2019), learned epoch by epoch; '
    '``"ips"``: clicks are weighed by inverse propensities; ``"affine"``: clicks are corrected for '
    "trust in high positions too; None: labels are taken as they are",
    rule=optional(choice(["two_tower", "ratios", "ips", "affine"], _OF_NETS)),
)
OF_LISTNET: Any = POSITION_BIAS(
    meaning="how learning from clicks corrects for positions (the data has them, and labels are "
    'clicks): ``"two_tower"``: a number per position is added to scores in training, learned with '
    "the net, and the target is every document's share of the clicks; None: labels are taken as "
    "they are",
    rule=optional(_of_lists),
)


def check_unused(ranker: Any) -> None:
    """Refuse parameters of another method, which would be ignored."""
    owner, method = type(ranker).__name__, ranker.position_bias
    if ranker.propensities is not None and method not in ("ips", "affine"):
        raise ParameterError(
            f"{owner}: propensities are used with position_bias='ips' or 'affine'. Got "
            f"{method!r}: leave them out, or set position_bias."
        )


def clicked_rows(train: QueryDataset, owner: str, method: str) -> np.ndarray:
    """Return which rows were clicked, in the caller's order; refuse data without positions."""
    if train.positions is None:
        raise DataError(
            f"{owner}: position_bias={method!r} needs data with positions, one row per "
            "impression: QueryDataset(..., position=...), data.with_positions(positions), "
            "read_table(..., position=...), or rg.click_data(log, data)."
        )
    if method not in _OF_SCORES:
        check_clicks(train.y, owner, method)
    return np.asarray(train.y > 0)


def bias_of(
    ranker: Any, train: QueryDataset, owner: str, additive: Additive
) -> PositionBias | None:
    """Return the bias of a fit before its first round, or None if the ranker has none.

    `additive` makes the bias that is added to scores.
    """
    if ranker.position_bias is None:
        return None
    clicked = clicked_rows(train, owner, ranker.position_bias)
    positions = train.positions
    assert positions is not None
    cells = Cells.of(positions, clicked, ranker.n_positions)

    def estimated() -> tuple[np.ndarray, ...]:
        cell = cells.of_rows(positions)
        return _estimated(ranker, positions.pair, cell, clicked, cells, owner)

    return bias_on(ranker, cells, owner, additive, estimated)


def bias_on(
    ranker: Any,
    cells: Cells,
    owner: str,
    additive: Additive,
    estimated: Callable[[], tuple[np.ndarray, ...]] = tuple,
) -> PositionBias:
    """Return the bias of a fit on data with these cells."""
    method = ranker.position_bias
    if method in _OF_SCORES:
        return additive(cells)
    if not cells.clicked.any():
        raise DataError(f"{owner}: there is no click in the training data.")
    if method == "ratios":
        return RatioBias(cells, ranker.position_norm, ranker.position_clip)
    rows = 2 if method == "affine" else 1
    given = ranker.propensities
    values = estimated() if given is None else _of_cells(given, rows, cells, owner)
    if method == "affine":
        return AffineBias(cells, values[0], values[1], ranker.position_clip)
    return Propensities(cells, values[0], ranker.position_clip)


def cells_of_rows(bias: PositionBias, train: QueryDataset) -> np.ndarray:
    """Return the cell of every training row, in query order."""
    assert train.positions is not None
    return train.grouped(bias.cells.of_rows(train.positions))


def additive_bias(ranker: Any, *, by_difference: bool, slope: float = 1.0) -> Additive:
    """Return the function that makes the additive bias of a ranker of trees."""
    l2 = ranker.position_l2 * slope**2
    return lambda cells: AdditiveBias(cells, ranker.learning_rate, l2, by_difference)


# -- propensities ----------------------------------------------------------------------------------


def _estimated(
    ranker: Any,
    pair: np.ndarray | None,
    cell: np.ndarray,
    clicked: np.ndarray,
    cells: Cells,
    owner: str,
) -> tuple[np.ndarray, ...]:
    """Return one propensity per cell, or alpha and beta, estimated from the data itself."""
    is_affine = ranker.position_bias == "affine"
    name = "alpha and beta" if is_affine else "propensities"
    if pair is None:
        raise DataError(
            f"{owner}: to estimate {name}, it must be known which rows are the same document: "
            "make the data with rg.click_data(log, data), or give propensities=."
        )
    counts = pair_cells(pair, cell, clicked, cells)
    if n_linking(counts) == 0 and np.count_nonzero(cells.shown) > 1:
        raise DataError(
            f"{owner}: no document was shown at two positions, so {name} cannot be told apart "
            "from relevance: give propensities=, or use position_bias='additive'."
        )
    return trust_based(counts) if is_affine else (position_based(counts),)


def plain(propensities: Any) -> Any:
    """Return propensities as an array, or a mapping of contexts to arrays."""
    values = getattr(propensities, "examination", propensities)
    values = getattr(propensities, "examination_", values)
    names = getattr(propensities, "context_names_", None)
    if values is not propensities and names is not None and np.ndim(values) == 2:
        return dict(zip(map(str, names), values, strict=True))
    return values


def _of_cells(propensities: Any, rows: int, cells: Cells, owner: str) -> np.ndarray:
    """Return given propensities, of shape (rows, cells)."""
    given = plain(propensities)
    if not isinstance(given, Mapping):
        given = dict.fromkeys(cells.contexts, given)
    out = np.empty((rows, len(cells.contexts), cells.n_positions))
    for c, context in enumerate(cells.contexts):
        if context not in given:
            raise ParameterError(
                f"{owner}: propensities has no context {context!r}, which the data has. It has: "
                f"{', '.join(map(repr, given))}."
            )
        values = np.asarray(given[context], np.float64)
        values = values[None] if rows == 1 and values.ndim == 1 else values
        if values.ndim != 2 or len(values) != rows:
            what = "two rows, alpha and beta" if rows == 2 else "one number per position"
            remedy = (
                " A model whose examination depends on clicks above (UserBrowsing) cannot give "
                "them: fit a PositionBased."
                if hasattr(propensities, "examination_")
                else ""
            )
            raise ParameterError(
                f"{owner}: propensities must have {what}. Got an array of shape "
                f"{np.shape(given[context])}.{remedy}"
            )
        n = values.shape[1]
        if n < cells.n_positions:
            raise ParameterError(
                f"{owner}: propensities has {n} positions, the data {cells.n_positions}: set "
                f"n_positions={n} to count positions further down as position {n}."
            )
        slope = values[0, : cells.n_positions]
        if (slope <= 0.0).any() or (values[-1] < 0.0).any():
            raise ParameterError(
                f"{owner}: propensities must be above 0, and beta at least 0. Got "
                f"{float(min(slope.min(), values[-1].min())):g}."
            )
        out[:, c] = values[:, : cells.n_positions]
    return out.reshape(rows, -1)


# -- bags ------------------------------------------------------------------------------------------


def averaged(tables: Sequence[PositionTable]) -> PositionTable:
    """Return the mean of what several models have learned, cell by cell.

    A model counts for the positions that its training data has. Impressions are added up, so those
    that several models saw count several times.
    """
    contexts = tuple(sorted({name for table in tables for name in table.contexts}))
    n = max(table.shown.shape[1] for table in tables)
    shown = np.zeros((len(contexts), n), np.int64)
    known = np.zeros(shown.shape)
    sums = {name: np.zeros(shown.shape) for name in tables[0].values}
    usual = {name: np.zeros(shown.shape) for name in sums}  # of cells without impressions
    for table in tables:
        width = table.shown.shape[1]
        rows = [contexts.index(name) for name in table.contexts]
        seen = table.shown > 0
        shown[rows, :width] += table.shown
        known[rows, :width] += seen
        for name, values in table.values.items():
            sums[name][rows, :width] += np.where(seen, values, 0.0)
            usual[name][rows, :width] = values
    means = {
        name: np.divide(total, known, out=usual[name], where=known > 0)
        for name, total in sums.items()
    }
    return PositionTable(tables[0].method, contexts, shown, means)


# -- validation on clicks --------------------------------------------------------------------------


def watch_clicks(watched: Watched, data: QueryDataset, bias: PositionBias, name: str) -> None:
    """Make measures of validation data with positions those of the method; see the docs.

    Without positions, labels are true judgements, and nothing changes.
    """
    if data.positions is None:
        return
    cell = data.grouped(bias.cells.of_rows(data.positions))
    known, place = cell >= 0, np.maximum(cell, 0)
    if not isinstance(bias, RatioBias | Propensities | AffineBias):
        watched.offsets = lambda: np.where(known, bias.offsets()[place], 0.0)
        return
    from rankgrove.measures._value_kernels import SUM

    for measure, prepared in watched.measures.items():
        if prepared.measure.rule != SUM or prepared.measure.own_swaps:
            raise ParameterError(
                f"{measure} on clicks ({name} data with positions) cannot be corrected with "
                f"position_bias={bias.method!r}: use a measure that adds up documents, such "
                "as ndcg or dcg, or validation data of judgements, without positions."
            )
    clicked = (watched.labels > 0).astype(np.float64)
    watched.weigh_gains(lambda: np.where(known, bias.corrected(clicked, place), clicked))


# -- model files -----------------------------------------------------------------------------------


def packed(table: PositionTable) -> dict[str, Any]:
    """Return a table as plain values."""
    return {
        "method": table.method,
        "contexts": list(table.contexts),
        "shown": table.shown.tolist(),
        "values": {name: values.tolist() for name, values in table.values.items()},
    }


def unpacked(content: Any, word: str = "position_bias") -> PositionTable:
    """Return the table of a model file, checked."""
    content = sense.table(content, word)
    contexts = tuple(sense.texts(content["contexts"], word))
    (method,) = sense.texts([content["method"]], word)
    shown = _block(content["shown"], len(contexts), word)
    values = {
        name: _block(rows, len(contexts), word)
        for name, rows in sense.table(content["values"], word).items()
    }
    if any(array.shape != shown.shape for array in values.values()):
        raise ValueError(f"the {word} has arrays of different sizes.")
    return PositionTable(method, contexts, shown.astype(np.int64), values)


def _block(rows: Any, n_rows: int, word: str) -> np.ndarray:
    if not isinstance(rows, list) or len(rows) != n_rows or not rows:
        raise ValueError(f"the {word} must have one row per context.")
    numbers = [sense.numbers(row, word) for row in rows]
    if len({row.size for row in numbers}) != 1:
        raise ValueError(f"the {word} must have rows of one length.")
    return np.array(numbers)
