"""Rankers by name and their parameters as words; ``rankgrove params`` lists them."""

from __future__ import annotations

import inspect
import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from rankgrove.errors import ParameterError, ParseError


def params(
    ranker: Annotated[
        str, typer.Argument(help="Which ranker; `rankgrove train --help` names them.")
    ] = "lambdamart",
) -> None:
    """List the parameters of a ranker with their defaults and meaning, as a TOML file."""
    made = new_ranker(ranker)
    described: dict[str, str] = {}
    for one in type(made).__mro__:  # what a ranker shares with others, its base describes
        described = _descriptions(one.__doc__ or "") | described
    for name in inspect.signature(type(made)).parameters:
        value = getattr(made, name)
        typer.echo(f"# {described.get(name, '')}")
        typer.echo(f"{name} = {_toml(value)}")


def new_ranker(name: str) -> Any:
    """Return an untrained ranker by its name."""
    from rankgrove.rankers.load import trainable
    from rankgrove.validation import check_choice

    rankers = trainable()
    return rankers[check_choice("ranker", "train", name, rankers)]()


def parameters(config: Path | None, settings: list[str]) -> dict[str, Any]:
    """Return parameters of a TOML file and of NAME=VALUE words, the words first."""
    given = {} if config is None else read_toml(config)
    for item in settings:
        name, equals, text = (part.strip() for part in item.partition("="))
        if not equals or not name or not text:
            raise ParameterError(
                f"Write a parameter as NAME=VALUE, as in n_trees=500. Got {item!r}."
            )
        try:
            given[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            given[name] = text  # a bare word is a text
    return {name: _plain(value) for name, value in given.items()}


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file says."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ParseError(path, None, f"the file cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParseError(path, None, f"not a TOML file: {error}.") from None


def _plain(value: Any) -> Any:
    """Return none, true and false in any case as what they say, and a list as a tuple.

    TOML has no word for none, and the rankers' own lists are tuples.
    """
    words = {"none": None, "true": True, "false": False}
    if isinstance(value, list):
        return tuple(value)
    return words.get(value.lower(), value) if isinstance(value, str) else value


def _descriptions(doc: str) -> dict[str, str]:
    """Return what a numpydoc docstring says of every parameter."""
    found: dict[str, str] = {}
    name = None
    for line in doc.split("Parameters\n")[-1].split("Attributes\n")[0].splitlines():
        text = line.strip()
        before, colon, after = text.partition(" : ")
        if colon and before.isidentifier():
            name = before
            found[name] = after
        elif name and text and not set(text) <= {"-"}:
            found[name] += " " + text
    return found


def _toml(value: Any) -> str:
    """Return a parameter as TOML writes it; --config reads it back."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return json.dumps(list(value))
    return str(value) if isinstance(value, int | float) else json.dumps(str(value))
