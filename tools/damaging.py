"""The changes of ``tools.damage``: of bytes, zip entries, npy headers, arrays, JSON and text."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, 2, -1, 10**9, 2**31, 2**63, 10**30, 0.5, 1e308, -1e308, 1e-320,
    float("nan"), float("inf"), "", "x", "base_score", "nan", [], {}, [[]], [1, 2], {"a": 1},
    [None], {"valid": 1}, {"valid": {"ndcg@10": "x"}}, "a" * 5000,
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 3, 7, 1000, 10**6, 2**31 - 1, -(2**31), 2**62, 1e308, -1e308, 1e-320)
TOKENS = (
    b"", b"nan", b"-nan", b"inf", b"-inf", b"1e999", b"1e-999", b"0x10", b"-1", b"0", b"1",
    b"99999999999999999999", b"2147483648", b":", b"1:", b":1", b"1:1", b"0:1", b"-1:1", b"qid:",
    b"qid:1", b"qid:\xff", b"#", b"# x\ry", b"\r", b"\r\n", b"\n", b"\t", b"\x0b", b"\0", b"\xff",
    b"\xef\xbb\xbf", b'"', b"'", b",", b",,", b"\xe2\x80\xa8", b"1_000", b"NULL", b"1e", b"+",
    b"--1",    b"\x1f\x8b", b"9" * 400, b"1." + b"0" * 400 + b"1",
)  # fmt: skip


class Change(NamedTuple):
    """A way to change a file: blind, or crafted, with right checksums."""

    name: str
    is_blind: bool
    apply: Callable[[bytes, random.Random], bytes]


def blind_changes(zipped: bool) -> list[Change]:
    """Return the changes of bytes, and of a zip's entries."""
    changes = [
        Change(change.__name__, True, change) for change in (_flip, _noise, _cut, _double, _zero)
    ]
    return [*changes, Change("zip entries", True, _entries)] if zipped else changes


def crafted_changes() -> list[Change]:
    """Return the changes of a model file's header and arrays with right checksums."""
    return [
        Change("JSON values", False, lambda blob, rng: _crafted(blob, rng, _json_values)),
        Change("arrays", False, lambda blob, rng: _crafted(blob, rng, _array_values)),
        Change("features", False, lambda blob, rng: _crafted(blob, rng, _raised_features)),
        Change("npy headers", False, lambda blob, rng: _crafted(blob, rng, _npy_header)),
    ]


def text_changes() -> list[Change]:
    """Return the changes of words and lines."""
    return [Change("tokens", True, _tokens), Change("lines", True, _lines)]


# -- bytes -----------------------------------------------------------------------------------------


def _flip(blob: bytes, rng: random.Random) -> bytes:
    changed = bytearray(blob)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _noise(blob: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(blob))
    noise = rng.randbytes(rng.choice((1, 2, 4, 16, 100)))
    return blob[:at] + noise + blob[at + rng.choice((0, len(noise))) :]


def _cut(blob: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(blob))
    return blob[:at] if rng.random() < 0.5 else blob[:at] + blob[at + rng.randrange(1, 100) :]


def _double(blob: bytes, rng: random.Random) -> bytes:
    at, n = rng.randrange(len(blob)), rng.randrange(1, 200)
    to = rng.randrange(len(blob))
    return blob[:to] + blob[at : at + n] + blob[to:]


def _zero(blob: bytes, rng: random.Random) -> bytes:
    at, n = rng.randrange(len(blob)), rng.choice((1, 4, 64, 512))
    return blob[:at] + bytes(len(blob[at : at + n])) + blob[at + n :]


# -- zips ------------------------------------------------------------------------------------------


