"""Numbers are read to the last bit as Python's float reads them, and written in few digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.data import _letor_write_kernels as writing
from tests.data.test_letor import same_bits, write
from tests.reference import letor as oracle


def read_values(folder: Path, tokens: list[str]) -> np.ndarray:
    """The tokens as one row of features."""
    row = " ".join(f"{j}:{token}" for j, token in enumerate(tokens, start=1))
    return rg.read_letor(write(folder, f"0 qid:1 {row}\n"), sparse=False).X[0]


def expected(tokens: list[str]) -> np.ndarray:
    return np.array([oracle.value(token.encode()) for token in tokens], np.float32)


def borders() -> list[str]:
    """Decimals exactly half way between two float32, and just beside."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 0x7F7F_FFFF, 300, dtype=np.uint32)
    bits = np.concatenate([bits, np.arange(5, dtype=np.uint32), [np.uint32(0x7F7F_FFFE)]])
    tokens = []
    for below, above in zip(bits.view(np.float32), (bits + 1).view(np.float32), strict=True):
        middle = (float(below) + float(above)) / 2  # exact in double
        text = f"{middle:.200f}".rstrip("0").rstrip(".")
        whole = text if "." in text else text + "."
        tokens += [text, whole + "0" * 30 + "1", repr(middle), repr(float(np.nextafter(middle, 0)))]
        tokens += [f"{middle:.{digits}e}" for digits in (7, 8, 9, 15, 16, 17, 18, 19, 20)]
    return tokens


def test_near_the_borders_of_float32(tmp_path):
    tokens = borders()
    assert len(tokens) > 3000
    assert same_bits(read_values(tmp_path, tokens), expected(tokens))


def test_double_rounding_is_pythons(tmp_path):
    # float() of this is exactly half way, and the tie goes to even; the decimal itself is above.
    token = "1.00000005960464477539062500000001"
    assert read_values(tmp_path, [token])[0] == np.float32(float(token)) == np.float32(1.0)


def test_every_length_and_exponent(tmp_path):
    rng = np.random.default_rng(4)
    tokens = []
    for digits in range(1, 38):
        for _ in range(60):
            text = "".join(map(str, rng.integers(0, 10, digits)))
            point = int(rng.integers(0, digits + 1))
            exponent = int(rng.integers(-70, 36 - digits))
            tokens += [
                f"-{text[:point]}.{text[point:]}",
                f"{text[:point]}.{text[point:]}e{exponent}",
            ]
    assert same_bits(read_values(tmp_path, tokens), expected(tokens))


decimals = st.from_regex(
    r"\A[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,3})?\Z"
)


@pytest.mark.slow
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tokens=st.lists(decimals, min_size=1, max_size=20))
def test_any_decimal(tmp_path, tokens):
    fits = [abs(float(token)) < 3.4e38 for token in tokens]
    kept = [token for token, fit in zip(tokens, fits, strict=True) if fit]
    if kept:
        assert same_bits(read_values(tmp_path, kept), expected(kept))
    for token in tokens:
        if abs(float(token)) > 3.5e38:
            with pytest.raises(rg.ParseError, match="too large for float32"):
                read_values(tmp_path, [token])


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(labels=st.lists(decimals.filter(lambda t: abs(float(t)) < 1e308), min_size=1, max_size=9))
def test_labels_are_doubles(tmp_path, labels):
    data = rg.read_letor(write(tmp_path, "".join(f"{label} qid:1 1:1\n" for label in labels)))
    assert data.y.tolist() == [float(label) for label in labels]


LARGEST = "1.79769313486232e+308 -1.79769313486e+308 1.7976931348623157E308 1.79769e308 1797693e302"


def test_the_largest_double_is_a_missing_value(tmp_path):
    whole = str(int(np.finfo(np.float64).max))  # its 309 digits
    tokens = ["1.5", *LARGEST.split(), whole, f"{whole}.25"]
    values = read_values(tmp_path, tokens)
    assert same_bits(values, expected(tokens))
    assert np.isnan(values).tolist() == [False] + [True] * (len(tokens) - 1)
    sparse = rg.read_letor(write(tmp_path, f"0 qid:1 2:{whole}\n"), sparse=True).X
    assert np.isnan(sparse.toarray()).tolist() == [[False, True]]


@pytest.mark.parametrize(
    "token", ["1.79768e308", "1.7977e308", "1.79769e307", "1.79769e309", "9e999"]
)
def test_other_numbers_beyond_float32_are_refused(tmp_path, token):
    with pytest.raises(rg.ParseError, match="too large for float32"):
        read_values(tmp_path, [token])
    with pytest.raises(ValueError):
        expected([token])


def written(value: np.float32) -> str:
    out = np.zeros(64, np.uint8)
    return bytes(out[: writing.put_value(out, 0, value)]).decode()


def test_written_values_are_short_and_exact():
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2**32, 20_000, dtype=np.uint32)
    small = (rng.integers(0, 10**7, 5000) / 10.0 ** rng.integers(0, 7, 5000)).astype(np.float32)
    special = np.array([0.0, -0.0, 1e-45, 3.4028235e38, 1e9, 1e10, 0.1, 1e-4, 1e-5], np.float32)
    values = np.concatenate([bits.view(np.float32), small, special])
    values = values[np.isfinite(values)]
    texts = [written(value) for value in values]
    assert max(map(len, texts)) < writing.MOST_VALUE_BYTES
    back = np.array([float(text) for text in texts]).astype(np.float32)
    assert same_bits(back, values)
    longer = 0
    for value, text in zip(values, texts, strict=True):
        mantissa = text.lower().lstrip("-").partition("e")[0].replace(".", "").strip("0")
        best = np.format_float_scientific(abs(value), unique=True, trim="-").partition("e")[0]
        longer += len(mantissa) > len(best.replace(".", "").strip("0"))
    assert longer <= len(values) // 1000  # a power of two may cost one digit more


def test_written_examples():
    assert [written(np.float32(v)) for v in (0.1, 1e-7, 12345.678, -2, np.nan, -np.inf, 1e22)] == [
        "0.1", "1e-7", "12345.678", "-2", "nan", "-inf", "1e22",
    ]  # fmt: skip
