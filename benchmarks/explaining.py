"""Feature contributions (SHAP values) against LightGBM's ``pred_contrib``.

    python -m benchmarks.explaining [--trees 200] [--documents 500] [--rounds 5]

Both have the same number of trees with 31 leaves, trained on the same data, and explain the same
documents on two threads.
"""

from __future__ import annotations

import argparse

import lightgbm
import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times, print_ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    data = rg.make_web(200, n_docs=100, n_features=args.features, seed=1)
    model = rg.MART(n_trees=args.trees, n_leaves=31, n_threads=2).fit(data)
    settings = {"num_leaves": 31, "verbose": -1, "num_threads": 2}
    x = np.array(data.X, np.float64)
    peer = lightgbm.train(settings, lightgbm.Dataset(x, data.y), args.trees)
    n = int(np.searchsorted(data.query_ptr, args.documents))
    documents = data.select(np.arange(n))
    rows = x[: documents.n_rows]
    print(f"{documents.n_rows} documents, {args.trees} trees, {args.features} features")
    rg.explain(model, documents)
    best = best_times(
        {
            "rg.explain": lambda: rg.explain(model, documents, n_threads=2),
            "LightGBM pred_contrib": lambda: peer.predict(rows, pred_contrib=True),
        },
        args.rounds,
    )
    print_ratios(best, "rg.explain")


if __name__ == "__main__":
    main()
