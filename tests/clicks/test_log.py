"""The click log's arrays."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg


def test_sessions_and_impressions_are_put_in_order():
    log = rg.ClickLog(
        [7, 3, 7, 3, 7],
        ["b", "a", "b", "a", "c"],
        ["y", "x", "x", "y", "y"],
        [2, 1, 1, 3, 1],
        [1, 0, 0, 1, 0],
        time=[5, 4, 5, 4, 6],
        context={"device": ["tv", "pc", "tv", "pc", "tv"]},
    )
    assert log.session_ids.tolist() == [7, 3, 7]
    assert log.query_ids[log.session_query].tolist() == ["b", "a", "c"]
    assert log.session_ptr.tolist() == [0, 2, 4, 5]
    documents = log.document_ids[log.pair_document[log.pair]]
    assert documents.tolist() == ["x", "y", "x", "y", "y"]
    assert log.position.tolist() == [1, 2, 1, 3, 1]
    assert log.click.tolist() == [False, True, False, True, False]
    assert log.session_time.tolist() == [5, 4, 6]
    names = np.array(log.contexts["device"].names)
    assert names[log.contexts["device"].codes].tolist() == ["tv", "pc", "tv"]


def test_some_sessions():
    log = rg.ClickLog([1, 1, 2, 3], ["a"] * 4, ["x", "y", "y", "x"], [1, 2, 1, 1], [0, 1, 1, 0])
    part = log.select([2, 0])
    assert part.position.tolist() == [1, 1, 2]
    assert part.click.tolist() == [False, False, True]
    assert part.session_ids.tolist() == [3, 1]
    assert part.n_pairs == log.n_pairs


def test_a_part_shows_its_own_sizes():
    """Parts keep the numbers of queries and documents, but show how many of them occur."""
    log = rg.ClickLog([1, 1, 2], ["a", "a", "b"], ["x", "y", "z"], [1, 2, 1], [0, 1, 1])
    part = log.select([1])
    assert part.n_queries == 2
    assert repr(part) == "ClickLog(1 session, 1 impression, 1 click, 1 query, 1 document)"
    assert part._repr_html_().count(">1</td>") == 5


def test_frozen():
    log = rg.ClickLog([1], ["a"], ["x"], [1], [0])
    with pytest.raises(AttributeError, match="frozen"):
        log.click = np.ones(1)
    with pytest.raises(ValueError, match="read-only"):
        log.click[0] = True
