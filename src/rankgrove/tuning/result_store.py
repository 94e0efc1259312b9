"""A store of results: an append-only file that survives a kill of the process.

Every line is a JSON record that ends with its checksum. The first record says what the results
depend on. A last line that a kill cut short is dropped; finished results are never computed again.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankgrove.errors import DataError
from rankgrove.files import told_errors

MOST_SHOWN = 200  # characters of a difference in an error message
_CHECKSUM = re.compile(rb', "crc": "([0-9a-f]{8})"}$')


class ResultStore:
    """Results by key, in a file or, without a path, in memory only.

    Parameters
    ----------
    path : the file; None: nothing is written
    about : what the results depend on, plain values by name; a file with other values is refused

    Examples
    --------
    >>> store = ResultStore(None, {"study": "example"})
    >>> store.put("sum", 1 + 1)
    >>> "sum" in store, store["sum"]
    (True, 2)
    """

    def __init__(self, path: str | Path | None, about: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self._about = dict(about)
        self._known: dict[str, Any] = {}
        if self.path is not None:
            self._open(self.path)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def __getitem__(self, key: str) -> Any:
        return self._known[key]

    def put(self, key: str, value: Any) -> None:
        """Store a result of plain JSON values."""
        line = json.dumps({"key": key, "value": value}, allow_nan=False)
        self._known[key] = json.loads(line)["value"]  # the same as when it is read from the file
        if self.path is not None:
            self._append(self.path, line)

    def _open(self, path: Path) -> None:
        with told_errors(path):
            is_new = not path.exists() or path.stat().st_size == 0
        if is_new:
            self._append(path, json.dumps({"about": self._about}))
            return
        with told_errors(path):
            whole, records = _read(path)
        if not records or not isinstance(records[0].get("about"), dict):
            raise DataError(f"{path} is not a file of results: give another name.")
        for name in sorted({*self._about, *records[0]["about"]}):
            before, value = records[0]["about"].get(name), self._about.get(name)
            if before != value:
                shown = f"there {name} was {before!r}, here it is {value!r}"
                if len(shown) > MOST_SHOWN:  # for example fingerprints of data
                    shown = f"{name} differs"
                raise DataError(
                    f"{path} holds other results: {shown}. Give another file, or remove it."
                )
        if path.stat().st_size > whole:  # a kill cut the last line short
            os.truncate(path, whole)
        self._known = {record["key"]: record["value"] for record in records[1:]}

    @staticmethod
    def _append(path: Path, line: str) -> None:
        text = line.encode()
        with told_errors(path, "written"), open(path, "ab") as out:
            out.write(text[:-1] + b', "crc": "%08x"}\n' % zlib.crc32(text))
            out.flush()
            os.fsync(out.fileno())


def _read(path: Path) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of bytes in complete lines, and their records."""
    records: list[dict[str, Any]] = []
    has_checksums: bool | None = None  # files of older versions have none
    whole = 0
    for line in path.read_bytes().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        text = line[:-1]
        checksum = _CHECKSUM.search(text)
        if checksum is not None:
            text = text[: checksum.start()] + b"}"
        sound = has_checksums in (None, checksum is not None)
        if checksum is not None and int(checksum[1], 16) != zlib.crc32(text):
            sound = False
        record = _parsed(text) if sound else None
        if record is None or not (records or "about" in record) or (records and _lacks(record)):
            raise DataError(
                f"{path}:{len(records) + 1}: not a line of results. The file is damaged, or not "
                "a file of results: remove the line, and its result is computed again; or give "
                "another file."
            )
        has_checksums = checksum is not None
        records.append(record)
        whole += len(line)
    return whole, records


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _lacks(record: dict[str, Any]) -> bool:
    return not isinstance(record.get("key"), str) or "value" not in record
