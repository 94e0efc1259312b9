"""Rankers in pickles of joblib and skops, and in pipelines: the same scores as before."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import rankgrove as rg
from tests.integrations.conftest import named

RANKERS = {
    "LambdaMART": lambda: rg.LambdaMART(n_trees=4, min_leaf=5),
    "McRank": lambda: rg.McRank(n_trees=2, min_leaf=5),
    "RankNet": lambda: rg.RankNet(n_epochs=1),
    "RankSVM": lambda: rg.RankSVM(C=1.0),
    "BaggedRanker": lambda: rg.BaggedRanker(rg.MART(n_trees=2, min_leaf=5), n_models=2),
    "PreparedRanker": lambda: rg.PreparedRanker(rg.MART(n_trees=2), normalise="zscore"),
}


@pytest.fixture(scope="module")
def plain():
    return named(5)


@pytest.fixture(scope="module", params=list(RANKERS))
def trained(request, plain):
    return RANKERS[request.param]().fit(plain)


def test_joblib_and_pickle(trained, plain, tmp_path):
    joblib.dump(trained, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    copies = [again, pickle.loads(pickle.dumps(trained))]
    trained.save(tmp_path / "model.rg")
    for copy in [*copies, rg.load(tmp_path / "model.rg")]:
        assert np.array_equal(copy.predict(plain), trained.predict(plain))
        assert copy.feature_names_ == trained.feature_names_
        copy.save(tmp_path / "again.rg")  # a pickled ranker still has everything for its file
        assert (tmp_path / "again.rg").read_bytes() == (tmp_path / "model.rg").read_bytes()


def test_skops_names_only_our_own_types(trained, plain):
    io = pytest.importorskip("skops.io", reason="skops is not installed")
    text = io.dumps(trained)
    types = io.get_untrusted_types(data=text)
    assert types
    assert all(name.startswith("rankgrove.") for name in types)
    with pytest.raises(io.exceptions.UntrustedTypesFoundException):
        io.loads(text)
    again = io.loads(text, trusted=types)
    assert np.array_equal(again.predict(plain), trained.predict(plain))


def test_a_model_file_at_the_end_of_a_pipeline(plain, tmp_path):
    X, y, qid = np.asarray(plain.X), plain.y, plain.qid
    logs = FunctionTransformer(np.arcsinh)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(logs, rg.LambdaMART(n_trees=3, min_leaf=5)).fit(X, y, qid=qid)
    pipeline[-1].save(tmp_path / "end.rg")
    again = make_pipeline(logs, rg.load(tmp_path / "end.rg"))
    assert np.array_equal(again.predict(X), pipeline.predict(X))
    joblib.dump(pipeline, tmp_path / "pipeline.joblib")
    whole = joblib.load(tmp_path / "pipeline.joblib")
    assert np.array_equal(whole.predict(X), pipeline.predict(X))
