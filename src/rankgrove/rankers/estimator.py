"""scikit-learn's ``BaseEstimator`` as the base of rankers, without importing it at once.

Importing scikit-learn, which imports SciPy's statistics and pandas, takes longer than everything
else in starting to score. Nobody can ask whether a ranker is one of its estimators before it has
been imported; so rankers have `Estimator` as their base until then, and ``BaseEstimator`` from
then on, for good.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Sequence
from types import MethodType, ModuleType
from typing import Any, TypeVar

_BASE = "sklearn.base"
Kind = TypeVar("Kind")


class Estimator:
    """What rankers need of ``BaseEstimator`` before scikit-learn is imported."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        given = inspect.signature(cls.__init__).parameters.values()
        return sorted(
            one.name for one in given if one.name != "self" and one.kind != one.VAR_KEYWORD
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with `deep` also those of parameters that have some."""
        params: dict[str, Any] = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params.update({f"{name}__{k}": v for k, v in value.get_params().items()})
            params[name] = value
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name; ``base__n_trees`` is one of the ranker `base`."""
        inside: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if rest:
                inside.setdefault(name, {})[rest] = value
            else:
                setattr(self, name, value)
        for name, values in inside.items():
            getattr(self, name).set_params(**values)
        return self

    def __repr__(self) -> str:
        import sklearn.base  # noqa: F401  (now the class has another `__repr__`)

        return repr(self)


def become_estimators(root: type[Estimator]) -> None:
    """Make `root` and its subclasses scikit-learn's estimators as soon as that is imported."""
    module = sys.modules.get(_BASE)
    if hasattr(module, "BaseEstimator"):
        _adopt(root, module)
    else:
        sys.meta_path.insert(0, _Watch(root))


class _Watch(importlib.abc.MetaPathFinder):
    """Sees the import of ``sklearn.base``; once it is done, rankers get their base."""

    def __init__(self, root: type[Estimator]) -> None:
        self._root = root

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _BASE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _adopt(self._root, module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _adopt(root: type[Estimator], module: Any) -> None:
    root.__bases__ = (module.BaseEstimator,)
    classes = [root]
    for one in classes:  # grows; what scikit-learn does for every new subclass
        super(root, one).__init_subclass__()
        classes.extend(one.__subclasses__())


def clone(ranker: Kind) -> Kind:
    """Return a new ranker with the same parameters, untrained."""
    import sklearn.base

    cloned: Kind = sklearn.base.clone(ranker)
    return cloned


class _Conditional:
    """A method that objects have under a condition."""

    def __init__(self, method: Callable[..., Any], condition: Callable[[Any], Any]) -> None:
        self._method = method
        self._condition = condition
        self.__doc__ = method.__doc__

    def __get__(self, ranker: Any, owner: type | None = None) -> Any:
        if ranker is None:  # from the class: for its documentation
            return self._method
        message = f"This {type(ranker).__name__!r} has no attribute {self._method.__name__!r}"
        try:
            holds = self._condition(ranker)
        except Exception as error:
            raise AttributeError(message) from error
        if not holds:
            raise AttributeError(message)
        return MethodType(self._method, ranker)


def available_if(condition: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for a method that only objects of a condition have."""
    return functools.partial(_Conditional, condition=condition)
