"""The search for the label shares: its model of noisy scores, and the experiment."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

import rankgrove as rg
from rankgrove.random import generator
from rankgrove_papers.wu2010 import label_shares
from tests.papers.running import run_twice

N_QUERIES = 200


@pytest.mark.parametrize("shares", [(0.5, 0.1, 0.34, 0.055, 0.005), (0.2,) * 5])
def test_noisy_scores_have_the_ndcg_that_evaluation_finds(shares):
    edges = ndtri(np.cumsum(shares)[:-1])
    draw = generator(0, "wu2010-labels")
    targets = draw.standard_normal((N_QUERIES, 50))
    noise = draw.standard_normal((N_QUERIES, 50))
    size = label_shares.NOISES[7]
    labels = np.searchsorted(edges, targets.ravel(), side="right")
    data = rg.QueryDataset(None, labels, qid=np.repeat(np.arange(N_QUERIES), 50))
    names = ["ndcg@10", "ndcg@3", "ndcg@1"]
    evaluation = rg.evaluate((targets + size * noise).ravel(), data, names)
    expected = [100 * evaluation.mean[name] for name in names]
    means, widths = label_shares.NoisyScores(N_QUERIES).by_noise(edges)
    mean, width = means[:, 7], widths[:, 7]
    assert mean == pytest.approx(expected, abs=1e-6)
    spread = [np.nanstd(evaluation.per_query[name]) for name in names]
    # 1.96 deviations over the root of 10,000 queries, in percent
    assert width == pytest.approx([100 * 1.96 * s / 100 for s in spread], abs=1e-6)


def test_noise_is_as_much_as_gives_the_papers_ndcg_at_10():
    figures = label_shares.NoisyScores(N_QUERIES).figures((0.52, 0.33, 0.105, 0.035, 0.01))
    assert figures["LambdaMART"][0][0] == pytest.approx(87.9)
    assert figures["LambdaRank"][0][0] == pytest.approx(75.4)


def test_the_fitted_shares_are_the_nearest_of_all():
    scores = label_shares.NoisyScores(1500)
    far = {
        name: label_shares.noise_distance(scores, shares)
        for name, shares in label_shares.CANDIDATES.items()
    }
    assert min(far, key=far.get) == "fitted"
    assert all(sum(shares) == pytest.approx(1) for shares in label_shares.CANDIDATES.values())


def test_the_search_runs_and_is_not_repeated(tmp_path):
    (experiment,) = label_shares.EXPERIMENTS
    text = run_twice(experiment, tmp_path).text
    assert "| the paper's (shares unknown) " in text
    assert text.count("| fitted ") == 2
