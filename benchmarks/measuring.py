"""NDCG@10 and MAP together on 1,000,000 documents in 10,000 queries, against ranx and pytrec_eval.

Every library starts from its own inputs: rankgrove from arrays, ranx from its Run and Qrels
objects, pytrec_eval from dicts and its evaluator. Making these inputs is not timed.

    python -m benchmarks.measuring [--queries 10000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times, print_ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--docs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    import pytrec_eval
    import ranx

    rng = np.random.default_rng(0)
    n = args.queries * args.docs
    labels = rng.choice(5, n, p=[0.52, 0.33, 0.105, 0.035, 0.01])
    scores = rng.permutation(n) / n + 0.2 * labels  # no ties: the order is unique
    data = rg.QueryDataset(None, labels, qid=np.repeat(np.arange(args.queries), args.docs))
    documents = [f"d{i}" for i in range(args.docs)]
    cut = [(f"q{q}", slice(*data.query_ptr[q : q + 2])) for q in range(args.queries)]
    qrels = {q: dict(zip(documents, labels[s].tolist(), strict=True)) for q, s in cut}
    run = {q: dict(zip(documents, scores[s].tolist(), strict=True)) for q, s in cut}

    specs = ["ndcg@10", "map"]
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map"})
    ranx_qrels, ranx_run = ranx.Qrels(qrels), ranx.Run(run)
    means: dict[str, list[float]] = {}

    def ours() -> None:
        result = rg.evaluate(scores, data, specs, convention="trec")
        means["rankgrove"] = [result.mean[spec] for spec in specs]

    def with_ranx() -> None:
        result = ranx.evaluate(ranx_qrels, ranx_run, ["ndcg@10", "map"])
        means["ranx"] = [float(result["ndcg@10"]), float(result["map"])]

    def with_pytrec_eval() -> None:
        result = evaluator.evaluate(run)
        means["pytrec_eval"] = [
            float(np.mean([values[name] for values in result.values()]))
            for name in ("ndcg_cut_10", "map")
        ]

    start = time.perf_counter()
    ours()
    print(
        f"first call, compilation or loading of compiled code: {time.perf_counter() - start:.2f} s"
    )
    with_ranx()
    best = best_times(
        {"rankgrove": ours, "ranx": with_ranx, "pytrec_eval": with_pytrec_eval}, args.rounds
    )
    print(f"NDCG@10 and MAP, {n:,} documents in {args.queries:,} queries:")
    print_ratios(best, "rankgrove")
    for name, values in means.items():
        print(f"  {name:<12} NDCG@10 {values[0]:.6f}  MAP {values[1]:.6f}")


if __name__ == "__main__":
    main()
