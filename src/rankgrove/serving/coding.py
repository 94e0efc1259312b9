"""JSON to values and back: by orjson where it is installed, which is several times faster."""

from __future__ import annotations

import json
import math
from typing import Any

from rankgrove.serving.problems import Problem

try:
    import orjson
except ImportError:  # the standard library does it as well
    orjson = None  # type: ignore[assignment]


def decode(body: bytes) -> Any:
    """Return the value of a JSON text; NaN and Infinity are taken too."""
    if orjson is not None:
        try:
            return orjson.loads(body)
        except ValueError:
            pass  # NaN, which is no JSON but often sent; or a mistake, that json words better
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
        f"The body is no JSON: {reason}.",
        rule="The body is one JSON object in UTF-8.",
        remedy='Send {"documents": [{"id": "a", "features": [0.5, null, 3]}]}.',
    )


def encode(value: Any) -> bytes:
    """Return the JSON text of a value; numbers that JSON has not are null."""
    if orjson is not None:
        try:
            return orjson.dumps(value)
        except TypeError:
            pass  # a whole number of more than 64 bits, or half a character
    return json.dumps(_finite(value), separators=(",", ":")).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
