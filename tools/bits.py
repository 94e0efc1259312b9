"""Digests of trained rankers of every kind: ``python -m tools.bits check``.

Refactoring must not change a bit of any model. ``write`` records a digest of the scores
and of the model file's content for every kind of ranker, trained in many ways; ``check`` trains
them again and names those that differ. The digests belong to one platform (processor, NumPy and
Numba): another one may round elementary functions differently, and is recorded separately. A
record may have the word of the scores alone, where files got more content on another platform.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
import numpy as np
import scipy.linalg  # noqa: F401  (its BLAS is loaded then)
from threadpoolctl import threadpool_info

import rankgrove as rg

RECORD = Path(__file__).resolve().parents[1] / "tests" / "bits.json"
Learn = Callable[[int], Any]  # number of threads -> a trained ranker


def platform() -> str:
    """Return what the bits of elementary functions and of matrix products may depend on."""
    cpu = llvmlite.binding.get_host_cpu_name()
    libraries = [info for info in threadpool_info() if info["user_api"] == "blas"]
    blas = "/".join(sorted({str(info.get("architecture")) for info in libraries}))
    return f"{cpu}, numpy {np.__version__}, numba {numba.__version__}, BLAS {blas}"


def digest(*arrays: Any) -> str:
    """Return a short hash of the bytes of arrays."""
    total = hashlib.blake2b(digest_size=8)
    for array in arrays:
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def digest_of_ranker(ranker: Any, test: rg.QueryDataset) -> str:
    """Return a hash of a trained ranker's scores and of the content of its model file."""
    content, arrays = ranker.to_state()
    text = np.frombuffer(json.dumps(content, sort_keys=True, default=str).encode(), np.uint8)
    names = sorted(arrays)
    scores = digest(ranker.predict(test, n_threads=1))
    return f"{scores} {digest(text, *(arrays[name] for name in names))}"


