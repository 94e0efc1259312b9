"""``rankgrove calibrate``, and what ``rank`` makes of its models."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from tests.command import run_here


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("calibrate")
    for name, seed in (("train", 1), ("vali", 2), ("test", 3)):
        rg.write_letor(rg.make_web(60, 15, 8, seed=seed), path / f"{name}.txt")
    rg.LambdaMART(n_trees=10, n_threads=1).fit(rg.read_letor(path / "train.txt")).save(
        path / "web.rg"
    )
    return path


def test_from_model_to_grades(folder):
    words = ("calibrate", "vali.txt", "web.rg", "--out", "calibrated.rg", "--plot", "r.png")
    printed, _ = run_here(*words, cwd=folder)
    assert "expected grade: calibration error" in printed
    assert (folder / "r.png").stat().st_size > 5000
    run_here(
        *("rank", "test.txt", "--model", "calibrated.rg", "--relevance", "--out", "grades.txt"),
        cwd=folder,
    )
    model, test = rg.load(folder / "calibrated.rg"), rg.read_letor(folder / "test.txt")
    expected = model.predict_relevance(test).expected
    assert np.loadtxt(folder / "grades.txt") == pytest.approx(expected)
    run, _ = run_here(
        *("rank", "test.txt", "--model", "calibrated.rg", "--format", "trec"),
        *("--min-relevance", "0.9"),
        cwd=folder,
    )
    assert len(run.splitlines()) == (expected >= 0.9).sum()
    assert 0 < len(run.splitlines()) < test.n_rows


def test_mistakes_are_named(folder):
    _, said = run_here(
        *("rank", "test.txt", "--model", "web.rg", "--relevance"), cwd=folder, status=2
    )
    assert "need a model of 'rankgrove calibrate'" in said
    _, said = run_here(
        *("rank", "test.txt", "--model", "web.rg", "--min-relevance", "1"), cwd=folder, status=2
    )
    assert "add --format trec" in said


def test_tables_have_relevance(folder):
    run_here("calibrate", "vali.txt", "web.rg", "--out", "again.rg", cwd=folder)
    pandas = pytest.importorskip("pandas")
    run_here(
        *("rank", "test.txt", "--model", "again.rg", "--relevance", "--out", "ranked.csv"),
        *("--min-relevance", "0.5"),
        cwd=folder,
    )
    table = pandas.read_csv(folder / "ranked.csv")
    expected = (
        rg.load(folder / "again.rg").predict_relevance(rg.read_letor(folder / "test.txt")).expected
    )
    assert table.relevance.to_numpy() == pytest.approx(expected[table.row])
    assert len(table) == (expected >= 0.5).sum()
    ranking = rg.rank(rg.load(folder / "again.rg"), rg.read_letor(folder / "test.txt"), top=2)
    assert ranking.relevance is not None
