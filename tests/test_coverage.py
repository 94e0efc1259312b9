"""The figure of the coverage, from what SlipCover writes."""

from __future__ import annotations

from tools import coverage

RESULT = {
    "summary": {"covered_lines": 1995, "missing_lines": 5, "percent_covered": 99.75},
    "files": {
        "a.py": {"missing_lines": [4]},
        "b.py": {"missing_lines": []},
        "c.py": {"missing_lines": [9, 7, 8, 12]},
    },
}


def test_the_total():
    assert coverage.total(RESULT).startswith("coverage: 99.8 % of 2,000 lines of src/rankgrove (")


def test_files_by_lines_that_were_not_run():
    assert coverage.files(RESULT) == ["    4  c.py: 7-9, 12", "    1  a.py: 4"]