def data_sets() -> dict[str, rg.QueryDataset]:
    """Return the data that the cases are trained and scored on."""
    train = rg.make_web(40, n_docs=25, n_features=12, seed=1)
    rng = np.random.default_rng(7)
    X = np.array(train.X, np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    weight = rng.random(train.n_rows) + 0.5
    query_weight = rng.random(train.n_queries) + 0.5
    test = rg.make_web(20, n_docs=25, n_features=12, seed=3)
    missing = rg.QueryDataset(X, train.y, train.qid, weight=weight, query_weight=query_weight)
    return {
        "train": train,
        "valid": rg.make_web(20, n_docs=25, n_features=12, seed=2),
        "test": test.with_base_score(rng.normal(size=test.n_rows)),
        "missing": missing,
        "holes": rg.QueryDataset(X, train.y, train.qid),
        "base": train.with_base_score(rng.normal(size=train.n_rows)),
    }


def with_categories(data: rg.QueryDataset, seed: int, n_many: int = 0) -> rg.QueryDataset:
    """Return data whose feature 2 has few categories, with names, and feature 3 many codes."""
    rng = np.random.default_rng(seed)
    X = np.array(data.X, np.float32)
    X[:, 1] = np.minimum(data.y + rng.integers(0, 5, data.n_rows), 6)
    X[rng.random(data.n_rows) < 0.1, 1] = np.nan
    names: dict[int, list[str] | None] = {2: list("abcdefg")}
    if n_many:
        X[:, 2] = rng.permutation(data.n_rows) % n_many
        names[3] = None
    return rg.QueryDataset(X, data.y, data.qid, categorical=names)


def category_cases(data: dict[str, rg.QueryDataset]) -> Iterator[tuple[str, Learn]]:
    """Yield rankers of categorical features: sets, orders by labels, constraints, encodings."""
    few_codes = with_categories(data["train"], 1)
    many_codes = with_categories(data["train"], 1, n_many=300)
    valid = with_categories(data["valid"], 2, n_many=300)
    few: dict[str, Any] = {"n_trees": 8, "n_leaves": 6, "min_leaf": 5, "random_state": 4}
    drawn: dict[str, Any] = {**few, "query_fraction": 0.6, "row_fraction": 0.7}
    constrained: dict[str, Any] = {
        **drawn, "monotone": {1: 1, 5: -1}, "interactions": [[1, 2, 4], [2, 3, 5, 6]],
    }  # fmt: skip
    yield "categories", lambda t: rg.LambdaMART(**few, n_threads=t).fit(few_codes)
    for split in ("newton", "mse"):
        yield (
            f"categories many {split}",
            lambda t, s=split: rg.LambdaMART(**drawn, split=s, n_threads=t).fit(
                many_codes, valid=valid
            ),
        )
    for growth in ("leafwise", "symmetric"):
        yield (
            f"categories constrained {growth}",
            lambda t, g=growth: rg.LambdaMART(**constrained, growth=g, n_threads=t).fit(many_codes),
        )
    yield (
        "categories encoded",
        lambda t: rg.PreparedRanker(rg.LambdaMART(**few, n_threads=t), encode="target").fit(
            many_codes, valid=valid
        ),
    )


def boosted_cases(data: dict[str, rg.QueryDataset]) -> Iterator[tuple[str, Learn]]:
    """Yield the names of boosted rankers, and functions that train them."""
    train, valid, missing = data["train"], data["valid"], data["missing"]
    few: dict[str, Any] = {"n_trees": 8, "n_leaves": 6, "min_leaf": 5}
    drawn: dict[str, Any] = {
        "query_fraction": 0.6, "row_fraction": 0.7, "feature_fraction": 0.5, "random_state": 4,
    }  # fmt: skip
    yield "lambdamart", lambda t: rg.LambdaMART(**few, n_threads=t).fit(train)
    for measure in ("map", "err", "mrr", "ndcg", "pairs", "dcg@5"):
        yield (
            f"lambdamart {measure}",
            lambda t, m=measure: rg.LambdaMART(m, **few, n_threads=t).fit(train, valid=valid),
        )
    yield "lambdamart papers", lambda t: rg.LambdaMART.papers(**few, n_threads=t).fit(train)
    yield "lambdamart missing", lambda t: rg.LambdaMART(**few, n_threads=t).fit(missing)
    yield (
        "lambdamart drawn",
        lambda t: rg.LambdaMART(**few, **drawn, n_threads=t).fit(
            missing, valid={"a": valid, "b": train}, valid_measures=["map", "ndcg@3"]
        ),
    )
    yield (
        "lambdamart early",
        lambda t: rg.LambdaMART(
            n_trees=60, n_leaves=12, early_stopping=5, overfitting_tolerance=0.01, n_threads=t
        ).fit(train, valid=valid),
    )
    for step in ("optimal", "optimal-newton"):
        yield (
            f"lambdamart {step}",
            lambda t, s=step: rg.LambdaMART(**few, step=s, n_threads=t).fit(train),
        )
    yield (
        "lambdamart step on valid",
        lambda t: rg.LambdaMART(**few, step="optimal", step_on="valid", n_threads=t).fit(
            train, valid=valid
        ),
    )
    pairs = np.array([[i, i + 1] for i in range(0, train.n_rows - 1, 2)])
    yield (
        "lambdamart fit_pairs",
        lambda t: rg.LambdaMART("pairs", **few, n_threads=t).fit_pairs(train.X, pairs, 0.8),
    )
    yield (
        "lambdamart smoothed",
        lambda t: rg.LambdaMART("map", **few, **drawn, smoothing=1.0, draws=6, n_threads=t).fit(
            missing, valid=valid
        ),
    )
    symmetric: dict[str, Any] = {**few, **drawn, "n_leaves": 8, "growth": "symmetric"}
    yield (
        "lambdamart symmetric",
        lambda t: rg.LambdaMART(**symmetric, n_threads=t).fit(missing, valid=valid),
    )
    yield (
        "mcrank symmetric",
        lambda t: rg.McRank(**symmetric, n_threads=t).fit(missing, valid=valid),
    )
    for loss in ("squared", "logistic", "balanced", "softmax", "query_squared"):
        yield (
            f"mart {loss}",
            lambda t, name=loss: rg.MART(name, **few, **drawn, n_threads=t).fit(
                missing, valid=valid
            ),
        )
    yield "mart rows", lambda t: rg.MART(**few, n_threads=t).fit(train.X, train.y)
    for form in ("classes", "ordinal"):
        yield (
            f"mcrank {form}",
            lambda t, name=form: rg.McRank(name, **few, n_threads=t).fit(missing, valid=valid),
        )
    for name in ("GBRank", "RankBoost", "FRank"):
        ranker = getattr(rg, name)
        yield name.lower(), lambda t, r=ranker: r(n_trees=8, n_threads=t).fit(missing, valid=valid)
    yield (
        "rankboost thresholds",
        lambda t: rg.RankBoost(n_trees=8, n_thresholds=10, spacing="quantile", n_threads=t).fit(
            train
        ),
    )
    for sample in ("queries", "rows"):
        yield (
            f"randomforest {sample}",
            lambda t, s=sample: rg.RandomForest(n_trees=8, sample=s, n_threads=t).fit(
                missing, valid=valid
            ),
        )


def derived_cases(data: dict[str, rg.QueryDataset]) -> Iterator[tuple[str, Learn]]:
    """Yield rankers made of others: submodels, bags, combinations, stacks, adapted, pruned."""
    train, valid, base_data = data["train"], data["valid"], data["base"]
    few: dict[str, Any] = {"n_trees": 6, "n_leaves": 5, "min_leaf": 5}
    mart = rg.MART(**few).fit(train)
    lambdamart = rg.LambdaMART("map", **few).fit(train)
    linear = rg.RankSVM().fit(train)
    for name, submodel in {"mart": mart, "ranksvm": linear}.items():
        for weight in (1.0, 0.5, "optimal"):
            yield (
                f"submodel {name} {weight}",
                lambda t, s=submodel, w=weight: rg.LambdaMART(
                    submodel=s, submodel_weight=w, query_fraction=0.5, **few, n_threads=t
                ).fit(train, valid=valid),
            )
    for ranker in (rg.GBRank, rg.RankBoost, rg.FRank):
        yield (
            f"submodel of {ranker.__name__}",
            lambda t, r=ranker: r(n_trees=5, submodel=mart, n_threads=t).fit(train, valid=valid),
        )
    yield (
        "submodel base_score",
        lambda t: rg.LambdaMART(submodel="base_score", **few, n_threads=t).fit(base_data),
    )
    for combine in ("minmax", "borda", "mean"):
        yield (
            f"bag {combine}",
            lambda t, c=combine: rg.BaggedRanker(
                rg.LambdaMART(**few), n_models=3, combine=c, n_threads=t
            ).fit(train, valid=valid),
        )
    yield (
        "bag of nets",
        lambda t: rg.BaggedRanker(rg.RankNet(hidden=3, n_epochs=2), n_models=2, n_threads=t).fit(
            train
        ),
    )
    members = [lambdamart, mart, linear]
    for method in ("cyclic", "powell"):
        yield (
            f"combination {method}",
            lambda t, m=method: rg.CombinedRanker(members, method=m, n_threads=t).fit(valid),
        )
    yield (
        "optimal combination",
        lambda t: rg.optimal_combination(lambdamart, mart, valid, "ndcg@10", n_threads=t).ranker,
    )
    yield (
        "early exit",
        lambda t: rg.EarlyExitRanker(
            rg.LambdaMART(n_trees=70, n_leaves=5).fit(train), "ndcg@5", max_loss=0.1, n_threads=t
        ).fit(valid),
    )
    for form in ("isotonic", "sigmoid"):
        yield (
            f"calibrated {form}",
            lambda t, m=form: rg.calibrate(lambdamart, valid, method=m, samples=20, n_threads=t),
        )
    yield "stack", lambda t: rg.StackedRanker(members, n_epochs=3, n_threads=t).fit(valid)
    for tune in ("responses", "splits"):
        yield (
            f"trada {tune}",
            lambda t, how=tune: rg.Trada(
                mart, beta=5.0, tune=how, extra_trees=4, trim=True, n_threads=t
            ).fit(valid, valid=train),
        )
    yield (
        "trada lambdas",
        lambda t: rg.Trada(lambdamart, beta="cv", betas=(1.0, 5.0), folds=2, n_threads=t).fit(
            valid
        ),
    )
    yield (
        "auto",
        lambda t: rg.AutoRanker(n_fits=20, n_threads=t).fit(train),
    )
    yield "pruned", lambda t: rg.prune(lambdamart, valid, tolerance=0.05, n_threads=t).ranker
    yield (
        "prepared",
        lambda t: rg.PreparedRanker(
            rg.LambdaMART(**few, n_threads=t), features=[1, 3, 5, 7], normalise="zscore"
        ).fit(train, valid=valid),
    )


def other_cases(data: dict[str, rg.QueryDataset]) -> Iterator[tuple[str, Learn]]:
    """Yield nets and linear rankers."""
    train, valid, missing = data["train"], data["valid"], data["missing"]
    pairs = np.array([[i, i + 1] for i in range(0, train.n_rows - 1, 2)])
    short: dict[str, Any] = {"n_epochs": 3, "hidden": 4}
    yield "ranknet", lambda t: rg.RankNet(**short, n_threads=t).fit(train, valid=valid)
    yield "ranknet missing", lambda t: rg.RankNet(**short, n_threads=t).fit(missing)
    yield "ranknet pairs", lambda t: rg.RankNet(**short, n_threads=t).fit_pairs(train.X, pairs)
    for measure in ("ndcg@10", "map"):
        yield (
            f"lambdarank {measure}",
            lambda t, m=measure: rg.LambdaRank(m, **short, n_threads=t).fit(train, valid=valid),
        )
    net = rg.RankNet(**short).fit(train)
    yield (
        "lambdarank smoothed",
        lambda t: rg.LambdaRank(**short, smoothing=1.0, n_threads=t).fit(train),
    )
    yield "lambdarank start", lambda t: rg.LambdaRank(**short, n_threads=t).fit(train, start=net)
    yield "listnet", lambda t: rg.ListNet(n_epochs=3, n_threads=t).fit(train, valid=valid)
    yield "boltzrank", lambda t: rg.BoltzRank(**short, n_threads=t).fit(train, valid=valid)
    for name in ("SVMMap", "SVMRoc", "SVMMrr", "SVMNdcg", "SVMAcc", "RankSVM"):
        ranker = getattr(rg, name)
        yield (
            name.lower(),
            lambda t, r=ranker: r(C=[0.1, 1.0], n_threads=t).fit(train, valid=valid),
        )
    yield (
        "svmmap thresholds",
        lambda t: rg.SVMMap(C=1.0, thresholds=4, form="n-slack", n_threads=t).fit(data["holes"]),
    )
    yield "ranksvm query", lambda t: rg.RankSVM(scaling="query", n_threads=t).fit(train)
    for name in ("CoordinateAscent", "SmoothRank", "CRR", "AdaRank"):
        ranker = getattr(rg, name)
        yield name.lower(), lambda t, r=ranker: r(n_threads=t).fit(data["holes"], valid=valid)


def cluster_cases(data: dict[str, rg.QueryDataset], folder: Path) -> Iterator[tuple[str, Learn]]:
    """Yield a fit of files on a local cluster: parts of the data on two workers."""
    train = data["train"]
    files = [folder / "a.txt", folder / "b.txt"]
    half = np.arange(train.n_queries) < train.n_queries // 2
    for path, part in zip(files, (half, ~half), strict=True):
        rg.write_letor(train.select(part), path)
    few: dict[str, Any] = {"n_trees": 5, "n_leaves": 6, "min_leaf": 5, "query_fraction": 0.7}
    yield (
        "cluster files",
        lambda t: rg.LambdaMART(**few, n_threads=t).fit_files(files, cluster="local"),
    )
    yield "one machine", lambda t: rg.LambdaMART(**few, n_threads=t).fit(rg.read_letor(files))


def all_digests(
    wanted: str = "", *, cluster: bool = True, threads: tuple[int, ...] = (1, 2)
) -> dict[str, str]:
    """Train all cases whose names contain `wanted`; return their digests by name and threads."""
    data = data_sets()
    digests = {}
    with tempfile.TemporaryDirectory() as name:
        cases = [*boosted_cases(data), *derived_cases(data), *other_cases(data)]
        cases += category_cases(data)
        if cluster:
            cases += cluster_cases(data, Path(name))
        for case, learn in cases:
            if wanted not in case:
                continue
            for n_threads in threads:
                ranker = learn(n_threads)
                path = Path(name) / "model.rg"
                ranker.save(path)
                loaded, test = rg.load(path), data["test"]
                if loaded.categories_:
                    test = with_categories(test, 3, n_many=300 * (2 in loaded.categories_))
                digests[f"{case}, {n_threads}"] = digest_of_ranker(loaded, test)
    return digests


def differences(record: dict[str, str], digests: dict[str, str]) -> list[str]:
    """Return the cases whose digests differ from the record.

    A case that was added on another platform is not in the record of this one.
    """
    return [
        name
        for name, value in digests.items()
        if name in record and not value.startswith(record[name])
    ]


def main() -> int:
    """Record digests, or compare with those recorded."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--no-cluster", action="store_true", help="leave out the cluster's cases")
    options = parser.parse_args()
    records: dict[str, dict[str, str]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    digests = all_digests(options.only, cluster=not options.no_cluster)
    if options.action == "write":
        records.setdefault(platform(), {}).update(digests)
        RECORD.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n")
        print(f"{len(digests)} digests recorded for {platform()}")
        return 0
    record = records.get(platform(), {})
    different = differences(record, digests)
    unknown = sum(name not in record for name in digests)
    for name in different:
        print(f"differs: {name}")
    same = len(digests) - len(different) - unknown
    print(f"{same} of {len(digests)} digests are as recorded, {unknown} not recorded here")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
