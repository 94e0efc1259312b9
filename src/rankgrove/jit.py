"""``njit`` for kernels: Numba's, with our cache and without what nobody calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba

from rankgrove.compiling import INDICATOR
from rankgrove.kernel_cache import KernelCache


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a kernel when it is first called.

    The wrapper for callers in C, which Numba adds to every function, is left out: compiling it
    takes a quarter of the time, and nobody calls it.
    """
    decorate: Any = getattr(numba, "njit")(no_cfunc_wrapper=True, **options)  # noqa: B009  (its types leave options out)

    def decorated(py_func: Callable[..., Any]) -> Any:
        kernel = decorate(py_func)
        if cache and hasattr(kernel, "_cache"):  # not with NUMBA_DISABLE_JIT
            kernel._cache = KernelCache(py_func)
            kernel._cache.waiting = functools.partial(INDICATOR.wait_for, py_func.__module__)
            kernel.compile = functools.partial(_compiled, kernel, kernel.compile)
        return kernel

    return decorated


def _compiled(kernel: Any, compile: Callable[[Any], Any], sig: Any) -> Any:
    """Compile for a signature; a failure or Ctrl-C does not keep other processes waiting."""
    try:
        return compile(sig)
    finally:
        kernel._cache.release(sig, kernel.targetctx)
