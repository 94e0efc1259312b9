"""Inputs of commands: data sets, in the format of their ending; scores; systems to evaluate."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from rankgrove.data.file_kinds import is_folder_of_bins, is_table, refuse_packed_tables
from rankgrove.errors import DataWarning, MissingFileError, ParameterError, ParseError
from rankgrove.files import why
from rankgrove.validation import counted, nearest

if TYPE_CHECKING:
    import numpy as np

    from rankgrove.cli.options import Reading
    from rankgrove.data.queries import QueryDataset
    from rankgrove.measures.base import Measure
    from rankgrove.rankers.base import Ranker

SHOWN_COLUMNS = 8
SOURCE_KINDS = ("model", "feature", "scores", "run")
_SOURCES = "such as model.rg, feature:25 or scores.txt"


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
    absent: str | None = None,
    strict: bool = False,
    n_features: int | None = None,
    categorical: str | Sequence[str | int] | None = None,
    position: str | None = None,
    position_context: str | None = None,
    models: Mapping[str, Ranker] = MappingProxyType({}),
    judged: bool = True,
) -> QueryDataset:
    """Read one or several files: CSV, TSV or parquet by their ending, LETOR text otherwise.

    `features` are names, or one comma-separated text; None: of a table the columns that `models`
    were trained on, or all columns without another role. For LETOR text, `zero_based` says
    that features are numbered from 0, `absent` is the value of features that a row does not mention
    (None: as in the training data of `models`), and `n_features` is the training data's number of
    features. If that or a model has more or fewer features than the text, a note says so, or the
    text is refused (`strict`). `base_score` is a column of a table; for LETOR text, the name of a
    file with one score per line. `categorical` are features by number or name, or one
    comma-separated text; None: those of `models`. `position` is a column of a table, and
    `position_context` another; for LETOR text, `position` is the name of a file of positions.
    Unless it must be `judged`, a table may lack the column of labels.
    """
    refuse_packed_tables(paths)
    if any(is_folder_of_bins(path) for path in paths):
        given: dict[str, Any] = {
            "label": label != "label",
            "qid": qid != "qid",
            "docid": docid,
            "weight": weight,
        }
        given |= {"features": features, "base_score": base_score, "zero_based": zero_based}
        given |= {"absent": absent, "strict": strict, "categorical": categorical}
        given |= {"position": position, "position_context": position_context}
        return _load_bins(paths, [name for name, value in given.items() if value], models)
    names = feature_list(features)
    chosen = categorical_list(categorical)
    if is_table(paths):
        from rankgrove.data.table_files import table_columns
        from rankgrove.data.tabular import read_table

        if len(paths) > 1:
            raise ParameterError(
                "Give one CSV or parquet file; only LETOR data may be in several files."
            )
        for option, value in (("--zero-based", zero_based), ("--absent", absent)):
            if value:
                raise ParameterError(
                    f"{option} is for LETOR files, and {paths[0]} has columns with names. Leave it "
                    "out."
                )
        wanted = _columns_of(models, paths[0]) if names is None else names
        names_there = table_columns(paths[0])
        if chosen is None:
            chosen = _categorical_names(models, names_there, wanted)
        without_labels = not judged and label == "label" and label not in names_there
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", DataWarning)
            data = read_table(
                paths[0],
                label=None if without_labels else label,
                qid=qid,
                docid=docid,
                features=wanted,
                weight=weight,
                base_score=base_score,
                categorical=chosen,
                position=position,
                position_context=listed_names(position_context),
            )
        for warning in said:
            _say(f"{paths[0]}: {str(warning.message).rstrip('.')}.")
        return data
    columns = {"docid": docid, "features": features, "weight": weight}
    refuse_table_options(paths[0], columns | {"position_context": position_context})
    from rankgrove.data.letor import read_letor

    absent_value = str(absent or _absence(models))
    data = read_letor(list(paths), cache=cache, zero_based=zero_based, absent=absent_value)
    data = _as_wide(data, paths[0], n_features, models, strict)
    chosen = _categorical_numbers(models) if chosen is None else chosen
    if chosen:
        data = data.with_categorical(chosen)
        named = {j + 1 for m in models.values() for j, texts in m.categories_.items() if texts}
        if named:
            _say(
                f"{paths[0]}: the model has names of categories, and LETOR text has none: the "
                f"numbers of {_features_text(sorted(named))} are taken as the model's codes. If "
                "they are others, give a table with the names."
            )
    if position is not None:
        data = with_positions(data, position)
    if base_score is None:
        return data
    return data.with_base_score(read_scores(Path(base_score), data.n_rows))


def _load_bins(
    paths: Sequence[Path], given: list[str], models: Mapping[str, Ranker]
) -> QueryDataset:
    """Open a folder of bins, for models that split between them."""
    from rankgrove.rankers.trees.open_binned import open_binned

    folder = next(path for path in paths if is_folder_of_bins(path))
    if len(paths) > 1:
        raise ParameterError(f"{folder} is a folder of bins: give it alone.")
    if not models:
        raise ParameterError(
            f"{folder} is a folder of bins, which have no features: give the file that it was made "
            "from. Models can be trained on it with 'rankgrove train --low-memory', and scored."
        )
    if given:
        raise ParameterError(
            f"{folder} is a folder of bins, which were made already: leave "
            f"--{given[0].replace('_', '-')} out."
        )
    return open_binned(folder)


def listed_names(text: str | None) -> list[str] | None:
    """Return the columns of an option such as ``device,page``."""
    return None if text is None else [name.strip() for name in text.split(",")]


def with_positions(data: QueryDataset, file: str) -> QueryDataset:
    """Return data with the positions of a file."""
    from rankgrove.data.position_files import read_positions

    return data.with_positions(read_positions(Path(file), data.n_rows))


def _columns_of(models: Mapping[str, Ranker], path: Path) -> Sequence[str] | None:
    """Return the columns of a table that the models were trained on; None: all of them."""
    from rankgrove.data.table_files import table_columns

    names = {name: tuple(getattr(model, "feature_names_", ())) for name, model in models.items()}
    if len(set(names.values())) != 1 or () in names.values():
        return None  # what does not fit is refused when it is scored
    (name, wanted), *_ = names.items()
    columns = table_columns(path)
    missing = [column for column in wanted if column not in columns]
    if not missing:
        return list(wanted)
    if not columns or any(
        hasattr(model, "check_numbered") or getattr(model, "least_features_", False)
        for model in models.values()
    ):
        return None
    shown = ", ".join(map(repr, missing[:SHOWN_COLUMNS]))
    more = f" and {len(missing) - SHOWN_COLUMNS:,} more" if len(missing) > SHOWN_COLUMNS else ""
    plural = "columns" if len(missing) > 1 else "column"
    raise ParseError(
        path,
        1,
        f"the table has no {plural} {shown}{more}, which the model {name} was trained on"
        f"{nearest(missing[0], columns)}. Rename its columns as in the training data, or add them.",
    )


def _categorical_names(
    models: Mapping[str, Ranker], columns: Sequence[str], features: Sequence[str] | None
) -> list[str] | None:
    """Return the columns of a table that are categorical for a model; None: none."""
    used = set(columns if features is None else features)
    names = [
        model._names()[j]
        for model in models.values()
        for j, texts in model.categories_.items()
        if texts is not None
    ]
    return [name for name in dict.fromkeys(names) if name in used] or None


def _categorical_numbers(models: Mapping[str, Ranker]) -> list[int]:
    """Return the features of LETOR text, from 1, that are categorical for all models."""
    columns = [set(model.categories_) for model in models.values()]
    return [j + 1 for j in sorted(set.intersection(*columns))] if columns else []


def _absence(models: Mapping[str, Ranker]) -> str:
    """Return the value of features that a row does not mention, as in the models' training data."""
    values = {name: getattr(model, "absent_", None) for name, model in models.items()}
    of_zero, of_missing = (
        [name for name, absent in values.items() if absent == kind] for kind in ("zero", "missing")
    )
    if not of_missing:
        return "zero"
    if of_zero:
        raise ParameterError(
            "A feature that a row does not mention was 0 when the model "
            f"{of_zero[0]} was trained, and missing when {of_missing[0]} was: give --absent zero "
            "or --absent missing."
        )
    _say(
        "features that a row does not mention are missing, as when the model "
        f"{of_missing[0]} was trained (--absent zero makes them 0)."
    )
    return "missing"


