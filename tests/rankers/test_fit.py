"""One way through fit: what every ranker checks, keeps and refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import rankgrove as rg
from rankgrove.objectives.pointwise import SquaredError
from rankgrove.rankers.base import KINDS
from rankgrove.rankers.declaring import declares_parameters, parameter, real
from rankgrove.rankers.fitting import row_weights
from rankgrove.rankers.trees import parameters as trees
from rankgrove.rankers.trees.boosted import BoostedRanker
from rankgrove.rankers.trees.recipe import TreeRecipe, drawn_rows, histogram_trees
from tests.rankers.interrupting import interrupted_fit

FEW = {"n_trees": 6, "n_leaves": 4, "min_leaf": 3}


@pytest.fixture(scope="module")
def train():
    return rg.make_web(20, n_docs=12, n_features=6, seed=1)


@pytest.fixture(scope="module")
def valid():
    return rg.make_web(12, n_docs=12, n_features=6, seed=2)


def press(progress):
    if progress.round == 2:
        raise KeyboardInterrupt


def test_a_search_does_not_go_on_with_interrupted_fits(train):
    """A truncated model must not be scored as if it were whole."""
    fits = []

    class Pressed(rg.LambdaMART):
        def fit(self, *data, **how):
            fits.append(1)
            return super().fit(*data, callbacks=press, **how)

    search = GridSearchCV(Pressed(**FEW), {"n_leaves": [3, 4]}, cv=rg.QueryKFold(2))
    with pytest.raises(KeyboardInterrupt):
        search.fit(train.X, train.y, groups=train.qid, qid=train.qid)
    assert len(fits) == 1


@pytest.mark.parametrize("wrap", [lambda r: r, lambda r: rg.PreparedRanker(r, features=[1, 2])])
def test_an_interrupted_fit_raises_and_keeps_the_best_model(train, wrap):
    ranker = interrupted_fit(wrap(rg.LambdaMART(**FEW)), train, callbacks=press)
    assert ranker.ensemble_.n_trees == 2
    assert ranker.predict(train).shape == (train.n_rows,)


def test_a_failed_fit_leaves_the_ranker_as_it_was(train):
    ranker = rg.LambdaMART(**FEW).fit(train)
    before = ranker.predict(train)

    def fail(progress):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        ranker.fit(train, callbacks=fail)
    np.testing.assert_array_equal(ranker.predict(train), before)


def test_training_data_in_an_eval_set_does_not_decide(train, valid):
    X, y, g = train.X, train.y, np.bincount(train.query_of_row)
    Xv, yv, gv = valid.X, valid.y, np.bincount(valid.query_of_row)
    both = rg.LambdaMART(n_trees=40, min_leaf=3, early_stopping=5).fit(
        X, y, group=g, eval_set=[(X, y), (Xv, yv)], eval_group=[g, gv]
    )
    alone = rg.LambdaMART(n_trees=40, min_leaf=3, early_stopping=5).fit(train, valid=valid)
    assert list(both.history_) == ["valid 2", "valid 1"]
    assert both.best_round_ == alone.best_round_


def test_what_a_ranker_cannot_use_is_refused(train, valid):
    rankers = [rg.LambdaMART(**FEW).fit(train), rg.MART(**FEW).fit(train)]
    with pytest.raises(rg.ParameterError, match=r"CombinedRanker.fit cannot use validation data"):
        rg.CombinedRanker(rankers).fit(train, valid=valid)
    with pytest.raises(rg.ParameterError, match=r"cannot use a net to start from: leave start out"):
        rg.LambdaMART(**FEW).fit(train, start=rankers[0])
    with pytest.raises(rg.ParameterError, match=r"does not start from base scores"):
        rg.RankNet(n_epochs=1).fit(train.X, train.y, train.qid, base_score=train.y)


def test_callbacks_of_other_libraries_are_named(train):
    lightgbm = pytest.importorskip("lightgbm")
    with pytest.raises(rg.ParameterError, match=r"not a callback of lightgbm: use early_stopping="):
        rg.LambdaMART(**FEW).fit(train, callbacks=[lightgbm.early_stopping(5)])


@pytest.mark.parametrize("ranker", [rg.LambdaMART, rg.RankBoost, rg.GBRank, rg.BaggedRanker])
def test_an_untrained_ranker_says_so(ranker, train):
    with pytest.raises(Exception, match="not trained yet"):
        ranker().predict(train)


def test_a_warning_is_given_once_at_the_callers_line(tmp_path, train):
    path = tmp_path / "data.txt"
    rg.write_letor(train, path)
    X = np.array(train.X)
    X[0, 0] = np.nan
    ranker = rg.LambdaMART(**FEW).fit(rg.QueryDataset(X, train.y, train.qid))
    ranker.absent_ = "missing"
    data = rg.read_letor(path, absent="zero")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker.predict(data)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_chosen_features_keep_their_numbers(train):
    data = rg.QueryDataset(train.X, train.y, train.qid)  # features without names
    model = rg.PreparedRanker(rg.LambdaMART(**FEW), features=[2, 5]).fit(data)
    assert "f5" in model.summary()
    assert "f1 " not in model.summary()
    assert model.saw_missing_ is False


def test_cross_validation_names_its_own_remedy(train):
    with pytest.raises(rg.ParameterError, match=r"give cross_validate valid=True"):
        rg.cross_validate(rg.LambdaMART(early_stopping=3), train)


@pytest.fixture
def shortest():
    """A boosted ranker with two parameters and a recipe, as in CONTRIBUTING.md."""

    @declares_parameters
    class Shortest(BoostedRanker):
        """The shortest boosted ranker."""

        kind = "shortest-of-the-tests"
        n_trees: int = trees.N_TREES(4)
        width: float = parameter(0.5, "width of the noise", real(low=0.0))

        def _recipe(self, data):
            labels = data.train.grouped(data.train.y) + self.width * (data.keys / 2.0**64)
            # which takes the sizes of trees from BoostedRanker, as none are declared here
            grower = histogram_trees(self, data, split="newton", min_gain=0.0, l2=0.0)
            objective = SquaredError(labels, data.train.query_ptr, row_weights(data.train))
            return TreeRecipe(objective, grower, drawn_rows(data), self._start())

    yield Shortest
    del KINDS[Shortest.kind]


def test_a_recipe_is_all_that_a_boosted_ranker_needs(shortest, train, valid, tmp_path):
    rows = train.X, train.y, train.qid
    model = shortest(width=0.25).fit(train, valid=valid)
    assert list(model.history_["valid"]) == ["ndcg@10"]
    assert model.summary().startswith("Shortest: 3 trees, ")  # no measure is declared
    assert not np.array_equal(
        shortest().fit(*rows, weight=np.arange(train.n_rows)).predict(valid),
        shortest().fit(*rows).predict(valid),
    )
    model.save(tmp_path / "m.rg")
    again = rg.load(tmp_path / "m.rg")
    assert clone(again).get_params() == {"n_trees": 4, "width": 0.25}
    np.testing.assert_array_equal(again.predict(valid), model.predict(valid))
    with pytest.raises(rg.ParameterError, match="'width' parameter of Shortest must be"):
        shortest(width=-1.0).fit(train)
    with pytest.raises(rg.ParameterError, match="not known what the base model, a Shortest, was"):
        rg.Trada(model).fit(valid)
    with pytest.raises(rg.ParameterError, match="this ranker does not start from base scores"):
        shortest().fit(*rows, base_score=train.y)
