"""A user's own measure: a short Python function, compiled and used like a built-in one."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.measures.base import REGISTRY, Measure, QueryPieces

if TYPE_CHECKING:
    from rankgrove.measures._custom_kernels import CustomKernels

RankedFunction = Callable[..., float]
Function = TypeVar("Function", bound=RankedFunction)


@dataclass(frozen=True)
class CustomMeasure(Measure):
    """Base of the measures that :func:`register_measure` makes; gains are the labels."""

    rule: ClassVar[int] = -1
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    own_kernels: ClassVar[bool] = True
    own_swaps: ClassVar[bool] = True
    function: ClassVar[RankedFunction]
    delta: ClassVar[RankedFunction | None]

    def gains(self, labels: np.ndarray) -> np.ndarray:
        return labels.copy()

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        return np.zeros(gain.size)

    def undefined(self, gain: np.ndarray, queries: QueryPieces) -> np.ndarray:
        return np.zeros(queries.sizes.size, np.bool_)

    @property
    def depth(self) -> int:
        # The function itself applies the cutoff: its ideal may need all labels.
        return np.iinfo(np.int64).max

    def run(self, kernel: Any, *arguments: Any) -> Any:
        try:
            return kernel(*arguments)
        except (IndexError, ValueError, ZeroDivisionError) as error:
            raise ParameterError(
                f"The measure {self.name!r} failed ({error}): it must work for the labels of every "
                "query, even one with a single document."
            ) from None

    @property
    def kernels(self) -> CustomKernels:
        cls = type(self)
        return compiled(cls.name, cls.function, cls.delta, self.cutoff)


@overload
def register_measure(
    name: str, function: Function, *, delta: RankedFunction | None = None
) -> Function: ...


@overload
def register_measure(
    name: str, function: None = None, *, delta: RankedFunction | None = None
) -> Callable[[Function], Function]: ...


def register_measure(
    name: str, function: Function | None = None, *, delta: RankedFunction | None = None
) -> Function | Callable[[Function], Function]:
    """Make a measure from a plain Python function, to be used by name like a built-in one.

    Parameters
    ----------
    name : the name of the measure: lower-case letters, digits, underscores
    function : ``function(labels) -> value``, or ``function(labels, k) -> value`` for a measure
        with a cutoff (``name@k``), where `labels` is a float64 array in ranked order, best rank
        first. It is compiled by Numba. Without it, the call returns a decorator.
    delta : ``delta(labels, i, j)`` (with ``k`` last if `function` has it), the change of the
        value when ranks i < j are swapped; pass it if it is faster than evaluating twice

    Returns
    -------
    the function itself

    Notes
    -----
    Expectations over tied orders are exact if there are at most 1,000 different arrangements, and
    means over 1,000 fixed pseudo-random arrangements otherwise.

    Examples
    --------
    >>> import rankgrove as rg
    >>> _ = rg.register_measure("top_is_best", lambda labels: labels[0] == labels.max())
    >>> rg.measure("top_is_best").value([2, 0, 1])
    1.0
    """
    if function is None:
        return lambda function: register_measure(name, function, delta=delta)
    if not isinstance(name, str) or not name.isidentifier() or name != name.lower():
        raise ParameterError(
            "A measure's name must consist of lower-case letters, digits and underscores, and "
            f"begin with a letter. Got {name!r} instead."
        )
    taken = REGISTRY.get(name)
    from rankgrove.measures.parse import ALIASES

    if name in ALIASES or (taken is not None and not issubclass(taken, CustomMeasure)):
        raise ParameterError(f"{name!r} is a built-in measure: choose another name.")
    n_parameters = _n_parameters(name, function)
    if n_parameters not in (1, 2):
        raise ParameterError(
            f"The measure {name!r} must take (labels) or (labels, k). It takes {n_parameters} "
            "parameters."
        )
    if delta is not None and _n_parameters(name, delta) != n_parameters + 2:
        raise ParameterError(
            f"The delta of the measure {name!r} must take (labels, i, j"
            + (", k)" if n_parameters == 2 else ")")
            + ", as its function takes "
            + ("(labels, k)." if n_parameters == 2 else "(labels).")
        )
    make_dataclass(
        name,
        [],
        bases=(CustomMeasure,),
        frozen=True,
        namespace={
            "name": name,
            "__doc__": inspect.getdoc(function) or f"The user's measure {name!r}.",
            "function": staticmethod(function),
            "delta": None if delta is None else staticmethod(delta),
            "cutoff_is": "optional" if n_parameters == 2 else "refused",
            "__module__": __name__,
        },
    )
    return function


def _n_parameters(name: str, function: object) -> int:
    plain = getattr(function, "py_func", function)
    if not callable(plain):
        raise ParameterError(f"The measure {name!r} must be a function. Got {function!r} instead.")
    return len(inspect.signature(plain).parameters)


@cache
def compiled(
    name: str, function: RankedFunction, delta: RankedFunction | None, cutoff: int | None
) -> CustomKernels:
    """Compile a user's measure; Numba's errors become a ParameterError about the function."""
    from numba.core.errors import NumbaError

    from rankgrove.measures._custom_kernels import CustomKernels

    n_parameters = _n_parameters(name, function)
    try:
        kernels = CustomKernels(function, delta, n_parameters == 2, cutoff)
        # Ten documents are enough for most functions; those that need more fail when used.
        value = kernels.ranked_value(-1, np.arange(10.0)[::-1].copy(), np.zeros(10))
    except (IndexError, ValueError, ZeroDivisionError):
        return kernels
    except NumbaError as error:
        # The first lines of Numba's long message, before the list of its passes, give the reason.
        reason = [
            line
            for line in str(error).split("During:")[0].splitlines()
            if line.strip() and not line.startswith("Failed in nopython")
        ]
        raise ParameterError(
            f"The measure {name!r} cannot be compiled: it must use only what Numba supports "
            "(numbers, loops, NumPy arrays). Numba says:\n" + "\n".join(reason[:4])
        ) from None
    if not isinstance(value, float):
        raise ParameterError(
            f"The measure {name!r} must return one number. It returns {type(value).__name__}."
        )
    return kernels
