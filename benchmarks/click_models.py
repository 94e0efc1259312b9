"""Click models: seconds to learn, against PyClick, and impressions simulated per second.

    python -m benchmarks.click_models [--sessions 20000] [--rounds 2] [--steps 10]
                                      [--pyclick FOLDER] [--large 5000000]

PyClick (github.com/markovi/PyClick) is not on package registries in this version: FOLDER is a
checkout. Without it only rankgrove is timed. Both take the same number of plain steps of EM from
the same start with the same pseudo-counts, and their attractivenesses are compared. PyClick's
E-step of DBN is another one (its tail probabilities are those of other ranks), so there the
difference means nothing; sessions are fewer, because its time grows with the cube of the list.
Making PyClick's session objects is not timed, neither is compiling; counting our log is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times, print_ratios
from rankgrove.clicks.chains import Chain, ChainEvidence, rates
from rankgrove.clicks.learned import PseudoCounts
from rankgrove.clicks.products import ProductEvidence
from rankgrove.clicks.user_browsing import browsing_cells

N_SHOWN = 10
PEERS = ("PBM", "UBM", "CM", "DCM", "SDBN", "DBN")


def ours(name: str, log: rg.ClickLog, steps: int, n_threads: int | None = None) -> np.ndarray:
    """Learn as PyClick does; return the attractiveness of pairs."""
    ones = np.ones(log.n_pairs)
    prior = PseudoCounts(ones, ones)
    weights = np.ones(log.n_sessions)
    halves = np.full(log.n_pairs, 0.5)
    if name in ("PBM", "UBM"):
        if name == "PBM":
            cell, n_cells = log.position.astype(np.int64) - 1, N_SHOWN
        else:
            cell, n_cells = browsing_cells(log, N_SHOWN, n_threads), N_SHOWN * (N_SHOWN + 1)
        evidence = ProductEvidence(log, cell, n_cells, n_threads)
        reached, _ = evidence.learn(
            evidence.weighted(weights),
            prior,
            (halves, np.full(n_cells, 0.5)),
            fixed=np.zeros(n_cells, bool),
            cell_strength=2.0,
            max_iterations=steps,
            tolerance=0.0,
            accelerate=False,
        )
        return np.asarray(reached.parameters[0])
    evidence = ChainEvidence(log, name == "DCM", n_threads)
    if name != "DBN":
        sums, _ = evidence.counts(weights, to_first=name == "CM")
        return rates(sums, prior)
    reached, _, _ = evidence.learn(
        weights,
        prior,
        prior,
        Chain(halves, halves, np.array([0.5])),
        going_fixed=False,
        max_iterations=steps,
        tolerance=0.0,
        accelerate=False,
    )
    return np.asarray(reached.parameters[0])


def pyclick_sessions(log: rg.ClickLog) -> list[Any]:
    """Return a log as PyClick's sessions."""
    from pyclick.search_session.SearchResult import SearchResult
    from pyclick.search_session.SearchSession import SearchSession

    sessions = []
    for s in range(log.n_sessions):
        session = SearchSession(int(log.session_query[s]))
        for i in range(log.session_ptr[s], log.session_ptr[s + 1]):
            session.web_results.append(SearchResult(int(log.pair[i]), int(log.click[i])))
        sessions.append(session)
    return sessions


def theirs(name: str, sessions: list[Any], steps: int) -> Any:
    """Return PyClick's model, learned."""
    import importlib

    from pyclick.click_models.Inference import EMInference

    model = getattr(importlib.import_module(f"pyclick.click_models.{name}"), name)()
    if name in ("PBM", "UBM", "DBN"):
        model._inference = EMInference(steps)
    model.train(sessions)
    return model


def their_attractiveness(model: Any, log: rg.ClickLog) -> np.ndarray:
    """Return PyClick's attractiveness of the pairs of a log."""
    container = model.params[model.param_names.attr]
    pairs = zip(log.pair_query.tolist(), range(log.n_pairs), strict=True)
    return np.array([container.get(query, pair).value() for query, pair in pairs])


def simulated(sessions: int, model: str = "dbn") -> rg.ClickLog:
    data = rg.make_web(200, seed=1)
    return rg.simulate_clicks(
        data, data.column(1), model=model, sessions=sessions, noise=1.0, n_shown=N_SHOWN, seed=1
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--pyclick", help="a checkout of PyClick")
    parser.add_argument("--large", type=int, default=0, help="sessions of a log for us alone")
    args = parser.parse_args()
    if args.pyclick:
        sys.path.insert(0, args.pyclick)
    try:
        import pyclick  # noqa: F401
    except ImportError:
        print("PyClick is not there: only rankgrove is timed.")
        args.pyclick = None
    for name in PEERS:
        log = simulated(args.sessions if name != "DBN" else max(1, args.sessions // 20))
        start = time.perf_counter()
        ours(name, log, 2)
        compiling = time.perf_counter() - start
        what = f", {args.steps} steps" if name in ("PBM", "UBM", "DBN") else ""
        print(f"{name}: {log!r}{what}; first call {compiling:.2f} s")
        contenders: dict[str, Callable[[], object]] = {
            "rankgrove": lambda name=name, log=log: ours(name, log, args.steps),  # type: ignore[misc]
            "rankgrove, 1 thread": lambda name=name, log=log: ours(name, log, args.steps, 1),  # type: ignore[misc]
        }
        if args.pyclick:
            sessions = pyclick_sessions(log)
            models = {}

            def peer(name: str = name, sessions: list[Any] = sessions) -> None:
                models[name] = theirs(name, sessions, args.steps)  # noqa: B023

            contenders["PyClick"] = peer
        best = best_times(contenders, args.rounds)
        print_ratios(best, "rankgrove")
        if args.pyclick:
            gap = np.abs(ours(name, log, args.steps) - their_attractiveness(models[name], log))
            print(f"  largest difference of attractiveness: {gap.max():.1e}")
    if args.large:
        start = time.perf_counter()
        log = simulated(args.large)
        seconds = time.perf_counter() - start
        print(f"simulated in {seconds:.2f} s, {log.n_impressions / seconds:,.0f} per second: {log}")
        for model in (rg.PositionBased(), rg.UserBrowsing(), rg.SimplifiedDBN(), rg.DBN()):
            start = time.perf_counter()
            model.fit(log)
            seconds = time.perf_counter() - start
            print(f"  {model!r}: {seconds:.2f} s, {model.n_iterations_} steps")


if __name__ == "__main__":
    main()
