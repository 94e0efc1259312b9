"""A matrix that resembles web search features, for the speed benchmarks.

Five text streams (body, anchor, title, url, whole document) with 25 features each, and 11 features
of the page: 136 columns. A stream is absent for a share of the documents, whose features of that
stream are then all 0; counts are heavy-tailed, normalised counts and scores continuous, and some
columns have few values. The target is a noisy, non-linear function of a few columns, cut into
labels 0 to 4.
"""

from __future__ import annotations

import numpy as np

STREAMS = (("body", 0.08, 300.0), ("anchor", 0.6, 8.0), ("title", 0.12, 7.0), ("url", 0.35, 9.0))


def weblike(
    n_queries: int = 6000, docs: int = 120, seed: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features (float32), labels 0-4 and query sizes."""
    rng = np.random.default_rng(seed)
    n = n_queries * docs
    terms = np.repeat(rng.integers(1, 7, n_queries), docs).astype(np.float32)
    idf = np.repeat(rng.gamma(4.0, 2.0, n_queries), docs).astype(np.float32)
    quality = rng.normal(size=n).astype(np.float32)
    columns: list[np.ndarray] = []
    matched = np.zeros(n, np.float32)
    whole: list[np.ndarray] | None = None
    for _, absent, length in STREAMS:
        present = rng.random(n) >= absent
        stream = _stream(rng, present, length, terms, idf, quality)
        columns.extend(stream)
        matched += stream[0] / terms
        whole = stream if whole is None else [a + b for a, b in zip(whole, stream, strict=True)]
    columns.extend(whole or [])
    columns.extend(_page(rng, n, quality))
    features = np.empty((n, len(columns)), np.float32)
    for j, column in enumerate(columns):
        features[:, j] = column
    signal = matched + 0.6 * quality + np.log1p(columns[4]) * 0.3 + 0.5 * np.sin(columns[20] / 4)
    signal += rng.normal(scale=1.2, size=n)
    labels = np.digitize(signal, np.quantile(signal, [0.52, 0.84, 0.96, 0.99])).astype(np.float64)
    return features, labels, np.full(n_queries, docs)


def _stream(
    rng: np.random.Generator,
    present: np.ndarray,
    length: float,
    terms: np.ndarray,
    idf: np.ndarray,
    quality: np.ndarray,
) -> list[np.ndarray]:
    """Return the 25 features of one stream, all 0 where it is absent or no term matches."""
    n = present.size
    chance = 1 / (1 + np.exp(-0.8 * quality - 0.3))
    covered = np.where(present, rng.binomial(terms.astype(np.int64), chance), 0).astype(np.float32)
    hit = covered > 0
    size = np.where(present, np.ceil(rng.lognormal(np.log(length), 0.9, n)), 0).astype(np.float32)
    total = np.where(hit, covered + rng.poisson(rng.gamma(0.5, size / 12 + 0.1)), 0)
    total = total.astype(np.float32)
    low = np.where(covered == terms, np.floor(total / terms * rng.random(n)), 0)
    high = np.ceil(total / np.maximum(covered, 1) * (1 + rng.random(n)))
    mean = total / terms
    spread = np.where(hit, (high - mean) ** 2 * rng.random(n), 0)
    counts = [total, low, high, mean, spread]
    norm = np.maximum(size, 1)
    scale = [norm, norm, norm, norm, norm**2]
    normalised = [c / s for c, s in zip(counts, scale, strict=True)]
    weighted = [c * idf for c in counts]
    saturated = total * 2.2 / (total + 1.2 * (0.25 + 0.75 * size / length))
    scores = [
        (covered == terms).astype(np.float32),
        np.where(hit, total * idf / np.sqrt(norm), 0),
        np.where(hit, saturated * idf, 0),
        *(np.where(present, -np.log(mu + normalised[0]) * idf, 0) for mu in (0.1, 0.01, 0.4)),
    ]
    head = [covered, covered / terms, size, idf * (1 + 0.1 * np.log(length))]
    return [np.asarray(c, np.float32) for c in (*head, *counts, *normalised, *weighted, *scores)]


def _page(rng: np.random.Generator, n: int, quality: np.ndarray) -> list[np.ndarray]:
    """Return the 11 features of the page itself: counts, ranks, qualities, mostly-zero clicks."""
    clicks = [np.where(rng.random(n) < share, rng.zipf(1.7, n), 0) for share in (0.06, 0.1)]
    counts = [
        rng.poisson(2.2, n),
        rng.poisson(60, n) + rng.integers(0, 30, n),
        np.minimum(rng.zipf(1.5, n), 1_000_000),
        np.where(rng.random(n) < 0.4, rng.zipf(1.8, n), 0),
    ]
    ranks = [
        np.floor(65536 * rng.random(n) ** 3),
        np.floor(32768 / (1 + np.exp(-quality - rng.normal(size=n)))),
        np.clip(np.round(40 * quality + rng.normal(scale=40, size=n) + 128), 0, 255),
        np.clip(np.round(20 * rng.normal(size=n) + 64), 0, 127),
        np.where(clicks[0] > 0, rng.gamma(1.0, 30.0, n), 0),
    ]
    return [np.asarray(np.minimum(c, 1e9), np.float32) for c in (*counts, *ranks, *clicks)]
