"""The exceptions that rankgrove raises for user errors.

::

    RankgroveError
    ├── ParameterError      a parameter has an invalid value         (also a ValueError)
    │   └── UnknownParameterError   there is no such parameter       (also a TypeError)
    ├── DataError           data that cannot be used as given        (also a ValueError)
    │   └── ParseError      a file that cannot be read: carries path and line
    ├── ModelFileError      a model file that cannot be read         (also a ValueError)
    │   └── MissingFileError  there is no such file: a ParseError too (also a FileNotFoundError)
    ├── ClusterError        a cluster that cannot be used            (also a RuntimeError)
    └── MissingExtraError   an optional dependency is not installed  (also an ImportError)

    DataWarning             data is used, but not exactly as given   (a UserWarning)

Every message names the value, the rule it breaks and the remedy. The command line prints only the
message; a traceback there is a bug in rankgrove.
"""

from __future__ import annotations

import errno
from pathlib import Path


class RankgroveError(Exception):
    """Base of all exceptions that rankgrove raises on purpose."""


class ParameterError(RankgroveError, ValueError):
    """A parameter has an invalid value."""


class UnknownParameterError(ParameterError, TypeError):
    """There is no such parameter; also a TypeError, as Python itself raises."""


class DataError(RankgroveError, ValueError):
    """Data that cannot be used as given; ``row``: the row of a table, from 0, or None."""

    row: int | None = None


class ParseError(DataError):
    """A file that cannot be read; ``path`` and ``line`` (1-based, or None) say where."""

    def __init__(self, path: str | Path, line: int | None, message: str) -> None:
        self.path = Path(path)
        self.line = line
        self.reason = message
        place = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {message}")

    def __reduce__(self) -> tuple[type[ParseError], tuple[Path, int | None, str]]:
        return type(self), (self.path, self.line, self.reason)


class DataWarning(UserWarning):
    """Data that does not quite fit a model, but is used; the message says how.

    ``warnings.simplefilter("error", rankgrove.DataWarning)`` refuses such data instead.
    """


class ModelFileError(RankgroveError, ValueError):
    """A model file that is damaged, foreign or too new."""


class MissingFileError(ParseError, ModelFileError, FileNotFoundError):
    """A data file or model file does not exist."""

    def __init__(self, path: str | Path, message: str = "there is no such file.") -> None:
        super().__init__(path, None, message)
        self.errno, self.strerror, self.filename = errno.ENOENT, message, str(path)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"

    def __reduce__(self) -> tuple[type[MissingFileError], tuple[Path, str]]:  # type: ignore[override]
        return type(self), (self.path, self.reason)


class ClusterError(RankgroveError, RuntimeError):
    """A cluster that cannot be reached, or that lost its scheduler or all of its workers."""


class MissingExtraError(RankgroveError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed. "
            f"Install it with: pip install 'rankgrove[{extra}]' (in a checkout: pip install "
            f"'.[{extra}]')"
        )
