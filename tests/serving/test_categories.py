"""Categories in requests to the service: by name."""

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.serving.problems import Problem
from rankgrove.serving.registry import Registry
from rankgrove.serving.requests import RequestForm

FORM = RequestForm(
    ["x", "brand", "code"], 10, absent="zero", categories={1: ("core", "7", "true"), 2: None}
)


def features(*rows):
    return FORM.read({"documents": [{"features": row} for row in rows]}).features


def test_names_and_whole_numbers():
    read = features(
        [1, "core", 3],
        {"x": 2, "brand": "7"},
        {"brand": 7},
        [0, 7.0, 0],
        [0, True, 0],
        [0, "never seen", 0],
        [0, None, None],
        {"x": 1},
    )
    nan = np.nan
    expected = [
        [1, 0, 3],
        [2, 1, 0],
        [0, 1, 0],
        [0, 1, 0],
        [0, 2, 0],
        [0, nan, 0],
        [0, nan, nan],
        [1, nan, 0],  # what is not named is 0, but a category that is not named is missing
    ]
    assert np.array_equal(read, expected, equal_nan=True)


@pytest.mark.parametrize(
    ("row", "path"),
    [
        ([0, 0.5, 0], "documents[0].features[1]"),
        ({"brand": ["core"]}, "documents[0].features.brand"),
        ({"brand": "core", "x": "core"}, "documents[0].features.x"),
        ([0, "core", "core"], "documents[0].features[2]"),
        ([0, float("inf"), 0], "documents[0].features[1]"),
    ],
)
def test_values_that_are_refused(row, path):
    with pytest.raises(Problem) as e:
        features(row)
    assert e.value.content["path"] == path


def test_served_models(tmp_path):
    n = 80
    brands = np.array(["acme", "bolt", "core"])[np.arange(n) % 3]
    frame = {"qid": np.arange(n) // 8, "label": (np.arange(n) % 3 == 1) * 1, "brand": brands}
    data = rg.QueryDataset.from_frame(frame | {"x": np.arange(n) % 7})
    models = {
        "trees": rg.LambdaMART(n_trees=3, min_leaf=1),
        "net": rg.PreparedRanker(rg.RankNet(n_epochs=1), encode="auto"),
        "bag": rg.BaggedRanker(rg.LambdaMART(n_trees=2, min_leaf=1), n_models=2),
    }
    for name, model in models.items():
        model.fit(data).save(tmp_path / f"{name}.rg")
    registry = Registry({name: tmp_path / f"{name}.rg" for name in models}, 100)
    few = data.select([0])
    rows = [[str(brand), float(x)] for brand, x in zip(brands[:8], few.column("x"), strict=True)]
    for name, model in models.items():
        served = registry.get(name)
        request = served.form.read({"documents": [{"features": row} for row in rows]})
        scores = served.scores(request.features)
        assert scores == pytest.approx(model.predict(few), abs=1e-12)
        assert served.about()["categorical"] == {"brand": 3}
