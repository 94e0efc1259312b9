"""One grammar for all commands: data first, ``--out`` is output; old spellings still work.

Flags have no type in the help text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# By command: an option's old name and its new one; "" makes its value an argument. The names are
# read as the old ones where one of them is no option any more.
OLD_SPELLINGS: Mapping[str, Mapping[str, str]] = {
    "train": {"--model": "--out"},
    "adapt": {"--model": "--out"},
    "prune": {"--model": "--out"},
    "combine": {"--model": "--out", "--out": "--scores-out", "-o": "--scores-out"},
    "report": {"--against": "--system", "-a": "--system", "--data": "", "-d": ""},
}


class _FlagsInHelp:
    """A command or a group of them, in whose help a flag is a flag."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_bool_flag", False):
                param.metavar = ""
        return params


class Command(_FlagsInHelp, TyperCommand):
    """A command that understands its old spellings."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, old spellings replaced."""
        known = {name for param in self.get_params(ctx) for name in param.opts}
        return super().parse_args(ctx, in_new_spelling(self.name or "", args, known))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; where Ctrl-C ends it, and it does not say what was kept, nothing was."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted: nothing was kept.", err=True)
            raise typer.Exit(130) from None


class Group(_FlagsInHelp, TyperGroup):
    """The commands."""


def in_new_spelling(command: str, args: list[str], known: set[str]) -> list[str]:
    """Return arguments with old names of options replaced, and say so; `known` are the new."""
    from rankgrove.cli.inputs import hint

    new_names = OLD_SPELLINGS.get(command, {})
    options = args[: args.index("--")] if "--" in args else args
    old = {arg.partition("=")[0] for arg in options} & set(new_names)
    if not old - known:
        return args
    replaced: list[str] = []
    for arg in options:
        name, equals, value = arg.partition("=")
        if name not in new_names:
            replaced.append(arg)
        elif new_names[name]:
            replaced.append(new_names[name] + equals + value)
        elif equals:
            replaced.append(value)
    for name in sorted(old):
        new = new_names[name] or f"{command} FILE, without a name"
        hint(f"{command} {name}", new)
    return replaced + args[len(options) :]
