"""Decoding and encoding JSON, with orjson (several times faster) if it is installed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from rankgrove.serving.problems import Problem

try:
    import orjson
except ImportError:  # then the standard library's json is used
    orjson = None  # type: ignore[assignment]

Json = Mapping[str, "Json"] | Sequence["Json"] | str | int | float | None


def decode(body: bytes) -> object:
    """Return the value of a JSON text; NaN and Infinity are accepted too."""
    if orjson is not None:
        try:
            return orjson.loads(body)
        except ValueError:
            pass  # NaN, which is not JSON but often sent; or an error, which json describes better
    try:
        return json.loads(body)
    except RecursionError:
        reason = "it is nested too deeply"
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 (byte {error.start})"
    except ValueError as error:
        reason = str(error)
    raise Problem(
        400,
        f"The body is not JSON: {reason}.",
        rule="The body is one JSON object in UTF-8.",
        remedy='Send {"documents": [{"id": "a", "features": [0.5, null, 3]}]}.',
    )


def encode(value: Json) -> bytes:
    """Return the JSON text of a value; NaN and infinite numbers become null."""
    if orjson is not None:
        try:
            return orjson.dumps(value)
        except TypeError:
            pass  # an integer of more than 64 bits, or a lone surrogate
    return json.dumps(_finite(value), separators=(",", ":")).encode()


def _finite(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
