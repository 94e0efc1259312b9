"""Compiled kernels on disk: one file per kernel, argument types and type of processor.

Numba's own cache is not used, because it

- does not notice that a kernel of another file, which a kernel calls, has changed (an upgrade);
- has an index per function, which processes that compile at once overwrite for each other, so that
  a process may load what was compiled for other arguments or another processor;
- does not read a folder that it cannot write to (an image, a read-only installation), and fails on
  damaged files and on a full disk.

Where Numba would look, kernels are looked for here too: ``NUMBA_CACHE_DIR``, beside the sources, in
the user's cache folder. They are read from any of these, and written to the first that takes them.
A process that needs a kernel which another process is compiling waits for it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import logging
import os
import pickle
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rankgrove.errors import ParameterError

_log = logging.getLogger("rankgrove")

PACKAGE = Path(__file__).parent
ENDING = ".kernel"
WAIT = 120.0  # seconds for another process; a kernel takes a tenth of it on a slow machine
_LOOK_AGAIN = 0.02
# from rankgrove.PACKAGE import NAMES, also in parentheses; import rankgrove.PACKAGE.MODULE
_FROM = re.compile(
    rb"^[ \t]*from (rankgrove[\w.]*) import (\([^)]*|(?:[^\\\n]|\\\r?\n)*)", re.MULTILINE
)
_PLAIN = re.compile(rb"^[ \t]*import (.*rankgrove\..*)", re.MULTILINE)
_MODULE = re.compile(rb"\brankgrove(?:\.\w+)+")
# What changes the code that Numba makes of the same source, besides the processor.
_SETTINGS = (
    "BOUNDSCHECK",
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "DEBUGINFO_DEFAULT",
    "USING_SVML",
    "DISABLE_INTEL_SVML",
)
_DIGEST_SIZE = 32


class KernelCache:
    """The files of one kernel; has the methods that Numba's dispatchers call."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        source = Path(inspect.getfile(py_func))
        inside = source.parent.relative_to(PACKAGE.parent)
        self._beside = source.parent / "__pycache__"
        self._folders = _folders(inside, self._beside)
        code = py_func.__code__
        self._source = source.stem
        self._name = f"{source.stem}.{py_func.__qualname__}-{code.co_firstlineno}"
        self._stamp = source_stamp(source)
        self._locks: dict[str, int] = {}
        self._enabled = True
        self.waiting: Callable[[bool], None] = lambda _: None  # is told when a wait begins and ends

    @property
    def cache_path(self) -> str:
        """The folder that is looked at first."""
        return str(self._folders[0])

    def enable(self) -> None:
        """Read and write from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Neither read nor write from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Remove the kernel's files."""
        for folder in self._folders:
            for file in folder.glob(f"{self._name}-*{ENDING}"):
                _remove(file)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature, or None if this process has to compile it."""
        if not self._enabled:
            return None
        target_context.refresh()
        name = self._file_name(sig, target_context.codegen())
        kernel = self._read(name, sig, target_context)
        if kernel is not None or name in self._locks:
            return kernel
        if self._lock(name):
            kernel = self._read(name, sig, target_context)  # done since the first look
        else:
            self.waiting(True)
            try:
                kernel = self._wait_for(name, sig, target_context)
            finally:
                self.waiting(False)
        if kernel is not None:
            self._unlock(name)
        return kernel

    def save_overload(self, sig: Any, kernel: Any) -> None:
        """Write what was compiled for a signature; a full disk is no error."""
        if not self._enabled:
            return
        name = self._file_name(sig, kernel.codegen)
        try:
            if not kernel.lifted and not kernel.library.has_dynamic_globals:
                self._write(name, _packed((str(sig), kernel._reduce())))
        finally:
            self._unlock(name)

    def release(self, sig: Any, target_context: Any) -> None:
        """Let other processes compile for a signature, if this one no longer does."""
        if self._locks:
            self._unlock(self._file_name(sig, target_context.codegen()))

    def _file_name(self, sig: Any, codegen: Any) -> str:
        import llvmlite
        import numba
        import numpy

        packages = (numba, llvmlite, numpy)
        versions = (*(package.__version__ for package in packages), sys.version_info[:2])
        settings = [getattr(numba.config, name, None) for name in _SETTINGS]
        key = (sig, codegen.magic_tuple(), *versions, *settings)
        digest = hashlib.sha256(repr(key).encode()).hexdigest()
        return f"{self._name}-{self._stamp[:12]}-{digest[:24]}{ENDING}"

    def _read(self, name: str, sig: Any, target_context: Any) -> Any:
        from numba.core.compiler import CompileResult

        for folder in dict.fromkeys((*self._folders, writable(self._folders))):
            try:
                content = (folder / name).read_bytes()
            except OSError:
                continue
            payload = _unpacked(content)
            if payload is not None and payload[0] == str(sig):
                try:
                    return CompileResult._rebuild(target_context, *payload[1])  # type: ignore[no-untyped-call]
                except Exception:  # written by a build of Numba or LLVM that has changed since
                    pass
            _remove(folder / name)  # damaged
        return None

    def _write(self, name: str, content: bytes) -> None:
        folder = writable(self._folders)
        try:
            handle, temporary = tempfile.mkstemp(dir=folder, prefix="." + name[:40])
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(content)
                os.chmod(temporary, 0o666 & ~_umask())
                os.replace(temporary, folder / name)
            except BaseException:
                _remove(Path(temporary))
                raise
        except OSError as error:
            _tell_once(folder, error)
            return
        if folder == self._beside:  # no other sources use it
            for file in folder.glob(f"{self._source}.*-*{ENDING}"):
                if f"-{self._stamp[:12]}-" not in file.name:
                    _remove(file)

    def _wait_for(self, name: str, sig: Any, target_context: Any) -> Any:
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            time.sleep(_LOOK_AGAIN)
            locked = self._lock(name)
            kernel = self._read(name, sig, target_context)
            if kernel is not None or locked:
                return kernel
        return None

    def _lock(self, name: str) -> bool:
        """Return whether no other process is compiling the kernel; then others wait for this one.

        The lock ends with the process that holds it. Where files cannot be locked, nobody waits.
        """
        try:
            import fcntl

            handle = os.open(
                writable(self._folders) / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o666
            )
        except (ImportError, OSError):
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return False
        except OSError:
            os.close(handle)
            return True
        self._locks[name] = handle
        return True

    def _unlock(self, name: str) -> None:
        handle = self._locks.pop(name, None)
        if handle is not None:
            _remove(writable(self._folders) / f"{name}.lock")
            os.close(handle)


Scan = Callable[[Path], tuple[bytes, tuple[Path, ...]] | None]


def source_stamp(source: Path) -> str:
    """Return a digest of a file of kernels and of all files of kernels that it uses.

    A file is read once, when the first kernel of it or of one that imports it is made: if a package
    is upgraded while a process runs, its later kernels are compiled with the code imported before.
    """
    return _stamp(source, _scanned_once)


def _stamp(source: Path, scan: Scan) -> str:
    known: dict[Path, bytes] = {}
    left = [source]
    while left:
        file = left.pop()
        scanned = None if file in known else scan(file)
        if scanned is not None:
            known[file] = scanned[0]
            left += scanned[1]
    return hashlib.sha256(b"".join(known[file] for file in sorted(known))).hexdigest()


def _scanned(file: Path) -> tuple[bytes, tuple[Path, ...]] | None:
    """Return a digest of a file and what it imports from this package; None if it is no file.

    What files other than those of kernels import takes no part.
    """
    try:
        text = file.read_bytes()
    except OSError:
        return None
    used = _imports(text) if file.name.startswith("_") else ()
    return hashlib.sha256(text).digest(), tuple(used)


_scanned_once = functools.cache(_scanned)


def _imports(text: bytes) -> Iterator[Path]:
    """Yield the files that a source imports from this package, and some that do not exist."""
    for module, names in _FROM.findall(text):
        folder = PACKAGE.parent.joinpath(*module.decode().split("."))
        yield folder.with_suffix(".py")
        for name in re.findall(rb"\w+", names) if _is_folder(folder) else ():
            yield folder / f"{name.decode()}.py"
    for line in _PLAIN.findall(text):
        for module in _MODULE.findall(line):
            yield PACKAGE.parent.joinpath(*module.decode().split(".")).with_suffix(".py")


@functools.cache
def _is_folder(path: Path) -> bool:
    return path.is_dir()


def kernel_files() -> list[tuple[Path, int]]:
    """Return the compiled kernels that are found now, whatever sources they are of, and sizes."""
    inside = Path(PACKAGE.name)
    roots = {*_folders(inside, PACKAGE), chosen_folder()}
    found = {}
    for folder in roots:
        for file in folder.rglob(f"*{ENDING}"):
            with contextlib.suppress(OSError):  # another process has just removed it
                found[file] = file.stat().st_size
    return sorted(found.items())


def has_kernel(source: str, function: str) -> bool:
    """Return whether a kernel, such as ``growth/_grower_kernels.py`` has, was ever compiled."""
    file = PACKAGE / source
    inside = file.parent.relative_to(PACKAGE.parent)
    # read anew: this process may import the file after an upgrade
    start = f"{file.stem}.{function}-*-{_stamp(file, _scanned)[:12]}-*{ENDING}"
    folders = _folders(inside, file.parent / "__pycache__")
    places = {*folders, writable(folders)}
    return any(next(folder.glob(start), None) is not None for folder in places)


def remove_old_locks() -> None:
    """Remove the locks of processes that have ended."""
    try:
        import fcntl
    except ImportError:
        return
    for file in chosen_folder().rglob(f"*{ENDING}.lock"):
        with contextlib.suppress(OSError), open(file, "r+") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
            _remove(file)


def refuse_named_folder() -> None:
    """Refuse a NUMBA_CACHE_DIR to which nothing can be written: kernels would go elsewhere."""
    from numba import config

    named = getattr(config, "CACHE_DIR", "")
    if named and not chosen_folder().is_relative_to(Path(named).absolute()):
        raise ParameterError(
            f"NUMBA_CACHE_DIR: files cannot be created in {named}. Name another folder."
        )


def refuse_lost() -> None:
    """Refuse to go on if kernels that were compiled could not be written."""
    if _lost is not None:
        folder, reason = _lost
        raise ParameterError(
            f"Compiled kernels cannot be kept in {folder}: {reason}. Name another folder with "
            "--cache or NUMBA_CACHE_DIR."
        )


def chosen_folder() -> Path:
    """Return where new kernels are written: a root folder, or the package's own."""
    inside = Path(PACKAGE.name)
    beside = PACKAGE / "measures" / "__pycache__"
    folder = writable(_folders(inside, beside))
    return PACKAGE if folder == beside else folder