def _as_wide(
    data: QueryDataset,
    path: Path,
    n_features: int | None,
    models: Mapping[str, Ranker],
    strict: bool,
) -> QueryDataset:
    """Return text data with the training data's number of features, or the widest model's.

    A note says what differs. A model ignores features that it does not know.
    """
    from rankgrove.rankers.given import is_other_width, width_text

    for name, model in models.items():
        if hasattr(model, "check_numbered"):
            model.check_numbered(data.n_features, f"the model {name}")
    widths = {
        f"the model {name}": model.n_features_in_
        for name, model in models.items()
        if is_other_width(model, data.n_features)
    }
    if n_features not in (None, data.n_features):
        widths["the training data"] = n_features
    notes = [
        width_text(name, n, str(path), data.n_features, data.absent) for name, n in widths.items()
    ]
    if notes and strict:
        raise ParameterError(f"{notes[0]} --strict refuses that.")
    for text in notes:
        _say(text)
    return data.with_n_features(n_features or max([data.n_features, *widths.values()]))


def _features_text(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:SHOWN_COLUMNS]))
    more = f" and {len(numbers) - SHOWN_COLUMNS:,} more" if len(numbers) > SHOWN_COLUMNS else ""
    return f"feature{'s' if len(numbers) > 1 else ''} {shown}{more}"


