"""Seeded faults between a model and its engine: each is named, and a clean log raises no alarm.

Logs are made by emulating engines with one fault each, written as engines write them, and read.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.formats.write import Labels, encode
from rankgrove.model.ensemble import Ensemble
from rankgrove.operations.flat_models import flat_model
from rankgrove.parity.engines import ENGINES
from rankgrove.parity.production import file_for, of_file, written
from rankgrove.scoring.score import score as score_ensemble
from tests.command import run_here as run
from tests.parity import log_files

ENGINE = "elasticsearch-ltr"
NAMES = [f"feat_{letter}" for letter in "kabcdefghijl"]


@pytest.fixture(scope="module")
def made():
    """Return data with missing values, and two models, whose thresholds are values of the data."""
    rng = np.random.default_rng(7)
    web = rg.make_web(40, n_docs=20, n_features=12, seed=3)
    X = np.round(np.asarray(web.X), 2)
    X[rng.random(X.shape) < 0.15] = np.nan
    data = rg.QueryDataset(X, web.y, web.qid, feature_names=NAMES)
    model = at_values(rg.LambdaMART(n_trees=30, n_leaves=8).fit(data), X)
    old = rg.LambdaMART(n_trees=20, n_leaves=6, feature_fraction=0.5).fit(data)
    return data, np.float64(X), model, old


def at_values(model, X):
    """Move thresholds down to values of the data, so that no training row moves."""
    trees = model.ensemble_
    threshold = trees.threshold.copy()
    for node, column in enumerate(trees.feature):
        values = X[:, column]
        if np.isfinite(threshold[node]):
            threshold[node] = values[values <= threshold[node]].max()
    model.ensemble_ = replace(trees, threshold=threshold)
    return model


def emulated(model, values, engine=ENGINE, read_by=None, **options):
    """Return an engine's scores, by its own file or by that for another one."""
    names = Labels("model", NAMES, True, None)
    flat = model if isinstance(model, Ensemble) else flat_model(model)
    if options:
        content = encode(flat, ENGINES[engine].format, names, keep=True, **options)[0]
    else:
        content = file_for(flat, ENGINES[engine], names)
    return of_file(content, ENGINES[read_by or engine], NAMES).scores(values)


def change(column, function):
    def changed(values):
        values = values.copy()
        values[:, column] = function(values[:, column])
        return values

    return changed


def swapped(values, i, j):
    values = values.copy()
    values[:, [i, j]] = values[:, [j, i]]
    return values


def strict(values):
    return np.float64(np.nextafter(np.float32(values), np.float32(np.inf)))


def without(trees, *lost):
    kept = [trees.tree(t) for t in range(trees.n_trees) if t not in lost]
    return Ensemble.from_trees(kept, trees.n_features, trees.base)


lost = change(0, lambda x: np.full_like(x, np.nan))
filled = change(3, lambda x: np.where(np.isnan(x), 0.0, x))
taxed = change(2, lambda x: 1.19 * x + 0.01)
log1p = change(2, lambda x: np.sign(x) * np.log1p(np.abs(x)))
stale = change(4, lambda x: np.roll(x, 7))

