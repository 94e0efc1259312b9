"""How training time of SVM-map scales with queries, documents and C; oracle and QP separately.

    python -m benchmarks.svm [--queries 5000] [--docs 100] [--features 136]

There is no other Python package to compare it with: every line is given as a ratio to the largest
problem, whose goal is ten minutes on two cores.
"""

from __future__ import annotations

import argparse

import numpy as np

import rankgrove as rg


def fit(data: rg.QueryDataset, **options: object) -> rg.SVMMap:
    return rg.SVMMap(**({"relevant": 2} | options)).fit(data)


def line(title: str, model: rg.SVMMap, whole: float | None = None) -> float:
    solution, seconds = model.solution_, model.seconds_
    ratio = "" if whole is None else f"{seconds['all'] / whole:6.2f} x"
    print(
        f"  {title:<28} {seconds['all']:7.2f} s {ratio:>9}  oracle {seconds['oracle']:7.2f} s  "
        f"QP {seconds['qp']:6.2f} s  {solution['iterations']:4d} iterations  "
        f"{solution['constraints']:4d} constraints  "
        f"gap {solution['gap'] / solution['objective']:.1e}",
        flush=True,
    )
    return float(seconds["all"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--docs", type=int, default=100)
    parser.add_argument("--features", type=int, default=136)
    args = parser.parse_args()
    data = rg.make_web(args.queries, n_docs=args.docs, n_features=args.features, seed=1)
    fit(data.select(np.arange(50)))  # compile
    print(repr(data))
    whole = line("all queries", fit(data))
    for part in (2, 4, 8):
        fewer_queries = data.select(np.arange(data.n_queries // part))
        fewer_queries = rg.QueryDataset(fewer_queries.X, fewer_queries.y, fewer_queries.qid)
        line(f"1/{part} of the queries", fit(fewer_queries), whole)
    for part in (2, 4):
        fewer = rg.make_web(
            args.queries, n_docs=args.docs // part, n_features=args.features, seed=1
        )
        line(f"1/{part} of the documents", fit(fewer), whole)
    for C in (0.1, 10.0, 100.0, 1000.0):
        line(f"C = {C:g} (1 above)", fit(data, C=C), whole)
    line("epsilon = 1e-4", fit(data, epsilon=1e-4), whole)
    line("one thread", fit(data, n_threads=1), whole)
    line("50 thresholds per feature", fit(data, thresholds=50), whole)
    few = data.select(np.arange(200))
    few = rg.QueryDataset(few.X, few.y, few.qid)
    line("200 queries, 1-slack", fit(few), whole)
    line("200 queries, n-slack", fit(few, form="n-slack"), whole)


if __name__ == "__main__":
    main()
