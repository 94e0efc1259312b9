"""The options of commands that read a click log, declared once."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from rankgrove.cli.options import with_options
from rankgrove.errors import DataWarning, ParameterError

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

ROLES = ("session", "query", "document", "position", "click", "dwell", "time", "client")

LogFile = Annotated[
    Path,
    typer.Argument(
        metavar="LOG",
        help="The click log: a CSV, TSV, parquet or arrow file with one row per document that was "
        "shown; or with --ubi a file of OpenSearch's ubi_events.",
    ),
]


class Places(StrEnum):
    """What says where a document was."""

    events = "events"
    hits = "hits"


class Unmatched(StrEnum):
    """What is done with events that match no search or no result."""

    error = "error"
    drop = "drop"


@dataclass(frozen=True)
class LogReading:
    """How a click log is read: the options that ``reads_log`` adds to a command."""

    columns: Annotated[
        str | None,
        typer.Option(
            help="Names of the log's columns, as in session=visit,click=clicked. Roles: "
            f"{', '.join(ROLES)}.",
            show_default="the names of the roles",
        ),
    ] = None
    context: Annotated[
        str | None,
        typer.Option("--context", help="Columns in which sessions differ, as in device,page."),
    ] = None
    first_position: Annotated[
        int, typer.Option(min=0, max=1, help="0 if the log counts positions from 0.")
    ] = 1
    merge: Annotated[
        bool, typer.Option("--merge", help="Merge a document that is shown twice in a session.")
    ] = False
    ubi: Annotated[
        Path | None,
        typer.Option("--ubi", help="OpenSearch's ubi_queries (NDJSON); LOG is ubi_events then."),
    ] = None
    ubi_clicks: Annotated[
        str | None,
        typer.Option(
            help="The action_names that are clicks, as in click,add_to_cart; with --ubi.",
            show_default="click",
        ),
    ] = None
    ubi_impressions: Annotated[
        str | None,
        typer.Option(
            help="The action_names that are impressions; with --ubi.", show_default="impression"
        ),
    ] = None
    ubi_positions: Annotated[
        Places | None,
        typer.Option(
            help="What says where a document was if events and query_response_hit_ids differ; with "
            "--ubi.",
            show_default="events",
        ),
    ] = None
    ubi_unmatched: Annotated[
        Unmatched | None,
        typer.Option(
            help="Clicks on what was not shown, and events of unknown searches: an error, or left "
            "out with a note; with --ubi.",
            show_default="error",
        ),
    ] = None
    no_bots: Annotated[
        bool,
        typer.Option("--no-bots", help="Leave out suspected bots; the number is printed."),
    ] = False

    def load(self, path: Path) -> ClickLog:
        """Read a log, and say what was merged or left out."""
        import rankgrove as rg

        contexts = _names(self.context, "--context")
        if self.ubi is not None:
            if self.columns or self.merge:
                raise ParameterError(
                    "--columns and --merge are for tables; leave them out with --ubi."
                )
            with notes():
                log = rg.read_ubi(
                    self.ubi,
                    path,
                    first_position=self.first_position,
                    context=contexts,
                    **self._ubi_settings(),
                )
        else:
            for name in self._ubi_settings():
                raise ParameterError(f"--ubi-{name} is for OpenSearch's logs: give --ubi too.")
            log = rg.read_clicks(
                path,
                **_roles(self.columns),
                context=contexts,
                first_position=self.first_position,
                duplicates="merge" if self.merge else "error",
            )
        if self.no_bots:
            log = log.without_bots()
        if log.notes and (self.ubi is None or self.no_bots):
            typer.echo(f"note: {'; '.join(log.notes)}.", err=True)
        return log

    def _ubi_settings(self) -> dict[str, Any]:
        """Return the arguments of read_ubi that were given."""
        settings = {
            "clicks": self.ubi_clicks and _names(self.ubi_clicks, "--ubi-clicks"),
            "impressions": self.ubi_impressions
            and _names(self.ubi_impressions, "--ubi-impressions"),
            "positions": self.ubi_positions and self.ubi_positions.value,
            "unmatched": self.ubi_unmatched and self.ubi_unmatched.value,
        }
        return {name: value for name, value in settings.items() if value is not None}


def reads_log(what_for: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a command's parameter `impressions` by the options that make up a `LogReading`.

    `what_for` : what the command does with contexts, for its help
    """
    hints = get_type_hints(LogReading, include_extras=True)
    if what_for:
        text = f"Columns of sessions, as in device,page: {what_for}."
        hints["context"] = Annotated[str | None, typer.Option("--context", help=text)]
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(LogReading)
    ]
    return lambda command: with_options(command, "impressions", options, LogReading)


@contextmanager
def notes() -> Iterator[None]:
    """Print warnings about data as notes on standard error."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", DataWarning)
        yield
    for warning in said:
        typer.echo(f"note: {warning.message}", err=True)


def _names(text: str | None, option: str) -> list[str]:
    names = [] if text is None else [name.strip() for name in text.split(",")]
    if not all(names):
        raise ParameterError(f"Write {option} as A,B, with a name between commas. Got {text!r}.")
    return names


def _roles(text: str | None) -> dict[str, Any]:
    """Return the arguments of read_clicks that name columns."""
    named: dict[str, Any] = {}
    for part in _names(text, "--columns"):
        role, equals, name = part.partition("=")
        if not equals or role not in ROLES or not name:
            raise ParameterError(
                f"Write --columns as ROLE=NAME,ROLE=NAME; roles are {', '.join(ROLES)}. "
                f"Got {part!r}."
            )
        named[role] = name
    return named
