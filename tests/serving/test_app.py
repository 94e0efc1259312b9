"""The service in this process: answers, refusals, limits, reloading."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.serving import coding
from rankgrove.serving.app import Service
from tests.serving.asgi import Client

DATA = rg.make_web(30, n_docs=12, n_features=5, seed=1)
NAMES = DATA.feature_names


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("serve")
    vali = rg.make_web(10, n_docs=12, n_features=5, seed=2)
    trees = rg.LambdaMART(n_trees=8, min_leaf=5).fit(DATA, valid=vali)
    models = {
        "trees": trees,
        "bag": rg.BaggedRanker(rg.MART(n_trees=3), n_models=2).fit(DATA),
        "svm": rg.SVMMap(scaling="percentile").fit(DATA),
        "plain": rg.SVMMap(scaling="none").fit(DATA),
        "mcrank": rg.McRank(n_trees=2).fit(DATA),
        "exits": rg.EarlyExitRanker(rg.calibrate(trees, vali, samples=20), "ndcg@5").fit(vali),
        "net": rg.RankNet(hidden=(3,), n_epochs=1).fit(DATA),
        "going_on": rg.LambdaMART(n_trees=2, submodel="base_score").fit(
            DATA.with_base_score(np.zeros(DATA.n_rows))
        ),
    }
    for name, model in models.items():
        model.save(path / f"{name}.rg")
    return path


@pytest.fixture(scope="module")
def files(folder):
    first = folder / "trees.rg"
    return {"trees": first} | {path.stem: path for path in sorted(folder.glob("*.rg"))}


@pytest.fixture(scope="module")
def client(files):
    service = Service(files, max_body=200_000, max_documents=50, watch=0)
    with Client(service.app()) as made:
        yield made


def documents(rows=slice(0, 12), ids=True):
    x = np.array(DATA.X)[rows].tolist()
    return [
        {"id": f"d{i}", "features": row} if ids else {"features": row} for i, row in enumerate(x)
    ]


def ask(client, content, model=None):
    path = "/rank" if model is None else f"/models/{model}/rank"
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return client.post(path, content=body)


@pytest.mark.parametrize("name", ["trees", "bag", "svm", "plain", "mcrank", "net"])
def test_ranking_as_predict_does(client, folder, name):
    query = DATA.select([2])
    rows = [{"id": i, "features": row} for i, row in enumerate(query.X.tolist())]
    found = ask(client, {"documents": rows}, name).json()
    scores = rg.load(folder / f"{name}.rg").predict(query)
    order = np.argsort(-scores, kind="stable")
    assert found["ids"] == order.tolist()
    assert found["scores"] == scores[order].tolist()
    assert (found["model"], found["version"]) == (name, 1)


def test_the_first_is_the_default_and_top_k(client):
    whole = ask(client, {"documents": documents()}).json()
    assert whole == ask(client, {"documents": documents()}, "trees").json()
    some = ask(client, {"documents": documents(), "top_k": 3}).json()
    assert some["ids"] == whole["ids"][:3]
    assert len(ask(client, {"documents": documents(), "top_k": 99}).json()["ids"]) == 12
    assert ask(client, {"documents": []}).json()["ids"] == []


def test_names_missing_values_and_places(client):
    x = np.array(DATA.X)[:12].tolist()
    by_list = ask(client, {"documents": documents(ids=False)}).json()
    named = [{"features": dict(zip(NAMES, row, strict=True))} for row in x]
    assert ask(client, {"documents": named}).json() == by_list
    assert sorted(by_list["ids"]) == list(range(12))
    mixed = [named[0], {"features": x[1]}, *named[2:]]
    assert ask(client, {"documents": mixed}).json() == by_list
    # null, NaN, and a name that is left out are the same
    null = ask(client, {"documents": [{"features": [None, *row[1:]]} for row in x]}).json()
    nan = ask(client, {"documents": [{"features": [float("nan"), *row[1:]]} for row in x]}).json()
    left = [{"features": dict(list(zip(NAMES, row, strict=True))[1:])} for row in x]
    assert null == nan == ask(client, {"documents": left}).json()
    assert null != by_list


def test_ties_stay_in_order(client):
    same = [{"id": i, "features": [0, 0, 0, 0, 0]} for i in (5, 3, 9, 1)]
    assert ask(client, {"documents": same}).json()["ids"] == [5, 3, 9, 1]


def test_base_scores(client):
    rows = [{"features": row, "base_score": s} for row, s in zip(
        np.array(DATA.X)[:3].tolist(), (5.0, 100, -7.0), strict=True
    )]  # fmt: skip
    assert ask(client, {"documents": rows}, "going_on").json()["ids"] == [1, 0, 2]
    wrong = ask(client, {"documents": documents()}, "going_on")
    assert (wrong.status_code, wrong.json()["error"]["path"]) == (422, "documents[0].base_score")
    wrong = ask(client, {"documents": rows}, "trees")
    assert "Leave base_score out" in wrong.json()["error"]["remedy"]


ROW = [0.0] * 5
BIG = "1" + "0" * 400
MISTAKES = [
    (b"", 400, None, "not JSON"),
    (b"{", 400, None, "not JSON"),
    (b"\xff\xfe\x00", 400, None, "not JSON"),
    (b"[" * 100_000, 400, None, "nested too deeply"),
    (b'{"a":' * 30_000, 400, None, "nested too deeply"),
    (b"9" * 5000, 400, None, "not JSON"),
    (b"[]", 422, "(the body)", "is []"),
    (b"null", 422, "(the body)", "is null"),
    ({}, 422, "documents", "is null"),
    ({"documents": {}}, 422, "documents", "is {}"),
    ({"documents": [], "topk": 1}, 422, "(the body)", "did you mean 'top_k'"),
    ({"documents": [], "top_k": 0}, 422, "top_k", "is 0"),
    ({"documents": [], "top_k": True}, 422, "top_k", "is true"),
    ({"documents": [], "top_k": 1.5}, 422, "top_k", "is 1.5"),
    ({"documents": [3]}, 422, "documents[0]", "is 3"),
    ({"documents": [{}]}, 422, "documents[0].features", "is null"),
    ({"documents": [{"feature": ROW, "id": 1}]}, 422, "documents[0]", "did you mean 'features'"),
    ({"documents": [{"features": ROW, "id": 1.5}]}, 422, "documents[0].id", "is 1.5"),
    ({"documents": [{"features": ROW, "id": None}]}, 422, "documents[0].id", "is null"),
    ({"documents": [{"features": ROW}, {"features": [1]}]}, 422, "documents[1].features", "1 val"),
    ({"documents": [{"features": [[1]] * 5}]}, 422, "documents[0].features[0]", "is [1]"),
    ({"documents": [{"features": [0, "1", 0, 0, 0]}]}, 422, "documents[0].features[1]", "'1'"),
    ({"documents": [{"features": [0, True, 0, 0, 0]}]}, 422, "documents[0].features[1]", "true"),
    ({"documents": [{"features": [0, 1e39, 0, 0, 0]}]}, 422, "documents[0].features[1]", "1e+39"),
    (
        f'{{"documents": [{{"features": [0, {BIG}, 0, 0, 0]}}]}}'.encode(),
        422,
        "documents[0].features[1]",
        "is 1",
    ),
    ({"documents": [{"features": {"nothing": 1}}]}, 422, "documents[0].features", "'nothing'"),
    (
        {"documents": [{"features": {NAMES[0][:-1]: 1}}]},
        422,
        "documents[0].features",
        "did you mean",
    ),
    ({"documents": [{"features": {NAMES[0]: "x"}}]}, 422, f"documents[0].features.{NAMES[0]}", "x"),
    ({"documents": [{"features": "abc"}]}, 422, "documents[0].features", "is 'abc'"),
    ({"documents": [{"features": ROW}] * 51}, 422, "documents", "51 documents"),
    (b" " * 200_001, 413, None, "too long"),
]


@pytest.mark.parametrize("orjson", ["with", "without"])
@pytest.mark.parametrize(("content", "status", "path", "message"), MISTAKES)
def test_mistakes_are_named(client, monkeypatch, orjson, content, status, path, message):
    if orjson == "without":
        monkeypatch.setattr(coding, "orjson", None)
    answer = ask(client, content)
    error = answer.json()["error"]
    assert answer.status_code == error["status"] == status
    assert error.get("path") == path
    assert message in error["message"]
    assert error["rule"]
    assert error["remedy"]


def test_what_a_model_cannot_take(client):
    answer = ask(client, b'{"documents": [{"features": [0, Infinity, 0, 0, 0]}]}', "plain")
    assert answer.status_code == 422
    assert "infinite" in answer.json()["error"]["message"]
    assert ask(client, b'{"documents": [{"features": [0, -Infinity, 0, 0, 0]}]}').status_code == 200


def test_without_orjson_the_answers_are_the_same(client, monkeypatch):
    request = {"documents": documents(), "top_k": 5}
    with_it = ask(client, request).content
    monkeypatch.setattr(coding, "orjson", None)
    assert json.loads(ask(client, request).content) == json.loads(with_it)


def test_odd_ids_come_back(client):
    ids = ["\ud800", "ü", 10**30, -(2**63)]
    rows = [{"id": one, "features": ROW} for one in ids]
    assert ask(client, {"documents": rows}).json()["ids"] == ids


def test_methods_and_places_that_are_not_there(client):
    for method, path, status in [
        ("GET", "/rank", 405),
        ("DELETE", "/models", 405),
        ("POST", "/health", 405),
        ("GET", "/nothing", 404),
        ("POST", "/models/nothing/rank", 404),
        ("GET", "/models/tree", 404),
    ]:
        answer = client.request(method, path)
        assert answer.status_code == status
        assert answer.json()["error"]["remedy"]
    assert "did you mean 'trees'" in client.get("/models/tree").json()["error"]["message"]


def test_information(client, folder):
    assert client.get("/health").json()["status"] == "ok"
    listed = client.get("/models").json()
    assert listed["default"] == "trees"
    assert {one["name"] for one in listed["models"]} >= {"trees", "bag", "net"}
    about = client.get("/models/trees").json()
    assert (about["kind"], about["n_features"]) == ("lambdamart", 5)
    assert about["features"] == list(NAMES)
    model = rg.load(folder / "trees.rg")
    assert about["n_trees"] == model.ensemble_.n_trees
    best = model.history_["valid"]["ndcg@10"][model.best_round_ - 1]
    assert about["validation"] == {"valid": {"ndcg@10": best}}
    assert about["file"] == str(folder / "trees.rg")
    ask(client, {"documents": documents()})
    figures = client.get("/metrics").json()
    assert figures["latency_ms"]["p50"] <= figures["latency_ms"]["p99"]
    assert figures["documents"] >= 12
    assert figures["answers_by_status"]["200"] >= 1


def test_reloading(folder, tmp_path):
    path, good = tmp_path / "m.rg", folder / "trees.rg"
    shutil.copy(good, path)
    service = Service({"m": path}, watch=0)
    with Client(service.app()) as client:
        before = ask(client, {"documents": documents()}).json()
        rg.MART(n_trees=3).fit(DATA).save(path)
        assert ask(client, {"documents": documents()}).json() == before
        assert client.post("/reload").json() == {"models": {"m": {"reloaded": True, "error": None}}}
        after = ask(client, {"documents": documents()}).json()
        assert after["version"] == 2
        assert after["scores"] != before["scores"]
        for bad in (b"nothing", good.read_bytes()[:1000], None):
            if bad is None:
                path.unlink()
            else:
                path.write_bytes(bad)
            answer = client.post("/models/m/reload")
            assert answer.status_code == 409
            assert answer.json()["models"]["m"]["error"]
            assert client.get("/models/m").json()["reload_error"]
            assert client.get("/health").json()["status"] == "stale"
            assert ask(client, {"documents": documents()}).json() == after
        shutil.copy(good, path)
        assert client.post("/models/m/reload").status_code == 200
        assert client.get("/health").json()["status"] == "ok"
        assert ask(client, {"documents": documents()}).json()["version"] == 3
    with pytest.raises(rg.ParameterError, match="no file"):
        Service({"m": tmp_path / "none.rg"})


def test_changed_files_are_found(folder, tmp_path):
    path = tmp_path / "m.rg"
    shutil.copy(folder / "trees.rg", path)
    registry = Service({"m": path}, watch=0).registry
    assert registry.reload_changed() == {}
    path.write_bytes(b"nothing at all")
    assert registry.reload_changed()["m"]
    assert registry.reload_changed() == {}  # not again, before it changes again
    rg.MART(n_trees=1).fit(DATA).save(path)
    assert registry.reload_changed() == {"m": None}
    assert registry.get("m").model.kind == "mart"


def test_a_defect_of_ours_is_answered(client, monkeypatch, caplog):
    monkeypatch.setattr("rankgrove.serving.registry.Served.scores", lambda *_: 1 / 0)
    answer = ask(client, {"documents": documents()})
    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.text
    assert "ZeroDivisionError" in caplog.text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: (
        st.lists(inside, max_size=6)
        | st.dictionaries(
            st.sampled_from(["documents", "features", "id", *NAMES]), inside, max_size=4
        )
    ),
    max_leaves=12,
)
NEAR = st.fixed_dictionaries(
    {
        "documents": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "features": VALUES
                    | st.lists(VALUES, min_size=5, max_size=5)
                    | st.dictionaries(st.sampled_from(NAMES), VALUES),
                    "id": VALUES,
                    "base_score": VALUES,
                },
            ),
            max_size=4,
        )
    },
    optional={"top_k": VALUES},
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=80) | (VALUES | NEAR).map(lambda value: json.dumps(value).encode()))
@example(b'{"documents": [{"features": [1e999, 0, 0, 0, 0]}]}')
@example(b'{"documents": [{"features": [-0.0, 5e-324, 1e-46, 0, 0], "id": ""}]}')
def test_nothing_sent_is_an_error_of_ours(client, body):
    for model in ("trees", "bag", "going_on", "plain"):
        answer = ask(client, body, model)
        assert answer.status_code in (200, 400, 422)
        content = answer.json()
        assert ("error" in content) == (answer.status_code != 200)


def test_bodies_in_pieces_slow_and_broken_off(folder):
    service = Service({"m": folder / "trees.rg"}, max_body=5000, timeout=0.2, watch=0)
    whole = json.dumps({"documents": documents(slice(0, 3))}).encode()
    with Client(service.app()) as client:
        pieces = [whole[i : i + 100] for i in range(0, len(whole), 100)]
        good = client.request("POST", "/rank", chunks=pieces)
        assert good.status_code == 200
        assert client.request("POST", "/rank", chunks=[b" " * 3000] * 2).status_code == 413
        slow = client.request("POST", "/rank", chunks=[whole[:50], 5.0, whole[50:]])
        assert slow.status_code == 408
        client.request("POST", "/rank", chunks=[whole[:50], None])
        assert client.post("/rank", whole).content == good.content


def test_calibrated_models_with_early_exit_answer_with_relevance(client, folder):
    answer = client.post(
        "/models/exits/rank", json.dumps({"documents": documents(), "top_k": 3}).encode()
    )
    served = answer.json()
    assert answer.status_code == 200
    scores = np.array(served["scores"])
    calibrated = rg.load(folder / "exits.rg").ranker_
    assert served["relevance"] == pytest.approx(calibrated.relevance_of(scores).expected)
    n_trees = client.get("/models/trees").json()["n_trees"]
    assert client.get("/models/exits").json()["n_trees"] == n_trees > 0