# fault -> (the cause's name, a part of what is said, the scores of (values, model, old model))
FAULTS = {
    "missing as zero": (
        "missing-as-zero", "taken as 0",
        lambda x, m, o: emulated(m, x, read_by="elasticsearch-ltr-2023"),
    ),
    "missing right": (
        "missing-right", "to the right", lambda x, m, o: emulated(m, x, read_by="opensearch-3.2")
    ),
    "missing to the other side": (
        "missing-opposite", "to the other side",
        lambda x, m, o: emulated(
            replace(flat_model(m), missing_left=~flat_model(m).missing_left), x
        ),
    ),
    "missing as the mean": (
        "missing-as-number", "the mean of its values",
        lambda x, m, o: emulated(m, np.where(np.isnan(x), np.nanmean(x, axis=0), x)),
    ),
    "a feature's default value": (
        "missing-as-number", "a missing feat_c is taken as 0",
        lambda x, m, o: emulated(m, filled(x)),
    ),
    "strict compare": (
        "strict-compare", "x < t is asked", lambda x, m, o: emulated(m, strict(x))
    ),
    "columns sorted by name": (
        "feature-order", "sorted by name",
        lambda x, m, o: emulated(m, x[:, np.argsort(NAMES)]),
    ),
    "two columns exchanged": (
        "feature-order", "feat_b and feat_e are exchanged",
        lambda x, m, o: emulated(m, swapped(x, 2, 5)),
    ),
    "one column twice": (
        "feature-order", "feat_b has the value of feat_e",
        lambda x, m, o: emulated(m, x[:, [0, 1, 5, 3, 4, 5, 6, 7, 8, 9, 10, 11]]),
    ),
    "numbers shifted by one": (
        "feature-order", "by one", lambda x, m, o: emulated(m, np.roll(x, 1, axis=1))
    ),
    "one feature as log1p": (
        "feature-normalised", "feat_b reaches the model as log1p",
        lambda x, m, o: emulated(m, log1p(x)),
    ),
    "a feature lost": (
        "feature-lost", "feat_k is always missing", lambda x, m, o: emulated(m, lost(x))
    ),
    "older model": ("model-version", "the model old", lambda x, m, o: emulated(o, x)),
    "truncated trees": (
        "truncated", "first 17 of 30 trees",
        lambda x, m, o: emulated(flat_model(m).truncated(17), x),
    ),
    "the first trees lost": (
        "truncated", "the first 5 of 30 trees are not added",
        lambda x, m, o: emulated(without(flat_model(m), *range(5)), x),
    ),
    "a tree lost": (
        "truncated", "tree 8 of 30 is not added",
        lambda x, m, o: emulated(without(flat_model(m), 7), x),
    ),
    "a feature in a way that is not known": (
        "feature-changed", "scores fit other values of feat_b: document d",
        lambda x, m, o: emulated(m, taxed(x)),
    ),
    "stale values": ("stale-features", "feat_d", lambda x, m, o: emulated(m, stale(x))),
    "shift lost": (
        "constant", "the shift that keeps scores above 0",
        lambda x, m, o: emulated(m, x, shift=False),
    ),
    "boost": ("scale", "2.5 times", lambda x, m, o: 2.5 * emulated(m, x)),
    "rescored": (
        "rescore", "feat_a", lambda x, m, o: 2 * emulated(m, x) + 0.25 * np.nan_to_num(x[:, 1])
    ),
    "multiplied": (
        "rescore", "score x feat_a", lambda x, m, o: emulated(m, x) * np.nan_to_num(x[:, 1])
    ),
    "rounded": ("score-rounded", "2 decimals", lambda x, m, o: np.round(emulated(m, x), 2)),
}  # fmt: skip


def read(tmp_path, data, values, scores):
    path = tmp_path / "log.json"
    path.write_text(log_files.elasticsearch(NAMES, values, data.qid.tolist(), scores))
    return rg.read_feature_log(path)


def reference_of(data, values):
    documents = np.array([f"d{row}" for row in range(data.n_rows)])
    nothing = np.full(data.n_rows, np.nan)
    return rg.FeatureLog("table", tuple(NAMES), values, data.qid, documents, nothing)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(made, tmp_path, fault):
    data, X, model, old = made
    name, said, scores = FAULTS[fault]
    log = read(tmp_path, data, X, scores(X, model, old))
    found = rg.parity(
        model, log, engine=ENGINE, also={"old": old}, reference=reference_of(data, stale(X))
        if fault == "stale values" else None,
    )  # fmt: skip
    assert [cause.name for cause in found.causes] == [name], str(found)
    assert said in found.causes[0].detail
    assert found.causes[0].n_documents == found.n_documents - found.n_equal > 20
    assert not found.equal


def test_a_clean_log_is_equal(made, tmp_path):
    data, X, model, old = made
    for engine in ("elasticsearch-ltr", "opensearch-3.8", "elasticsearch-8.12"):
        log = read(tmp_path, data, X, emulated(model, X, engine))
        found = rg.parity(model, log, engine=engine, also={"old": old})
        assert found.equal
        assert found.causes == ()
        assert found.differences == []
    # without a name, the engine of the log's kind that fits best
    assert rg.parity(model, log).equal


