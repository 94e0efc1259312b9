"""Newton's leaf steps against one exact weight per tree: trees needed, and time per round.

    python -m benchmarks.steps [--queries 1000] [--trees 150] [--data artificial]

Trees needed are the first round at which NDCG@10 of the test queries reaches a value; "best" is the
test value at the round that is best on validation data, which has half as many queries as training
data. Exact weights are found on the validation data (LambdaMART paper, section 5.6). Time per round
is the processor time of rounds 6 to 25 on one thread, the best of five interleaved runs.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import rankgrove as rg

STEPS = ("newton", "optimal", "optimal-newton")
MAKE = {"artificial": rg.make_artificial, "web": rg.make_web}
GOALS = {"artificial": (0.5, 0.55, 0.6, 0.65, 0.7), "web": (0.48, 0.5, 0.52, 0.54, 0.56)}


def contenders(rates: list[float]) -> dict[str, dict[str, object]]:
    settings: dict[str, dict[str, object]] = {}
    for rate in rates:
        for step in STEPS:
            settings[f"{step}, rate {rate:g}"] = {"step": step, "learning_rate": rate}
    return settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--trees", type=int, default=150)
    parser.add_argument("--leaves", type=int, default=10)
    parser.add_argument("--data", choices=MAKE, default="artificial")
    parser.add_argument("--rates", type=float, nargs="+", default=[1.0, 0.3, 0.1])
    args = parser.parse_args()
    make, n = MAKE[args.data], args.queries
    train, valid, test = make(n, seed=1), make(max(1, n // 2), seed=2), make(n, seed=3)
    print(f"{train!r}, {args.leaves} leaves")
    common = {"n_leaves": args.leaves, "step_on": "valid"}
    goals = GOALS[args.data]
    head = "  ".join(f"{goal:5g}" for goal in goals)
    print(f"  {'trees for NDCG@10 of':<26}{head}   best  at")
    for name, options in contenders(args.rates).items():
        model = rg.LambdaMART(n_trees=args.trees, **common, **options)
        model.fit(train, valid={"valid": valid, "test": test})
        values = np.array(model.history_["test"]["ndcg@10"])
        needed = [np.flatnonzero(values >= goal) for goal in goals]
        cells = "  ".join(f"{rounds[0] + 1 if rounds.size else '-':>5}" for rounds in needed)
        best = model.best_round_
        print(f"  {name:<26}{cells}  {values[best - 1]:.4f}  {best}", flush=True)

    def seconds(step: str, step_on: str, rounds: int) -> float:
        start = time.process_time()
        options = {"n_leaves": args.leaves, "learning_rate": 1.0, "n_threads": 1}
        rg.LambdaMART(n_trees=rounds, step=step, step_on=step_on, **options).fit(train, valid=valid)
        return time.process_time() - start

    runs = [(step, on) for step in STEPS for on in ("train", "valid")][1:]
    best = dict.fromkeys(((*run, rounds) for run in runs for rounds in (5, 25)), np.inf)
    for _ in range(5):
        for run in best:
            best[run] = min(best[run], seconds(*run))
    for run in runs:
        each = (best[*run, 25] - best[*run, 5]) / 20
        print(f"  {run[0]:<15} on {run[1]}  {1000 * each:6.1f} ms per round")


if __name__ == "__main__":
    main()
