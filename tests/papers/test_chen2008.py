"""The Trada paper's experiments run end to end in seconds; a second run computes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.tuning.result_store import ResultStore
from rankgrove_papers.chen2008 import generated_domains, letor, methods
from rankgrove_papers.study import Study

pytestmark = pytest.mark.slow


class Tiny(Study):
    """A study of a few queries and trees."""

    def size(self, small: int, full: int) -> int:
        return min(small, 2) if small < 10 else max(8, small // 100)


EXPERIMENTS = [*generated_domains.EXPERIMENTS, *methods.EXPERIMENTS]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(generated_domains, "FOLDS", 2)
    monkeypatch.setattr(generated_domains, "BETAS", (1.0, 10.0))
    quick = {"beta": "cv", "betas": (1.0, 10.0), "folds": 2, "extra_trees": 2}
    monkeypatch.setitem(methods.METHODS, "ADP cv", quick)
    path = tmp_path / "results.jsonl"
    first = experiment.run(Tiny("small", ResultStore(path, {"a": 1}), 1))
    assert "|" in first.text
    assert generated_domains.VARIANT in first.text  # it names what it runs
    chooses = experiment.name.endswith(("figure6", "figures11-12", "shifts"))
    assert ("How often the edge" in first.text) == chooses
    again = Tiny("small", ResultStore(path, {"a": 1}), 1, say=lambda text: pytest.fail(text))
    assert experiment.run(again).text == first.text
    for figure in first.figures.values():
        assert figure.lines


def test_the_sizes_are_the_papers():
    full = Study("full", ResultStore(None, {}))
    assert generated_domains.sizes(full) == [200, 400, 600, 800, 1000]
    assert generated_domains.middle(full) == 600


def test_samples_are_apart_from_what_is_tested():
    target = rg.make_domains(1, 20, n_docs=5, seed=1)[1]
    tested = []
    for train, test in generated_domains.samples(target, 10):
        assert train.n_queries == 10
        assert not set(train.query_ids) & set(test.query_ids)
        tested += list(test.query_ids)
    assert sorted(tested) == sorted(target.query_ids)


def test_grades_and_measure():
    data = rg.QueryDataset(None, [4, 0, 2], qid=[1, 1, 1])
    grades = generated_domains.graded(data)
    assert grades.y.tolist() == [10, 0, 3]
    (value,) = rg.evaluate([3.0, 2.0, 1.0], grades, generated_domains.MEASURE).mean.values()
    assert value == pytest.approx(10 / np.log(2) + 3 / np.log(4))


def test_short_lists_and_long_ones(data_dir):
    data = rg.read_letor(data_dir / "ohsumed" / "S1.txt.gz")
    short, long = letor.short_and_long(data)
    assert short.n_queries + long.n_queries == data.n_queries
    assert np.diff(short.query_ptr).max() < np.diff(long.query_ptr).min()


# -- the settings are the paper's -----------------------------------------------------------------


def test_settings_are_the_papers():
    # section 5.3: 300 trees, 12 leaves, a rate of 0.05; section 5.5.3: 30 trees more; section
    # 3.3: every tree on a random sample of the rows, least-squares splits, means for leaves
    assert (generated_domains.LEAVES, generated_domains.RATE, generated_domains.EXTRA) == (
        12,
        0.05,
        30,
    )
    assert 0 < generated_domains.BOOSTED["row_fraction"] < 1
    assert (generated_domains.BOOSTED["split"], generated_domains.BOOSTED["l2"]) == ("mse", 0.0)
    assert methods.WEIGHTS == (1, 10, 20)  # section 5.5.4
    assert {1.0, 2.0, 5.0, 10.0, 20.0} <= set(generated_domains.BETAS)
    assert generated_domains.FOLDS == 5  # section 5.1
    assert generated_domains.GRADES.tolist() == [0, 1, 3, 7, 10]  # section 5.2
    table_2 = {
        "R": {},
        "RA": {"level": "leaf"},
        "RT": {"trim": True},
        "SR": {"tune": "splits"},
        "SRA": {"tune": "splits", "level": "leaf"},
        "SRT": {"tune": "splits", "trim": True},
    }
    assert table_2 == generated_domains.SETTINGS
    cv = methods.METHODS["ADP cv"]
    assert (cv["beta"], cv["betas"]) == ("cv", generated_domains.BETAS)


def test_every_model_of_boosted_trees_samples_rows(monkeypatch):
    seen = []
    real = generated_domains.adapt_with

    def spy(method, base, train, **options):
        seen.append((method, options, base))
        return real(method, base, train, **options)

    monkeypatch.setattr(generated_domains, "adapt_with", spy)
    study = Tiny("small", ResultStore(None, {}), 1)
    for name in ("ADP R", "SMALL", "ADD", "COMB W=10"):
        generated_domains._fold_result(study, None, 8, 0, methods.METHODS[name])
    for method, options, base in seen:
        # small and combine take the base model's parameters, the others have their own defaults
        trained = options if method in ("trada", "additive") else base.get_params() | options
        assert {
            name: trained[name] for name in generated_domains.BOOSTED
        } == generated_domains.BOOSTED, method
    assert [method for method, _, _ in seen] == ["trada", "small", "additive", "combine"]


def test_the_base_model_counts_all_rows_of_the_source():
    source = rg.make_domains(30, 1, n_docs=20, seed=1)[0]
    base = rg.MART(n_trees=3, **generated_domains.BOOSTED).fit(source)
    recounted = generated_domains.with_all_rows_counted(base, source)
    roots = recounted.ensemble_.node_ptr[:-1]
    assert recounted.ensemble_.node_count[roots].tolist() == [600] * 3
    assert base.ensemble_.node_count[roots].tolist() == [300] * 3
    leaves = np.add.reduceat(recounted.ensemble_.leaf_count, recounted.ensemble_.leaf_ptr[:-1])
    assert leaves.tolist() == [600] * 3
    assert recounted.ensemble_.leaf_mean.tolist() == base.ensemble_.leaf_mean.tolist()
    assert recounted.predict(source).tolist() == base.predict(source).tolist()


def test_features_that_only_the_target_has_are_left_out():
    shift = generated_domains.Shift(feature=0.5)
    source, target = generated_domains.domain_data(3, 2, shift)
    lacks = np.isnan(source.X).all(axis=0)
    assert lacks.any()
    assert not np.isnan(target.X[:, lacks]).any()  # the target has them
    shared_source, shared_target = generated_domains.domain_data(3, 2, shift._replace(shared=True))
    assert shared_source.X.tolist() == source.X[:, ~lacks].tolist()
    assert np.array_equal(shared_target.X, target.X[:, ~lacks], equal_nan=True)
    assert shared_target.y.tolist() == target.y.tolist()
