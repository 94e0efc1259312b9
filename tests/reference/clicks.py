"""Click models in plain Python, as their definitions say: the oracles of the kernels.

A session is a list of (pair, position, click). Hidden variables are summed over one by one.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict


def sessions_of(log):
    """Return the sessions of a click log, and their queries' pairs, as lists."""
    return [
        [
            (int(log.pair[i]), int(log.position[i]), bool(log.click[i]))
            for i in range(log.session_ptr[s], log.session_ptr[s + 1])
        ]
        for s in range(log.n_sessions)
    ]


def last_click(session):
    return max((i for i, (_, _, click) in enumerate(session) if click), default=None)


def distance_above(session, i):
    """Return the distance to the last click above, 0 if there is none."""
    above = [position for _, position, click in session[:i] if click]
    return session[i][1] - above[-1] if above else 0


def closed_form(sessions, to_first=False):
    """Return clicks and examinations per pair, and stops and clicks per pair and per position."""
    sums = {name: defaultdict(int) for name in ("clicks", "seen", "last", "clicked", "last_at",
                                                "clicked_at")}  # fmt: skip
    for session in sessions:
        clicks = [i for i, (_, _, click) in enumerate(session) if click]
        end = len(session) - 1 if not clicks else clicks[0] if to_first else clicks[-1]
        for i, (pair, position, click) in enumerate(session[: end + 1]):
            sums["seen"][pair] += 1
            sums["clicks"][pair] += click
            sums["clicked"][pair] += click
            sums["clicked_at"][position] += click
            sums["last"][pair] += click and i == end
            sums["last_at"][position] += click and i == end
    return sums


def product_em(sessions, cell_of, n_steps, hits, misses, cell_strength, start=0.5, fixed=()):
    """Return attractiveness per pair and examination per cell after steps of EM from `start`."""
    attraction = defaultdict(lambda: start)
    examination = defaultdict(lambda: start)
    for cell in fixed:
        examination[cell] = 1.0
    for _ in range(n_steps):
        a_sums = defaultdict(lambda: [hits, hits + misses])
        e_sums = defaultdict(lambda: [cell_strength / 2, cell_strength])
        for session in sessions:
            for i, (pair, _, click) in enumerate(session):
                a, e = attraction[pair], examination[cell_of(session, i)]
                a_sums[pair][0] += 1 if click else a * (1 - e) / (1 - a * e)
                a_sums[pair][1] += 1
                e_sums[cell_of(session, i)][0] += 1 if click else e * (1 - a) / (1 - a * e)
                e_sums[cell_of(session, i)][1] += 1
        attraction.update({pair: top / bottom for pair, (top, bottom) in a_sums.items()})
        examination.update(
            {cell: top / bottom for cell, (top, bottom) in e_sums.items() if cell not in fixed}
        )
    return attraction, examination


def histories(session):
    """Yield all ways in which users may have produced the clicks of a session.

    A history is (examined, satisfied, chose): how many documents were examined, whether the last
    of them satisfied after a click.
    """
    final = last_click(session)
    least = 1 if final is None else final + 1
    for examined in range(least, len(session) + 1):
        yield examined, False
        if final is not None and examined == final + 1:
            yield examined, True


def chain_probability(session, history, attraction, stop, going, key):
    """Return the probability of a history with the clicks of the session."""
    examined, satisfied = history
    p = 1.0
    for i, (pair, position, click) in enumerate(session[:examined]):
        p *= attraction[pair] if click else 1 - attraction[pair]
        ends = i == examined - 1
        if click:
            s = stop[key(pair, position)]
            p *= s if ends and satisfied else 1 - s
        if ends and satisfied:
            continue
        if i < len(session) - 1:
            p *= 1 - going if ends else going
    return p


