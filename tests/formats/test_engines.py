"""RankLib, Solr and Elasticsearch LTR, by the mirrored evaluators of tests/reference/formats.py."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.errors import ModelFileError, ParameterError
from rankgrove.formats import ranklib, solr
from rankgrove.formats.write import Labels, encode
from tests.command import run_here as run
from tests.formats.made import random_ensemble, rows_for, same_trees, walked
from tests.reference import formats as mirrored

NAMES = list("abcd")
LABELS = Labels("web", NAMES, True)
ENSEMBLES = (
    st.integers(0, 2**32),
    st.integers(0, 6),
    st.sampled_from([2, 3, 40]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([0.0, -0.7]),
)


def filled(rows):
    """Rows as these programs see them: 0 where a value is missing."""
    return np.where(np.isnan(rows), np.float32(0), rows)


def single(trees):
    """The ensemble as it is with float32 thresholds, leaves and sums."""
    value = trees.value.astype(np.float32).astype(np.float64)
    base = float(np.float32(trees.base))
    return replace(trees.for_float32(), value=value, base=base, single=True)


@given(*ENSEMBLES)
@settings(max_examples=40)
def test_ranklib(seed, n_trees, leaves, dtype, base):
    trees = random_ensemble(seed, n_trees, leaves, dtype=dtype, base=base)
    written, _ = encode(trees, "ranklib", LABELS, zero=True)
    rows = rows_for(trees, seed, 60)
    expected = walked(single(trees), filled(rows))[0]
    np.testing.assert_array_equal(mirrored.ranklib(written.decode(), rows), expected)
    again = ranklib.read_text(written.decode())
    width = again.ensemble.n_features
    np.testing.assert_array_equal(walked(again.ensemble, rows[:, :width])[0], expected)
    second = ranklib.read_text(ranklib.write_text(again.ensemble))
    same_trees(second.ensemble, again.ensemble)


def test_a_ranklib_model_with_weights(tmp_path):
    text = """## LambdaMART
## No. of trees = 2
## No. of leaves = 3
## No. of threshold candidates = 256
## Learning rate = 0.1
## Stop early = 100

<ensemble>
	<tree id="1" weight="0.1">
		<split>
			<feature> 3 </feature>
			<threshold> 0.33333334 </threshold>
			<split pos="left">
				<output> 1.7999999523162842 </output>
			</split>
			<split pos="right">
				<feature> 1 </feature>
				<threshold> -2.5 </threshold>
				<split pos="left">
					<output> -0.3 </output>
				</split>
				<split pos="right">
					<output> 0.7 </output>
				</split>
			</split>
		</split>
	</tree>
	<tree id="2" weight="0.3">
		<split>
			<output> 2.9 </output>
		</split>
	</tree>
