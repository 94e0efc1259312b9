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


def test_early_exit_and_calibration_in_either_order(folder):
    """Both may be learned first: scores are the same, and so is what they mean."""
    exits = ("early-exit", "vali.txt")
    learns = ("calibrate", "vali.txt")
    said, _ = run_here(*exits, "web.rg", "--out", "fast.rg", cwd=folder)
    assert "may first stop after 32 trees, and the model has 10 trees" in said
    run_here(*learns, "fast.rg", "--out", "fast_then.rg", cwd=folder)
    run_here(*learns, "web.rg", "--out", "grades_then.rg", cwd=folder)
    run_here(*exits, "grades_then.rg", "--out", "both.rg", cwd=folder)
    for name in ("fast_then", "both"):
        ranks = ("rank", "test.txt", "--model", f"{name}.rg", "--relevance")
        run_here(*ranks, "--out", f"{name}.txt", cwd=folder)
    assert (folder / "fast_then.txt").read_text() == (folder / "both.txt").read_text()
    test = rg.read_letor(folder / "test.txt")
    both = rg.load(folder / "both.rg")
    expected = rg.load(folder / "fast_then.rg").predict_relevance(test).expected
    assert both.predict_relevance(test).expected == pytest.approx(expected)
    assert rg.rank(both, test).relevance is not None
    with pytest.raises(rg.ParameterError, match="a LambdaMART has scores without a scale"):
        rg.load(folder / "fast.rg").predict_relevance(test)


def test_short_queries_are_named_where_nothing_is_left_out(folder):
    rg.LambdaMART(n_trees=70, n_leaves=4, n_threads=1).fit(
        rg.read_letor(folder / "train.txt")
    ).save(folder / "larger.rg")
    words = ("early-exit", "vali.txt", "larger.rg", "--max-loss", "1", "--out", "no.rg")
    said, _ = run_here(*words, cwd=folder)
    assert "Queries of fewer than 64 documents are always scored to the end." in said
