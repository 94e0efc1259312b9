"""What commands read: data sets by their ending, scores, and systems to be measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankgrove.data.file_kinds import is_table
from rankgrove.errors import ParameterError, ParseError

if TYPE_CHECKING:
    import numpy as np

    from rankgrove.data.queries import QueryDataset
    from rankgrove.rankers.base import Ranker


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
    zero_based: bool = False,
    n_features: int | None = None,
    models: Iterable[Any] = (),
) -> QueryDataset:
    """Read one or several files: CSV, TSV or parquet by their ending, LETOR text otherwise.

    `features` are names, or one text with commas between them; `zero_based` says that LETOR text
    counts features from 0, `n_features` how many it has, where its last ones may not occur, and so
    do `models` that the data is for.
    `base_score` is a column of a table; for LETOR text, the name of a file with one score a line.
    """
    names = feature_list(features)
    if is_table(paths):
        from rankgrove.data.tabular import read_table

        if len(paths) > 1:
            raise ParameterError("Give one CSV or parquet file; only LETOR files can be several.")
        if zero_based:
            raise ParameterError(
                f"--zero-based is for LETOR files, and {paths[0]} has columns with names. Leave it "
                "out."
            )
        return read_table(
            paths[0],
            label=label,
            qid=qid,
            docid=docid,
            features=names,
            weight=weight,
            base_score=base_score,
        )
    refuse_table_options(paths[0], {"docid": docid, "features": features, "weight": weight})
    from rankgrove.data.letor import read_letor

    at_least, known = _widths(models)
    read = partial(read_letor, list(paths), cache=cache, zero_based=zero_based)
    data = read(n_features=n_features or known)
    if data.n_features < at_least:
        data = read(n_features=at_least)
    if base_score is None:
        return data
    return data.with_base_score(read_scores(Path(base_score), data.n_rows))


def _widths(models: Iterable[Any]) -> tuple[int, int | None]:
    """Return how many features models need at least, and how many there are if they know it."""
    wide = [(one.n_features_in_, getattr(one, "least_features_", False)) for one in models]
    known = [n for n, least in wide if not least]
    return max((n for n, _ in wide), default=0), max(known, default=None)


def feature_list(features: str | Sequence[str] | None) -> Sequence[str] | None:
    """Return feature names, given as such or as one text with commas between them."""
    return _names(features, "columns of --features") if isinstance(features, str) else features


def refuse_table_options(file: str | Path, given: Mapping[str, Any]) -> None:
    """Refuse names of columns where a file has none."""
    for name in ("docid", "features", "weight"):
        if given[name] is not None:
            raise ParameterError(
                f"--{name} names columns of CSV and parquet files, and {file} is read as LETOR "
                f"text, which has none. Leave --{name} out."
            )


def named_sets(given: Sequence[str]) -> dict[str, list[Path]]:
    """Return the files of every data set by the set's name, which is made of its files' names.

    A set is one file, or several with commas between them. Sets whose names would be the same
    are named by their paths.
    """
    sets = [
        [Path(text)]
        if Path(text).exists()
        else [Path(name) for name in _names(text, "files of --valid")]
        for text in given
    ]
    for path in [path for paths in sets for path in paths]:
        check_exists(path)
    short = ["+".join(_stem(path) for path in paths) for paths in sets]
    names = [
        name if short.count(name) == 1 else text for name, text in zip(short, given, strict=True)
    ]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"--valid {name} is given twice: leave one out.")
    return dict(zip(names, sets, strict=True))


def check_measures(specs: Iterable[Any], convention: str | None = None) -> None:
    """Refuse a mistyped measure: it should not cost the reading of the data."""
    import rankgrove as rg

    for spec in specs:
        rg.measure(spec, convention)


def named_files(given: Sequence[str], *, without: str = "") -> dict[str, Path]:
    """Return the files of models by name: NAME=FILE, or the file's name without its ending.

    No name may have a character of `without`.
    """
    files: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = Path(text).stem, text
        if not name or not path or set(name) & set(without):
            rule = f", no {without} in NAME" if without else ""
            raise ParameterError(f"Write a model as FILE or NAME=FILE{rule}. Got {text!r}.")
        if name in files:
            raise ParameterError(
                f"Two models are named {name!r}: name them yourself, as in old={files[name]}."
            )
        files[name] = Path(path)
    return files


def check_exists(path: Path) -> None:
    """Refuse a file that is not there before any work is done."""
    if not path.exists():
        raise ParseError(path, None, "there is no such file.")


def _stem(path: Path) -> str:
    """Return a file's name without its ending, and without that of a packed file before it."""
    return Path(path.name.removesuffix(".gz")).stem


def _names(text: str, what: str) -> list[str]:
    """Return the names between commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ParameterError(
            f"Write the {what} as A,B,C, with a name between commas. Got {text!r}."
        )
    return names


def read_scores(path: Path, n_rows: int) -> np.ndarray:
    """Read one score a line, in the row order of the data set."""
    import numpy as np

    from rankgrove.data.text_files import read_text_bytes
    from rankgrove.validation import counted

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
            f"{counted(scores.size, 'score')} for {counted(n_rows, 'row')}: write one score for "
            "each row of the data, in its row order.",
        )
    return scores


def read_names(path: Path) -> list[str]:
    """Read one name a line."""
    from rankgrove.data.text_files import read_text_bytes

    try:
        text = read_text_bytes(path).decode()
    except UnicodeDecodeError:
        raise ParseError(path, None, "names must be text in UTF-8.") from None
    names = [line.strip() for line in text.splitlines()]
    while names and not names[-1]:
        names.pop()
    for number, name in enumerate(names, 1):
        if not name:
            raise ParseError(path, number, "a line without a name. Write one name a line.")
    return names


def load_models(sources: Mapping[str, str]) -> dict[str, Ranker]:
    """Return the models among named systems: those written as model:FILE."""
    from rankgrove.rankers.load import load

    mark = "model:"
    return {
        name: load(source.removeprefix(mark))
        for name, source in sources.items()
        if source.startswith(mark)
    }


def load_system(source: str, dataset: Any, *, is_run: bool) -> Any:
    """Return what `source` names: feature:N, a file of scores, or a TREC run."""
    if is_run:
        from rankgrove.data.trec import read_run

        return read_run(source)
    kind, colon, feature = source.partition(":")
    if colon and kind == "feature":
        return _feature_scores(dataset.column(feature))
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
