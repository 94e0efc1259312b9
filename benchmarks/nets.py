"""Training nets: seconds per epoch against the same training in PyTorch.

    python -m benchmarks.nets [--queries 10000] [--rounds 3] [--without-torch]

The peer is a typical PyTorch loop over queries: the module's forward pass, the lambdas of the query
as matrices, `scores.backward(-lambdas)`, the optimiser's step; float32, one thread (more make it
slower: the matrices are small). Before anything is timed, both train one epoch in float64 from the
same weights in the same order, and must end with the same weights, which shows that it is the same
training. Preparing data is not timed; PyTorch's data is already standardised, rankgrove's is not.
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
from rankgrove.nets.tasks import Inputs, QueryTask, moments
from rankgrove.nets.training_loop import Optimiser, drawn_network, epoch_order, train
from rankgrove.objectives.lambdas import NETS_BEYOND_CUTOFF, LambdaObjective, default_truncation
from rankgrove.random import row_keys
from rankgrove.training.watch import Watch

HIDDEN = (10,)
CASES = [("pairs", "sgd", 1e-3), ("ndcg@10", "sgd", 0.1), ("ndcg@10", "adam", 1e-3)]


def our_task(data: rg.QueryDataset, measure: str) -> tuple[Any, Any]:
    """Return a task and the initial net."""
    target = rg.measure(measure)
    rows = np.arange(data.n_rows)
    mean, scale = moments(data.features, rows)
    keys = row_keys(data.query_keys, data.query_ptr)
    objective = LambdaObjective(
        target,
        data.y,
        data.query_ptr,
        row_keys=keys,
        truncation=default_truncation(target, NETS_BEYOND_CUTOFF),
    )
    task = QueryTask(Inputs(data.features, rows, mean, scale), objective, data.query_keys)
    return task, drawn_network(data.n_features, HIDDEN, "tanh", mean, scale, 0)


def our_epoch(data: rg.QueryDataset, measure: str, name: str, rate: float) -> Callable[[], Any]:
    """Return a function that trains one epoch and returns the net."""
    task, start = our_task(data, measure)

    def run() -> Any:
        optimiser = Optimiser(name, rate)
        return train(
            task, start, optimiser=optimiser, n_epochs=1, watch=Watch({}), shown={}, seed=0
        ).network

    return run


def torch_epoch(
    torch: Any, data: rg.QueryDataset, measure: str, name: str, rate: float, dtype: Any
) -> Callable[[], np.ndarray]:
    """Return a function that trains one epoch in PyTorch and returns the flat weights."""
    _, net = our_task(data, measure)
    Z = torch.tensor((np.asarray(data.X, np.float64) - net.mean) * net.scale, dtype=dtype)
    gains = torch.tensor(data.y if measure == "pairs" else 2.0**data.y - 1, dtype=dtype)
    borders = data.query_ptr.tolist()
    order = epoch_order(data.query_keys, 0, 0).tolist()
    truncation = default_truncation(rg.measure(measure), NETS_BEYOND_CUTOFF)
    longest = int(np.diff(data.query_ptr).max())
    discount = 1 / torch.log2(torch.arange(2, longest + 2, dtype=dtype))
    ideal = [
        float((g.sort(descending=True).values[:10] * discount[: min(10, g.numel())]).sum())
        for g in (gains[a:b] for a, b in pairwise(borders))
    ]

    def lambdas(s: Any, g: Any, best: float) -> Any:
        differences = g[:, None] - g[None, :]
        rho = torch.sigmoid(s[None, :] - s[:, None])
        if measure == "pairs":
            size = (differences > 0).to(dtype)
        else:
            order = torch.argsort(s, descending=True, stable=True)
            rank = torch.empty_like(order)
            rank[order] = torch.arange(order.numel())
            d = discount[rank]
            top = rank < truncation
            size = differences.clamp(min=0) * (d[:, None] - d[None, :]).abs() / best
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
        ours = our_epoch(small, measure, name, rate)()  # compiles, too
        print(f"{measure}, {name}:")
        start = time.perf_counter()
        contenders: dict[str, Callable[[], object]] = {
            "rankgrove": our_epoch(data, measure, name, rate)
        }
        print(f"  prepared by rankgrove in {time.perf_counter() - start:.2f} s, once")
        if torch is not None:
            theirs = torch_epoch(torch, small, measure, name, rate, torch.float64)()
            gap = np.abs(ours.flat - theirs).max() / np.abs(theirs).max()
            print(f"  the same weights after an epoch to {gap:.1e}")
            contenders["PyTorch"] = torch_epoch(torch, data, measure, name, rate, torch.float32)
        print_ratios(best_times(contenders, rounds), "rankgrove")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-torch", action="store_true")
    args = parser.parse_args()
    against_torch(args.queries, args.rounds, not args.without_torch)


if __name__ == "__main__":
    main()