def _say(text: str) -> None:
    typer.echo(f"note: {text}", err=True)


def categorical_list(features: str | Sequence[str | int] | None) -> Sequence[str | int] | None:
    """Return categorical features, given as a sequence or as one comma-separated text."""
    return _names(features, "features of --categorical") if isinstance(features, str) else features


def feature_list(features: str | Sequence[str] | None) -> Sequence[str] | None:
    """Return feature names, given as a sequence or as one comma-separated text."""
    return _names(features, "columns of --features") if isinstance(features, str) else features


def refuse_table_options(file: str | Path, columns: Mapping[str, object]) -> None:
    """Refuse names of columns for a file without named columns."""
    for name in ("docid", "features", "weight", "position_context"):
        if columns.get(name) is None:
            continue
        option = f"--{name.replace('_', '-')}"
        begin = (
            f"{option} {columns[name]} names columns of CSV and parquet files, and {file} is read "
            "as LETOR text, which has none. "
        )
        if name == "position_context":
            raise ParameterError(
                f"{begin}Leave {option} out: the file of --position may have a column context."
            )
        if name != "features":
            raise ParameterError(f"{begin}Leave {option} out.")
        chosen = Path(str(columns[name]))
        if not chosen.exists() and (chosen.suffix or chosen.parent != Path()):
            raise MissingFileError(chosen, f"there is no such file (--features {chosen}).")
        raise ParameterError(
            f"{begin}Features of LETOR text are chosen when a model is trained: train and cv take "
            "--features FILE, a file with one feature number per line."
        )


def named_sets(texts: Sequence[str]) -> dict[str, list[Path]]:
    """Return the files of every data set by the set's name, which is built from its files' names.

    A set is one file, or several separated by commas. Sets whose names would be the same are
    named by their paths.
    """
    sets = [
        [Path(text)]
        if Path(text).exists()
        else [Path(name) for name in _names(text, "files of --valid")]
        for text in texts
    ]
    for path in [path for paths in sets for path in paths]:
        check_exists(path)
    short = ["+".join(_stem(path) for path in paths) for paths in sets]
    names = [
        name if short.count(name) == 1 else text for name, text in zip(short, texts, strict=True)
    ]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"--valid {name} is given twice: leave one out.")
    return dict(zip(names, sets, strict=True))


def check_measures(specs: Iterable[str | Measure], convention: str | None = None) -> None:
    """Refuse a mistyped measure before time is spent on reading data."""
    import rankgrove as rg

    for spec in specs:
        rg.measure(spec, convention)


def named_files(texts: Sequence[str], *, without: str = "") -> dict[str, Path]:
    """Return model files by name: NAME=FILE, or the file's name without its ending.

    A name must not contain a character of `without`.
    """
    files: dict[str, Path] = {}
    for text in texts:
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
    try:
        os.stat(path)
    except FileNotFoundError:
        raise MissingFileError(path) from None
    except OSError as error:
        raise ParseError(path, None, f"{why(error)}.") from None