</ensemble>
"""
    (tmp_path / "model.xml").write_text(text)
    model = rg.load(tmp_path / "model.xml")
    rng = np.random.default_rng(1)
    rows = (rng.normal(size=(300, 3)) * 3).astype(np.float32)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    rows[:2, 2] = np.float32(0.33333334), np.nextafter(np.float32(0.33333334), np.float32(1))
    np.testing.assert_array_equal(model.predict(rows), mirrored.ranklib(text, rows))
    # it does not know how many features there are: more do not matter
    wide = np.hstack([rows, rng.normal(size=(300, 2))])
    np.testing.assert_array_equal(model.predict(wide), model.predict(rows))
    with pytest.raises(rg.DataError, match="3 features"):
        model.predict(rows[:, :2])
    model.save(tmp_path / "model.rg")
    again = rg.load(tmp_path / "model.rg")
    np.testing.assert_array_equal(again.predict(wide), model.predict(rows))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '<!DOCTYPE e [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><ensemble>&b;</ensemble>',
            "document type",
        ),
        ("<ensemble><tree></tree></ensemble>", "no root"),
        ("<ensemble><tree><split></split></tree></ensemble>", "neither children nor an output"),
        (
            "<ensemble><tree><split><feature>0</feature></split></tree></ensemble>",
            "'feature' must be a whole number",
        ),
        ("<ensemble><feature>1</feature></ensemble>", "<feature> cannot be in <ensemble>"),
        ("<ensemble><tree>", "damaged or truncated"),
    ],
)
def test_what_ranklib_cannot_have_meant(text, message, tmp_path):
    (tmp_path / "m.xml").write_text(text)
    with pytest.raises(ModelFileError, match=rf"m\.xml: .*{message}"):
        rg.load(tmp_path / "m.xml")


@given(*ENSEMBLES)
@settings(max_examples=40)
def test_solr(seed, n_trees, leaves, dtype, base):
    trees = random_ensemble(seed, n_trees, leaves, dtype=dtype, base=base)
    written, notes = encode(trees, "solr", LABELS, zero=True)
    rows = rows_for(trees, seed, 60)
    exact = single(trees)
    if notes:  # thresholds that 1e-6 cannot be taken from: what Solr makes of them
        assert "cannot be written exactly" in notes[0]
        exact = replace(exact, threshold=solr.reached(solr.written(exact.threshold)))
    expected = walked(exact, filled(rows))[0]
    np.testing.assert_array_equal(mirrored.solr(written.decode(), NAMES, rows), expected)
    again = solr.read_document(json.loads(written))
    columns = [NAMES.index(name) for name in again.feature_names or ()]
    np.testing.assert_array_equal(walked(again.ensemble, filled(rows)[:, columns])[0], expected)


def test_a_solr_model_that_others_wrote(tmp_path, caplog):
    """Java's numbers, weights, missing branches and features that are not extracted."""
    leaf = {"value": "65"}
    device = {"feature": "device", "threshold": "0f", "missing": "left", "left": {"value": 50},
              "right": leaf}  # fmt: skip
    gone = {"feature": "gone", "threshold": "1", "left": leaf, "right": leaf}
    root = {"feature": "title", "threshold": "0.5f", "left": {"value": "-100"}, "right": device}
    document = {
        "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
        "name": "m",
        "features": [{"name": "title"}, {"name": "device"}],
        "params": {
            "isNullSameAsZero": False,
            "trees": [{"weight": "0.1f", "root": root}, {"weight": 2, "root": gone}],
        },
    }
    path = tmp_path / "m.json"
    path.write_text(json.dumps(document))
    model = rg.load(path)
    assert "in the order of its list (title, device)" in caplog.text
    X = np.array([[0, 0], [1, 0], [1, 1], [1, np.nan], [np.nan, np.nan]], np.float32)
    low, middle, high = (float(np.float32(0.1) * np.float32(v)) for v in (-100, 50, 65))
    assert model.predict(X).tolist() == [low, middle, high, middle, middle]
    document["params"].pop("isNullSameAsZero")
    path.write_text(json.dumps(document))
    assert rg.load(path).predict(X).tolist() == [low, middle, high, middle, low]
    document["features"][0]["norm"] = {"class": "org.apache.solr.ltr.norm.MinMaxNormalizer"}
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=r"m\.json: .*'title' is normalised by Solr"):
        rg.load(path)
    document["class"] = "org.apache.solr.ltr.model.LinearModel"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match=r"it is Solr's LinearModel; only Solr's"):
        rg.load(path)


def test_solrs_features_without_names_are_taken_by_number(tmp_path, caplog):
    """The file lists used features alone; text has all columns."""
    X = np.random.default_rng(1).normal(size=(60, 12)).astype(np.float32)
    y = (X[:, 4] > 0).astype(int) + (X[:, 10] > 0.3)
    rg.write_letor(rg.QueryDataset(X, y, qid=np.repeat(np.arange(6), 10)), tmp_path / "d.txt")
    data = rg.read_letor(tmp_path / "d.txt")
    model = rg.LambdaMART(n_trees=4, n_leaves=3, min_leaf=2).fit(data)
    path = tmp_path / "m.json"
    rg.convert(model, path, to="solr")
    names = [one["name"] for one in json.loads(path.read_text())["features"]]
    assert names != [f"f{j + 1}" for j in range(len(names))]
    caplog.clear()
    again = rg.load(path)
    assert not caplog.text
    np.testing.assert_allclose(again.predict(data), model.predict(data), rtol=1e-6)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-6)
    again.save(tmp_path / "m.rg")
    np.testing.assert_array_equal(rg.load(tmp_path / "m.rg").predict(data), again.predict(data))

    names = [f"name{j}" for j in range(12)]
    rg.convert(model, path, to="solr", features=names)
    listed = [one["name"] for one in json.loads(path.read_text())["features"]]
    caplog.clear()
    again = rg.load(path)
    assert f"({listed[0]} is column 1, {listed[1]} is column 2" in caplog.text
    with pytest.raises(rg.DataError, match=rf"names .* features \({listed[0]}, .* text has 12"):
        again.predict(data)
    _, said = run("evaluate", "d.txt", "-s", "m.json", cwd=tmp_path, status=2)
    assert "it is not known which is which" in said
    columns = [names.index(name) for name in listed]
    named = rg.QueryDataset(X[:, columns], y, data.qid, feature_names=listed)
    np.testing.assert_allclose(again.predict(named), model.predict(data), rtol=1e-6)


