"""Nanoseconds per document and tree, for batches and single queries, against all installed peers.

A LightGBM model is trained on web-like data; rankgrove, onnxruntime, treelite, tl2cgen and lleaves
score with its trees, XGBoost with its own model of the same size. Training, converting and
compiling models is not timed; `--models` keeps them for the next run. One thread is measured in
processor time, two in wall time.

    python -m benchmarks.scoring [--trees 500] [--leaves 32] [--rounds 5] [--models FOLDER]
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import logging
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import best_times
from benchmarks.weblike import weblike
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers.load import load
from rankgrove.scoring.score import score
from rankgrove.scoring.scorer import Scorer

Predict = Callable[[np.ndarray], Any]
QUERY = 100  # documents
THREADS = (1, 2)
ROWS = "LightGBM, row by row"  # for queries only


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--leaves", type=int, default=32)
    parser.add_argument("--docs", type=int, default=3_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", type=Path, help="folder to keep models in")
    parser.add_argument("--only", default="", help="peers to compare with, as in LightGBM,XGBoost")
    args = parser.parse_args()
    if args.docs < QUERY:
        parser.error(f"--docs must be {QUERY} or more, one query of documents. Got {args.docs}.")
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with contextlib.ExitStack() as stack:
        folder = args.models or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(exist_ok=True)
        compare(folder / f"{args.trees}x{args.leaves}", args)


def compare(stem: Path, args: argparse.Namespace) -> None:
    X = weblike(-(-args.docs // 120), seed=2)[0][: args.docs]
    lightgbm_model(stem, args.trees, args.leaves)
    trees = load(stem.with_suffix(".lightgbm.txt")).ensemble_
    pairs = {"batch": X.shape[0] * trees.n_trees, "query": QUERY * trees.n_trees}
    times: dict[tuple[str, int], dict[str, float]] = {}
    contenders = {"rankgrove": ours(trees), **peers(stem, args, trees)}
    check(X, contenders)
    queries = cut(X[: 10 * QUERY], QUERY)
    for threads in THREADS:
        # processor time of one thread is reliable on a busy machine too
        clock = time.process_time if threads == 1 else time.perf_counter
        ready = {name: make(threads) for name, make in contenders.items()}
        batch = {name: partial(predict, X) for name, predict in ready.items() if name != ROWS}
        times["batch", threads] = best_times(batch, args.rounds, clock)
        single = {name: partial(one_by_one, predict, queries) for name, predict in ready.items()}
        totals = best_times(single, 2 * args.rounds, clock)
        times["query", threads] = {name: s / len(queries) for name, s in totals.items()}
    columns = list(times)
    print(f"{args.trees} trees x {args.leaves} leaves x {X.shape[1]} features,", end=" ")
    print(f"batch of {args.docs:,}, queries of {QUERY}: ns per document and tree (x rankgrove's)")
    print(f"{'':<24}", *(f"{kind}, {t} thread{'s' * (t > 1)}".rjust(18) for kind, t in columns))
    for name in contenders:
        cells = []
        for kind, t in columns:
            seconds = times[kind, t].get(name, np.nan)
            ratio = seconds / times[kind, t]["rankgrove"]
            text = f"{1e9 * seconds / pairs[kind]:9.2f} ({ratio:5.1f})"
            cells.append(("" if np.isnan(seconds) else text).rjust(18))
        print(f"{name:<24}", *cells)
    us = 1e6 * times["query", 1]["rankgrove"]
    print(f"a query of {QUERY} documents: {us:.1f} microseconds")
    early_exit(trees, X, args.rounds)


def cut(X: np.ndarray, size: int) -> list[np.ndarray]:
    """Return the rows as queries of `size` documents, without the remainder."""
    return [X[i : i + size] for i in range(0, len(X) - size + 1, size)]


def one_by_one(predict: Predict, queries: list[np.ndarray]) -> None:
    for query in queries:
        predict(query)


def check(X: np.ndarray, contenders: dict[str, Any]) -> None:
    expected = np.asarray(contenders["rankgrove"](1)(X[:500]))
    for name, make in contenders.items():
        scores = np.asarray(make(1)(X[:500])).ravel()
        if name != "XGBoost":
            print(f"  {name:<22} largest difference {abs(scores - expected).max():.1e}", flush=True)


def early_exit(trees: Ensemble, X: np.ndarray, rounds: int) -> None:
    scorer = Scorer(trees)
    for size, k in ((100, 10), (1000, 10)):
        queries = cut(X[:3000], size)
        if not queries:
            print(f"top {k} of {size:,}: needs --docs {size} or more")
            continue
        saved = np.mean([scorer.top(query, k).saved for query in queries])
        best = best_times(
            {
                "top": lambda q=queries, k=k: [scorer.top(query, k) for query in q],
                "all": lambda q=queries, k=k: [
                    np.argsort(-scorer.predict(query), kind="stable")[:k] for query in q
                ],
            },
            rounds,
            time.process_time,
        )
        print(
            f"top {k} of {size:,}: {saved:.1%} of the pairs skipped, "
            f"{best['top'] / best['all']:.2f} of the time of scoring all"
        )


def ours(trees: Ensemble) -> Callable[[int], Predict]:
    scorer = Scorer(trees)

    def make(threads: int) -> Predict:
        def predict(X: np.ndarray) -> np.ndarray:
            return scorer.predict(X) if X.shape[0] <= QUERY else score(trees, X, n_threads=threads)

        return predict

    return make


def peers(stem: Path, args: argparse.Namespace, trees: Ensemble) -> dict[str, Any]:
    """Return the peers that are installed and can read the model: functions of the thread count."""
    ready: dict[str, Any] = {}
    wanted = args.only.split(",") if args.only else []
    known = {
        "LightGBM": with_lightgbm,
        ROWS: with_lightgbm_rows,
        "XGBoost": with_xgboost,
        "onnxruntime": with_onnxruntime,
        "treelite": with_treelite,
        "tl2cgen": with_tl2cgen,
        "lleaves": with_lleaves,
    }
    for name, build in known.items():
        if wanted and not any(name.startswith(prefix) for prefix in wanted):
            continue
        start = time.perf_counter()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                ready[name] = build(stem, args)
            print(f"  {name:<22} ready after {time.perf_counter() - start:.1f} s", flush=True)
        except Exception as error:
            print(f"  {name:<22} left out: {type(error).__name__}: {str(error)[:120]}", flush=True)
    return ready


# -- models ---------------------------------------------------------------------------------------


def lightgbm_model(stem: Path, n_trees: int, n_leaves: int) -> Any:
    import lightgbm

    path = stem.with_suffix(".lightgbm.txt")
    if not path.exists():
        X, y, sizes = weblike(200, seed=1)
        data = lightgbm.Dataset(X, y, group=sizes)
        parameters = {
            "objective": "lambdarank",
            "num_leaves": n_leaves,
            "verbose": -1,
            "num_threads": 1,
        }
        lightgbm.train(parameters, data, n_trees).save_model(path)
    return lightgbm.Booster(model_file=path)


# -- peers ----------------------------------------------------------------------------------------


def with_lightgbm(stem: Path, args: argparse.Namespace) -> Callable[[int], Predict]:
    booster = lightgbm_model(stem, args.trees, args.leaves)
    return lambda threads: lambda X: booster.predict(X, raw_score=True, num_threads=threads)


def with_lightgbm_rows(stem: Path, args: argparse.Namespace) -> Callable[[int], Predict]:
    """LightGBM's fast call for a single row, once per row."""
    from lightgbm.basic import _LIB, _safe_call

    booster = lightgbm_model(stem, args.trees, args.leaves)
    prepared, length = ctypes.c_void_p(), ctypes.c_int64()
    float32, raw = 0, 1
    _safe_call(
        _LIB.LGBM_BoosterPredictForMatSingleRowFastInit(
            booster._handle, raw, 0, -1, float32, 136, b"num_threads=1", ctypes.byref(prepared)
        )
    )
    call, size = _LIB.LGBM_BoosterPredictForMatSingleRowFast, ctypes.byref(length)

    def predict(X: np.ndarray) -> np.ndarray:
        out = np.empty(X.shape[0])
        at, to = X.ctypes.data, out.ctypes.data
        for i in range(X.shape[0]):
            call(
                prepared,
                ctypes.c_void_p(at + i * X.strides[0]),
                size,
                ctypes.cast(to + 8 * i, ctypes.POINTER(ctypes.c_double)),
            )
        return out

    predict.booster = booster  # type: ignore[attr-defined]  # the call needs it alive
    return lambda threads: predict


