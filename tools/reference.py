"""Reference pages that are made from the program when the site is built: commands, parameters.

The commands come from the definitions that ``rankgrove COMMAND --help`` prints, the parameters from
the lines of the class bodies. No file of the repository holds a copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import rankgrove as rg
from rankgrove.errors import RankgroveError
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.declaring import Parameter

COMMANDS, PARAMETERS = "commands", "parameters"
# Values that many parameters take beside those of their rule.
WORDS = (None, "auto")


def reference_pages() -> dict[str, str]:
    """Return the generated pages by their paths."""
    return {f"{COMMANDS}.md": command_page(), f"{PARAMETERS}.md": parameter_page()}


# -- commands --------------------------------------------------------------------------------------


def commands(group: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the full name, the command and its context, also for commands within commands."""
    for name in group.list_commands(context):
        command = group.commands[name]
        inner = command.context_class(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from commands(command, inner)
        else:
            yield inner.command_path, command, inner


def all_commands() -> list[tuple[str, Any, Any]]:
    """Return all commands of the program, in the order of its help."""
    from typer.main import get_command

    from rankgrove.cli.main import app

    program = get_command(app)
    return list(commands(program, program.context_class(program, info_name="rankgrove")))


def command_page() -> str:
    """Return the page about the command line."""
    every = all_commands()
    lines = [
        "# The command line",
        "",
        "After this page you know every command and every option. `rankgrove COMMAND --help` "
        "prints the same; this page is generated from it. Parameters of rankers, which "
        f"`--set NAME=VALUE` takes, are on [a page of their own]({PARAMETERS}.md).",
        "",
        "| command | what it does |",
        "|---|---|",
    ]
    for path, command, _ in every:
        first = (command.help or "").split("\n\n")[0]
        lines.append(f"| [`{path}`](#{path.replace(' ', '-')}) | {cell(first)} |")
    for path, command, context in every:
        lines += ["", f"## {path}", "", *described(command.help or "")]
        lines += [
            "",
            "```text",
            usage_of(path, command, context),
            "```",
            "",
            *options(command, context),
        ]
    return "\n".join([*lines, ""])


def usage_of(path: str, command: Any, context: Any) -> str:
    """Return the line of usage."""
    return " ".join([path, *command.collect_usage_pieces(context)])


def described(text: str) -> list[str]:
    """Return a help text as Markdown: lines that begin with a command are examples."""
    lines: list[str] = []
    examples: list[str] = []
    for part in text.replace("\b", "").split("\n\n"):
        if part.strip().startswith("rankgrove "):
            examples.append(" ".join(part.split()))
            continue
        if examples:
            lines += ["```sh", *examples, "```", ""]
            examples = []
        lines += [escaped(" ".join(part.split())), ""]
    if examples:
        lines += ["```sh", *examples, "```", ""]
    return lines[:-1]


def options(command: Any, context: Any) -> list[str]:
    """Return the table of a command's arguments and options."""
    rows = ["| argument or option | meaning |", "|---|---|"]
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None and "--help" not in param.opts:
            names = re.sub(r"(?<=\w) (?=-)", ", ", record[0]).replace("|", "\\|")
            rows.append(f"| `{names}` | {cell(record[1])} |")
    return rows


# -- parameters ------------------------------------------------------------------------------------


def rankers_with_parameters() -> dict[str, type[Ranker]]:
    """Return the public rankers that declare parameters, by their public names."""
    values = {name: getattr(rg, name) for name in rg.__all__ if not name.startswith("__")}
    classes = {name: value for name, value in values.items() if isinstance(value, type)}
    return {
        name: value
        for name, value in sorted(classes.items(), key=lambda item: item[0].lower())
        if issubclass(value, Ranker) and getattr(value, "parameters", None)
    }


def parameter_page() -> str:
    """Return the page about the parameters of all rankers."""
    lines = [
        "# Parameters of all rankers",
        "",
        "After this page you know every parameter of every ranker, its default and the values it "
        "takes. `rankgrove params RANKER` prints the same for one ranker; this page is generated "
        "from the declarations, which also check the values. On the command line: "
        "`--set NAME=VALUE`, or `--config FILE` with a TOML file.",
    ]
    for name, ranker in rankers_with_parameters().items():
        lines += ["", f"## {name}", ""]
        lines += (
            [f"On the command line: `--ranker {ranker.kind}`.", ""] if trainable(ranker) else []
        )
        lines += ["| parameter | default | values | meaning |", "|---|---|---|---|"]
        for parameter, declared in ranker.parameters.items():
            values = cell(values_of(parameter, declared))
            meaning = cell(declared.meaning)
            lines.append(f"| `{parameter}` | `{default_of(declared)}` | {values} | {meaning} |")
    return "\n".join([*lines, ""])


def trainable(ranker: type[Ranker]) -> bool:
    """Tell whether ``rankgrove train`` takes a ranker by name."""
    from rankgrove.rankers.load import trainable as by_kind

    return ranker in by_kind().values()


def default_of(declared: Parameter) -> str:
    """Return a default as Python writes it, for a cell of a table."""
    return repr(declared.default).replace("|", "\\|")


def values_of(name: str, declared: Parameter) -> str:
    """Return the values that a parameter takes, in the words of its error message."""
    if declared.rule is None:
        return ""
    try:
        declared.rule(name, "", object())
    except RankgroveError as error:
        found = re.search(r" must be (.*?)\. Got <object", str(error), re.S)
        rule = found[1] if found else ""
    else:
        return ""
    told = f"{declared.meaning} {declared.default!r}"
    extra = [
        repr(word)
        for word in WORDS
        if repr(word) not in rule and (word is None or word in told) and takes(name, declared, word)
    ]
    return re.sub(r"('[^']*'|True|False|None)", r"`\1`", ", or ".join([rule, *extra]))


def takes(name: str, declared: Parameter, value: object) -> bool:
    """Tell whether the rule of a parameter allows a value."""
    try:
        assert declared.rule is not None
        declared.rule(name, "", value)
    except (RankgroveError, TypeError):
        return False
    return True


# -- Markdown --------------------------------------------------------------------------------------


def cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return escaped(" ".join(text.replace("``", "`").split())).replace("|", "\\|")


def escaped(text: str) -> str:
    """Return a text in which nothing outside of code is markup."""
    parts = re.split(r"(`[^`]*`)", text)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"([\[\]<>*_$])", r"\\\1", parts[i])
    return "".join(parts)
