"""``reproduce mslr|yahoo|istella`` on generated files of the publishers' layouts."""

from __future__ import annotations

import gzip
import re

import pytest

import rankgrove as rg
from rankgrove.measures.conventions import CONVENTIONS
from rankgrove_papers.published import layouts, runs
from tests.command import run_here as run

ROLES = ("train", "vali", "test")


def write_part(path, seed, n_queries=12, largest=False):
    """Write generated judgements; `largest`: one value in four is Istella's missing value."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = rg.make_web(n_queries, n_docs=8, n_features=6, seed=seed)
    plain = path.with_name(path.name.removesuffix(".gz"))
    rg.write_letor(data, plain)
    text = plain.read_text()
    if largest:
        text = re.sub(r" ([24]):\S+", r" \1:1.79769313486232e+308", text, count=data.n_rows // 2)
        plain.write_text(text)
    if path.suffix == ".gz":
        plain.unlink()
        path.write_bytes(gzip.compress(text.encode()))
    return data


@pytest.fixture
def mslr(tmp_path):
    for k in (1, 2):
        for i, role in enumerate(ROLES):
            write_part(tmp_path / "web" / f"Fold{k}" / f"{role}.txt", seed=10 * k + i)
    return tmp_path / "web"


def table_of(text):
    """Return {(split, measure): {convention: value}} of the table by convention."""
    lines = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines()]
    start = next(i for i, cells in enumerate(lines) if cells[:2] == ["split", "measure"])
    assert tuple(lines[start][2:]) == runs.CONVENTIONS
    rows = {}
    for cells in lines[start + 2 :]:
        if not cells:
            break
        rows[cells[0], cells[1]] = dict(zip(runs.CONVENTIONS, map(float, cells[2:]), strict=True))
    return rows


def test_all_conventions_have_a_column():
    assert set(runs.CONVENTIONS) == set(CONVENTIONS)


def test_mslr_by_fold_and_mean_is_what_evaluation_gives(mslr, tmp_path):
    out = tmp_path / "out"
    command = ["reproduce", "mslr", "--data", mslr, "--scale", "full", "--trees", 3]
    text, _ = run(*command, "--out", out)
    rows = table_of(text)
    assert {split for split, _ in rows} == {"fold 1", "fold 2", "mean of 2 folds"}
    assert {measure for _, measure in rows} == set(runs.MEASURES)
    parts = [rg.read_letor(mslr / "Fold1" / f"{role}.txt", n_features=136) for role in ROLES]
    model = rg.LambdaMART(n_trees=3, **runs.SETTINGS).fit(parts[0], valid=parts[1])
    for convention in runs.CONVENTIONS:
        expected = rg.evaluate(model, parts[2], runs.MEASURES, convention=convention).mean
        for measure in runs.MEASURES:
            assert rows["fold 1", measure][convention] == pytest.approx(expected[measure], abs=6e-5)
            folds = [rows[f"fold {k}", measure][convention] for k in (1, 2)]
            mean = rows["mean of 2 folds", measure][convention]
            assert mean == pytest.approx(sum(folds) / 2, abs=1.1e-4)
    empty = re.search(r"fold 1: .* (\d+) of 12 test queries", text)
    assert int(empty[1]) == sum(parts[2].y[parts[2].qid == q].max() == 0 for q in range(1, 13))
    assert (out / "mslr-full.md").is_file()
    again, said = run(*command, "--out", out)
    assert again == text
    assert "MSLR-WEB, fold" not in said  # known already
    frugal, said = run(*command, "--low-memory")
    assert table_of(frugal) == rows
    assert "making bins" in said


def test_small_scale_takes_the_first_fold(mslr):
    text, _ = run("reproduce", "mslr", "--data", mslr, "--trees", 2)
    assert {split for split, _ in table_of(text)} == {"fold 1"}
    assert "1 more fold with --scale full" in text


def test_published_figures_stand_next_to_those_of_the_same_data(mslr, monkeypatch):
    n_rows = sum(rg.read_letor(mslr / "Fold1" / f"{role}.txt").n_rows for role in ROLES)
    text, _ = run("reproduce", "mslr", "--data", mslr, "--trees", 2)
    assert "No published figures next to these" in text
    monkeypatch.setitem(layouts.KNOWN, n_rows, "MSLR-WEB30K")
    text, _ = run("reproduce", "mslr", "--data", mslr, "--trees", 2)
    assert "### MSLR-WEB30K\n" in text
    ours = table_of(text)["fold 1", "ndcg@10"]["lightgbm"]
    row = r"\| fold 1 +\| ndcg@10 +\| lightgbm +\| LightGBM, all 500 rounds +\| 0.521484 +\| (\S+)"
    assert float(re.search(row, text)[1]) == ours
    assert "54.49" not in text  # of the validation parts
    monkeypatch.setitem(layouts.KNOWN, n_rows, "Istella-S")
    text, _ = run("reproduce", "mslr", "--data", mslr, "--trees", 2)
    assert "No published figure that we know" in text


@pytest.mark.parametrize("form", ["ltrc_yahoo/set{}.{}.txt", "set{}.{}.txt.gz", "set{}/{}.txt"])
def test_yahoo(tmp_path, form):
    for k in (1, 2):
        for i, role in enumerate(("train", "valid", "test")):
            role = "vali" if role == "valid" and "/{}" in form else role
            write_part(tmp_path / "data" / form.format(k, role), seed=10 * k + i)
    text, _ = run("reproduce", "yahoo", "--data", tmp_path / "data", "--trees", 2)
    assert "### Yahoo set 1, not of a published size" in text
    assert "### Yahoo set 2, not of a published size" in text
    assert "mean of" not in text
    assert len(table_of(text)) == len(runs.MEASURES)


def test_istella_without_a_validation_part_and_with_missing_values(tmp_path):
    for i, role in enumerate(("train", "test")):
        write_part(tmp_path / "ist" / "sample" / f"{role}.txt", i, n_queries=20, largest=True)
    command = ["reproduce", "istella", "--data", tmp_path / "ist", "--trees", 3]
    text, _ = run(*command)
    assert "0 for validation (10 % of the training queries held out)" in text
    frugal, _ = run(*command, "--low-memory")
    assert table_of(frugal) == table_of(text)
    other, _ = run(*command, "--ranker", "mart")
    assert "mart, at most 3 rounds" in other
    assert table_of(other) != table_of(text)


def test_what_is_refused(mslr, tmp_path):
    (mslr / "Fold2" / "vali.txt").unlink()
    for words, message in [
        (["mslr", "--data", mslr], f"{mslr / 'Fold2'} lacks vali.txt"),
        (["yahoo", "--data", mslr], "does not hold the Yahoo learning to rank challenge"),
        (["mslr", "--data", tmp_path / "no"], f"There is no folder {tmp_path / 'no'}"),
        (["istella"], "istella needs --data FOLDER"),
        (["wu2010-table1", "--trees", "5"], "--trees is for mslr, yahoo, istella"),
        (["wu2010-table1", "--low-memory"], "--low-memory is for mslr"),
        (["mslr", "--data", mslr / "Fold1", "--ranker", "svm-map"], "ranker"),
        (["mslr", "--data", mslr, "--trees", "0"], "at least 1"),
    ]:
        out, complaint = run("reproduce", *words, status=2)
        assert out == ""
        assert message in complaint
        assert complaint.count("\n") == 1
    write_part(tmp_path / "two" / "train.txt", 1)
    write_part(tmp_path / "two" / "train.txt.gz", 2)
    write_part(tmp_path / "two" / "train.txt", 1)
    _, complaint = run("reproduce", "istella", "--data", tmp_path / "two", status=2)
    assert "several files for one part: train.txt, train.txt.gz" in complaint
