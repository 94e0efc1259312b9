"""What commands read: data sets by their ending, scores, and systems to be measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankgrove.errors import ParameterError, ParseError

if TYPE_CHECKING:
    import numpy as np

    from rankgrove.data.queries import QueryDataset

TABLE_ENDINGS = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")


def load_dataset(
    paths: Sequence[Path],
    *,
    label: str = "label",
    qid: str = "qid",
    docid: str | None = None,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    base_score: str | None = None,
    cache: bool = False,
    n_features: int | None = None,
) -> QueryDataset:
    """Read one or several files: CSV, TSV or parquet by their ending, LETOR text otherwise.

    `features` are names, or one text with commas between them; `n_features` is how many LETOR text
    has, where its last ones may not occur. `base_score` is a column of a table; for LETOR text, the
    name of a file with one score a line.
    """
    names = _names(features) if isinstance(features, str) else features
    if is_table(paths):
        from rankgrove.data.tabular import read_table

        if len(paths) > 1:
            raise ParameterError("Give one CSV or parquet file; only LETOR files can be several.")
        return read_table(
            paths[0],
            label=label,
            qid=qid,
            docid=docid,
            features=names,
            weight=weight,
            base_score=base_score,
        )
    for option, given in [("--docid", docid), ("--features", features), ("--weight", weight)]:
        if given is not None:
            raise ParameterError(
                f"{option} names columns of CSV and parquet files, and {paths[0]} is read as LETOR "
                f"text, which has none. Leave {option} out."
            )
    from rankgrove.data.letor import read_letor

    data = read_letor(list(paths), cache=cache, n_features=n_features)
    if base_score is None:
        return data
    return data.with_base_score(read_scores(Path(base_score), data.n_rows))


def is_table(paths: Sequence[Path]) -> bool:
    """Return whether the files are tables, by their ending."""
    return any(path.name.lower().endswith(TABLE_ENDINGS) for path in paths)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ParameterError(
            f"Write the columns of --features as A,B,C, with a name between commas. Got {text!r}."
        )
    return names


def read_scores(path: Path, n_rows: int) -> np.ndarray:
    """Read one score a line, in the row order of the data set."""
    import numpy as np

    from rankgrove.data.text_files import read_text_bytes

    lines = read_text_bytes(path).split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    scores = np.empty(len(lines))
    for number, line in enumerate(lines, 1):
        try:
            scores[number - 1] = float(line)
        except ValueError:
            shown = line[:40].decode(errors="replace").strip()
            raise ParseError(
                path, number, f"expected one score a line, got {shown!r}. Write one number a line."
            ) from None
        if math.isnan(scores[number - 1]):
            raise ParseError(path, number, "a score must be a number, got nan.")
    if scores.size != n_rows:
        raise ParseError(
            path,
            None,
            f"{scores.size} scores for {n_rows} rows: write one score for each row of the data, "
            "in its row order.",
        )
    return scores


def load_system(source: str, dataset: Any, *, is_run: bool) -> Any:
    """Return what `source` names: model:FILE, feature:N, a file of scores, or a TREC run."""
    if is_run:
        from rankgrove.data.trec import read_run

        return read_run(source)
    kind, colon, feature = source.partition(":")
    if colon and kind == "feature":
        return _feature_scores(dataset.column(feature))
    if colon and kind == "model":
        from rankgrove.rankers.load import load

        return load(feature)
    return read_scores(Path(source), dataset.n_rows)


def _feature_scores(column: np.ndarray) -> np.ndarray:
    """Return a feature as scores; a document that lacks it ranks below all that have it."""
    import numpy as np

    scores = column.astype(np.float64)
    missing = np.isnan(scores)
    if missing.any():
        # Just below, and not minus infinity: that would say that it was not retrieved.
        scores[missing] = 0.0 if missing.all() else np.nextafter(scores[~missing].min(), -np.inf)
    return scores


def check_exists(path: Path) -> None:
    """Refuse a file that is not there before any work is done."""
    if not path.exists():
        raise ParseError(path, None, "there is no such file.")
