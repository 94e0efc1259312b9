"""Interleaving as its papers write it, in plain Python: the oracles of the tests."""

from __future__ import annotations

from itertools import permutations, product


def allowed(first, second):
    """Return the lists whose every beginning is a union of beginnings, by trying all of them."""
    length = len(first)
    lists = set()
    for one in permutations(set(first) | set(second), length):
        fits = all(
            any(
                set(one[:n]) == set(first[:i]) | set(second[:j])
                for i, j in product(range(length + 1), repeat=2)
            )
            for n in range(1, length + 1)
        )
        if fits:
            lists.add(one)
    return lists


def team_draft_lists(first, second, length):
    """Return every shown list with its teams and its probability: a coin in every round."""

    def go(shown, teams):
        if len(shown) == length:
            found[(tuple(shown), tuple(teams))] = (
                found.get((tuple(shown), tuple(teams)), 0) + (chance[0])
            )
            return
        counts = teams.count(0), teams.count(1)
        choices = [0, 1] if counts[0] == counts[1] else [int(counts[0] > counts[1])]
        for team in choices:
            document = next(d for d in (first, second)[team] if d not in shown)
            chance[0] /= len(choices)
            go([*shown, document], [*teams, team])
            chance[0] *= len(choices)

    found: dict = {}
    chance = [1.0]
    go([], [])
    return found


def balanced(first, second, length, first_is_first):
    """Return the list of Joachims' algorithm, with two places that move."""
    shown, a, b = [], 0, 0
    while len(shown) < length:
        if a < b or (a == b and first_is_first):
            if first[a] not in shown:
                shown.append(first[a])
            a += 1
        else:
            if second[b] not in shown:
                shown.append(second[b])
            b += 1
    return shown