def models_and_data(command: str, files: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Tell model files from data files by their content; they may come in any order."""
    from rankgrove.formats.read import kind_of

    models: list[Path] = []
    data: list[Path] = []
    for path in files:
        check_exists(path)
        (data if kind_of(path) is None else models).append(path)
    if not data:
        raise ParameterError(
            f"Give the judged data before the model, as in 'rankgrove {command} vali.txt web.rg'."
        )
    return models, data


def model_and_data(command: str, files: Iterable[Path]) -> tuple[Path, list[Path]]:
    """Like :func:`models_and_data`, but for exactly one model."""
    models, data = models_and_data(command, files)
    if len(models) != 1:
        raise ParameterError(
            f"Give one model file and the data, as in 'rankgrove {command} vali.txt web.rg'. "
            f"Got {len(models)} models."
        )
    return models[0], data


def _stem(path: Path) -> str:
    """Return a file's name without its ending, and without ``.gz``."""
    return Path(path.name.removesuffix(".gz")).stem


def _names(text: str, noun: str) -> list[str]:
    """Split a list of names at its commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ParameterError(
            f"Write the {noun} as A,B,C, with a name between commas. Got {text!r}."
        )
    return names


def read_scores(path: Path, n_rows: int) -> np.ndarray:
    """Read one score per line, in the row order of the data set."""
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
                path,
                number,
                f"expected one score per line, got {shown!r}. Write one number per line.",
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
    """Read one name per line."""
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
            raise ParseError(path, number, "a line without a name. Write one name per line.")
    return names


@dataclass(frozen=True)
class Source:
    """A system as the command line names it: `kind` is one of `SOURCE_KINDS`."""

    name: str
    kind: str
    value: str  # the name of a file, or the number or name of a feature

    @property
    def file(self) -> Path | None:
        """The file that is read, if there is one."""
        return None if self.kind == "feature" else Path(self.value)


def parse_source(text: str, *, is_run: bool = False) -> Source:
    """Parse SOURCE or NAME=SOURCE, as evaluate, compare and report take it.

    SOURCE is a file, or ``feature:25`` (number or name). Whether a file holds a model or one score
    per line is detected from its content; ``model:FILE``, ``scores:FILE`` and ``run:FILE`` set it.
    With `is_run`, a file is a TREC run. The default for NAME is the file's name or the source.
    """
    name, equals, source = text.partition("=")
    if not equals or text.partition(":")[0] in SOURCE_KINDS or Path(text).exists():
        name, source = "", text
    elif not name or not source:
        raise ParameterError(f"Write a system as SOURCE or NAME=SOURCE, {_SOURCES}. Got {text!r}.")
    kind, colon, value = source.partition(":")
    if not colon or kind not in SOURCE_KINDS or Path(source).exists():
        kind, value = "run" if is_run else _kind_of_file(Path(source)), source
    if is_run != (kind == "run") or not value:
        rule = "a TREC run, the name of a file" if is_run else _SOURCES
        raise ParameterError(f"Write a system as {rule}. Got {text!r}.")
    return Source(name or (source if kind == "feature" else _stem(Path(value))), kind, value)


def parse_sources(texts: Iterable[str], *, is_run: bool = False) -> dict[str, Source]:
    """Return sources by name; names must differ."""
    sources: dict[str, Source] = {}
    for text in texts:
        source = parse_source(text, is_run=is_run)
        if source.name in sources:
            raise ParameterError(
                f"Two systems are named {source.name!r}: give each its own name, as in "
                f"other={text.removeprefix(source.name + '=')}."
            )
        sources[source.name] = source
    return sources


def _kind_of_file(path: Path) -> str:
    from rankgrove.formats.read import kind_of

    if not path.exists():
        raise MissingFileError(path, f"there is no such file. A system is {_SOURCES}.")
    is_model = path.suffix == ".rg" or path.is_dir() or (path.is_file() and kind_of(path))
    return "model" if is_model else "scores"


def load_systems(
    sources: Mapping[str, Source], data: Sequence[Path], qrels: Path | None, reading: Reading
) -> tuple[dict[str, Any], Any]:
    """Return the systems by name, in the given order, and the judged data or qrels."""
    from rankgrove.data.trec import read_qrels, read_run

    if qrels is not None:
        judgements = read_qrels(qrels)
        return {name: read_run(source.value) for name, source in sources.items()}, judgements
    # Models are loaded first: they set the number of features of the data.
    models = load_models(sources.values())
    judged = reading.load(data, models=models)
    scores = {
        name: _feature_scores(judged.column(source.value))
        if source.kind == "feature"
        else read_scores(Path(source.value), judged.n_rows)
        for name, source in sources.items()
        if source.kind != "model"
    }
    systems = models | scores
    return {name: systems[name] for name in sources}, judged


def load_models(sources: Iterable[Source]) -> dict[str, Ranker]:
    """Return the models among the sources, by name."""
    from rankgrove.rankers.load import load

    return {source.name: load(source.value) for source in sources if source.kind == "model"}


def hint(old: str, new: str) -> None:
    """Print on standard error how an old spelling is written now."""
    typer.echo(f"hint: {old} is now written {new}; the old spelling still works.", err=True)


def _feature_scores(column: np.ndarray) -> np.ndarray:
    """Return a feature as scores; documents where it is missing rank below all others."""
    import numpy as np

    scores = column.astype(np.float64)
    missing = np.isnan(scores)
    if missing.any():
        # Just below, not minus infinity, which would mean that the document was not retrieved.
        scores[missing] = 0.0 if missing.all() else np.nextafter(scores[~missing].min(), -np.inf)
    return scores
