"""Training nets: seconds an epoch against the same training in PyTorch; factorised against pairs.

    python -m benchmarks.nets [--queries 10000] [--rounds 3] [--without-torch]
    python -m benchmarks.nets --forms [--plot speedup.png]

The peer is a per-query loop as one writes it in PyTorch: the module's forward pass, the lambdas of
the query as matrices, `scores.backward(-lambdas)`, the optimiser's step; float32, one thread (more
make it slower: the matrices are small). Before anything is timed both train one epoch in float64
from the same weights in the same order, and must end with the same weights: it is the same
training. All of rankgrove's time counts, standardising and drawing the order included.

`--forms` measures section 2.1 of the overview paper: an epoch of RankNet with one update a query
and with one update a pair, for queries of more and more documents.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times, print_ratios
from rankgrove.nets.inputs import Inputs, QueryTask, moments
from rankgrove.nets.train import Optimiser, drawn_network, epoch_order, train
from rankgrove.objectives.lambdas import LambdaObjective, default_truncation
from rankgrove.random import row_keys
from rankgrove.training.watch import Watch

HIDDEN = (10,)
CASES = [("pairs", "sgd", 1e-3), ("ndcg@10", "sgd", 0.1), ("ndcg@10", "adam", 1e-3)]


def our_task(data: rg.QueryDataset, measure: str, form: str = "factorised") -> tuple[Any, Any]:
    """Return a task and the net to begin with."""
    target = rg.measure(measure)
    rows = np.arange(data.n_rows)
    mean, scale = moments(data.features, rows)
    keys = row_keys(data.query_keys, data.query_ptr)
    objective = LambdaObjective(
        target, data.y, data.query_ptr, row_keys=keys, truncation=default_truncation(target)
    )
    task = QueryTask(Inputs(data.features, rows, mean, scale), objective, data.query_keys, form)
    return task, drawn_network(data.n_features, HIDDEN, "tanh", mean, scale, 0)


def our_epoch(data: rg.QueryDataset, measure: str, name: str, rate: float, form: str) -> Any:
    """Train one epoch, from the data on; return the net."""
    task, start = our_task(data, measure, form)
    done = train(
        task, start, optimiser=Optimiser(name, rate), n_epochs=1, watch=Watch({}), shown={}, seed=0
    )
    return done.network


def torch_epoch(
    torch: Any, data: rg.QueryDataset, measure: str, name: str, rate: float, dtype: Any
) -> Callable[[], np.ndarray]:
    """Return a function that trains one epoch in PyTorch and returns the flat weights."""
    _, net = our_task(data, measure)
    Z = torch.tensor((np.asarray(data.X, np.float64) - net.mean) * net.scale, dtype=dtype)
    gains = torch.tensor(data.y if measure == "pairs" else 2.0**data.y - 1, dtype=dtype)
    borders = data.query_ptr.tolist()
    order = epoch_order(data.query_keys, 0, 0).tolist()
    truncation = default_truncation(rg.measure(measure))
    longest = int(np.diff(data.query_ptr).max())
    discount = 1 / torch.log2(torch.arange(2, longest + 2, dtype=dtype))
    ideal = [
        float((g.sort(descending=True).values[:10] * discount[: min(10, g.numel())]).sum())
        for g in (gains[a:b] for a, b in pairwise(borders))
    ]

    def lambdas(s: Any, g: Any, best: float) -> Any:
        apart = g[:, None] - g[None, :]
        rho = torch.sigmoid(s[None, :] - s[:, None])
        if measure == "pairs":
            size = (apart > 0).to(dtype)
        else:
            order = torch.argsort(s, descending=True, stable=True)
            rank = torch.empty_like(order)
            rank[order] = torch.arange(order.numel())
            d = discount[rank]
            top = rank < truncation
            size = apart.clamp(min=0) * (d[:, None] - d[None, :]).abs() / best
            size = size * (top[:, None] | top[None, :])
        up = size * rho
        return up.sum(1) - up.sum(0)

    def run() -> np.ndarray:
        first = torch.nn.Linear(data.n_features, HIDDEN[0], dtype=dtype)
        last = torch.nn.Linear(HIDDEN[0], 1, bias=False, dtype=dtype)
        (w, b), out = net.layers[0], net.output
        with torch.no_grad():
            first.weight.copy_(torch.tensor(w.T.copy(), dtype=dtype))
            first.bias.copy_(torch.tensor(b.copy(), dtype=dtype))
            last.weight.copy_(torch.tensor(out.copy(), dtype=dtype)[None])
        module = torch.nn.Sequential(first, torch.nn.Tanh(), last)
        kind = torch.optim.SGD if name == "sgd" else torch.optim.Adam
        optimiser = kind(module.parameters(), lr=rate)
        for q in order:
            part = slice(borders[q], borders[q + 1])
            g = gains[part]
            if bool((g == g[0]).all()):
                continue
            s = module(Z[part])[:, 0]
            with torch.no_grad():
                up = lambdas(s, g, ideal[q])
            s.backward(-up)
            optimiser.step()
            optimiser.zero_grad()
        parts = [first.weight.T.reshape(-1), first.bias, last.weight.reshape(-1)]
        return np.asarray(torch.cat(parts).detach().to(torch.float64).numpy())

    return run


def against_torch(n_queries: int, rounds: int, with_torch: bool) -> None:
    torch = None
    if with_torch:
        try:
            import torch
        except ImportError:
            print("PyTorch is not installed: only rankgrove is timed (pip install torch).")
    if torch is not None:
        torch.set_num_threads(1)
    data = rg.make_artificial(n_queries, seed=1)
    print(f"{data!r}; {HIDDEN[0]} hidden units")
    small = data.select(np.arange(min(200, n_queries)))
    for measure, name, rate in CASES:
        ours = our_epoch(small, measure, name, rate, "factorised")  # compiles, too
        print(f"{measure}, {name}:")
        contenders: dict[str, Callable[[], object]] = {
            "rankgrove": lambda m=measure, n=name, r=rate: our_epoch(data, m, n, r, "factorised")  # type: ignore[misc]
        }
        if torch is not None:
            theirs = torch_epoch(torch, small, measure, name, rate, torch.float64)()
            gap = np.abs(ours.flat - theirs).max() / np.abs(theirs).max()
            print(f"  the same weights after an epoch to {gap:.1e}")
            contenders["PyTorch"] = torch_epoch(torch, data, measure, name, rate, torch.float32)
        print_ratios(best_times(contenders, rounds), "rankgrove")


def forms(plot: str | None) -> None:
    """Print seconds an epoch of both forms of RankNet for queries of more and more documents."""
    sizes = [10, 20, 40, 80, 160, 320]
    found: dict[str, list[float]] = {"factorised": [], "pairs": []}
    print("RankNet, an epoch of 64,000 documents: microseconds a document")
    for n_docs in sizes:
        data = rg.make_artificial(64_000 // n_docs, n_docs=n_docs, seed=1)
        for form, times in found.items():
            few = data if form == "factorised" else data.select(np.arange(data.n_queries // 16))
            our_epoch(few.select([0, 1]), "pairs", "sgd", 1e-4, form)
            best = np.inf
            for _ in range(3):
                start = time.perf_counter()
                our_epoch(few, "pairs", "sgd", 1e-4, form)
                best = min(best, time.perf_counter() - start)
            times.append(1e6 * best / few.n_rows)
        a, b = found["factorised"][-1], found["pairs"][-1]
        print(f"  {n_docs:4} documents a query: one update a query {a:7.3f}, a pair {b:8.2f}"
              f"   {b / a:7.0f} x")  # fmt: skip
    for form, times in found.items():
        slope = np.polyfit(np.log(sizes[1:]), np.log(times[1:]), 1)[0] + 1
        print(f"  {form}: the time of a query grows as its documents to the power {slope:.2f}")
    if plot:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        for form, times in found.items():
            pyplot.loglog(sizes, np.array(times) * sizes, "o-", label=f"one update a {form}")
        pyplot.xlabel("documents a query")
        pyplot.ylabel("microseconds a query")
        pyplot.legend(["one update a query (factorised)", "one update a pair"])
        pyplot.savefig(plot)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-torch", action="store_true")
    parser.add_argument("--forms", action="store_true")
    parser.add_argument("--plot", help="draw what --forms finds into this file (matplotlib)")
    given = parser.parse_args()
    if given.forms:
        forms(given.plot)
    else:
        against_torch(given.queries, given.rounds, not given.without_torch)


if __name__ == "__main__":
    main()
