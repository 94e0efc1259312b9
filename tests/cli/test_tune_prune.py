"""`rankgrove tune` and `rankgrove prune` as a user types them."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest

import rankgrove as rg
from rankgrove.tuning.search_space import N_TRIALS
from tests.command import COMMAND
from tests.command import run_here as run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tune")
    for k in range(3):
        data = rg.make_web(15, n_docs=10, n_features=5, seed=k)
        named = rg.QueryDataset(data.X, data.y, [f"{k}{q}" for q in data.qid])
        rg.write_letor(named, path / f"S{k + 1}.txt")
    (path / "space.toml").write_text("n_leaves = [2, 5]\nlearning_rate = [0.1, 0.4]\n")
    return path


COMMON = "--space space.toml --set n_trees=6 --set min_leaf=3 --quiet"


def test_tuning_with_validation_and_test(folder):
    words = f"tune S1.txt --valid S2.txt --test S3.txt {COMMON} -m ndcg@5 -m map"
    words += " --store trials.jsonl --out trials.csv --plot trials.png --show 2"
    out, _ = run(*words.split(), cwd=folder)
    lines = out.strip().splitlines()
    for column in ("valid ndcg@5", "test ndcg@5", "valid map", "test map"):
        assert column in lines[0]
    assert "n_leaves" in lines[0]
    assert len([line for line in lines if line.startswith("|")]) == 4
    assert lines[4:] == [f"written to trials.{end}" for end in ("csv", "png", "jsonl")]
    assert len((folder / "trials.csv").read_text().splitlines()) == 5
    assert (folder / "trials.png").stat().st_size > 1000
    again, _ = run(*words.split(), cwd=folder)
    assert again == out


def test_tuning_on_folds(folder):
    out, _ = run(
        *f"tune S1.txt S2.txt S3.txt --letor-folds {COMMON} --search random --trials 2".split(),
        cwd=folder,
    )
    *table, empty, nested = out.strip().splitlines()
    assert len(table) == 4
    assert not empty
    assert nested.startswith(
        "With the best combination chosen within every fold, the mean test ndcg@10 is 0."
    )


def test_tuning_bags_out_of_bag(folder):
    words = f"tune S1.txt --valid S2.txt --models 4 --sample 0.5 --choose-by out-of-bag {COMMON}"
    out, _ = run(*words.split(), cwd=folder)
    header, _, *rows = out.strip().splitlines()
    columns = [cell.strip() for cell in header.strip("|").split("|")]
    parameters = ["n_leaves", "learning_rate"]  # as the space names them
    assert columns == ["out-of-bag ndcg@10", "valid ndcg@10", *parameters]
    by = [float(row.strip("|").split("|")[0]) for row in rows]
    run(*f"{words} --best best.toml --set max_depth=none".split(), cwd=folder)
    best = (folder / "best.toml").read_text()
    assert best.startswith('n_trees = 6\nmin_leaf = 3\nmax_depth = "none"\nn_leaves = ')
    run(*"train S1.txt --config best.toml --models 2 --quiet --out best.rg".split(), cwd=folder)
    model = rg.load(folder / "best.rg").models_[0]
    cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
    assert [str(model.n_leaves), str(model.learning_rate)] == cells[2:]
    assert model.max_depth is None
    assert by == sorted(by, reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "grows", "told"),
    [
        ("tune S1.txt --valid S2.txt --set n_trees=40 --store cut.jsonl", "cut.jsonl", "fits"),
        (
            "train S1.txt --valid S2.txt --models 5000 --checkpoint cut --out cut.rg",
            "cut",
            "models",
        ),
    ],
)
def test_ctrl_c_says_what_is_kept(folder, words, grows, told):
    process = subprocess.Popen(
        [COMMAND, *words.split(), "--quiet"], cwd=folder, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 200
    while not _begun(folder / grows):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    complaint = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert f"interrupted: the {told} finished so far are in {grows}; the same command" in complaint
    assert "Traceback" not in complaint


def _begun(path):
    """Whether something was kept there."""
    if path.is_dir():
        return len(list(path.iterdir())) > 2
    return path.exists() and len(path.read_text().splitlines()) > 2


def test_parts_share_no_query(folder):
    (folder / "S1again.txt").write_text((folder / "S1.txt").read_text())
    words = f"tune S1.txt S2.txt S1again.txt --letor-folds {COMMON}"
    _, err = run(*words.split(), cwd=folder, status=2)
    assert "S1again.txt: the query '01' is in S1.txt too" in err


def test_where_tuning_should_have_ended(folder):
    words = f"tune S1.txt --valid S2.txt --second 0.5 --patience 1 {COMMON}"
    out, _ = run(*words.split(), cwd=folder)
    assert "By the queries set apart, tuning should have ended with trial " in out
    assert " of 4: n_leaves=" in out


def test_the_search_is_bounded_and_said_at_the_start(folder):
    few = "--set n_trees=2 --set early_stopping=1 --show 30"
    out, told = run(*f"tune S1.txt --valid S2.txt {few}".split(), cwd=folder)
    assert (
        "tuning LambdaMART by ndcg@10: 20 of 1,008 combinations, drawn at random, 20 fits" in told
    )
    assert len([line for line in out.splitlines() if line.startswith("|")]) == 2 + N_TRIALS
    assert "valid ndcg@10" in out
    words = f"tune S1.txt --valid S2.txt {few} --trials 1 --seeds 2 --space small -m map"
    out, told = run(*words.split(), cwd=folder)
    assert "hint: --space small is now written --space small-data" in told
    assert "by map: 1 of 1,008 combinations, drawn at random, 2 fits; --trials N" in told
    space = "--space space.toml --set n_trees=2 --set min_leaf=3 --ranker mart"
    _, told = run(*f"tune S1.txt --valid S2.txt {space}".split(), cwd=folder)
    assert "tuning MART by ndcg@10: all 4 combinations, 4 fits\n" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("S1.txt", "needs validation data"),
        ("S1.txt --letor-folds", "three parts or more"),
        ("S1.txt --valid S2.txt --letor-folds", "makes its own"),
        ("S1.txt --valid S2.txt --plot a.png", "give --test"),
        ("S1.txt --valid S2.txt --space none.toml", "there is no such file"),
        (
            "S1.txt --valid S2.txt --space other",
            "--space is small-data, large-data, or a TOML file",
        ),
        ("S1.txt --valid S2.txt --search grid --trials 3", "leave --trials out"),
        (
            "S1.txt --valid S2.txt --set n_leaves=9",
            "--space small-data tries n_leaves; leave one out",
        ),
        ("S1.txt --valid S2.txt --models 2 --sample 1.5", "--sample is a share"),
        (
            "S1.txt --valid S2.txt --ranker lambdarank",
            "is for boosted trees",
        ),
        ("S1.txt --valid gone.txt", "there is no such file"),
        ("S1.txt --valid S2.txt --patience 3", "give --second too"),
        ("S1.txt --valid S2.txt --sample 0.5", "give --models too"),
        ("S1.txt --valid S2.txt --choose-by out-of-bag", "give --models too"),
        ("S1.txt --valid S2.txt --out S2.txt", "would overwrite"),
    ],
)
def test_mistakes_of_tuning(folder, words, message):
    _, err = run("tune", *words.split(), cwd=folder, status=2)
    assert message in err


def test_pruning(folder):
    run(*"train S1.txt --set n_trees=30 --set min_leaf=3 --out big.rg --quiet".split(), cwd=folder)
    words = "prune big.rg S2.txt -m ndcg@10 -m map --tolerance 0.01 --out small.rg"
    out, _ = run(*f"{words} --plot passes.png --curve passes.csv".split(), cwd=folder)
    assert "30 trees, " in out
    small = rg.load(folder / "small.rg")
    assert small.ensemble_.n_trees < 30
    assert (folder / "passes.png").stat().st_size > 1000
    assert (folder / "passes.csv").read_text().startswith("trees,ndcg@10,map\n30,")
    _, err = run(*"prune big.rg S2.txt --out big.rg".split(), cwd=folder, status=2)
    assert "would overwrite" in err
    _, err = run(*"prune big.rg S2.txt --out s.rg --tolerance -1".split(), cwd=folder, status=2)
    assert "'tolerance' parameter of prune" in err
    _, err = run(*"prune big.rg S2.txt --out s.rg --plot a.xyz".split(), cwd=folder, status=2)
    assert "png, svg or pdf" in err


def test_a_bag(folder):
    words = "train S1.txt --valid S2.txt --models 3 --sample 0.5 --set n_trees=5 --set min_leaf=3"
    words += " --set overfitting_tolerance=0.05 --out bag.rg --checkpoint models"
    out, _ = run(*words.split(), cwd=folder)
    assert "BaggedRanker for ndcg@10: 3 models (LambdaMART), each on 50% of the queries" in out
    bag = rg.load(folder / "bag.rg")
    assert len(bag.models_) == 3
    assert len(list((folder / "models").iterdir())) == 4
    run("rank", "S3.txt", "--model", "bag.rg", "--out", "bag.txt", cwd=folder)
    scores = [float(line) for line in (folder / "bag.txt").read_text().split()]
    assert scores == bag.predict(rg.read_letor(folder / "S3.txt")).tolist()
    _, err = run(*f"{words} --combine median".split(), cwd=folder, status=2)
    assert "'combine' parameter of BaggedRanker" in err


def test_the_best_parameters_train_the_tuned_model(tmp_path):
    """Seed and measure of the trial are in the file, so that figures are those of the table."""
    for name, seed in (("train", 1), ("vali", 2)):
        data = rg.make_web(15, n_docs=10, n_features=5, seed=seed)
        rg.write_letor(data, tmp_path / f"{name}.txt")
    files = [str(tmp_path / "train.txt"), "--valid", str(tmp_path / "vali.txt")]
    space = tmp_path / "space.toml"
    space.write_text("n_leaves = [3]\nquery_fraction = [0.5]\n")
    best, model, store = (str(tmp_path / n) for n in ("best.toml", "model.rg", "trials.jsonl"))
    more = ["--set", "n_trees=5", "--set", "min_leaf=2", "-m", "map", "--store", store]
    run("tune", *files, "--space", str(space), "--best", best, *more)
    assert 'measure = "map"' in (tmp_path / "best.toml").read_text()
    run("train", *files, "--config", best, "--out", model)
    record = next(
        json.loads(line)
        for line in (tmp_path / "trials.jsonl").read_text().splitlines()
        if '"valid"' in line and '"trees"' in line
    )
    trained = rg.load(model)
    assert trained.measure == "map"
    assert max(trained.history_["vali"]["map"]) == pytest.approx(_mean_of(record), abs=1e-12)


def _mean_of(record):
    """Return the validation mean in a record of the store, wherever it stands."""
    if isinstance(record, dict):
        if "map" in record:
            return record["map"]
        return next(value for value in map(_mean_of, record.values()) if value is not None)
    return None
