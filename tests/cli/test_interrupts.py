"""Ctrl-C: what was kept is said, also where nothing was."""

from __future__ import annotations

import pytest

import rankgrove as rg
from rankgrove.cli import outputs
from tests.command import run_here as run


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def folder(tmp_path):
    for seed in (1, 2):
        data = rg.make_artificial(6, n_docs=5, n_features=4, seed=seed)
        rg.write_letor(data, tmp_path / f"S{seed}.txt")
    return tmp_path


def test_before_the_first_round(folder, monkeypatch):
    monkeypatch.setattr(rg.LambdaMART, "fit", interrupt)
    _, told = run("train", "S1.txt", "--out", "m.rg", "--quiet", cwd=folder, status=130)
    assert told == "interrupted: nothing was kept.\n"
    assert not (folder / "m.rg").exists()


def test_a_command_that_keeps_nothing(folder, monkeypatch):
    monkeypatch.setattr(rg, "evaluate", interrupt, raising=False)
    _, told = run("evaluate", "S1.txt", "-s", "feature:1", cwd=folder, status=130)
    assert told == "interrupted: nothing was kept.\n"


def test_tune_before_its_first_fit(folder, monkeypatch):
    monkeypatch.setattr(rg, "tune", interrupt, raising=False)
    words = "tune S1.txt --valid S2.txt --store trials.jsonl --quiet"
    _, told = run(*words.split(), cwd=folder, status=130)
    assert told == "interrupted: nothing was kept: none of the fits was finished.\n"
    _, told = run(*words.replace("--store trials.jsonl ", "").split(), cwd=folder, status=130)
    assert told.startswith("interrupted: nothing was kept; with --store FILE the next run would")


@pytest.mark.parametrize(("lines", "holds"), [(None, False), (1, False), (2, True)])
def test_what_a_store_holds(tmp_path, lines, holds):
    if lines is not None:
        (tmp_path / "s").write_text("{}\n" * lines)
    assert outputs._holds_anything(tmp_path / "s") == holds
    (tmp_path / "folder").mkdir()
    assert not outputs._holds_anything(tmp_path / "folder")