def test_a_default_value_in_the_engine_is_told(made, tmp_path):
    """Without NaN as default in the feature store all scores are right, for zeros."""
    data, X, model, _ = made
    values = np.nan_to_num(X)
    path = tmp_path / "log.json"
    scores = emulated(model, values, "solr-9.2")
    path.write_text(log_files.solr(NAMES, values, data.qid.tolist(), scores))
    found = rg.parity(model, path, engine="solr-9.2")
    assert found.equal
    assert any("defaultValue of the feature store" in note for note in found.notes)
    path.write_text(log_files.solr(NAMES, X, data.qid.tolist(), emulated(model, X, "solr-9.2")))
    assert not rg.parity(model, path, engine="solr-9.2").notes


def test_two_causes_with_lost_trees(made, tmp_path):
    data, X, model, _ = made
    scores = emulated(flat_model(model).truncated(17), np.nan_to_num(X))
    found = rg.parity(model, read(tmp_path, data, X, scores), engine=ENGINE)
    assert [cause.name for cause in found.causes] == ["truncated"]
    assert "taken as 0; and only the first 17" in found.causes[0].detail


def test_all_changes_that_fit_are_told(made, tmp_path):
    """A feature far above all thresholds may have been changed in many ways."""
    data, X, model, _ = made
    scores = emulated(model, change(2, lambda x: np.where(x > 0, 1e9 * x, x))(X))
    [cause] = rg.parity(model, read(tmp_path, data, X, scores), engine=ENGINE).causes
    assert cause.name == "feature-normalised"
    assert sum(also.startswith("feat_b reaches the model") for also in cause.also) >= 2


def test_float32(made):
    """A model with float64 thresholds at float64 values, scored in float32."""
    data, X, model, _ = made
    rng = np.random.default_rng(1)
    trees = flat_model(model)
    values = rng.normal(size=X.shape)
    threshold = values[rng.integers(0, len(values), trees.feature.size), trees.feature]
    double = replace(trees, threshold=threshold)
    ranker = rg.LambdaMART()
    vars(ranker).update(vars(model) | {"ensemble_": double})
    log = rg.FeatureLog(
        "table", tuple(NAMES), values, data.qid, np.arange(len(X)), score_ensemble(double, values)
    )
    assert rg.parity(ranker, log).equal
    single = replace(double, threshold=np.float64(np.float32(threshold)))
    rounded = score_ensemble(single, np.float64(np.float32(values)))
    found = rg.parity(ranker, replace(log, score=rounded))
    assert not found.equal or np.array_equal(rounded, log.score)
    narrow = score_ensemble(double, np.float64(np.float32(values)))
    found = rg.parity(ranker, replace(log, score=narrow))
    assert [cause.name for cause in found.causes] == ["float32"]
    assert found.causes[0].detail == "features are rounded to float32"


def test_several_causes_are_told_apart(made, tmp_path):
    data, X, model, old = made
    scores = emulated(model, X)
    scores[::4] = emulated(old, X)[::4]
    zeros = emulated(model, X, read_by="opensearch-3.1")
    scores[1::4] = zeros[1::4]
    scores[2::40] = 1000.0 + np.arange(scores[2::40].size) ** 2
    found = rg.parity(model, read(tmp_path, data, X, scores), engine=ENGINE, also={"old": old})
    causes = {cause.name: cause for cause in found.causes}
    assert set(causes) == {"model-version", "missing-as-zero", "unexplained"}
    assert "a part of the log only" in causes["model-version"].note
    assert causes["unexplained"].n_documents == scores[2::40].size
    for one in found.differences:
        row = int(one.document[1:])
        expected = ["model-version", "missing-as-zero", "unexplained", ""][row % 4]
        assert one.cause == expected
        assert f", hit {np.flatnonzero(data.qid == int(one.query)).tolist().index(row) + 1}" in (
            one.where
        )


def test_two_causes_on_one_document(made, tmp_path):
    data, X, model, _ = made
    scores = emulated(model, swapped(X, 2, 5), read_by="opensearch-3.1")
    found = rg.parity(model, read(tmp_path, data, X, scores), engine=ENGINE)
    assert [cause.name for cause in found.causes] == ["feature-order"]
    assert "taken as 0; and feat_b and feat_e are exchanged" in found.causes[0].detail
    found = rg.parity(
        model, read(tmp_path, data, X, emulated(model, X, read_by="opensearch-3.1") + 1.5),
        engine=ENGINE,
    )  # fmt: skip
    assert [cause.name for cause in found.causes] == ["missing-as-zero"]
    assert "scores are higher by 1.5" in found.causes[0].detail


