"""What is said while kernels are compiled."""

from __future__ import annotations

import io
import logging
import sys

import pytest
from numba import njit

from rankgrove import compiling
from rankgrove.compiling import Indicator, announce


class _Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(compiling, "SHOWN_AFTER", 0.0)
    monkeypatch.setattr(compiling, "GONE_AFTER", 0.0)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def indicator(monkeypatch):
    made = Indicator()
    monkeypatch.setattr(compiling, "INDICATOR", made)
    announce()
    return made


def _kernel():
    """Return a function that looks like a kernel of ours, and takes a while to compile."""

    @njit
    def added(n):
        total = 0.0
        for i in range(n):
            total += i
        return total

    added.py_func.__module__ = "rankgrove.growth._some_kernels"
    return added


def test_a_line_moves_on_a_terminal_and_goes_away(monkeypatch, indicator):
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    kernel = _kernel()
    indicator.begin("rankgrove.data._letor_kernels")  # so that the compiler cannot be too quick
    assert kernel(4) == 6.0
    compiling.time.sleep(0.35)
    indicator.end()
    indicator.wait()
    text = terminal.getvalue()
    assert "compiling kernels for reading LETOR files (1 done, " in text
    assert text.count("\r\x1b[K") >= 2
    assert text.endswith("\r\x1b[K")


def test_one_line_in_a_log(monkeypatch, caplog, indicator):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with caplog.at_level(logging.WARNING, "rankgrove"):
        for _ in range(2):
            indicator.begin("rankgrove.data._letor_kernels")
            compiling.time.sleep(0.25)
            indicator.end()
            indicator.wait()
    assert [one.getMessage() for one in caplog.records] == [
        "Compiling kernels for reading LETOR files: this happens once; see rankgrove compile ..."
    ]
    assert sys.stderr.getvalue() == ""


def test_other_peoples_kernels_are_not_told_of(monkeypatch, indicator):
    kernel = _kernel()
    kernel.py_func.__module__ = "elsewhere"
    monkeypatch.setattr(indicator, "begin", lambda module: pytest.fail(module))
    assert kernel(4) == 6.0
