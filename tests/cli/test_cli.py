"""The command line as a user types it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.cli.parameters import new_ranker
from tests.command import COMMAND
from tests.command import run as run_apart
from tests.command import run_here as run
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    run("generate", "artificial", "--queries", 60, "--docs", 20, "--out", "test.txt", cwd=path)
    data = rg.read_letor(path / "test.txt")
    rng = np.random.default_rng(0)
    np.savetxt(path / "good.txt", data.y + rng.normal(size=data.n_rows))
    np.savetxt(path / "bad.txt", rng.normal(size=data.n_rows))
    return path


def test_help_and_version():
    out, _ = run("--help")
    for command in "train rank evaluate compare combine params generate demo".split():
        assert command in out
        assert "--help" in run(command, "--help")[0]
    assert run_apart("--version")[0].strip() == f"rankgrove {rg.__version__}"
    module = [sys.executable, "-m", "rankgrove", "--version"]
    assert subprocess.check_output(module, text=True).strip() == f"rankgrove {rg.__version__}"


def test_generate(tmp_path):
    out, _ = run("generate", "web", "--queries", 5, "-o", "web.txt.gz", "--seed", 3, cwd=tmp_path)
    assert "5 queries, 136 features" in out
    first = (tmp_path / "web.txt.gz").read_bytes()
    run("generate", "web", "--queries", 5, "-o", "web.txt.gz", "--seed", 3, cwd=tmp_path)
    assert (tmp_path / "web.txt.gz").read_bytes() == first
    assert rg.read_letor(tmp_path / "web.txt.gz").n_queries == 5
    out, _ = run(
        *"generate domains --queries 6 --target-queries 3 -o a.txt --target-out b.txt".split(),
        cwd=tmp_path,
    )
    assert rg.read_letor(tmp_path / "a.txt").n_queries == 6
    assert rg.read_letor(tmp_path / "b.txt").n_queries == 3


def test_evaluate_scores(folder):
    words = "evaluate test.txt --scores good.txt -m ndcg@10 -m map --convention letor".split()
    out, _ = run(*words, "--json", "out.json", "--per-query", "out.csv", cwd=folder)
    data = rg.read_letor(folder / "test.txt")
    expected = rg.evaluate(np.loadtxt(folder / "good.txt"), data, ["ndcg@10", "map"], "letor")
    assert out == f"{expected}\nwritten to out.csv\nwritten to out.json\n"
    assert json.loads((folder / "out.json").read_text()) == expected.to_dict()
    assert (folder / "out.csv").read_text() == expected.to_csv()


def test_evaluate_feature(folder):
    by_number, _ = run("evaluate", "test.txt", "--feature", 7, cwd=folder)
    by_name, _ = run("evaluate", "test.txt", "--feature", "f7", "--threads", 1, cwd=folder)
    assert by_number == by_name
    assert "ndcg@10" in by_number
    assert "convention: papers" in by_number


def test_evaluate_tables(folder, tmp_path):
    data = rg.read_letor(folder / "test.txt")
    import pandas as pd

    frame = pd.DataFrame(data.X, columns=data.feature_names).assign(grade=data.y, query=data.qid)
    frame.to_parquet(tmp_path / "test.parquet")
    frame.to_csv(tmp_path / "test.csv", index=False)
    expected, _ = run("evaluate", "test.txt", "--feature", 3, cwd=folder)
    for name in ("test.parquet", "test.csv"):
        words = ["evaluate", name, "--feature", "f3", "--label", "grade", "--qid", "query"]
        assert run(*words, cwd=tmp_path)[0] == expected


def test_evaluate_and_compare_runs(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n2 0 a 0\n2 0 b 2\n")
    (tmp_path / "x.run").write_text("1 Q0 a 1 2.0 x\n1 Q0 b 2 1.0 x\n2 Q0 a 1 2 x\n2 Q0 b 2 1 x\n")
    (tmp_path / "y.run").write_text("1 Q0 a 1 2.0 y\n1 Q0 b 2 1.0 y\n2 Q0 b 1 2 y\n2 Q0 a 2 1 y\n")
    out, _ = run(*"evaluate --run x.run --qrels qrels -m map".split(), cwd=tmp_path)
    assert "0.7500" in out
    assert "convention: trec" in out
    out, _ = run(*"compare --qrels qrels -s x=x.run -s y=y.run -m map".split(), cwd=tmp_path)
    assert "y - x" in out
    assert "+0.2500" in out
    out, _ = run(*"compare --qrels qrels -s x.run -s y.run -m map -m p@1".split(), cwd=tmp_path)
    assert [line.split() for line in out.splitlines() if line.startswith("system")] == [
        ["system", "map"],
        ["system", "p@1"],
    ]


def test_queries_that_a_run_lacks(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n2 0 a 1\n")
    (tmp_path / "x.run").write_text("1 Q0 a 1 2.0 x\n")
    words = "evaluate --qrels qrels -s x.run -m map".split()
    out, complaint = run(*words, cwd=tmp_path)
    assert "0.5000" in out
    assert "lacks 1 of 2 judged queries, which counts 0." in out
    assert complaint == ""
    out, _ = run(*words, "--missing-queries", "drop", cwd=tmp_path)
    assert "1.0000" in out
    words = "compare --qrels qrels -s x=x.run -s y=x.run -m map --missing-queries".split()
    assert "x lacks 1 judged query, counted as 0." in run(*words, "zero", cwd=tmp_path)[0]
    assert "1.0000" in run(*words, "drop", cwd=tmp_path)[0]


def test_one_grammar_of_systems(folder):
    train = "train test.txt --quiet --set n_trees=2 --model lr=1.rg"
    run(*train.split(), cwd=folder)
    for old, new in [
        (["--model", "lr=1.rg"], "lr=1.rg"),
        (["--scores", "good.txt"], "good.txt"),
        (["--feature", "7"], "feature:7"),
        (["-s", "model:lr=1.rg"], "name=lr=1.rg"),
        (["-s", "scores:good.txt"], "name=good.txt"),
    ]:
        before, hint = run("evaluate", "test.txt", *old, cwd=folder)
        assert run("evaluate", "test.txt", "-s", new, cwd=folder) == (before, "")
        if old[0] != "-s":
            assert (
                hint
                == f"hint: {' '.join(old)} is now written -s {new}; the old spelling still works.\n"
            )
    out, _ = run(*"compare test.txt -s feature:7 -s lr=1.rg -s s=good.txt".split(), cwd=folder)
    assert [line.split()[0] for line in out.splitlines()[1:4]] == ["feature:7", "lr=1", "s"]


def test_compare(folder):
    words = "compare test.txt -s bad=bad.txt -s good=good.txt -s f1=feature:1 --all-pairs".split()
    out, _ = run(*words, "--json", "compare.json", cwd=folder)
    assert "good - bad" in out
    found = json.loads((folder / "compare.json").read_text())
    assert found["mean"]["good"] > found["mean"]["bad"]
    assert len(found["contrasts"]) == 3


@pytest.mark.slow
def test_demo(tmp_path):
    out, _ = run_apart("demo", "--queries", 60, "--trees", 10, cwd=tmp_path)
    *_, page = out.split()
    assert Path(page).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(rg.load(path).kind for path in (tmp_path / "demo").glob("*.rg")) == [
        *("combination", "lambdamart", "prepared", "prepared", "svm-map"),
    ]
    assert "first-half and second-half use 25 of the 50 features each." in out
    activate, *lines = out.split("Try next:")[1].strip().splitlines()
    assert activate.split()[0] == "."
    assert (tmp_path / activate.split()[1]).resolve() == Path(sys.prefix, "bin/activate").resolve()
    for line in lines[:4]:
        briefly = line.replace("--minutes 5", "--minutes 0.1")
        assert "hint" not in run(*briefly.split()[1:], cwd=tmp_path)[1]


@pytest.mark.slow
def test_the_demo_prints_the_table_of_the_readme(tmp_path):
    out, _ = run_apart("demo", cwd=tmp_path)
    shown = re.findall(r"^```\n(.*?)^```$", (ROOT / "README.md").read_text(), re.S | re.M)
    assert [block for block in shown if block in out], "README.md: the table of the demo is another"


def test_train_rank_and_evaluate(folder):
    (folder / "web.toml").write_text('n_leaves = 5\nmeasure = "map"\n')
    words = "train test.txt --valid test.txt --config web.toml --set n_trees=7 --out web.rg"
    out, _ = run(*words.split(), cwd=folder)
    assert "LambdaMART for map" in out
    assert "written to web.rg" in out
    model = rg.load(folder / "web.rg")
    assert (model.n_leaves, model.n_trees, model.measure) == (5, 7, "map")
    run(*"rank test.txt --model web.rg --out scores.txt".split(), cwd=folder)
    data = rg.read_letor(folder / "test.txt")
    scores = model.predict(data)
    np.testing.assert_array_equal(np.loadtxt(folder / "scores.txt"), scores)
    printed, _ = run(*"rank test.txt --model web.rg".split(), cwd=folder)
    assert printed == (folder / "scores.txt").read_text()
    run(*"rank test.txt --model web.rg --format trec --out web.run".split(), cwd=folder)
    assert len(rg.read_run(folder / "web.run")) == data.n_queries
    by_model, _ = run(*"evaluate test.txt --model web.rg -m map".split(), cwd=folder)
    by_scores, _ = run(*"evaluate test.txt --scores scores.txt -m map".split(), cwd=folder)
    assert by_model == by_scores
    out, _ = run(*"compare test.txt -s f1=feature:1 -s new=model:web.rg".split(), cwd=folder)
    assert "new - f1" in out


def test_a_file_without_the_last_features_is_ranked_all_the_same(folder):
    run(*"train test.txt --set n_trees=2 --set progress=false --out thin.rg".split(), cwd=folder)
    lines = (folder / "test.txt").read_text().splitlines()
    thin = [" ".join(w for w in line.split() if not w.startswith("50:")) for line in lines]
    (folder / "thin.txt").write_text("\n".join(thin) + "\n")
    run(*"rank thin.txt --model thin.rg --out thin.scores".split(), cwd=folder)
    assert len((folder / "thin.scores").read_text().splitlines()) == len(lines)
    assert "ndcg@10" in run(*"evaluate thin.txt --model thin.rg".split(), cwd=folder)[0]


def test_train_goes_on_from_its_checkpoint(folder):
    words = "train test.txt --set n_leaves=4 --quiet --checkpoint state --model".split()
    run(*words, "a.rg", "--set", "n_trees=3", cwd=folder)
    run(*words, "b.rg", "--set", "n_trees=6", cwd=folder)
    words = "train test.txt --set n_leaves=4 --set n_trees=6 --quiet --out c.rg".split()
    run(*words, cwd=folder)
    a, c = (rg.load(folder / name).ensemble_.to_arrays() for name in ("b.rg", "c.rg"))
    assert all(np.array_equal(a[name], c[name]) for name in a)


@pytest.mark.slow
def test_ctrl_c_keeps_the_model(folder):
    words = "train test.txt --set n_trees=100000 --set n_leaves=4 --quiet --out cut.rg".split()
    process = subprocess.Popen([COMMAND, *words, "--checkpoint", "cut.state"], cwd=folder)
    deadline = time.monotonic() + 200
    while not (folder / "cut.state").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert rg.load(folder / "cut.rg").ensemble_.n_trees >= 25


def test_every_ranker_is_trained_and_used_alike(folder):
    from rankgrove.rankers.load import trainable

    ours = {kind for kind, one in trainable().items() if one.__module__.startswith("rankgrove")}
    assert {"lambdamart", "lambdarank", "mart", "mcrank", "ranknet", "svm-acc", "svm-map"} <= ours
    assert {"listnet", "boltzrank", "coordinate-ascent", "ranksvm", "smoothrank", "crr"} <= ours
    for name, settings, text in (
        ("mart.rg", "--set loss=logistic --set relevant=2 -m map", "MART for map: "),
        ("mcrank.rg", "--set form=ordinal", "McRank for ndcg@10: 3 rounds of 4 trees"),
    ):
        words = f"train test.txt --ranker {name[:-3]} {settings} --set n_trees=3 --out {name}"
        assert text in run(*words.split(), cwd=folder)[0]
        model = rg.load(folder / name)
        assert model.kind == name[:-3]
        run(*f"rank test.txt --model {name} --out kind.scores".split(), cwd=folder)
        scores = model.predict(rg.read_letor(folder / "test.txt"))
        np.testing.assert_array_equal(np.loadtxt(folder / "kind.scores"), scores)
    help_text, _ = run("train", "--help")
    assert all(kind in help_text for kind in ours)


def test_params_of_other_rankers():
    mart, mcrank = (tomllib.loads(run("params", kind)[0]) for kind in ("mart", "mcrank"))
    assert (mart["loss"], mart["relevant"], mart["split"]) == ("squared", 1.0, "newton")
    assert mcrank["form"] == "classes"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("LambdaMART", "LambdaMART"), ("svmmap", "SVMMap"), ("Coordinate_Ascent", "CoordinateAscent")],
)
def test_names_of_rankers_in_any_case(name, kind):
    assert type(new_ranker(name)).__name__ == kind
    assert run("params", name)[0] == run("params", new_ranker(name).kind)[0]


def test_params():
    out, _ = run("params")
    assert "n_leaves = 31" in out
    assert "learning_rate = 0.1" in out
    assert "share of the queries that a round sees" in out
    assert tomllib.loads(out)["n_leaves"] == 31


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("evaluate", "Give the judged data"),
        ("evaluate nowhere.txt --feature 1", "nowhere.txt"),
        ("evaluate test.txt", "Say what to measure: -s FILE (a model, or one score per line)"),
        ("evaluate test.txt --model nowhere.rg", "nowhere.rg: there is no such file"),
        ("evaluate test.txt --model test.txt", "is not a rankgrove model"),
        ("rank test.txt --model test.txt", "is not a rankgrove model"),
        ("train test.txt --out m.rg --set num_leaves=3", "did you mean 'n_leaves'"),
        ("train test.txt --out m.rg --set n_leaves", "NAME=VALUE"),
        ("train test.txt --out m.rg --set n_leaves=1", "'n_leaves' parameter of LambdaMART"),
        ("train test.txt --out m.rg --set n_leaves=many", "'n_leaves' parameter of LambdaMART"),
        ("train test.txt --out m.rg --ranker lambdamert", "did you mean 'lambdamart'"),
        ("train test.txt --out m.rg --ranker LambdaSMART", "--submodel FILE"),
        ("train test.txt --out m.rg --ranker bagboo", "--ranker mart --models 45 --combine mean"),
        ("train test.txt --out m.rg --ranker bl-mart", "--ranker lambdamart --models 45"),
        ("train test.txt --out m.rg --ranker trada", "by 'rankgrove adapt'"),
        ("params BaggedRanker", "--models 45"),
        (
            "train test.txt --out m.rg --ranker mart --base-score x.txt",
            "--base-score x.txt: mart cannot start from another ranker's scores. Leave it out.",
        ),
        (
            "train test.txt --out m.rg --ranker mcrank --submodel x.rg",
            "--submodel x.rg: mcrank cannot start from another model. Leave it out.",
        ),
        (
            "train test.txt --out m.rg --ranker ranksvm --checkpoint c",
            "--checkpoint c: ranksvm cannot continue a killed run. Leave it out.",
        ),
        ("train test.txt --out m.rg --measure ndgc", "did you mean 'ndcg'"),
        ("train test.txt --out m.rg --ranker mart --set loss=log", "'loss' parameter of MART"),
        ("train test.txt --out m.rg --ranker mart --set form=classes", "MART has no parameter"),
        (
            "train test.txt --quiet --out m --ranker mart --set loss=logistic --set relevant=9",
            "all rows (with a weight above 0) are of one class",
        ),
        ("params marts", "The 'ranker' parameter of params must be one of"),
        ("params marts", "did you mean 'mart'"),
        ("cv test.txt --ranker marts", "The 'ranker' parameter of cv must be one of"),
        ("train test.txt --out m.rg --config words.txt", "words.txt: not a TOML file"),
        ("train test.txt --out no/m.rg", "in a folder that exists: create it first. Got 'no/m.rg'"),
        ("train test.txt --out m.rg --set early_stopping=5", "needs validation data"),
        ("evaluate test.txt --feature 99", "features are numbered 1 to 50"),
        ("evaluate test.txt --feature 1 -m ndgc@10", "did you mean 'ndcg'"),
        ("evaluate test.txt --feature 1 --convention leter", "did you mean 'letor'"),
        ("evaluate test.txt --scores short.txt", "2 scores for 1,200 rows"),
        ("evaluate test.txt --scores words.txt", "words.txt:2: expected one score per line"),
        ("evaluate test.txt --scores test.txt", "test.txt:1: expected one score per line"),
        ("evaluate short.txt --feature 1", "short.txt:1"),
        ("evaluate --run x.run", "--qrels qrels.txt -s bm25.run"),
        ("evaluate test.txt -s words.txt", "words.txt:2: expected one score per line"),
        ("evaluate test.txt -s nowhere", "nowhere: there is no such file. A system is such as"),
        ("evaluate test.txt -s feature:", "such as model.rg, feature:25 or scores.txt"),
        ("evaluate test.txt -s feature:1 -s feature:2", "measures one system. Got 2"),
        ("evaluate test.txt -s feature:1 --feature 2", "measures one system. Got 2"),
        ("evaluate --qrels test.txt -s feature:1", "Write a system as a TREC run"),
        ("compare test.txt -s a=feature:1", "at least two systems"),
        ("compare test.txt -s a=feature:1 -s b=", "NAME=SOURCE"),
        ("compare test.txt -s a=feature:1 -s a=feature:2", "Two systems are named 'a'"),
        ("compare -s a=feature:1 -s b=feature:2", "either the judged data or --qrels"),
        ("generate domains --out a.txt", "--target-out"),
        ("generate artificial --out no/where.txt", "the folder no does not exist; create it first"),
        ("evaluate test.txt -s feature:1 --per-query a/b/c.csv", "the folder a/b does not"),
        ("generate artificial --labels odd --out a.txt", "labels"),
    ],
)
def test_mistakes_get_one_clear_line(folder, words, message):
    (folder / "short.txt").write_text("1.0\n2.0\n")
    (folder / "words.txt").write_text("1.0\ntwo\n")
    _, complaint = run(*words.split(), cwd=folder, status=2)
    assert message in complaint
    assert complaint.startswith("error: ")


def test_usage_mistakes(folder):
    assert "Usage" in run("evaluate", "--nonsense", status=2)[1]
    assert "Usage" in run("unknown", status=2)[1]


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(folder):
    line = f"'{COMMAND}' evaluate test.txt --feature 1 | true"
    done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True)
    assert "Traceback" not in done.stderr


def test_starting_is_quick_because_nothing_heavy_is_imported():
    # Seconds depend on the machine; what is imported does not.
    code = (
        "import sys, rankgrove; "
        "print([m for m in ('numba', 'scipy', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    code = (
        "import sys, rankgrove.cli.main; "
        "print([m for m in ('numpy', 'numba', 'scipy', 'sklearn', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_unjudged_documents_of_a_run(tmp_path):
    (tmp_path / "qrels").write_text("1 0 b 1\n1 0 d 1\n")
    (tmp_path / "x.run").write_text("1 Q0 a 1 3 x\n1 Q0 b 2 2 x\n1 Q0 c 3 1 x\n")
    words = "evaluate --qrels qrels -s x.run -m mrr --unjudged".split()
    out, _ = run(*words, "bounds", cwd=tmp_path)
    assert out.splitlines()[1].split()[-2:] == ["0.5000", "1.0000"]
    out, _ = run(*words, "condensed", cwd=tmp_path)
    assert out.splitlines()[1].split()[1] == "1.0000"
    _, complaint = run(*words, "kept", cwd=tmp_path, status=2)
    assert "'unjudged' parameter" in complaint