def with_xgboost(stem: Path, args: argparse.Namespace) -> Callable[[int], Predict]:
    import xgboost

    path = stem.with_suffix(".xgboost.ubj")
    if not path.exists():
        X, y, sizes = weblike(200, seed=1)
        data = xgboost.QuantileDMatrix(X, y, group=sizes)
        parameters = {
            "objective": "rank:ndcg",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": args.leaves,
            "max_depth": 0,
            "nthread": 1,
        }
        xgboost.train(parameters, data, args.trees).save_model(path)
    booster = xgboost.Booster(model_file=path)

    def make(threads: int) -> Predict:
        def predict(X: np.ndarray) -> np.ndarray:
            booster.set_param("nthread", threads)
            return booster.inplace_predict(X, predict_type="margin")

        return predict

    return make


def with_onnxruntime(stem: Path, args: argparse.Namespace) -> Callable[[int], Predict]:
    import onnxruntime

    path = stem.with_suffix(".onnx")
    if not path.exists():
        from onnxmltools import convert_lightgbm
        from onnxmltools.convert.common.data_types import FloatTensorType

        text = stem.with_suffix(".lightgbm.txt").read_text()
        import lightgbm

        # the converter supports regression, not ranking: the trees are the same
        booster = lightgbm.Booster(
            model_str=text.replace("objective=lambdarank", "objective=regression")
        )
        model = convert_lightgbm(booster, initial_types=[("X", FloatTensorType([None, 136]))])
        path.write_bytes(model.SerializeToString())

    def make(threads: int) -> Predict:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda X: session.run(None, {"X": X})[0]

    return make


