"""Rankers by name and their parameters as text; ``rankgrove params`` lists them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankgrove.errors import MissingFileError, ParameterError, ParseError
from rankgrove.files import why, write_atomically

if TYPE_CHECKING:
    from rankgrove.cli.options import Encoding, Normalisation, Reading, Transformation
    from rankgrove.rankers.base import Ranker

# Names from papers or from the package that --ranker does not take, and what to use instead.
ELSEWHERE = {
    "auto": "the best ranker is searched for by 'rankgrove auto'",
    "autoranker": "the best ranker is searched for by 'rankgrove auto'",
    "bagboo": "BagBoo is a bag of mart: --ranker mart --models 45 --combine mean",
    "blmart": "BL-MART is a bag of lambdamart: --ranker lambdamart --models 45",
    "bag": "any ranker is bagged by --models 45",
    "bagged": "any ranker is bagged by --models 45",
    "baggedranker": "any ranker is bagged by --models 45",
    "lambdasmart": "LambdaSMART is a lambdamart that starts from a model: --submodel FILE",
    "trada": "trees are adapted by 'rankgrove adapt'",
    "combination": "models are combined by 'rankgrove combine'",
    "combined": "models are combined by 'rankgrove combine'",
    "combinedranker": "models are combined by 'rankgrove combine'",
    "stacked": "a stack is trained in Python: rg.StackedRanker",
    "stackedranker": "a stack is trained in Python: rg.StackedRanker",
    "trees": "another library's model needs no training: every command takes its file",
    "treeranker": "another library's model needs no training: every command takes its file",
    "svm": "there is one SVM per measure: svm-map, svm-roc, svm-mrr, svm-ndcg, svm-acc or ranksvm",
}


def params(
    ranker: Annotated[
        str, typer.Argument(help="Name of a ranker; `rankgrove train --help` lists them.")
    ] = "lambdamart",
) -> None:
    """Print the parameters of a ranker with defaults and descriptions, as a TOML file."""
    default_ranker = new_ranker(ranker, "params")
    for name, parameter in default_ranker.parameters.items():
        typer.echo(f"# {parameter.meaning}")
        typer.echo(f"{name} = {_as_toml(parameter.default)}")


def new_ranker(name: str, command: str = "train") -> Ranker:
    """Return an untrained ranker by its name, in upper or lower case; errors name the command."""
    from rankgrove.rankers.load import trainable
    from rankgrove.validation import check_choice, refuse

    rankers = trainable()
    plain = name.lower().replace("-", "").replace("_", "")
    if name not in rankers and plain in ELSEWHERE:
        refuse("ranker", command, f"a ranker that train knows ({ELSEWHERE[plain]})", name)
    kinds = {kind.replace("-", ""): kind for kind in rankers}
    name = name if name in rankers else kinds.get(plain, name)
    return rankers[check_choice("ranker", command, name, rankers)]()


def parameters(config: Path | None, settings: list[str]) -> dict[str, Any]:
    """Return parameters from a TOML file and from NAME=VALUE words; the words take precedence."""
    params = {} if config is None else read_toml(config)
    for item in settings:
        name, equals, text = (part.strip() for part in item.partition("="))
        if not equals or not name or not text:
            raise ParameterError(
                f"Write a parameter as NAME=VALUE, as in n_trees=500. Got {item!r}."
            )
        try:
            params[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            params[name] = _from_json(text)
    return {name: _plain(value) for name, value in params.items()}


def _from_json(text: str) -> Any:
    """Return a list or a mapping in JSON; anything else is a bare word."""
    try:
        return json.loads(text) if text[0] in "[{" else text
    except ValueError:
        return text


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file."""
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise MissingFileError(path) from None
    except OSError as error:
        raise ParseError(path, None, f"the file cannot be read: {why(error)}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParseError(path, None, f"not a TOML file: {error}.") from None


def write_toml(path: Path, params: Mapping[str, Any]) -> None:
    """Write parameters to a file that ``--config`` reads."""
    lines = [f"{name} = {_as_toml(value)}\n" for name, value in params.items()]
    write_atomically(path, "".join(lines))


def _as_toml(value: object) -> str:
    """Return a parameter's value as TOML, which ``--config`` and ``--set`` read."""
    if value is None:
        return '"none"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(key))} = {_as_toml(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else json.dumps(str(value))


def _plain(value: Any) -> Any:
    """Convert the words none, true and false, in upper or lower case, and lists to tuples.

    TOML has no word for none, and rankers take tuples.
    """
    words = {"none": None, "true": True, "false": False}
    if isinstance(value, list):
        return tuple(value)
    return words.get(value.lower(), value) if isinstance(value, str) else value


def prepared(
    ranker: Ranker,
    reading: Reading,
    normalise: Normalisation | None,
    transform: Transformation | None,
    encode: Encoding | None,
) -> tuple[Ranker, Reading]:
    """Return the ranker with the preparation of its features, and the matching `reading`.

    ``--features`` may name a file with the number or name of one feature per line.
    """
    from rankgrove.cli.inputs import read_names
    from rankgrove.rankers.ensembles.prepared import PreparedRanker

    chosen = None
    if reading.features is not None and Path(reading.features).is_file():
        chosen = read_names(Path(reading.features))
        reading = replace(reading, features=None)
    if chosen is None and normalise is None and transform is None and encode is None:
        return ranker, reading
    steps = [None if step is None else step.value for step in (normalise, transform)]
    encoding = None if encode is None else encode.value
    return PreparedRanker(ranker, chosen, *steps, encode=encoding), reading


def bag_options(models: int | None, sample: float | None, combine: str | None) -> dict[str, Any]:
    """Return the options of a bag as parameters of BaggedRanker; refuse them without --models."""
    if models is None and not (sample is None and combine is None):
        raise ParameterError("--sample and --combine are for bags: give --models too.")
    if sample is not None and not 0.0 < sample <= 1.0:
        raise ParameterError(
            f"--sample is a share of the queries: above 0, at most 1. Got {sample}."
        )
    options = {"query_fraction": sample, "combine": combine}
    return {name: value for name, value in options.items() if value is not None}