def chain_step(sessions, attraction, stop, going, key):
    """Return the sums of EM by enumeration, and the log likelihood."""
    a_sums, s_sums = defaultdict(lambda: [0.0, 0.0]), defaultdict(lambda: [0.0, 0.0])
    on, total = [0.0, 0.0], 0.0
    for session in sessions:
        ways = list(histories(session))
        p = [chain_probability(session, way, attraction, stop, going, key) for way in ways]
        total += math.log(sum(p))
        for (examined, satisfied), weight in zip(ways, p, strict=True):
            w = weight / sum(p)
            for i, (pair, position, click) in enumerate(session[:examined]):
                ends = i == examined - 1
                a_sums[pair][0] += w * click
                a_sums[pair][1] += w
                if i == len(session) - 1:
                    continue  # whether users went on below the last document cannot be seen
                if click:
                    s_sums[key(pair, position)][0] += w * (ends and satisfied)
                    s_sums[key(pair, position)][1] += w
                if not (ends and satisfied):
                    on[0] += w * (not ends)
                    on[1] += w
    return a_sums, s_sums, on, total


def click_probabilities(session, likelihood, conditional):
    """Return click probabilities by summing `likelihood` over all clicks that may have been.

    likelihood : function of a session that returns its probability
    """
    probabilities = []
    patterns = [
        [
            (pair, position, click)
            for (pair, position, _), click in zip(session, clicks, strict=True)
        ]
        for clicks in itertools.product([False, True], repeat=len(session))
    ]
    p = [likelihood(pattern) for pattern in patterns]
    for i, _ in enumerate(session):
        fits = [
            (pattern, weight)
            for pattern, weight in zip(patterns, p, strict=True)
            if not conditional or pattern[:i] == session[:i]
        ]
        clicked = sum(weight for pattern, weight in fits if pattern[i][2])
        probabilities.append(clicked / sum(weight for _, weight in fits))
    return probabilities


def pattern_probability(session, attraction, stop, going, key):
    """Return the probability of the clicks of a session, the sum over all histories."""
    return sum(
        chain_probability(session, way, attraction, stop, going, key) for way in histories(session)
    )


def chain_exposures(sessions, attraction, stop, going, key):
    """Return what stops and attractiveness are estimated from, by enumerating clicks.

    Of pairs: clicks, examinations given the clicks above, their squares. Of stops, for clicks that
    are not at the end: those with another click below, the probability of another click where users
    did not stop, its square.
    """
    a_sums, s_sums = defaultdict(lambda: [0.0] * 3), defaultdict(lambda: [0.0] * 3)
    for session in sessions:
        clicked = click_probabilities(
            session, lambda one: pattern_probability(one, attraction, stop, going, key), True
        )
        for i, (pair, position, click) in enumerate(session):
            examined = clicked[i] / attraction[pair]
            for power, value in enumerate((float(click), examined, examined**2)):
                a_sums[pair][power] += value
            if not click or i == len(session) - 1:
                continue
            alone = [(*one[:2], one[2] and j <= i) for j, one in enumerate(session)]
            s = stop[key(pair, position)]
            until = pattern_probability(session[: i + 1], attraction, stop, going, key)
            ends = pattern_probability(alone, attraction, stop, going, key) / until
            again = (1 - ends) / (1 - s)  # users who do not stop click again
            last = not any(click for *_, click in session[i + 1 :])
            for power, value in enumerate((float(not last), again, again**2)):
                s_sums[key(pair, position)][power] += value
    return a_sums, s_sums


def posterior_of_stop(n_others, missing, prior, n=20_001):
    """Return the mean of a stop, and those without each last click, by a fine sum.

    prior : function of a stop that returns its density
    """

    def mean(left_out=None):
        above = below = 0.0
        for k in range(n):
            s = (k + 0.5) / n
            p = prior(s) * (1 - s) ** n_others
            for i, q in enumerate(missing):
                p *= 1.0 if i == left_out else s + (1 - s) * q
            above += p * s
            below += p
        return above / below

    return mean(), [mean(i) for i in range(len(missing))]