def test_noise_is_not_explained(made, tmp_path):
    data, X, model, _ = made
    noise = np.random.default_rng(5).normal(3.0, size=len(X))
    found = rg.parity(model, read(tmp_path, data, X, noise), engine=ENGINE)
    assert [cause.name for cause in found.causes] == ["unexplained"]
    assert found.n_equal == 0


def test_uploaded_files_and_names(made, tmp_path):
    data, X, model, _ = made
    path = tmp_path / "web.json"
    rg.convert(model, path, engine=ENGINE)
    log = read(tmp_path, data, X, emulated(model, X, read_by="opensearch-3.2"))
    found = rg.parity(path, log, engine=ENGINE)
    assert [cause.name for cause in found.causes] == ["missing-right"]
    assert rg.parity(path, log, engine="opensearch-3.5").equal
    with pytest.raises(rg.ParameterError, match=r"did you mean 'opensearch-3.1'"):
        rg.parity(path, log, engine="opensearch3.1")
    with pytest.raises(rg.DataError, match=r"lacks 1 of the features.*'feat_z'"):
        rg.parity(model, log, engine=ENGINE, features=["feat_z", *NAMES[1:]])
    with pytest.raises(rg.DataError, match="No document of the log has a score"):
        rg.parity(model, replace(log, score=np.full(len(log), np.nan)), engine=ENGINE)


def test_rankers_without_trees(made):
    data, X, _, _ = made
    full = rg.QueryDataset(np.nan_to_num(X), data.y, data.qid, feature_names=NAMES)
    for ranker in (
        rg.CoordinateAscent(),
        rg.PreparedRanker(rg.MART(n_trees=3), normalise="zscore"),
    ):
        model = ranker.fit(full)
        log = rg.FeatureLog(
            "table", tuple(NAMES), np.float64(full.X), data.qid, np.arange(len(X)),
            model.predict(full),
        )  # fmt: skip
        assert rg.parity(model, log).equal
        found = rg.parity(model, replace(log, score=log.score + 2))
        assert [cause.name for cause in found.causes] == ["constant"]


def test_written_models_score_as_their_engine(made):
    _, X, model, _ = made
    for name, engine in ENGINES.items():
        try:
            production = written(model, engine, NAMES, True)
        except rg.ParameterError:  # names that this engine cannot hold
            continue
        assert production.scores(X).shape == (len(X),), name


def test_command(made, tmp_path):
    data, X, model, old = made
    model.save(tmp_path / "web.rg")
    old.save(tmp_path / "old.rg")
    read(tmp_path, data, X, emulated(model, X))
    words = ("parity", "web.rg", "log.json")
    out, _ = run(*words, cwd=tmp_path)
    assert out.startswith("equal: the scores of")
    read(tmp_path, data, X, emulated(old, X))
    (tmp_path / "qrels.txt").write_text(f"{data.qid[0]} 0 d0 2\n{data.qid[0]} 0 d1 0\n")
    more = ("--engine", ENGINE, "--also", "old.rg", "--out", "report.json")
    train = ("--training", "train.txt", "--judgements", "qrels.txt")
    out, _ = run(*words, *more, *train, cwd=tmp_path, status=1)
    assert "model-version" in out
    assert "scored by the model old.rg" in out
    assert "what to do: Upload the model again" in out
    assert (tmp_path / "train.txt").read_text().startswith("# feature 1: feat_k\n")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["causes"][0]["name"] == "model-version"
    assert len(report["differences"]) == report["n_documents"] - report["n_equal"]
    _, complaints = run(*words, "--training", "t.txt", cwd=tmp_path, status=2)
    assert "--training and --judgements belong together" in complaints
    _, complaints = run(*words, "--engine", "lucene", cwd=tmp_path, status=2)
    assert "engine= (--engine) is one of elasticsearch-ltr, " in complaints


