"""Features that data does not mention: one rule for text, service and Python, and widths told."""

from __future__ import annotations

import json
import warnings

import lightgbm as lgb
import numpy as np
import pytest
import scipy.sparse
import xgboost as xgb

import rankgrove as rg
from rankgrove.model.store import read_model, write_model
from rankgrove.serving.app import Service
from tests.command import run_here as run
from tests.serving.asgi import Client

LINES = 60


def text(n_features, seed, n_rows=LINES):
    """Rows that leave out about half of their features; the last one is named at least once."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n_rows):
        x = np.round(rng.normal(size=n_features), 3)
        there = rng.random(n_features) < 0.5
        there[n_features - 1] |= i == 0
        pairs = " ".join(f"{j + 1}:{x[j]}" for j in np.flatnonzero(there))
        label = int(2 * x[0] * there[0] + there[1] > 0.5) + int(x[-1] * there[-1] > 0)
        rows.append(f"{label} qid:{i // 6} {pairs} #docid = d{i}")
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("absent")
    for n in (4, 6):
        (path / f"of{n}.txt").write_text(text(n, seed=n))
    for absent in ("zero", "missing"):
        data = rg.read_letor(path / "of4.txt", absent=absent)
        quick().fit(data).save(path / f"{absent}.rg")
    quick().fit(rg.read_letor(path / "of6.txt")).save(path / "six.rg")
    return path


def quick(**others):
    return rg.LambdaMART(n_trees=8, n_leaves=4, min_leaf=3, **others)


# -- what absent means ----------------------------------------------------------------------------


def test_a_data_set_knows_what_absent_means(folder):
    assert rg.read_letor(folder / "of4.txt").absent == "zero"
    data = rg.read_letor(folder / "of4.txt", absent="missing")
    assert data.absent == "missing"
    assert data.select([1, 0]).absent == "missing"
    assert rg.QueryDataset([[1.0], [np.nan]], [0, 1], qid=[1, 1]).absent == "missing"
    assert rg.QueryDataset([[1.0], [0.0]], [0, 1], qid=[1, 1]).absent == "zero"
    assert rg.QueryDataset(scipy.sparse.csr_matrix([[1.0], [0.0]]), [0, 1], [1, 1]).absent == "zero"
    named = rg.QueryDataset([[1.0], [0.0]], [0, 1], qid=[1, 1], absent="missing")
    assert named.absent == "missing"
    with pytest.raises(rg.ParameterError, match="'zero', 'missing'"):
        rg.QueryDataset([[1.0]], [0], qid=[1], absent="none")


@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_the_service_scores_a_document_as_a_file_does(folder, absent):
    model = rg.load(folder / f"{absent}.rg")
    assert model.absent_ == absent
    expected = run("rank", "of4.txt", "--model", f"{absent}.rg", cwd=folder)[0]
    expected = np.array(expected.split(), float)
    documents = documents_of(folder)
    files = {"m": folder / f"{absent}.rg"}

    def asked(**options):
        with Client(Service(files, watch=0, **options).app()) as client:
            assert client.get("/models/m").json()["absent"] == options.get("absent", absent)
            answer = client.post("/rank", json.dumps({"documents": documents}).encode()).json()
        scores = np.empty(len(documents))
        scores[answer["ids"]] = answer["scores"]
        return scores

    assert np.array_equal(asked(), expected)
    other = "missing" if absent == "zero" else "zero"
    assert np.array_equal(asked(absent=other), model.predict(other_reading(folder, other)))
    if absent == "missing":  # without missing values in training, they go where zeros go
        assert not np.array_equal(asked(absent=other), expected)


def documents_of(folder):
    """Return the rows of the text as documents that leave out what a row does not mention."""
    rows = [
        line.split(" #")[0].split()[2:] for line in (folder / "of4.txt").read_text().splitlines()
    ]
    return [
        {"features": {f"f{pair.split(':')[0]}": float(pair.split(":")[1]) for pair in row}}
        for row in rows
    ]


def other_reading(folder, absent):
    X = rg.read_letor(folder / "of4.txt", absent=absent)
    return np.array(X.X)


def test_the_command_line_reads_text_as_the_model_was_trained(folder):
    out, said = run("rank", "of4.txt", "--model", "missing.rg", cwd=folder)
    model = rg.load(folder / "missing.rg")
    assert np.array_equal(
        np.array(out.split(), float), model.predict(other_reading(folder, "missing"))
    )
    assert "missing, as when the model missing.rg was trained (--absent zero" in said
    out, said = run("rank", "of4.txt", "--model", "missing.rg", "--absent", "zero", cwd=folder)
    zeros = model.predict(other_reading(folder, "zero"))
    assert np.array_equal(np.array(out.split(), float), zeros)
    assert said == ""
    two = ["-s", "a=model:zero.rg", "-s", "b=model:missing.rg"]
    said = run("compare", "of4.txt", *two, cwd=folder, status=2)[1]
    assert "--absent zero or --absent missing" in said
    run("compare", "of4.txt", *two, "--absent", "zero", cwd=folder)


def test_python_warns_of_another_meaning(folder):
    model, data = rg.load(folder / "missing.rg"), rg.read_letor(folder / "of4.txt")
    with pytest.warns(rg.DataWarning, match="are 0 in the data, and were missing in training"):
        model.predict(data)


def test_a_file_without_the_entry_behaves_as_before(folder, tmp_path):
    kind, content, arrays = read_model(folder / "missing.rg")
    del content["absent"]
    write_model(tmp_path / "old.rg", kind, content, arrays)
    old = rg.load(tmp_path / "old.rg")
    assert old.absent_ is None
    old.predict(rg.read_letor(folder / "of4.txt"))  # without a warning
    with Client(Service({"old": tmp_path / "old.rg"}, watch=0).app()) as client:
        assert client.get("/models/old").json()["absent"] == "missing"


def test_text_of_data_with_missing_values_names_its_zeros(tmp_path):
    data = rg.QueryDataset([[0.0, np.nan], [2.0, 0.0]], [0, 1], qid=[1, 1])
    rg.write_letor(data, tmp_path / "data.txt")
    for absent in ("zero", "missing"):
        again = rg.read_letor(tmp_path / "data.txt", absent=absent)
        assert np.array_equal(again.X, data.X, equal_nan=True)


@pytest.mark.parametrize(
    "ranker",
    [
        quick(),
        rg.RankNet(hidden=(2,), n_epochs=1),
        rg.RankSVM(),
        rg.AdaRank(n_rounds=2),
        rg.CoordinateAscent(n_restarts=1),
        rg.BaggedRanker(quick(), n_models=2),
    ],
    ids=lambda ranker: ranker.kind,
)
def test_every_kind_keeps_it(folder, tmp_path, ranker):
    model = ranker.fit(rg.read_letor(folder / "of4.txt", absent="missing"))
    model.save(tmp_path / "m.rg")
    assert rg.load(tmp_path / "m.rg").absent_ == "missing"


def foreign_file(kind, folder, path):
    """Write another library's model of the text's features, zeros or NaN where it names none."""
    library, _, absent = kind.partition(" ")
    data = rg.read_letor(folder / "of4.txt", absent=absent or "zero")
    X, group = np.array(data.X), np.diff(data.query_ptr)
    if library.startswith("lightgbm"):
        params = {"objective": "lambdarank", "verbose": -1, "num_leaves": 4, "min_data_in_leaf": 3}
        params["zero_as_missing"] = library.endswith("0")
        lgb.train(params, lgb.Dataset(X, data.y, group=group), 5).save_model(path)
    elif library in ("xgboost", "exact", "dump"):
        matrix = xgb.DMatrix(X, data.y)
        matrix.set_group(group)
        method = "exact" if library == "exact" else "hist"
        booster = xgb.train({"max_depth": 3, "tree_method": method}, matrix, 5)
        if library == "dump":
            booster.dump_model(path, dump_format="json")
        else:
            booster.save_model(path)
    else:
        rg.convert(quick().fit(data), path, to=library)


@pytest.mark.parametrize(
    "kind",
    [
        *("lightgbm zero", "lightgbm missing", "lightgbm0 zero"),
        *("xgboost zero", "xgboost missing", "exact zero", "exact missing"),
        *("dump zero", "dump missing", "ranklib zero", "solr zero"),
    ],
)
def test_other_libraries_models_have_one_rule(folder, tmp_path, kind):
    """As their files tell: the same in a file, the service and Python, and overridable."""
    own = kind.startswith(("ranklib", "solr"))
    path = tmp_path / f"m.{'txt' if 'lightgbm' in kind or 'ranklib' in kind else 'json'}"
    foreign_file(kind, folder, path)
    model, absent = rg.load(path), kind.split()[1]
    assert model.absent_ == absent
    model.save(tmp_path / "m.rg")
    assert rg.load(tmp_path / "m.rg").absent_ == absent
    in_python = model.predict(rg.read_letor(folder / "of4.txt", absent=absent))
    for reading in ([], ["--absent", "zero"], ["--absent", "missing"]):
        out = run("rank", folder / "of4.txt", "--model", path, *reading)[0]
        meant = (reading or [absent])[-1]
        wanted = model.predict(other_reading(folder, meant)[:, : model.n_features_in_])
        assert np.array_equal(np.array(out.split(), float), wanted)
        if not reading:
            assert np.array_equal(wanted, in_python)
    documents = documents_of(folder)
    if own and model.n_features_in_ < 4:
        documents = [{"features": {n: v for n, v in d["features"].items() if n < "f4"}}
                     for d in documents]  # fmt: skip
    with Client(Service({"m": path}, watch=0).app()) as client:
        assert client.get("/models/m").json()["absent"] == absent
        answer = client.post("/rank", json.dumps({"documents": documents}).encode()).json()
    scores = np.empty(len(documents))
    scores[answer["ids"]] = answer["scores"]
    assert np.array_equal(scores, in_python)


@pytest.mark.parametrize("to", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("absent", ["zero", "missing"])
def test_it_is_kept_in_other_libraries_files(folder, tmp_path, to, absent):
    path = tmp_path / ("m.txt" if to == "lightgbm" else "m.json")
    rg.convert(rg.load(folder / f"{absent}.rg"), path, to=to)
    again = rg.load(path)
    assert again.absent_ == absent
    X = other_reading(folder, absent)
    if to == "lightgbm":
        theirs = lgb.Booster(model_file=path).predict(X)
    else:
        booster = xgb.Booster(model_file=path)
        theirs = booster.predict(xgb.DMatrix(X), output_margin=True)
    assert np.array_equal(again.predict(X).astype(theirs.dtype), theirs)


# -- how many features there are ------------------------------------------------------------------


def test_text_with_fewer_features_is_filled_up_with_a_warning(folder):
    model = rg.load(folder / "six.rg")
    data = rg.read_letor(folder / "of4.txt")
    with pytest.warns(rg.DataWarning, match="the model has 6 features, the data 4: the last 2 are"):
        scores = model.predict(data)
    assert np.array_equal(scores, model.predict(np.pad(np.array(data.X), ((0, 0), (0, 2)))))
    with warnings.catch_warnings():
        warnings.simplefilter("error", rg.DataWarning)
        with pytest.raises(rg.DataWarning):
            model.predict(data)
    with pytest.raises(rg.DataError, match=r"has 4 features, but \w+ is expecting 6"):
        model.predict(np.array(data.X))


def test_text_with_more_features_is_cut_with_a_warning(folder):
    model = rg.load(folder / "zero.rg")
    data = rg.read_letor(folder / "of6.txt")
    with pytest.warns(rg.DataWarning, match="the last 2 are left out"):
        scores = model.predict(data)
    assert np.array_equal(scores, model.predict(np.array(data.X)[:, :4]))
    with pytest.warns(rg.DataWarning, match="the last 2 are left out"):
        assert rg.explain(model, data).contributions.shape[1] == 4
    with pytest.warns(rg.DataWarning, match="the last 2 are left out"):
        top = model.predict_top(data, 100)
    assert np.array_equal(top.scores, scores)


def test_filling_up_sparse_text(folder):
    dense = rg.read_letor(folder / "of4.txt")
    sparse = rg.read_letor(folder / "of4.txt", sparse=True)
    for n in (3, 4, 6):
        assert np.array_equal(
            sparse.with_n_features(n).X.toarray(), np.array(dense.with_n_features(n).X)
        )
    missing = rg.read_letor(folder / "of4.txt", absent="missing").with_n_features(5)
    assert np.isnan(missing.X[:, 4]).all()


@pytest.mark.parametrize(
    "words",
    [
        "evaluate {data} -s {model}=model:{model}",
        "rank {data} --model {model}",
        "explain {data} {model} --query 1",
        "report {data} -s {model}=model:{model} --out page.html",
        "compare {data} -s {model}=model:{model} -s bm25=feature:1",
    ],
    ids=lambda words: words.split()[0],
)
def test_commands_say_that_widths_differ(folder, words):
    for data, model, end in (
        ("of4.txt", "six.rg", "has 6 features, of4.txt 4: the last 2 are taken as 0."),
        ("of6.txt", "zero.rg", "has 4 features, of6.txt 6: the last 2 are left out."),
    ):
        command = words.format(data=data, model=model).split()
        said = run(*command, cwd=folder)[1]
        assert f"the model {model} {end}" in said
        refused = run(*command, "--strict", cwd=folder, status=2)[1]
        assert refused.startswith("error:")
        assert f"the model {model} {end} --strict refuses that." in refused
    said = run(*words.format(data="of6.txt", model="six.rg").split(), "--strict", cwd=folder)[1]
    assert "features" not in said


def test_validation_data_of_another_width(folder):
    words = ["--set", "n_trees=2", "--set", "min_leaf=3", "--model", "new.rg"]
    said = run("train", "of4.txt", "--valid", "of6.txt", *words, cwd=folder)[1]
    assert "the training data has 4 features, of6.txt 6: the last 2 are left out." in said
    said = run("train", "of6.txt", "--valid", "of4.txt", *words, cwd=folder)[1]
    assert "the training data has 6 features, of4.txt 4: the last 2 are taken as 0." in said


def test_models_of_two_widths_on_one_file(folder):
    two = ["-s", "four=model:zero.rg", "-s", "six=model:six.rg"]
    said = run("compare", "of4.txt", *two, cwd=folder)[1]
    assert "the model six has 6 features" in said
    assert "four" not in said
    said = run("compare", "of6.txt", *two, cwd=folder)[1]
    assert "the model four has 4 features" in said
    files = ["four=zero.rg", "--against", "six=six.rg", "--data", "of6.txt", "--out", "two.html"]
    assert "the model four has 4 features" in run("report", *files, cwd=folder)[1]