def test_solrs_thresholds_are_ours_wherever_they_can_be():
    rng = np.random.default_rng(1)
    some = (rng.normal(size=20000) * 10.0 ** rng.uniform(-3, 8, 20000)).astype(np.float32)
    some = some[np.abs(some) > 1e-4]
    np.testing.assert_array_equal(solr.reached(solr.written(some)), some)
    tiny = (rng.normal(size=20000) * 10.0 ** rng.uniform(-40, -3, 20000)).astype(np.float32)
    error = np.abs(solr.reached(solr.written(tiny)).astype(np.float64) - tiny)
    assert error.max() < 1e-10
    assert solr.reached(solr.written(np.float32([np.inf])))[0] == np.inf


@given(*ENSEMBLES, st.booleans())
@settings(max_examples=40)
def test_elasticsearch(seed, n_trees, leaves, dtype, base, shift):
    trees = random_ensemble(seed, n_trees, leaves, dtype=dtype, base=base)
    written, notes = encode(trees, "elasticsearch", LABELS, zero=True, shift=shift)
    rows = rows_for(trees, seed, 60)
    found = mirrored.elasticsearch(written.decode(), NAMES, rows)
    expected = walked(single(trees), filled(rows))[0]
    if not shift:
        np.testing.assert_array_equal(found, expected)
        assert notes == []
        return
    assert (found >= 0).all()
    added = float(notes[0].split("higher by ")[1].split(",")[0])
    np.testing.assert_allclose(found - added, expected, atol=1e-5 * max(1.0, abs(added)))


def test_the_shift_is_the_least_score_that_is_possible():
    trees = random_ensemble(5, 4, 8)
    _, notes = encode(trees, "elasticsearch", LABELS, zero=True)
    lowest = sum(trees.tree(t).value.min() for t in range(4))
    assert float(notes[0].split("higher by ")[1].split(",")[0]) == pytest.approx(-lowest, rel=1e-5)
    body = json.loads(encode(trees, "elasticsearch", LABELS, zero=True)[0])
    assert body["model"]["name"] == "web"
    for to in ("lightgbm", "solr"):  # any trees can be shifted
        written, notes = encode(trees, to, LABELS, zero=True, shift=True)
        assert "higher by" in notes[0]
    assert (mirrored.solr(written.decode(), NAMES, rows_for(trees, 1)) >= 0).all()


@pytest.mark.parametrize("to", ["ranklib", "solr"])
def test_missing_values_that_are_not_zero_are_not_lost_unasked(to):
    trees = random_ensemble(5, 4, 8)
    with pytest.raises(ParameterError, match=r"treats a missing value as 0, but \d+ splits of"):
        encode(trees, to, LABELS)
    agreeing = replace(trees, missing_left=trees.threshold >= 0)
    assert encode(agreeing, to, LABELS)[0] == encode(trees, to, LABELS, zero=True)[0]


@pytest.mark.parametrize("to", ["ranklib", "solr", "elasticsearch", "python", "c"])
def test_several_scores_a_row_are_refused(to):
    trees = random_ensemble(5, 4, 8, n_columns=3)
    with pytest.raises(ParameterError, match=r"3 scores per row.*to='lightgbm', to='xgboost' or"):
        encode(trees, to, LABELS)


@pytest.mark.slow
def test_deep_trees_do_not_overflow():
    from rankgrove.formats.foreign import TreeParts
    from rankgrove.model.ensemble import Ensemble

    parts, place = TreeParts(), None
    for level in range(3000):
        node = parts.split(place, 0, float(level), False)
        parts.leaf((node, True), float(level))
        place = (node, False)
    parts.leaf(place, -1.0)
    trees = Ensemble.from_trees([parts.tree(np.float32)], 4)
    trees = replace(trees, missing_left=trees.threshold >= 0)
    same_trees(ranklib.read_text(ranklib.write_text(trees)).ensemble,
               replace(trees, n_features=1, single=True))  # fmt: skip
    for to in ("solr", "elasticsearch", "vespa"):
        with pytest.raises(ParameterError, match="too deep"):
            encode(trees, to, LABELS)