def test_what_is_shown(made, tmp_path):
    data, X, model, _ = made
    found = rg.parity(model, read(tmp_path, data, X, emulated(model, X) + 1), engine=ENGINE)
    assert "constant" in found._repr_html_()
    assert repr(found).startswith("Parity(elasticsearch-ltr, 0 of")
    assert found.table[0][:2] == ("constant", len(X))
    assert "<script" not in rg.read_feature_log(tmp_path / "log.json")._repr_html_()


def test_two_changes_are_no_other_explanation_where_one_does(made, tmp_path):
    data, X, model, _ = made
    log = read(tmp_path, data, X, emulated(model, X, shift=False))
    found = rg.parity(model, log, engine=ENGINE)
    assert [cause.name for cause in found.causes] == ["constant"]
    assert found.causes[0].also  # engines that do not shift scores
    assert not any("; and " in other for other in found.causes[0].also)


def test_chance_names_no_change_of_features(made, tmp_path):
    """Other values of a fifth of the documents: some look as if the feature had been squared."""
    data, X, model, _ = made
    old = X.copy()
    old[::5, 2] *= 0.5
    old[::5, 4] += 3.0
    log = read(tmp_path, data, X, emulated(model, old))
    found = rg.parity(model, log, engine=ENGINE)
    assert not found.equal
    for cause in found.causes:
        assert cause.n_documents >= 0.1 * (found.n_documents - found.n_equal), str(found)


def test_an_engine_that_was_not_named_is_told(made, tmp_path):
    data, X, model, _ = made
    old = "elasticsearch-ltr-2023"
    log = read(tmp_path, data, X, emulated(model, X, old))
    found = rg.parity(model, log)
    assert (found.equal, found.engine) == (True, old)
    assert f"no engine was named: {old} was taken" in str(found)
    usual = rg.parity(model, read(tmp_path, data, X, emulated(model, X)))
    assert (usual.engine, usual.notes) == (ENGINE, ())
    assert rg.parity(model, log, engine="Elasticsearch-LTR-1.5.8").equal


def test_places_that_no_hit_has_are_refused(made, tmp_path):
    data, X, model, _ = made
    read(tmp_path, data, X, emulated(model, X))
    path = tmp_path / "log.json"
    for what in ("query", "score"):
        with pytest.raises(
            rg.ParseError, match=rf"no hit has anything at '_source.no', .*--{what}"
        ):
            rg.read_feature_log(path, **{what: "_source.no"})
    lines = path.read_text().splitlines()
    lines[0] = json.dumps(json.loads(lines[0]) | {"search": "first"})
    path.write_text("\n".join(lines))
    log = rg.read_feature_log(path, query="search")
    assert log.query[0] == "first"
    assert any("without 'search': the query is told otherwise" in note for note in log.notes)


def test_files_that_are_no_text_are_refused(made, tmp_path):
    data, X, model, _ = made
    read(tmp_path, data, X, emulated(model, X))
    (tmp_path / "web.onnx").write_bytes(b"\x08\x08\x12\xba\xff")
    with pytest.raises(rg.ModelFileError, match="give the model that it was converted from"):
        rg.parity(tmp_path / "web.onnx", tmp_path / "log.json")


def test_scores_that_fit_by_chance_are_no_proof(made):
    """Two scores of 1 are no rounding, and one score for all documents fits any function of it."""
    data, X, model, _ = made

    def causes(scores, by=model):
        n = len(scores)
        docids = np.array([f"d{row}" for row in range(n)])
        log = rg.FeatureLog("table", tuple(NAMES), X[:n], data.qid[:n], docids, scores)
        return [(c.name, c.detail) for c in rg.parity(by, log, engine=ENGINE).causes]

    for n in (1, 2, 5):
        near = emulated(model, X[:n])
        assert causes(near) == []
        assert "score-rounded" not in dict(causes(np.full(n, np.round(near[0]))))
        expected = "score-transformed" if np.unique(near).size > 1 else "unexplained"
        assert causes(np.exp(near))[0][0] == expected
    assert causes(np.zeros(len(X))) == [("scale", "all scores are 0")]
    constant = model.truncated(1)
    trees = constant.ensemble_
    constant.ensemble_ = replace(trees, value=np.zeros_like(trees.value))
    assert causes(np.ones(len(X)), constant)[0][0] == "unexplained"
