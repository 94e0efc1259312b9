"""How many threads there are: a container's quota counts."""

from __future__ import annotations

import pytest

from rankgrove import parallel


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("max 100000\n", None),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("1000 100000\n", 1),
        ("", None),
    ],
)
def test_a_quota_of_cores(tmp_path, text, cores):
    file = tmp_path / "cpu.max"
    file.write_text(text)
    assert parallel.quota_of_cores(str(file)) == cores


def test_no_file_no_quota(tmp_path):
    assert parallel.quota_of_cores(str(tmp_path / "none")) is None


def test_the_quota_limits_threads(tmp_path, monkeypatch):
    file = tmp_path / "cpu.max"
    file.write_text("50000 100000")
    monkeypatch.setattr(parallel, "QUOTA_FILE", str(file))
    assert parallel.available_threads() == 1
    assert parallel.thread_count(8) == 1
