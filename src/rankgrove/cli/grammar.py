"""One grammar for all commands: data first, ``--out`` for output; old spellings still work.

Flags are shown without a type in the help text, arguments in capitals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from rankgrove.errors import ParameterError

# Per command: old and new names of options; "" makes an option's value an argument. A command line
# is read in the old spelling if it has an old name that is no longer an option.
OLD_SPELLINGS: Mapping[str, Mapping[str, str]] = {
    "train": {"--model": "--out"},
    "adapt": {"--model": "--out"},
    "prune": {"--model": "--out"},
    "combine": {"--model": "--out", "--out": "--scores-out", "-o": "--scores-out"},
    "report": {"--against": "--system", "-a": "--system", "--data": "", "-d": ""},
}

# Other spellings of options that are accepted without a note, and are not in the help.
ALIASES = {"--normalize": "--normalise"}
# RankLib's options, which have no command before them.
RANKLIB_OPTIONS = ("-train", "-load", "-rank", "-ranker", "-test", "-validate", "-metric2t")


# An argument as versions of typer write it in the line of usage: {DATA...}..., [OUT], DATA...
_ARGUMENT = re.compile(r"(?P<bracket>[{[])(?P<name>.*)[}\]](?P<dots>\.\.\.)?")


class _PlainHelp:
    """A command or group whose help shows flags without a type, and arguments in one way."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_bool_flag", False):
                param.metavar = ""
            elif param.param_type_name == "argument" and param.metavar is None:
                param.metavar = param.name.upper() + ("..." if param.nargs != 1 else "")
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the line of usage, such as ``DATA...`` and ``[OUT]``."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [plain_argument(piece) for piece in pieces]


class Command(_PlainHelp, TyperCommand):
    """A command that understands its old spellings."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments after replacing old spellings."""
        known = {name for param in self.get_params(ctx) for name in param.opts}
        usual = [_without_alias(arg, known) for arg in args]
        return super().parse_args(ctx, in_new_spelling(self.name or "", usual, known))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; if Ctrl-C ends it before anything was kept, say so."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("interrupted: nothing was kept.", err=True)
            raise typer.Exit(130) from None


class Group(_PlainHelp, TyperGroup):
    """The commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; the error for RankLib's options shows how to write them here."""
        if args and args[0] in RANKLIB_OPTIONS:
            raise ParameterError(
                f"{args[0]} is an option of RankLib. Here a command comes first, as in 'rankgrove "
                "train train.txt --valid vali.txt --ranker lambdamart --measure ndcg@10 --out "
                "web.rg'; docs/howto/ranklib.md lists RankLib's options with ours."
            )
        return super().parse_args(ctx, args)


def plain_argument(piece: str) -> str:
    """Return a word of the line of usage without braces, and without brackets or dots twice."""
    found = _ARGUMENT.fullmatch(piece)
    if found is None:
        return piece
    name = found["name"]
    text = name if "..." in name else name + (found["dots"] or "")
    return f"[{text}]" if found["bracket"] == "[" and not name.startswith("[") else text


def _without_alias(arg: str, known: set[str]) -> str:
    """Return an argument with the usual spelling of its option, if the command has that option."""
    name, equals, value = arg.partition("=")
    usual = ALIASES.get(name, name)
    return usual + equals + value if usual in known else arg


def in_new_spelling(command: str, args: list[str], known: set[str]) -> list[str]:
    """Return arguments with old option names replaced, and say so; `known` are current names."""
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
