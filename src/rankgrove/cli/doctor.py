"""``rankgrove doctor``: the installation in a few lines, for bug reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer


def doctor(
    speed: Annotated[
        bool,
        typer.Option(
            "--speed/--no-speed",
            help="Also train and score a tiny model. The first run compiles kernels, which takes "
            "up to half a minute.",
        ),
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the installation: versions, threads, compiled kernels, optional packages, speed.

    The output is plain text to paste into a bug report. It has no names of folders except that of
    the compiled kernels, in which ~ stands for the home folder.

    The status is 1 if something does not work, which the last lines name.

    Examples:

    rankgrove doctor

    rankgrove doctor --no-speed --json
    """
    import json

    from rankgrove.cli import doctor_facts

    facts = doctor_facts.all_facts(speed=speed)
    typer.echo(json.dumps(facts, indent=1) if as_json else as_text(facts))
    if facts["problems"]:
        raise typer.Exit(1)


def as_text(facts: Mapping[str, Any]) -> str:
    """Return facts as sections of two columns, the problems at the end."""
    lines = []
    for section, values in facts.items():
        if section == "problems":
            continue
        lines.append(section)
        width = max(len(name) for name in values)
        lines += [f"  {name:{width}}  {_shown(value)}" for name, value in values.items()]
    problems = facts["problems"] or ["none found"]
    return "\n".join([*lines, "problems", *(f"  {problem}" for problem in problems)])


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else "-" if value is None else str(value)