def _unzipped(blob: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(blob)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(entries: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return out.getvalue()


def _entries(blob: bytes, rng: random.Random) -> bytes:
    """Drop, empty, rename, swap or encrypt an entry, or pack all in another way."""
    entries = _unzipped(blob)
    first, second = rng.choice(list(entries)), rng.choice(list(entries))
    action = rng.randrange(6)
    if action == 0:
        del entries[first]
    elif action == 1:
        entries[first] = b""
    elif action == 2:
        entries[first + "x"] = entries.pop(first)
    elif action == 3:
        entries[first], entries[second] = entries[second], entries[first]
    elif action == 4:
        return _zipped(entries, rng.choice((zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)))
    packed = bytearray(_zipped(entries))
    if action == 5:  # the flag of encrypted entries
        for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            place = packed.find(mark)
            packed[place + at] |= 1
    return bytes(packed)


# -- crafted model files ---------------------------------------------------------------------------


def _crafted(
    blob: bytes,
    rng: random.Random,
    change: Callable[[dict[str, Any], dict[str, bytes], random.Random], None],
) -> bytes:
    """Return a model file with header and arrays changed, and right checksums."""
    entries = _unzipped(blob)
    header = json.loads(entries.pop("header.json"))
    arrays = {name.removesuffix(".npy"): content for name, content in entries.items()}
    change(header, arrays, rng)
    if isinstance(header.get("checksums"), dict):
        header["checksums"] = {
            name: hashlib.blake2b(content, digest_size=16).hexdigest()
            for name, content in arrays.items()
        }
    packed = {"header.json": json.dumps(header).encode()}
    return _zipped(packed | {f"{name}.npy": content for name, content in arrays.items()})


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values of a JSON document."""
    inner: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        inner = [place for key, item in value.items() for place in _places(item, (*path, key))]
    elif isinstance(value, list):
        few = list(enumerate(value))[:3]
        inner = [place for key, item in few for place in _places(item, (*path, key))]
    return [*([path] if path else []), *inner]


def _json_values(header: dict[str, Any], _: dict[str, bytes], rng: random.Random) -> None:
    places = [place for place in _places(header) if place[0] != "checksums" or len(place) == 1]
    for _round in range(rng.choice((1, 1, 1, 2, 5))):
        *way, last = rng.choice(places)
        inside: Any = header
        try:
            for key in way:
                inside = inside[key]
            if isinstance(inside, dict) and rng.random() < 0.15:
                del inside[last]
            else:
                inside[last] = copy.deepcopy(rng.choice(HOSTILE))
        except (KeyError, IndexError, TypeError):  # an earlier change of this case removed it
            continue


def _array(blob: bytes) -> np.ndarray:
    return np.load(io.BytesIO(blob))


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _array_values(_: dict[str, Any], arrays: dict[str, bytes], rng: random.Random) -> None:
    """Change values, shape or type of one array or a few."""
    for name in rng.sample(list(arrays), min(len(arrays), rng.choice((1, 1, 2)))):
        array = _array(arrays[name])
        action = rng.randrange(8)
        with np.errstate(all="ignore"):
            if action == 0:
                array = np.append(array.ravel(), array.ravel()[:1])
            elif action == 1:
                array = array.ravel()[:-1] if array.ndim else array.reshape(1)
            elif action == 2:
                array = array.astype(rng.choice(["<f4", "<f8", "<i4", "<i8", "|b1", "<U3", "<c16"]))
            elif action == 3:
                array = array.reshape(rng.choice([(-1, 1), (1, -1), (1, 1, -1)]))
            elif array.size:
                value = rng.choice((*NUMBERS, float("nan"), float("inf")))
                flat = array.reshape(-1).copy()
                places = slice(None) if action == 4 else rng.randrange(flat.size)
                flat[places] = np.array([value]).astype(flat.dtype)[0]
                array = flat.reshape(array.shape)
        arrays[name] = _npy(array)


def _raised_features(header: dict[str, Any], arrays: dict[str, bytes], rng: random.Random) -> None:
    """Let splits name features beyond the data, and raise the counts around them to match."""
    ends = [name for name in arrays if name.split("/")[-1] == "feature"]
    if not ends:
        _json_values(header, arrays, rng)
        return
    name = rng.choice(ends)
    prefix = name.removesuffix("feature")
    beyond = rng.choice((50, 10_000, 10**6, 2**30))
    feature = _array(arrays[name])
    if feature.size:
        feature[rng.randrange(feature.size)] = beyond
    arrays[name] = _npy(feature)
    if f"{prefix}n_features" in arrays:
        arrays[f"{prefix}n_features"] = _npy(np.array(beyond + 1))
    if rng.random() < 0.5:  # the header of the member too
        for place in _places(header):
            if place[-1] == "n_features" and len(place) > 2:
                inside: Any = header
                for key in place[:-1]:
                    inside = inside[key]
                inside["n_features"] = beyond + 1


def _npy_header(_: dict[str, Any], arrays: dict[str, bytes], rng: random.Random) -> None:
    name = rng.choice(list(arrays))
    blob = arrays[name]
    end = 10 + int.from_bytes(blob[8:10], "little")
    text = blob[10:end].decode("latin1")
    action = rng.randrange(5)
    if action == 0:
        shape = rng.choice(("(1000000000000,)", "(-1,)", "(99999999999999999999,)", "(1, 0)", "[]"))
        text = re.sub(r"\([^)]*\)", shape, text)
    elif action == 1:
        kind = rng.choice(("<f2", "|O", "<U9", ">i8", "<i8", "<c8", "|V8", "x", "<M8[s]"))
        text = re.sub(r"'[<|>][a-z]\d+'", repr(kind), text)
    elif action == 2:
        text = text.replace("False", rng.choice(("True", "None", "0L", "(", "1 if")))
    elif action == 3:
        text = text[: rng.randrange(len(text))] + "\n"
    else:
        place = rng.randrange(len(text))
        text = text[:place] + chr(rng.randrange(1, 127)) + text[place + 1 :]
    header = text.encode("latin1")
    arrays[name] = blob[:8] + len(header).to_bytes(2, "little") + header + blob[end:]


# -- text ------------------------------------------------------------------------------------------


def _tokens(blob: bytes, rng: random.Random) -> bytes:
    words = re.split(rb"([ \t\n,:]+)", blob)
    for _ in range(rng.choice((1, 1, 2, 4))):
        words[rng.randrange(len(words))] = rng.choice(TOKENS)
    return b"".join(words)


def _lines(blob: bytes, rng: random.Random) -> bytes:
    """Drop, double, cut or join a line, or give the file other line ends."""
    lines = blob.split(b"\n")
    at = rng.randrange(len(lines))
    action = rng.randrange(5)
    if action == 0:
        del lines[at]
    elif action == 1:
        lines.insert(rng.randrange(len(lines)), lines[at])
    elif action == 2:
        lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    elif action == 3:
        return b"\n".join(lines[:at]) + b"\r" + b"\n".join(lines[at:])
    return rng.choice((b"\n", b"\r\n", b"\r")).join(lines)
