"""RankBoost, FRank, GBRank, AdaRank and forests written as defined: every pair, every target."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.tree import greedy_tree, midpoints


def pairs(y, qid):
    """All (better, worse) rows of one query."""
    n = len(y)
    return [(i, j) for i in range(n) for j in range(n) if qid[i] == qid[j] and y[i] > y[j]]


def stumps(features):
    """All (feature, threshold, missing left) with the rows above."""
    for j in range(features.shape[1]):
        x = features[:, j]
        missing = np.isnan(x)
        for missing_left in (False, True) if missing.any() else (False,):
            cuts = midpoints(x) + ([np.inf] if missing.any() and not missing_left else [])
            for threshold in cuts:
                above = np.where(missing, not missing_left, x > threshold)
                yield (j, threshold, missing_left), above


def rankboost(features, y, qid, rounds, *, weight=None, query_weight=None):
    """Return (stump, alpha, loss after it) of every round; the loss is the mean of all pairs'."""
    listed = pairs(y, qid)
    w = np.ones(len(y)) if weight is None else weight
    D = np.array([w[i] * w[j] * (query_weight or {}).get(qid[i], 1.0) for i, j in listed])
    D /= D.sum()
    loss, found = 1.0, []
    for _ in range(rounds):
        best = None
        for stump, above in stumps(features):
            r = math.fsum(d * (int(above[i]) - int(above[j])) for d, (i, j) in zip(D, listed))  # noqa: B905
            if best is None or abs(r) > abs(best[0]) + 1e-12:
                best = (r, stump, above)
        r, stump, above = best
        alpha = 0.5 * math.log((1 + r) / (1 - r))
        D = D * np.exp([alpha * (int(above[j]) - int(above[i])) for i, j in listed])
        loss *= D.sum()
        found.append((stump, alpha, loss, r))
        D /= D.sum()
    return found


def fidelity(features_scores, y, qid):
    """The mean over queries of the mean loss 1 - sqrt(P) of their pairs."""
    by_query = {}
    for i, j in pairs(y, qid):
        p = 1 / (1 + math.exp(features_scores[j] - features_scores[i]))
        by_query.setdefault(qid[i], []).append(1 - math.sqrt(p))
    return sum(math.fsum(v) / len(v) for v in by_query.values()) / len(by_query)


def frank(features, y, qid, rounds):
    """Return (stump, alpha, loss after it) of every round."""
    listed = pairs(y, qid)
    n_pairs = {q: sum(qid[i] == q for i, _ in listed) for q in qid}
    H = np.zeros(len(y))
    loss, found = fidelity(H, y, qid), []
    for _ in range(rounds):
        W = []
        for i, j in listed:
            p = 1 / (1 + math.exp(H[j] - H[i]))
            W.append((1 - p) * math.sqrt(p) / n_pairs[qid[i]])
        best = None
        for stump, above in stumps(features):
            right = math.fsum(w for w, (i, j) in zip(W, listed) if above[i] and not above[j])  # noqa: B905
            wrong = math.fsum(w for w, (i, j) in zip(W, listed) if above[j] and not above[i])  # noqa: B905
            worth = (math.sqrt(right) - math.sqrt(wrong)) ** 2
            if best is None or worth > best[0] + 1e-12:
                best = (worth, stump, above, right, wrong)
        _, stump, above, right, wrong = best
        little = (right + wrong) / len(listed)
        alpha = 0.5 * math.log((right + little) / (wrong + little))
        while fidelity(H + alpha * above, y, qid) >= loss:
            alpha /= 2
        H = H + alpha * above
        loss = fidelity(H, y, qid)
        found.append((stump, alpha, loss))
    return found


def tree_on(features, rows, targets, n_leaves):
    """Return what a least-squares tree on (row, target), repeated as they are, gives every row."""
    _, leaf_of = greedy_tree(features[rows], np.array(targets), np.ones(len(rows)), n_leaves)
    made = np.full(len(features), np.nan)
    for leaf in range(max(leaf_of) + 1):
        inside = [k for k in range(len(rows)) if leaf_of[k] == leaf]
        made[[rows[k] for k in inside]] = math.fsum(targets[k] for k in inside) / len(inside)
    return made


def gbrank(features, y, qid, rounds, n_leaves, *, eta=1.0, tau=1.0):
    """Return h of every row after so many rounds, with h_k = (k h + eta g) / (k + 1)."""
    h = np.zeros(len(y))
    for k in range(1, rounds + 1):
        rows, targets = [], []
        for i, j in pairs(y, qid):
            if h[i] < h[j] + tau:
                rows += [i, j]
                targets += [h[j] + tau, h[i] - tau]
        h = (k * h + eta * tree_on(features, rows, targets, n_leaves)) / (k + 1)
    return h


def adarank(features, y, qid, rounds, value, *, update="latest", tolerance=0.002, most_in_a_row=5):
    """Return (feature, alpha, training measure) of every round, and the paper's bound of 1 - it.

    `value(labels, scores)` is the measure of one query.
    """
    queries = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    queries = [q for q in queries if len(set(y[q])) > 1]
    table = np.array([[value(y[q], x[q]) for q in queries] for x in features.T])
    P = np.ones(len(queries)) / len(queries)
    f = np.zeros(len(y))
    before = np.array([value(y[q], f[q]) for q in queries])
    found, bound = [], 1.0
    for _ in range(rounds):
        quality = table @ P
        step = None
        for j, alpha in tried_features(quality, found, tolerance, most_in_a_row):
            E = np.array([value(y[q], (f + alpha * features[:, j])[q]) for q in queries])
            rise = E.mean() - (found[-1][2] if found else -np.inf)
            if rise > (1e-12 if tolerance is None else -tolerance):
                step = j, alpha
                break
        if step is None:
            break
        best, alpha = step
        delta = E - (before if found else 0.0) - alpha * table[best]
        bound *= math.exp(-delta.min()) * math.sqrt(1 - quality[best] ** 2)
        f = f + alpha * features[:, best]
        before = E
        found.append((best, alpha, E.mean()))
        P = np.exp(-E) if update == "latest" else P * np.exp(-alpha * E)
        P = P / P.sum()
    return found, bound


def tried_features(quality, found, tolerance, most_in_a_row):
    """Return (feature, alpha) in the order in which a round of AdaRank tries them."""
    alphas = 0.5 * np.log((1 + quality) / (1 - quality))
    if tolerance is None:
        return [(j, alphas[j] / 2**h) for j in np.argsort(-quality) for h in range(7)]
    last = [j for j, _, _ in found][-most_in_a_row:]
    if len(last) == most_in_a_row and len(set(last)) == 1:
        quality = np.where(np.arange(len(quality)) == last[0], -np.inf, quality)
    best = int(np.argmax(quality))
    return [(best, alphas[best])]
