"""Early exit: pairs saved, loss, and time, ``python -m benchmarks.early_exit [--draws 20]``.

Generated web-like queries of 1,000 documents. A rule is learned on validation queries and measured
on test queries: pairs of document and tree, NDCG@10, and the processor time of one query at a time
on one thread (scoring everything, the exact top, the top with early exit; best of interleaved
rounds). ``--draws`` repeats the learning on other validation queries and counts how often the loss
on many test queries is within the bound.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times, print_ratios

MEASURE = "ndcg@10"
CASES = {"500 x 32": (500, 32, 0.05), "1,000 x 64": (1000, 64, 0.05)}


def queries(n: int, seed: int, n_features: int = 30) -> rg.QueryDataset:
    return rg.make_web(n, 1000, n_features, seed=seed)


def trained(case: str) -> rg.LambdaMART:
    n_trees, n_leaves, rate = CASES[case]
    settings = {"n_trees": n_trees, "n_leaves": n_leaves, "learning_rate": rate}
    return rg.LambdaMART(MEASURE, **settings).fit(queries(150, 1))


def loss_on(fast: rg.EarlyExitRanker, test: rg.QueryDataset) -> tuple[float, float, float]:
    """Return the loss of NDCG@10, its standard error, and how many times fewer pairs."""
    top = fast.predict_top(test, 10)
    values = [
        rg.evaluate(scores, test, MEASURE).per_query[MEASURE]
        for scores in (fast.predict(test), top.scores)
    ]
    losses = np.asarray(values[0]) - np.asarray(values[1])
    losses = losses[~np.isnan(losses)]
    error = losses.std(ddof=1) / np.sqrt(losses.size)
    return float(losses.mean()), float(error), 1.0 / (1.0 - top.saved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=500, help="validation queries")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--draws", type=int, default=0)
    args = parser.parse_args()
    vali, test = queries(args.queries, 2), queries(500, 3)
    for case in CASES:
        model = trained(case)
        print(f"\n{case} leaves, 1,000 documents per query")
        for max_loss in (0.0005, 0.005):
            fast = rg.EarlyExitRanker(model, MEASURE, max_loss=max_loss).fit(vali)
            loss, error, fewer = loss_on(fast, test)
            print(f"max_loss {max_loss}: {fast.certificate_}")
            print(
                f"  on test queries {fewer:.1f} times fewer pairs, loss {loss:+.5f} +- {error:.5f}"
            )
            rows = [np.ascontiguousarray(test.X[i : i + 1000]) for i in range(0, 100_000, 1000)]
            exact, quick = model.scorer(), fast.scorer()
            contenders = {
                "early exit, top 10": lambda q=quick, r=rows: [q.top(x, 10) for x in r],
                "everything": lambda e=exact, r=rows: [e.predict(x) for x in r],
                "exact top 10": lambda e=exact, r=rows: [e.top(x, 10) for x in r],
            }
            for work in contenders.values():
                work()
            best = best_times(contenders, args.rounds, time.process_time)
            print_ratios(best, "early exit, top 10")
    if args.draws:
        coverage(args.draws)


def coverage(draws: int) -> None:
    """Learn on other queries again and again; print how often the bound held."""
    model, test = trained("500 x 32"), queries(2000, 4)
    for n in (100, 300):
        for max_loss in (0.0005, 0.005):
            losses = [
                loss_on(
                    rg.EarlyExitRanker(model, MEASURE, max_loss=max_loss).fit(queries(n, 100 + k)),
                    test,
                )
                for k in range(draws)
            ]
            values = np.array(losses)
            held = (values[:, 0] <= max_loss).mean()
            print(
                f"{n} validation queries, max_loss {max_loss}: within it in {held:.0%} of {draws} "
                f"draws; mean loss {values[:, 0].mean():+.5f}, largest {values[:, 0].max():+.5f}, "
                f"{values[:, 2].mean():.1f} times fewer pairs"
            )


if __name__ == "__main__":
    main()
