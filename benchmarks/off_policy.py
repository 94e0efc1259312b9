"""Coverage of the intervals of estimates from logs: ``python -m benchmarks.off_policy``.

Logs are drawn from position-based users; documents were shown in a noisy order of the old ranking.
The value of the new ranking is known, and the share of the 95 % intervals that contain it is
printed, with the bias and the ratio of the mean half-width to 1.96 standard deviations.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass

import numpy as np

import rankgrove as rg

N_DOCS = 10
LOOK = 1.0 / np.arange(1, N_DOCS + 1)


@dataclass(frozen=True)
class World:
    """Queries, how often they come, how attractive their documents are, and two rankings."""

    attractive: np.ndarray
    old: np.ndarray
    new: np.ndarray
    often: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, n_queries: int, scale: float = 1.0) -> World:
        attractive = rng.beta(1.2, 3.0, (n_queries, N_DOCS)) * scale
        old, new = (np.argsort(rng.normal(-attractive, noise), axis=1) for noise in (0.15, 0.05))
        often = 1.0 / np.sqrt(np.arange(1, n_queries + 1))
        return cls(attractive, old, new, often / often.sum())

    @property
    def values(self) -> np.ndarray:
        """The expected clicks on the new ranking, per query."""
        return np.take_along_axis(self.attractive, self.new, axis=1) @ LOOK

    def rankings(self) -> dict[int, list[int]]:
        return {q: order.tolist() for q, order in enumerate(self.new)}

    def log(self, rng: np.random.Generator, n_sessions: int, noise: float) -> rg.ClickLog:
        query = rng.choice(self.often.size, n_sessions, p=self.often)
        places = np.arange(N_DOCS) + rng.normal(0.0, noise, (n_sessions, N_DOCS))
        shown = np.take_along_axis(self.old[query], np.argsort(places, axis=1), axis=1)
        chance = LOOK * np.take_along_axis(self.attractive[query], shown, axis=1)
        return rg.ClickLog(
            np.repeat(np.arange(n_sessions), N_DOCS),
            np.repeat(query, N_DOCS),
            shown.ravel(),
            np.tile(np.arange(1, N_DOCS + 1), n_sessions),
            (rng.random(chance.shape) < chance).ravel(),
        )


def coverage(
    draws: int,
    n_queries: int,
    n_sessions: int,
    noise: float = 2.0,
    by: str = "session",
    scale: float = 1.0,
    **options,
) -> tuple[float, float, float]:
    """Return the share of intervals that hold the truth, the bias, and the ratio of widths.

    `scale` is a factor of the attractiveness of all documents.

    By session the queries stay the same; by query they are drawn anew, and the truth is the mean
    over all queries there are, weighted by how often they come.
    """
    rng = np.random.default_rng(3)
    world = World.drawn(rng, n_queries, scale)
    truth = float(world.often @ world.values)
    if by == "query":
        truth = float(World.drawn(rng, 200_000).values.mean())
    hits, errors, halves = 0, [], []
    for _ in range(draws):
        if by == "query":
            world = World.drawn(rng, n_queries)
        log = world.log(rng, n_sessions, noise)
        if options.get("method") == "doubly-robust":
            options["model"] = np.full(log.n_pairs, 0.25 * scale)
        estimate = rg.estimate_from_log(log, world.rankings(), examination=LOOK, by=by, **options)
        hits += estimate.low <= truth <= estimate.high
        errors.append(estimate.value - truth)
        halves.append((estimate.high - estimate.low) / 2)
    return hits / draws, float(np.mean(errors)), float(np.mean(halves) / 1.96 / np.std(errors))


CASES = {
    "position, 20 queries": {"n_queries": 20, "n_sessions": 1000},
    "position, 300 queries": {"n_queries": 300, "n_sessions": 1000},
    "position, 3,000 queries": {"n_queries": 3000, "n_sessions": 2000},
    "position, 5 queries, 40 sessions": {"n_queries": 5, "n_sessions": 40},
    "position, 400 sessions, 17 clicks": {"n_queries": 20, "n_sessions": 400, "scale": 0.05},
    "position, by query": {"n_queries": 150, "n_sessions": 1500, "by": "query"},
    "position, self-normalised": {
        "n_queries": 100,
        "n_sessions": 1000,
        "self_normalised": True,
    },
    "item-position, 20 queries": {
        "n_queries": 20,
        "n_sessions": 3000,
        "noise": 4.0,
        "method": "item-position",
    },
    "doubly robust, wrong model": {
        "n_queries": 100,
        "n_sessions": 1000,
        "method": "doubly-robust",
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=500)
    args = parser.parse_args()
    warnings.simplefilter("ignore", rg.DataWarning)
    print(f"{'case':<34}  coverage     bias  width / needed   ({args.draws} draws)")
    for name, case in CASES.items():
        held, bias, ratio = coverage(args.draws, **case)
        print(f"{name:<34}  {held:8.3f}  {bias:+.4f}  {ratio:14.3f}")


if __name__ == "__main__":
    main()
