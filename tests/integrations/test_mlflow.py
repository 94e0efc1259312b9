"""The MLflow flavour, against MLflow itself; skipped where it is absent."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import rankgrove as rg
from tests.integrations.conftest import named


def test_names_of_metrics():
    assert rg.mlflow.metric_name("ndcg@10") == "ndcg_at_10"
    assert rg.mlflow.metric_name("ndcg(gain=linear)@10") == "ndcg_gain_linear_at_10"
    assert rg.mlflow.metric_name("valid 1/α-ndcg") == "valid 1/_-ndcg"
    with pytest.raises(rg.DataError, match=r"'p\(1\)' and 'p_1' would both be the metric 'p_1'"):
        rg.mlflow._metric_names(["p(1)", "p_1"])


def test_without_mlflow(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for call in (rg.mlflow.log_model, rg.mlflow.log_training, rg.mlflow.log_evaluation):
        with pytest.raises(rg.MissingExtraError, match=r"'mlflow'.*rankgrove\[mlflow\]"):
            call(model)


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """Return MLflow with a tracking store of its own."""
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    import mlflow

    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    yield mlflow
    mlflow.end_run()
    mlflow.set_tracking_uri(before)


pytestmark = [
    # MLflow's own
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.slow
def test_a_logged_model_scores_alike(mlflow, model, data):
    frame = data.to_pandas()
    features = list(model.feature_names_)
    with mlflow.start_run():
        info = rg.mlflow.log_model(
            model, "web", input_example=frame.head(3)[features], registered_model_name="web"
        )
    expected = model.predict(data)
    for uri in (info.model_uri, "models:/web/1"):
        again = rg.mlflow.load_model(uri)
        assert type(again) is rg.LambdaMART
        assert np.array_equal(again.predict(data), expected)
    loaded = mlflow.pyfunc.load_model("models:/web/1")
    assert np.array_equal(loaded.predict(frame[features[::-1]]), expected)  # by name
    assert loaded.metadata.signature.inputs.input_names() == features
    kinds = [str(kind) for kind in loaded.metadata.signature.inputs.input_types()]
    assert kinds == ["DataType.double"] * 5 + ["DataType.string"]
    with pytest.raises(mlflow.exceptions.MlflowException, match=f"missing.*{features[2]}"):
        loaded.predict(frame.drop(columns=features[2]))


@pytest.mark.slow
def test_a_saved_folder_holds_our_model_file_and_no_pickle(mlflow, model, data, tmp_path):
    rg.mlflow.save_model(model, tmp_path / "web", extra_pip_requirements=["polars"])
    files = {
        path.relative_to(tmp_path / "web").as_posix() for path in (tmp_path / "web").rglob("*")
    }
    assert "data/model.rg" in files
    assert not any("pkl" in name or "pickle" in name for name in files)
    again = rg.load(tmp_path / "web/data/model.rg")
    assert np.array_equal(again.predict(data), model.predict(data))
    requirements = (tmp_path / "web/requirements.txt").read_text().split()
    assert {f"rankgrove=={rg.__version__}", f"numpy=={np.__version__}", "polars"} < set(
        requirements
    )
    with pytest.raises(mlflow.exceptions.MlflowException, match="already exists"):
        rg.mlflow.save_model(model, tmp_path / "web")


@pytest.mark.slow
def test_rankers_that_scale_within_queries_need_the_query(mlflow, scaled, tmp_path):
    ranker, data = scaled
    frame = data.to_pandas().rename(columns={"qid": "query"})
    rg.mlflow.save_model(ranker, tmp_path / "web", query_column="query")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "web"))
    assert np.array_equal(loaded.predict(frame), ranker.predict(data))
    texts = frame.assign(query=frame["query"].astype(str))
    assert np.array_equal(loaded.predict(texts), ranker.predict(data))
    with pytest.raises(mlflow.exceptions.MlflowException, match="query"):
        loaded.predict(frame.drop(columns="query"))
    with pytest.raises(rg.DataError, match="needs the column 'query' of query ids"):
        rg.mlflow._Scoring(ranker, "query").predict(frame.drop(columns="query"))
    with pytest.raises(rg.DataError, match=r"input_example.*needs the column 'qid'"):
        rg.mlflow.save_model(ranker, tmp_path / "bad", input_example=frame.head(2))
    with pytest.raises(rg.ParameterError, match="has the name of a feature"):
        rg.mlflow.save_model(ranker, tmp_path / "x", query_column=ranker.feature_names_[0])


@pytest.mark.slow
def test_models_without_names(mlflow, tmp_path):
    data = rg.make_artificial(10, n_docs=8, n_features=3, seed=1)
    data = rg.QueryDataset(np.asarray(data.X), data.y, data.qid)
    model = rg.MART(n_trees=3, min_leaf=5).fit(data)
    rg.mlflow.save_model(model, tmp_path / "web")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "web"))
    assert loaded.metadata.signature.inputs.input_names() == ["f1", "f2", "f3"]
    frame = data.to_pandas()[["f2", "f3", "f1"]]
    assert np.array_equal(loaded.predict(frame), model.predict(data))


@pytest.mark.slow
def test_parameters_curves_and_measures(mlflow, data):
    train, valid = named(3), named(4)
    with mlflow.start_run() as run:
        live = rg.mlflow.training_callback(prefix="live/", every=2)
        model = rg.LambdaMART("ndcg@10", n_trees=5, min_leaf=5)
        model.fit(train, valid=valid, callbacks=live)
        rg.mlflow.log_training(model)
        evaluation = rg.evaluate(model, valid, ["ndcg@10", "map"])
        logged = rg.mlflow.log_evaluation(evaluation, prefix="test/", artifact="test.json")
    run = mlflow.get_run(run.info.run_id)
    assert run.data.params["ranker"] == "LambdaMART"
    assert run.data.params["n_trees"] == "5"
    assert logged["test/ndcg_at_10"] == evaluation.mean["ndcg@10"]
    assert logged["test/map/low"] == evaluation.interval["map"][0]
    assert logged["test/map/queries"] == evaluation.query_ids.size - len(evaluation.dropped["map"])
    assert {name: run.data.metrics[name] for name in logged} == logged
    client = mlflow.MlflowClient()
    curve = client.get_metric_history(run.info.run_id, "valid/ndcg_at_10")
    history = model.history_["valid"]["ndcg@10"]
    assert [(one.step, one.value) for one in curve] == list(enumerate(history, start=1))
    lived = client.get_metric_history(run.info.run_id, "live/valid/ndcg_at_10")
    assert [one.step for one in lived] == [2, 4, 5]
    assert [one.value for one in lived] == [history[1], history[3], history[4]]
    assert mlflow.artifacts.load_dict(f"{run.info.artifact_uri}/test.json") == evaluation.to_dict()


@pytest.mark.slow
def test_what_is_no_ranker(mlflow, tmp_path):
    from sklearn.exceptions import NotFittedError

    for call in (rg.mlflow.log_model, rg.mlflow.log_training, rg.mlflow.signature):
        with pytest.raises(rg.ParameterError, match=r"takes a trained ranker.*Got str"):
            call("web.rg")
        with pytest.raises(NotFittedError):
            call(rg.MART())
    with pytest.raises(rg.DataError, match=r"takes the result of rg\.evaluate\. Got float"):
        rg.mlflow.log_evaluation(0.5)
    model = mlflow.models.Model()
    model.add_flavor("other")
    (tmp_path / "other").mkdir()
    model.save(str(tmp_path / "other/MLmodel"))
    with pytest.raises(rg.ModelFileError, match="no model of rankgrove: its flavors are other"):
        rg.mlflow.load_model(str(tmp_path / "other"))
