"""Parameters declared once: name, type, default, rule and meaning are in the class body.

    @declares_parameters
    class Example(Ranker):
        '''An example.'''

        n_trees: int = parameter(500, "maximum number of trees", integer(low=1))
        loss: str = parameter("squared", "loss of a row", choice(["squared", "logistic"]))

From these lines come the constructor (a real one, with the signature that editors and type checkers
see), the check of values with its error messages, the numpydoc section, ``rankgrove params`` and
``--set`` on the command line. Parameters that several rankers share are declared once as a constant
and can get another default where they are used: ``n_trees: int = N_TREES(300)``. A decorated class
has only the parameters of its own body: it does not inherit those of a base class.

Why this form: with scikit-learn's table of constraints, the parameters must be written three more
times (signature, assignments, documentation); ``dataclass`` puts inherited fields before a class's
own, which would change positional arguments. A decorator marked as `dataclass_transform` keeps the
order of the class body, and type checkers and editors know the constructor as a dataclass's.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeVar, dataclass_transform

import numpy as np

from rankgrove.validation import (
    check_choice,
    check_flag,
    check_integer,
    check_output_file,
    check_real,
    refuse,
)

_Class = TypeVar("_Class", bound=type)
# name of the parameter, name of the ranker, value -> raises ParameterError for a wrong value
Rule = Callable[[str, str, Any], object]
_NOT_GIVEN: Any = object()
_LEARNED: Any = object()
_WIDTH = 96


@dataclass(frozen=True)
class Parameter:
    """One parameter: its default, its meaning in a line or two, and the rule for its values."""

    default: Any
    meaning: str
    rule: Rule | None = None

    def __call__(
        self, default: Any = _NOT_GIVEN, meaning: str | None = None, rule: Rule | None = None
    ) -> Any:
        """Return the same parameter with another default, meaning or rule."""
        return replace(
            self,
            default=self.default if default is _NOT_GIVEN else default,
            meaning=meaning or self.meaning,
            rule=rule or self.rule,
        )


def parameter(default: Any, meaning: str, rule: Rule | None = None) -> Any:
    """Declare a parameter in the body of a class."""
    return Parameter(default, meaning, rule)


def learned(*, init: Literal[False] = False) -> Any:
    """Declare an attribute that training fills, in the body of a class with parameters."""
    return _LEARNED


@dataclass_transform(eq_default=False, field_specifiers=(learned,))
def declares_parameters(ranker: _Class) -> _Class:
    """Give a ranker class the constructor and the documentation of its declared parameters."""
    declared = {name: value for name, value in vars(ranker).items() if isinstance(value, Parameter)}
    for name in [name for name, value in vars(ranker).items() if value is _LEARNED]:
        delattr(ranker, name)
    for name in declared:
        delattr(ranker, name)
    ranker.parameters = declared  # type: ignore[attr-defined]
    ranker.__init__ = _constructor(ranker, declared)  # type: ignore[misc]
    if ranker.__doc__:
        ranker.__doc__ = _with_section(inspect.cleandoc(ranker.__doc__), declared)
    return ranker


def _constructor(ranker: type, declared: dict[str, Parameter]) -> Callable[..., None]:
    """Return an ``__init__`` that takes the parameters in their order, and keeps them."""
    listed = ", ".join(f"{name}=_defaults[{name!r}].default" for name in declared)
    body = "".join(f"        self.{name} = {name}\n" for name in declared)
    text = f"def _make(_defaults):\n    def __init__(self, {listed}):\n{body}    return __init__\n"
    namespace: dict[str, Any] = {}
    exec(text, vars(sys.modules[ranker.__module__]), namespace)
    init: Callable[..., None] = namespace["_make"](declared)
    init.__qualname__ = f"{ranker.__qualname__}.__init__"
    annotations = inspect.get_annotations(ranker)
    init.__annotations__ = {name: annotations[name] for name in declared} | {"return": None}
    return init


def _with_section(doc: str, declared: dict[str, Parameter]) -> str:
    """Return a docstring with a section of parameters before its other sections."""
    lines = ["Parameters", "----------"]
    for name, declaration in declared.items():
        lines += textwrap.wrap(f"{name} : {declaration.meaning}", _WIDTH, subsequent_indent="    ")
    section = "\n".join(lines)
    for title in ("Attributes\n----------", "Examples\n--------"):
        before, heading, after = doc.partition(title)
        if heading:
            return f"{before}{section}\n\n{heading}{after}"
    return f"{doc}\n\n{section}"


# -- rules -----------------------------------------------------------------------------------------


def integer(low: int | None = None, high: int | None = None) -> Rule:
    """Return the rule for whole numbers within bounds."""
    return lambda name, owner, value: check_integer(name, owner, value, low=low, high=high)


def real(
    low: float | None = None, high: float | None = None, *, above: float | None = None
) -> Rule:
    """Return the rule for finite numbers within bounds."""
    return lambda name, owner, value: check_real(
        name, owner, value, low=low, high=high, above=above
    )


def choice(names: Iterable[str], elsewhere: Mapping[str, str] = MappingProxyType({})) -> Rule:
    """Return the rule for one of several words; `elsewhere` has others' names, in lower case."""
    words = list(names)
    return lambda name, owner, value: check_choice(name, owner, value, words, elsewhere)


def optional(rule: Rule) -> Rule:
    """Return a rule that also allows None."""
    return lambda name, owner, value: None if value is None else rule(name, owner, value)


def word_or(words: Sequence[str], rule: Rule) -> Rule:
    """Return a rule that also allows the given words."""

    def check(name: str, owner: str, value: object) -> None:
        if not (isinstance(value, str) and value in words):
            rule(name, owner, value)

    return check


def two_numbers(meaning: str, rule: Rule) -> Rule:
    """Return the rule for a pair of numbers, the second above the first."""

    def check(name: str, owner: str, value: object) -> None:
        if not (isinstance(value, tuple | list) and len(value) == 2):
            refuse(name, owner, meaning, value)
        rule(name, owner, value[0])
        check_real(name, owner, value[1], above=value[0])

    return check


def count_or_share(name: str, owner: str, value: object) -> None:
    """Check a whole number of at least 1, or a share between 0 and 1."""
    if isinstance(value, int | np.integer):
        check_integer(name, owner, value, low=1)
    elif not (isinstance(value, float) and 0.0 < value < 1.0):
        refuse(name, owner, "a count of at least 1, or a share between 0 and 1", value)


flag: Rule = check_flag
output_file: Rule = check_output_file
