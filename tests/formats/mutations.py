"""Damaged model files: bytes flipped, words replaced, lines moved, values of other types, cuts.

``python -m tests.formats.mutations 20000`` tries as many of every format, with a limit on memory;
``python -m tests.formats.mutations 20000 xgboost,ubj`` of these alone.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

import rankgrove as rg

WORDS = [
    "1e999", "-1", "999999999999", "16777214", "2147483647", "nan", "NaN", "null", "", "[]", "{}",
    "0x10", "1e-400", "true", '"x"', "9" * 5000, "Infinity", "-Infinity", "0", "1_0", "\u0663",
]  # fmt: skip
VALUES = [None, -1, 10**30, 1e308, "x", [], {}, True, float("nan"), [[1]], "5E-1", 16777214]
# words of Python's own errors, which say nothing to whoever has a damaged file
INNER = re.compile(
    r"\b(\w+Error|object has no attribute|NoneType|not subscriptable|unhashable|list index|"
    r"Expecting value|codec can't)"
)


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the content of a file with a mistake in it."""
    ways = [_bytes, _bytes, _cut, _words, _words, _lines, _values]
    return ways[rng.integers(len(ways))](content, rng)


def _bytes(content, rng):
    broken = bytearray(content)
    for place in rng.integers(0, len(content), rng.integers(1, 4)):
        broken[place] = rng.integers(256)
    return bytes(broken)


def _cut(content, rng):
    first, last = sorted(rng.integers(0, len(content), 2).tolist())
    return content[:last] if rng.random() < 0.5 else content[:first] + content[last:]


def _words(content, rng):
    whole = content.decode("latin-1")
    places = [match.span() for match in re.finditer(r"[-\w.+]+", whole)]
    start, end = places[rng.integers(len(places))]
    word = WORDS[rng.integers(len(WORDS))]
    return (whole[:start]).encode("latin-1") + word.encode() + whole[end:].encode("latin-1")


def _lines(content, rng):
    lines = content.splitlines(keepends=True)
    at, other = rng.integers(len(lines), size=2)
    return b"".join([*lines[:at], *([lines[other]] * int(rng.integers(3))), *lines[at + 1 :]])


def _values(content, rng):
    try:
        document = json.loads(content)
    except ValueError:
        return _words(content, rng)
    return json.dumps(_replaced(document, rng)).encode()


def _replaced(value, rng, depth=0):
    """A document with one value, somewhere, of another type, or lost."""
    if not isinstance(value, dict | list) or not value or (depth and rng.random() < 0.15):
        return VALUES[rng.integers(len(VALUES))]
    if isinstance(value, dict):
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: _replaced(value[key], rng, depth + 1)}
    at = int(rng.integers(len(value)))
    return [*value[:at], _replaced(value[at], rng, depth + 1), *value[at + 1 :]]


def load_or_fail(path: Path, content: bytes):
    """Load, or see a ModelFileError that names the file in plain words; what loads predicts."""
    path.write_bytes(content)
    caught = ""
    try:
        model = rg.load(path)
    except rg.ModelFileError as error:
        caught = str(error)
    if caught:
        assert path.name in caught
        assert len(caught) < 700
        assert not INNER.search(caught), caught
        return None
    if model.n_features_in_ < 10000:
        predict = getattr(model, "raw_scores", model.predict)
        scores = predict(np.zeros((2, model.n_features_in_)))
        assert np.isfinite(scores).all()
    return model


def main(n: int, kinds: str = "") -> None:
    from tests.formats.test_damaged import whole_files

    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    with tempfile.TemporaryDirectory() as folder:
        for kind, content in whole_files().items():
            if kinds and kind not in kinds.split(","):
                continue
            outcomes: Counter[str] = Counter()
            for seed in range(n):
                broken = mutated(content, np.random.default_rng([seed, len(kind)]))
                try:
                    found = load_or_fail(Path(folder, "model"), broken)
                    outcomes["refused" if found is None else "read"] += 1
                except Exception as error:  # what is looked for
                    outcomes["leaked"] += 1
                    print(f"  {kind}, seed {seed}: {type(error).__name__}: {str(error)[:300]}")
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(f"{kind}: {dict(outcomes)}, {peak} MB at the most", flush=True)


if __name__ == "__main__":
    import logging

    logging.disable()
    main(int(sys.argv[1]), *sys.argv[2:])
