"""The oldest dependencies: every minimum of pyproject.toml becomes an exact version."""

from __future__ import annotations

import re
import tomllib

import pytest
from tools import oldest

from tests.conftest import ROOT


def test_minimums_become_exact_versions():
    project = {
        "name": "thing",
        "dependencies": ["numpy>=1.26", "b-c>=2.0.1"],
        "optional-dependencies": {"x": ["a_b>=3"], "dev": ["thing[x]", "numpy>=1.26"]},
    }
    lines = oldest.constraints(oldest.requirements(project))
    assert lines == ["a_b==3", "b-c==2.0.1", "numpy==1.26"]


@pytest.mark.parametrize("line", ["numpy", "numpy>1.26", "numpy>=1.26,<3", "numpy==1.26"])
def test_another_form_is_refused(line):
    with pytest.raises(ValueError, match=rf"'{re.escape(line)}' names no minimum; write it as"):
        oldest.constraints([line])


def test_two_minimums_of_one_package_are_refused():
    with pytest.raises(ValueError, match=r"numpy has two minimums, 1\.26 and 2\.0; write the same"):
        oldest.constraints(["numpy>=1.26", "numpy>=2.0"])


def test_our_own_requirements_all_have_minimums():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = oldest.constraints(oldest.requirements(project))
    assert len(lines) > len(project["dependencies"])
    assert not any(line.startswith("rankgrove") for line in lines)
