"""``rankgrove doctor``: what it tells, what it keeps to itself, and what it finds wrong."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import numba
import numpy as np
import pytest

import rankgrove as rg
from rankgrove import kernel_cache
from rankgrove.cli import doctor_facts
from rankgrove.parallel import available_threads
from tests.command import run_here
from tests.conftest import ROOT

SECTIONS = [
    *("versions", "machine", "threads", "compiled kernels", "optional packages", "settings"),
    *("speed", "problems"),
]


def told(*words, status=0):
    return json.loads(run_here("doctor", "--json", *words, status=status)[0])


def test_facts():
    facts = told()
    assert list(facts) == SECTIONS
    assert facts["versions"]["rankgrove"] == rg.__version__
    assert facts["versions"]["numpy"] == np.__version__
    assert all(facts["versions"].values())
    assert facts["threads"]["used by default"] == available_threads()
    assert facts["threads"]["threading layer"] in ("omp", "tbb", "workqueue")
    kernels = facts["compiled kernels"]
    assert (kernels["writable"], kernels["files"] > 0) == (True, True)
    speed = facts["speed"]
    assert speed["milliseconds per tree"] > 0
    assert 1e4 < speed["documents scored per second"] < 1e10
    assert facts["problems"] == []


def test_text_has_all_of_it_and_no_tables():
    out, _ = run_here("doctor", "--no-speed")
    headings = [line for line in out.splitlines() if not line.startswith("  ")]
    assert headings == [name for name in SECTIONS if name != "speed"]
    assert out.endswith("problems\n  none found\n")
    assert re.search(rf"^  rankgrove +{re.escape(rg.__version__)}$", out, re.M)
    assert re.search(r"^  writable +yes$", out, re.M)
    assert out.isascii()


def test_no_names_of_folders_but_the_kernels(monkeypatch, tmp_path):
    home = tmp_path / "some.body"
    cache = home / "cache"
    cache.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RANKGROVE_DATA", str(home / "data"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(cache))
    out, _ = run_here("doctor", "--no-speed")
    assert "some.body" not in out
    assert re.search(r"^  folder +~/cache/rankgrove$", out, re.M)
    assert "set, but there is no such folder" in out


def test_home_folder_is_shortened_as_a_whole_name_only(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    assert doctor_facts.without_home("/home/ann: /home/ann/x") == "~: ~/x"
    assert doctor_facts.without_home("/home/anna/x") == "/home/anna/x"
    monkeypatch.setenv("HOME", "/")
    assert doctor_facts.without_home("/cache") == "/cache"


def test_absent_packages_name_their_extra(monkeypatch):
    def version(package):
        if package == "pyarrow":
            raise metadata.PackageNotFoundError(package)
        return {"scipy": "1.9.3", "onnx": "1.2"}.get(package, "9999.1")

    monkeypatch.setattr(doctor_facts.metadata, "version", version)
    facts = told("--no-speed", status=1)
    assert facts["optional packages"]["pyarrow"] == "absent: pip install 'rankgrove[tables]'"
    assert [text.split(",")[0] for text in facts["problems"]] == [
        "scipy 1.9.3 is older than 1.11.1",
        "onnx 1.2 is older than 1.16",
    ]


def test_what_is_broken_does_not_hide_the_rest(monkeypatch):
    def broken():
        raise RuntimeError("no kernels\nhere")

    monkeypatch.setattr(doctor_facts, "speeds", broken)
    facts = told(status=1)
    assert facts["speed"] == {"failed": "RuntimeError: no kernels here"}
    assert facts["problems"] == ["RuntimeError: no kernels here"]
    assert facts["versions"]["rankgrove"] == rg.__version__


def test_kernels_that_cannot_be_kept_are_a_problem(monkeypatch):
    monkeypatch.setattr(kernel_cache, "_lost", (Path("there"), "No space left on device"))
    (problem,) = told("--no-speed", status=1)["problems"]
    assert "cannot be kept in there: No space left on device" in problem


def test_requirements_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def minimums(lines):
        return dict(line.split(">=") for line in lines)

    assert minimums(project["dependencies"]) == doctor_facts.REQUIRED
    others = {"docs", "test", "lint", "dev"}  # to change the package
    extras = project["optional-dependencies"]
    assert {name: minimums(extras[name]) for name in extras.keys() - others} == doctor_facts.EXTRAS


@pytest.mark.parametrize(
    ("version", "least", "older"),
    [
        ("1.9", "1.11", True),
        ("1.11", "1.11.0", False),
        ("2.0rc1", "1.26", False),
        ("3", "3.1", True),
    ],
)
def test_versions_are_compared_as_numbers(version, least, older):
    assert doctor_facts.is_older(version, least) == older