@functools.cache
def writable(folders: tuple[Path, ...]) -> Path:
    """Return the first folder in which files can be created; it is created if it is missing."""
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return private_folder()


_only: Path | None = None


def use_only(folder: Path) -> None:
    """Neither read nor write kernels elsewhere; before the first kernel is imported."""
    global _only
    _only = folder.absolute()


def _folders(inside: Path, beside: Path) -> tuple[Path, ...]:
    """Return the folders of kernels, in the order in which they are looked at."""
    if _only is not None:
        return (_only / inside,)
    return (*_roots(inside), beside, *_last_roots(inside))


def _roots(inside: Path) -> list[Path]:
    from numba import config

    named = getattr(config, "CACHE_DIR", "")
    return [Path(named).absolute() / inside] if named else []


def _last_roots(inside: Path) -> list[Path]:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [Path(home, "numba") / inside] if os.path.isabs(home) else []


def is_private(folder: Path) -> bool:
    """Return whether a folder is the private one."""
    return private_folder.cache_info().currsize > 0 and folder == private_folder()


@functools.cache
def private_folder() -> Path:
    """Return a folder that only this user can write to: compiled kernels are executed."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"rankgrove-kernels-{user}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and status.st_uid == user and not status.st_mode & 0o077:
            return folder
    except OSError:  # it belongs to another user, or the disk is full
        pass
    return Path(tempfile.mkdtemp(prefix="rankgrove-kernels-"))


def _packed(payload: Any) -> bytes:
    from numba.core.serialize import dumps

    content: bytes = dumps(payload)  # type: ignore[no-untyped-call]
    return hashlib.sha256(content).digest() + content


def _unpacked(content: bytes) -> Any:
    """Return what was packed; None if the file is damaged."""
    body = memoryview(content)[_DIGEST_SIZE:]
    if hashlib.sha256(body).digest() != content[:_DIGEST_SIZE]:
        return None
    try:
        return pickle.loads(body)
    except Exception:  # written by a build of Numba that has changed since
        return None


_lost: tuple[Path, str] | None = None  # the folder that a kernel could not be written to, and why


def _tell_once(folder: Path, error: OSError) -> None:
    global _lost
    if _lost is None:
        _lost = folder, error.strerror or str(error)
        _log.warning(
            "Compiled kernels cannot be kept in %s (%s), so that every process compiles them "
            "again. Set NUMBA_CACHE_DIR to a folder with room.",
            folder,
            error.strerror,
        )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)
