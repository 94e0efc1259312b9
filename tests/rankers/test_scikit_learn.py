"""scikit-learn's own checks, which know of no queries: their data is given some."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import rankgrove as rg
from rankgrove.rankers.load import trainable

# small and quick; a ranker takes those that are its own
SMALL = {
    "n_trees": 3,
    "n_leaves": 4,
    "min_leaf": 2,
    "n_epochs": 3,
    "n_rounds": 3,
    "n_restarts": 1,
    "n_steps": 2,
    "max_iterations": 20,
    "C": 1.0,
    "base": rg.MART(n_trees=2, min_leaf=2),
    "n_models": 2,
    "combine": "mean",  # other ways need queries to predict
}
# Checks that fail, and why they must; the same table stands in docs/howto/scikit-learn.md.
PROBABILITIES = "whatever has predict_proba is taken for a classifier there; McRank ranks by it"
RELEVANT = "all labels of the check are relevant, or none is: an SVM of two kinds has no task"
EXPECTED: dict[str, dict[str, str]] = {
    **{
        f"svm-{goal}": {"check_estimators_dtypes": RELEVANT, "check_fit2d_1feature": RELEVANT}
        for goal in ("map", "roc", "mrr", "ndcg", "acc")
    },
    "mcrank": {
        "check_estimator_sparse_array": PROBABILITIES,
        "check_estimator_sparse_matrix": PROBABILITIES,
    },
}


def _with_queries(ranker: type) -> type:
    """Return the ranker as a class that makes up queries of ten rows where it is given none."""

    def queries(X, y, qid):
        if qid is not None or y is None or np.ndim(y) != 1 or isinstance(X, rg.QueryDataset):
            return qid
        return np.arange(len(y)) // 2 % max(1, len(y) // 10)

    def fit(self, X, y=None, qid=None, **others):
        return ranker.fit(self, X, y, queries(X, y, qid), **others)

    def score(self, X, y=None, qid=None, **others):
        return ranker.score(self, X, y, queries(X, y, qid), **others)

    members = {"fit": fit, "score": score, "__init__": ranker.__init__, "__module__": __name__}
    return type(ranker.__name__, (ranker,), members)


RANKERS = {
    kind: _with_queries(ranker) for kind, ranker in {**trainable(), "bag": rg.BaggedRanker}.items()
}
globals().update({ranker.__name__: ranker for ranker in RANKERS.values()})  # where pickle looks


@pytest.mark.slow
@pytest.mark.parametrize("kind", RANKERS)
def test_checks_of_scikit_learn(kind):
    ranker = RANKERS[kind]
    given = {name: value for name, value in SMALL.items() if name in ranker._get_param_names()}
    done = check_estimator(
        ranker(**given), expected_failed_checks=EXPECTED.get(kind), on_skip=None, on_fail=None
    )
    failed = {one["check_name"]: one["exception"] for one in done if one["status"] == "failed"}
    assert failed == {}
    assert {one["check_name"] for one in done if one["status"] == "xfail"} == set(
        EXPECTED.get(kind, {})
    )


@pytest.mark.parametrize("kind", RANKERS)
def test_tags_say_what_works(kind):
    tags = get_tags(RANKERS[kind]())
    assert tags.input_tags.sparse
    assert tags.input_tags.allow_nan
    assert tags.target_tags.required


def test_names_of_features():
    pd = pytest.importorskip("pandas")
    data = rg.make_web(6, n_docs=8, n_features=3, seed=1)
    model = rg.MART(n_trees=2, min_leaf=2)
    assert not hasattr(model, "feature_names_in_")
    model.fit(pd.DataFrame(np.array(data.X), columns=["a", "b", "c"]), data.y, data.qid)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.feature_names_in_.dtype == object
    model.fit(np.array(data.X), data.y, data.qid)
    assert not hasattr(model, "feature_names_in_")
