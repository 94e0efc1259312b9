"""``rankgrove compile``: kernels compiled ahead, for images and for continuous integration."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.errors import ParameterError


def compile(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[read|train|evaluate|predict|serve|explain|combine|RANKER|MEASURE|all]...",
            help="What to compile for. The default is read, train (a lambdamart for NDCG), "
            "evaluate (and compare), predict (and rank) and serve. RANKER means training such a "
            "ranker (`rankgrove params` lists them), MEASURE, such as map, training for it; all "
            "is everything but MEASURE.",
            show_default=False,
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where to keep the kernels. Set NUMBA_CACHE_DIR to this folder when they are "
            "used. The default is NUMBA_CACHE_DIR; if it is not set, the first folder that can be "
            "written to: beside the program, or ~/.cache/numba.",
            show_default=False,
        ),
    ] = None,
    cpu: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Type of processor to compile for, such as x86-64, haswell or generic. Set "
            "NUMBA_CPU_NAME to it when the kernels are used. The default is this machine's.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Compile kernels ahead, so that the first run on this machine, or in an image, starts at once.

    What is compiled already is left as it is.

    Examples:

    rankgrove compile

    rankgrove compile predict serve --cache /opt/kernels --cpu haswell
    """
    from rankgrove.files import why
    from rankgrove.kernel_cache import (
        chosen_folder,
        is_private,
        kernel_files,
        refuse_lost,
        refuse_named_folder,
        remove_old_locks,
        use_only,
    )

    # Numba reads these when it is imported.
    if cache is not None:
        os.environ["NUMBA_CACHE_DIR"] = str(cache)
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = "the system refuses it" if error.errno == errno.ENOENT else why(error)
            raise ParameterError(
                f"--cache: the folder {cache} cannot be created: {reason}. Name another."
            ) from None
        if not os.access(cache, os.W_OK | os.X_OK):
            raise ParameterError(f"--cache: files cannot be created in {cache}. Name another.")
        use_only(cache)
    if cpu is not None:
        check_processor(cpu)
        os.environ["NUMBA_CPU_NAME"] = cpu
        os.environ.setdefault("NUMBA_CPU_FEATURES", "")
    from rankgrove.cli.kernel_sets import compile_set, set_names
    from rankgrove.validation import counted

    names = set_names(what or [])
    refuse_named_folder()
    before = {file for file, _ in kernel_files()}
    for k, name in enumerate(names, 1):
        began = time.monotonic()
        compile_set(name)
        refuse_lost()
        if not quiet:
            now = {file for file, _ in kernel_files()}
            added, before = len(now - before), now
            seconds = time.monotonic() - began
            compiled = counted(added, "kernel")
            typer.echo(f"{k}/{len(names)} {name}: {compiled} compiled, {seconds:.1f} s")
    remove_old_locks()
    if not quiet:
        folder = chosen_folder()
        sizes = [n_bytes for file, n_bytes in kernel_files() if file.is_relative_to(folder)]
        text = f"{counted(len(sizes), 'kernel')}, {sum(sizes) / 1e6:.1f} MB, in {folder}"
        elsewhere = len(kernel_files()) - len(sizes)
        typer.echo(text + (f"; {elsewhere:,} more in other folders" if elsewhere else ""))
        if is_private(folder):
            typer.echo(
                "That is a temporary folder, and no other could be written to: set NUMBA_CACHE_DIR "
                "to one that stays.",
                err=True,
            )


def check_processor(name: str) -> None:
    """Refuse a type of processor that the compiler does not know; it would end the process."""
    code = (
        "import llvmlite.binding as b; b.initialize_native_target();"
        f"b.Target.from_default_triple().create_target_machine(cpu={name!r})"
    )
    try:
        tried = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    except OSError:
        return
    if tried.returncode or "not a recognized processor" in tried.stderr:
        raise ParameterError(
            f"--cpu must be a type of processor that LLVM knows, such as x86-64, x86-64-v3, "
            f"haswell or skylake-avx512. Got {name!r}."
        )
