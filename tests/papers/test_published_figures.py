"""docs/published-figures.md: every row has source and convention, every conversion its formula."""

from __future__ import annotations

import re

import pytest
from tools import published

import rankgrove as rg
from rankgrove_papers.published.figures import SHARES, comparable, convert
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "published-figures.md").read_text()
HEADER = [
    "data set", "split", "model", "measure", "published", "convention", "empty queries",
    "share of empty", "counted 0", "left out", "counted 1", "source",
]  # fmt: skip
LINES = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in PAGE.partition("<!-- begin figures -->")[2]
    .partition("<!-- end -->")[0]
    .splitlines()
    if line.startswith("|")
]
ROWS = [dict(zip(HEADER, cells, strict=True)) for cells in LINES[2:]]
REASONS = dict(re.findall(r"^- \((\w)\) (.+)$", PAGE, re.MULTILINE))
SOURCES = dict(re.findall(r"^(\d+)\. (\w.{40,})$", PAGE.partition("## Sources")[2], re.MULTILINE))


def recomputed(published, empty, share, to):
    """The page's formula, from the row's own cells."""
    m = published if empty == "left out" else (published - float(empty) * share) / (1 - share)
    return m if to is None else m * (1 - share) + to * share


def test_the_page_has_what_was_asked_for():
    assert LINES[0] == HEADER
    assert len(ROWS) >= 30
    assert len({tuple(row.values()) for row in ROWS}) == len(ROWS)
    data = {row["data set"] for row in ROWS}
    assert {"MSLR-WEB10K", "MSLR-WEB30K", "Yahoo set 1", "Yahoo set 2", "Istella"} <= data
    assert {"Istella-S", "MQ2007", "MQ2008"} <= data
    measures = {row["measure"].partition("@")[0] for row in ROWS}
    assert measures == {"ndcg", "map", "err"}


def test_the_tables_are_those_of_the_tool():
    assert published.filled(PAGE) == PAGE  # else: python -m tools.published


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row.values())[:90])
def test_a_row(row):
    assert re.fullmatch(r"\[(\d+)\]", row["source"])[1] in SOURCES
    assert row["split"]
    assert row["model"]
    name = row["measure"]
    rg.measure(name if row["convention"] == "other" else f"{name}[{row['convention']}]")
    published_value = float(row["published"])
    assert 0 < published_value < 100
    results = [row[column] for column in ("counted 0", "left out", "counted 1")]
    if row["share of empty"].startswith("-"):
        reason = re.fullmatch(r"- \((\w)\)", row["share of empty"])[1]
        assert reason in REASONS
        assert results == ["-"] * 3
        return
    one = 100 if published_value > 1 else 1
    share = float(row["share of empty"])
    digits = len(row["published"].partition(".")[2])
    for shown, to in zip(results, (0, None, 1), strict=True):
        value = one * recomputed(published_value / one, row["empty queries"], share, to)
        assert len(shown.partition(".")[2]) == digits
        # the share of the table has six decimals
        assert float(shown) == pytest.approx(value, abs=0.51 * 10**-digits + 1e-6 * one)
    same = {"0": "counted 0", "left out": "left out", "1": "counted 1"}[row["empty queries"]]
    assert row[same] == row["published"]


def test_the_convention_says_what_empty_queries_count():
    counts = {"lightgbm": "1", "mslr": "0", "letor": "0"}
    for row in ROWS:
        preset = row["convention"].partition(",")[0]
        assert row["empty queries"] == counts.get(preset, row["empty queries"])


def test_the_example_of_the_page():
    (row,) = (row for row in ROWS if row["published"] == "54.49")
    assert row["counted 0"] == "51.38"
    assert row["share of empty"] == "0.031144"
    blank = [empty for empty, _ in SHARES["web30k-vali"]]
    assert (sum(blank), sum(n for _, n in SHARES["web30k-vali"])) == (982, 31531)


@pytest.mark.parametrize("empty", ["0", "1", "left out"])
@pytest.mark.parametrize("to", ["0", "1", "left out"])
def test_conversion_is_what_evaluation_gives(empty, to):
    labels = [2, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    data = rg.QueryDataset([[float(k)] for k in range(12)], labels, [k // 3 for k in range(12)])
    scores = [0.1, 0.4, 0.3, 0.2, 0.5, 0.6, 0.9, 0.8, 0.7, 3, 2, 1]

    def mean(rule):
        name = f"ndcg@10[empty={'drop' if rule == 'left out' else rule}]"
        (value,) = rg.evaluate(scores, data, name).mean.values()
        return value

    assert convert(mean(empty), 2 / 4, empty, to) == pytest.approx(mean(to), abs=1e-12)


def test_shares_of_mq2008_are_those_of_the_files(data_dir):
    counted = []
    for k in (5, 1, 2, 3, 4):  # fold k is tested on S(k + 4)
        part = rg.read_letor(data_dir / "mq2008" / f"S{k}.txt.gz")
        highest = [part.y[part.qid == q].max() for q in part.query_ids]
        counted.append((sum(label <= 0 for label in highest), part.n_queries))
    assert sorted(counted) == sorted(SHARES["mq2008-test"])
    assert (counted[0],) == SHARES["mq2008-1-test"]


def test_comparable_figures():
    found = comparable("MSLR-WEB30K", "fold 1, test", ["lightgbm"])
    assert {one.measure for one in found} == {"ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10"}
    assert comparable("MSLR-WEB30K", "fold 1, test", ["papers"]) == []
    assert comparable("MSLR-WEB10K", "fold 1, test", ["lightgbm"])  # ties apart
    assert comparable("MSLR-WEB30K", "fold 2, test", ["lightgbm"]) == []