def with_treelite(stem: Path, args: argparse.Namespace) -> Callable[[int], Predict]:
    import treelite

    model = treelite.frontend.load_lightgbm_model(stem.with_suffix(".lightgbm.txt"))
    return lambda threads: (
        lambda X: treelite.gtil.predict(model, X, nthread=threads, pred_margin=True)
    )


def with_tl2cgen(stem: Path, args: argparse.Namespace) -> Callable[[int], Predict]:
    import tl2cgen
    import treelite

    path = stem.with_suffix(".so")
    if not path.exists():
        model = treelite.frontend.load_lightgbm_model(stem.with_suffix(".lightgbm.txt"))
        tl2cgen.export_lib(
            model,
            toolchain="gcc",
            libpath=path,
            params={"parallel_comp": 16, "quantize": 1},
            nthread=2,
        )

    ready: dict[int, Any] = {}  # its own matrices, by the id of the array

    def make(threads: int) -> Predict:
        predictor = tl2cgen.Predictor(path, nthread=threads)

        def predict(X: np.ndarray) -> np.ndarray:
            if id(X) not in ready:
                ready[id(X)] = X, tl2cgen.DMatrix(X.astype(np.float64), dtype="float64")
            return predictor.predict(ready[id(X)][1], pred_margin=True)

        return predict

    return make


def with_lleaves(stem: Path, args: argparse.Namespace) -> Callable[[int], Predict]:
    import lleaves

    model = lleaves.Model(model_file=stem.with_suffix(".lightgbm.txt"))
    model.compile(cache=stem.with_suffix(".lleaves"), raw_score=True)
    return lambda threads: lambda X: model.predict(X, n_jobs=threads)


if __name__ == "__main__":
    main()
