"""The files that ``tools.damage`` changes: a small one of every kind that is written or read."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rankgrove as rg
from rankgrove.data.position_files import read_positions
from rankgrove.tuning.result_store import ResultStore

N_FEATURES = 6
WITH_CATEGORIES = ("categories", "encoded")  # models of `some_categories`


class Absurd(Exception):
    """Scores that are not finite, or not one per row."""


@dataclass
class Subject:
    """A file, and how it is used.

    Attributes
    ----------
    name : its kind
    blob : the file
    use : uses a file of that kind; returns equal results for files of equal content
    suffix : ending of the file's name
    has_checksums : whether damage must be noticed
    """

    name: str
    blob: bytes
    use: Callable[[Path], Any]
    suffix: str
    has_checksums: bool
    result: Any = None

    @property
    def is_model(self) -> bool:
        """Whether it has the form of a model file."""
        return self.name.startswith(("model", "checkpoint"))

    @property
    def is_text(self) -> bool:
        """Whether it is text."""
        return self.name.startswith("text")

    @property
    def is_table(self) -> bool:
        """Whether it is a binary table."""
        return self.name.startswith("table")


def some_data(n_queries: int = 12) -> rg.QueryDataset:
    """Return the data that models are trained on and score."""
    return rg.make_web(n_queries, n_docs=8, n_features=N_FEATURES, seed=3)


def some_categories(n_queries: int = 12) -> rg.QueryDataset:
    """Return data with categories: feature 2 has names, feature 3 codes without names."""
    data = some_data(n_queries)
    X = np.array(data.X)
    X[:, 1:3] = np.random.default_rng(4).integers(0, (5, 40), (data.n_rows, 2))
    X[::9, 1] = np.nan
    names = {2: ["acme", "bolt", "core", "dyne", "each"], 3: None}
    return rg.QueryDataset(X, data.y, data.qid, categorical=names)


def make_models(folder: Path) -> dict[str, Path]:
    """Write one small model of every kind, and return the files by kind."""
    data = some_data()
    trees: dict[str, Any] = {"n_leaves": 4, "min_leaf": 2, "n_threads": 1}
    lambdamart = rg.LambdaMART(n_trees=4, **trees).fit(data, valid=some_data(6))
    mart = rg.MART(n_trees=3, **trees).fit(data)
    net = rg.LambdaRank(hidden=3, n_epochs=2, n_threads=1).fit(data)
    bag = rg.BaggedRanker(rg.LambdaMART(n_trees=2, **trees), n_models=3, n_threads=1).fit(data)
    both = rg.CombinedRanker([lambdamart, mart]).fit(data)
    stack = rg.StackedRanker([lambdamart, net], n_epochs=2, n_threads=1).fit(data)
    submodel = rg.LambdaMART(n_trees=2, submodel=mart, **trees).fit(data)
    linear = {"n_threads": 1}
    rg.convert(lambdamart, folder / "lightgbm.txt", "lightgbm")
    rankers = {
        "lambdamart": lambdamart,
        "mart": mart,
        "mcrank": rg.McRank(n_trees=2, **trees).fit(data),
        "lambdarank": net,
        "ranknet": rg.RankNet(hidden=(3, 2), n_epochs=1, n_threads=1).fit(data),
        "listnet": rg.ListNet(n_threads=1).fit(data),
        "boltzrank": rg.BoltzRank(n_epochs=1, n_threads=1).fit(data),
        "auto": rg.AutoRanker(n_fits=10, exportable=True, n_threads=1).fit(data),
        "bag": bag,
        "bag-borda": rg.BaggedRanker(
            rg.LambdaMART(n_trees=2, **trees), n_models=2, combine="borda", n_threads=1
        ).fit(data),
        "bag-prepared": rg.BaggedRanker(
            rg.PreparedRanker(
                rg.RankNet(hidden=2, n_epochs=1), normalise="zscore", transform="log1p"
            ),
            n_models=2,
            n_threads=1,
        ).fit(data),
        "bag-pruned": rg.prune(bag, data, tolerance=0.5).ranker,
        "combination": both,
        "early-exit": rg.EarlyExitRanker(mart, "ndcg@5", max_loss=1.0, folds=2).fit(data),
        "calibrated": rg.calibrate(lambdamart, data, folds=2, samples=20),
        "calibrated-sigmoid": rg.calibrate(mart, data, method="sigmoid", folds=2, samples=20),
        "stacked": stack,
        "trees": rg.load(folder / "lightgbm.txt"),
        "submodel": submodel,
        "nested": rg.CombinedRanker([rg.CombinedRanker([bag, submodel]).fit(data), stack]).fit(
            data
        ),
        "trada": rg.Trada(lambdamart, beta=1.0, n_threads=1).fit(data),
        "pruned": rg.prune(lambdamart, data, tolerance=0.5).ranker,
        "randomforest": rg.RandomForest(n_trees=3, n_threads=1).fit(data),
        "gbrank": rg.GBRank(n_trees=2, n_threads=1).fit(data),
        "rankboost": rg.RankBoost(n_trees=3, n_threads=1).fit(data),
        "frank": rg.FRank(n_trees=3, n_threads=1).fit(data),
        "adarank": rg.AdaRank(n_rounds=5, n_threads=1).fit(data),
        "svm-map": rg.SVMMap(C=1.0, **linear).fit(data),
        "svm-thresholds": rg.SVMMap(C=1.0, thresholds=4, **linear).fit(data),
        "ranksvm": rg.RankSVM(C=1.0, **linear).fit(data),
        "coordinate-ascent": rg.CoordinateAscent(n_threads=1).fit(data),
        "smoothrank": rg.SmoothRank(n_threads=1).fit(data),
        "crr": rg.CRR(n_threads=1).fit(data),
        "categories": rg.LambdaMART(
            n_trees=4,
            monotone={1: 1, 4: -1},
            interactions=[[1, 2, 3], [2, 4, 5]],
            category_rules={"min_rows": 1, "penalty": 0.0},
            **trees,
        ).fit(some_categories(), valid=some_categories(6)),
        "encoded": rg.PreparedRanker(
            rg.RankNet(hidden=2, n_epochs=1, n_threads=1), encode="auto", normalise="zscore"
        ).fit(some_categories()),
    }
    paths = {name: folder / f"{name}.rg" for name in rankers}
    for name, ranker in rankers.items():
        ranker.save(paths[name])
    return paths


def _digest(*arrays: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _use_model(data: rg.QueryDataset) -> Callable[[Path], str]:
    def use(path: Path) -> str:
        model = rg.load(path)
        scores = model.predict(data, n_threads=1)
        if scores.shape != (data.n_rows,) or not np.isfinite(scores).all():
            raise Absurd(f"scores of shape {scores.shape}, {scores.ravel()[:3]}")
        model.predict_top(data, 3, n_threads=1)
        str(model), model.get_params(), model.to_state()
        if hasattr(model, "summary"):
            model.summary()
        if model.flat() is not None:
            model.scorer().predict(data.X)
            model.feature_importances_ if hasattr(model, "feature_importances_") else None
        return _digest(scores)

    return use


def _checkpointed(
    make: Callable[[Path, int], Any], data: rg.QueryDataset
) -> tuple[bytes, Callable[[Path], str]]:
    """Return a checkpoint of half a run, and a function that continues from a checkpoint."""

    def use(path: Path) -> str:
        return _digest(make(path, 4).fit(data).predict(data, n_threads=1))

    place = Path(os.environ.get("TMPDIR", "/tmp"), f"rg-damage-{os.getpid()}.rg")
    make(place, 2).fit(data)
    blob = place.read_bytes()
    place.unlink()
    return blob, use


def _use_dataset(read: Callable[[Path], rg.QueryDataset]) -> Callable[[Path], str]:
    def use(path: Path) -> str:
        data = read(path)
        docid = [] if data.docid is None else data.docid.tolist()
        return _digest(data.X, data.y, data.query_of_row) + str([*data.query_ids.tolist(), *docid])

    return use


def _use_cache(text: Path) -> Callable[[Path], str]:
    def use(path: Path) -> str:
        cache_file = text.with_name(f"{text.name}.rgcache")
        if path != cache_file:
            cache_file.write_bytes(path.read_bytes())
        return _use_dataset(lambda _: rg.read_letor(text, cache=True, n_threads=1))(path)

    return use


def _use_clicks(path: Path) -> str:
    log = rg.read_clicks(path)
    str(log.summary()), str(log.suspects())
    check = rg.check_clicks(log)
    str(check), json.dumps(check.as_dict())
    names = [str(log.query_ids.tolist()), str(log.document_ids.tolist())]
    return _digest(log.pair, log.position, log.click, log.session_ptr) + "".join(names)


def _response(query: int, document: int) -> str:
    """Return a line of a log of an Elasticsearch plugin: one hit, with one of two features."""
    features = [{"name": "f1", "value": document / 7}, {"name": "f2"}]
    hit = {"_id": f"d{document}", "_score": document / 3}
    hit["fields"] = {"_ltrlog": [{"main": features}]}
    return json.dumps({"query_id": f"q{query}", "hits": {"hits": [hit]}}) + "\n"


def _use_feature_log(path: Path) -> str:
    log = rg.read_feature_log(path)
    return _digest(log.values, log.score) + str(log.query.tolist() + log.document.tolist())


def _use_positions(path: Path) -> str:
    read = read_positions(path, 40)
    return _digest(*read.arrays(), *([] if read.pair is None else [read.pair]))


def _use_store(path: Path) -> str:
    store = ResultStore(path, {"study": "damage"})
    # a line cut short by a kill is dropped, and its result is computed again
    return json.dumps([store[f"r{i}"] if f"r{i}" in store else {"x": i / 3} for i in range(8)])


def make_subjects(folder: Path, wanted: tuple[str, ...] = ("",)) -> list[Subject]:
    """Make the files whose kinds have a wanted prefix, and record their results when whole."""
    data, with_categories = some_data(5), some_categories(5)
    subjects = []
    if any(prefix.startswith("model"[: len(prefix)]) for prefix in wanted):
        for name, path in make_models(folder).items():
            use = _use_model(with_categories if name in WITH_CATEGORIES else data)
            subjects.append(Subject(f"model:{name}", path.read_bytes(), use, ".rg", True))
    trees = {"n_leaves": 4, "min_leaf": 2, "n_threads": 1, "checkpoint_every": 1}
    runs: dict[str, tuple[Callable[[Path, int], Any], rg.QueryDataset]] = {
        "checkpoint:trees": (
            lambda path, n: rg.LambdaMART(n_trees=n, checkpoint=path, **trees),
            some_data(),
        ),
        "checkpoint:categories": (
            lambda path, n: rg.LambdaMART(n_trees=n, checkpoint=path, **trees),
            some_categories(),
        ),
        "checkpoint:net": (
            lambda path, n: rg.LambdaRank(
                hidden=2, n_epochs=n, n_threads=1, checkpoint=path, checkpoint_every=1
            ),
            some_data(),
        ),
    }
    for name, (make, train) in runs.items():
        if name.startswith(wanted):
            blob, use = _checkpointed(make, train)
            subjects.append(Subject(name, blob, use, ".rg", True))
    subjects += _data_subjects(folder, data)
    subjects = [subject for subject in subjects if subject.name.startswith(wanted)]
    for subject in subjects:
        path = folder / f"whole{subject.suffix}"
        path.write_bytes(subject.blob)
        subject.result = subject.use(path)
    return subjects


def _data_subjects(folder: Path, data: rg.QueryDataset) -> list[Subject]:
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    text, store = folder / "data.txt", folder / "results.jsonl"
    rg.write_letor(data, text)
    os.utime(text, (1e9, 1e9))
    rg.read_letor(text, cache=True)
    results = ResultStore(store, {"study": "damage"})
    for i in range(8):
        results.put(f"r{i}", {"x": i / 3})
    columns = {"qid": data.query_ids[data.query_of_row], "label": data.y}
    columns |= {f"f{j}": data.X[:, j] for j in range(N_FEATURES)}
    table = pyarrow.table(columns)
    pyarrow.csv.write_csv(table, folder / "data.csv")
    pyarrow.parquet.write_table(table, folder / "data.parquet")
    rows = list(zip(data.query_of_row.tolist(), range(data.n_rows), strict=True))
    run = "".join(f"q{q} Q0 d{d} {d + 1} {-d} tag\n" for q, d in rows)
    qrels = "".join(f"q{q} 0 d{d} {d % 3}\n" for q, d in rows)
    cache = folder / "data.txt.rgcache"
    log = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=30, seed=1)
    for name in ("clicks.csv", "clicks.parquet"):
        log.write(folder / name)
    lines = [f"{i % 8 + 1}\t{i % 11}\t{'phone' if i < 16 else 'desktop'}\n" for i in range(40)]
    scored = "".join(_response(q, d) for q, d in rows[:20])
    places = "".join(["position\tpair\tcontext\n", *lines])
    letor = _use_dataset(lambda path: rg.read_letor(path, n_threads=1))
    tabular = _use_dataset(rg.read_table)
    return [
        Subject("cache:letor", cache.read_bytes(), _use_cache(text), ".rgcache", True),
        Subject("store:results", store.read_bytes(), _use_store, ".jsonl", True),
        Subject("text:letor", text.read_bytes(), letor, ".txt", False),
        Subject("text:csv", (folder / "data.csv").read_bytes(), tabular, ".csv", False),
        Subject("text:run", run.encode(), lambda p: str(rg.read_run(p)), ".run", False),
        Subject("text:qrels", qrels.encode(), lambda p: str(rg.read_qrels(p)), ".qrels", False),
        Subject("text:clicks", (folder / "clicks.csv").read_bytes(), _use_clicks, ".csv", False),
        Subject("text:feature-log", scored.encode(), _use_feature_log, ".json", False),
        Subject("text:positions", places.encode(), _use_positions, ".positions", False),
        Subject(
            "table:clicks",
            (folder / "clicks.parquet").read_bytes(),
            _use_clicks,
            ".parquet",
            False,
        ),
        Subject(
            "table:parquet", (folder / "data.parquet").read_bytes(), tabular, ".parquet", False
        ),
    ]
