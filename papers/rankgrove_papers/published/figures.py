"""Figures that others published, each with source and convention, and their conversion.

Published figures differ in what a query counts that has no relevant document. Where the share of
such queries is known, a mean can be converted exactly, because the figures of all other queries are
the same. Nothing else can be converted without the rankings: not another gain or discount, not
another order of tied documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rankgrove.tuning.tables import markdown
from rankgrove_papers.published.sources import SOURCES

COUNTS_0, COUNTS_1, LEFT_OUT = "0", "1", "left out"
NOT_KNOWN = "not known"
# Why a figure is not converted; the letters stand in the table, the page says it in full.
REASONS = {
    "a": "the share of queries without relevant documents is not in a source that we read",
    "b": "LETOR's script has another discount, and 0 for queries with fewer than k documents",
    "c": "the source does not say what program or formula measured it",
    "d": "LETOR's script for MSLR counts only labels from 2 on as relevant",
}
# Queries without relevant documents: their number, and that of all queries; several pairs are the
# parts that a mean of folds was taken over.
SHARES: dict[str, tuple[tuple[int, int], ...]] = {
    # MSLR-WEB30K: the table at the end of allRank's guide
    "web30k-1-test": ((189, 6306),),
    "web30k-1-vali": ((191, 6306),),
    "web30k-vali": ((191, 6306), (189, 6306), (206, 6307), (195, 6306), (201, 6306)),
    # MQ2008: counted in the published files S1 to S5; fold k is tested on S(k + 4)
    "mq2008-1-test": ((51, 156),),
    "mq2008-test": ((52, 157), (45, 157), (35, 157), (37, 157), (51, 156)),
}


@dataclass(frozen=True)
class Figure:
    """A published mean.

    Attributes
    ----------
    data, split, model, measure : what was measured, and on which part of the data
    value : the figure as published; numbers above 1 are percentages
    convention : convention in rankgrove, as in ``measure[convention]``; "other": none of them
    empty : what a query without relevant documents counts: "0", "1", "left out" or "not known"
    share : key of `SHARES`, or a letter of `REASONS`
    source : key of `SOURCES`
    """

    data: str
    split: str
    model: str
    measure: str
    value: str
    convention: str
    empty: str
    share: str
    source: str

    @property
    def share_of_empty(self) -> float | None:
        """The share of queries without relevant documents, if it is known."""
        if self.share in REASONS:
            return None
        parts = SHARES[self.share]
        return sum(empty / queries for empty, queries in parts) / len(parts)

    def converted(self, to: str) -> str | None:
        """Return the figure with another rule for empty queries, with the published digits."""
        share = self.share_of_empty
        if share is None:
            return None
        one = 100.0 if float(self.value) > 1 else 1.0
        value = convert(float(self.value) / one, share, self.empty, to) * one
        return f"{value:.{len(self.value.partition('.')[2])}f}"


def convert(value: float, share: float, empty: str, to: str) -> float:
    """Return a mean with another rule for queries without relevant documents.

    Parameters
    ----------
    value : the mean, between 0 and 1
    share : the share of such queries
    empty, to : what they count in it, and in the result: "0", "1" or "left out"
    """
    others = value if empty == LEFT_OUT else (value - float(empty) * share) / (1 - share)
    return others if to == LEFT_OUT else others * (1 - share) + float(to) * share


def _of(
    source: str, data: str, split: str, convention: str, empty: str, share: str, rows: str
) -> Iterator[Figure]:
    """Yield the figures of a source; every row is ``model; measure value; measure value ...``."""
    for row in rows.strip().splitlines():
        model, *pairs = (cell.strip() for cell in row.split(";"))
        for pair in pairs:
            measure, value = pair.split()
            yield Figure(data, split, model, measure, value, convention, empty, share, source)


TEST_1, VALI_1 = "fold 1, test", "fold 1, validation"
VALI_5, TEST_5 = "mean of 5 folds, validation", "mean of 5 folds, test"
SET_TEST, UNSAID = "test", "test, folds not said"

FIGURES: tuple[Figure, ...] = (
    *_of(
        "lightgbm-2020",
        "MSLR-WEB30K",
        TEST_1,
        "lightgbm",
        COUNTS_1,
        "web30k-1-test",
        """
        LightGBM, best round of each measure; ndcg@1 0.517767; ndcg@3 0.501063
        LightGBM, best round of each measure; ndcg@5 0.504648; ndcg@10 0.524252
        LightGBM, all 500 rounds; ndcg@10 0.521484
        XGBoost hist, best round; ndcg@10 0.496553
        XGBoost exact, best round; ndcg@10 0.492429
        """,
    ),
    *_of(
        "lightgbm-2017",
        "MSLR-WEB30K",
        TEST_1,
        "lightgbm",
        COUNTS_1,
        "web30k-1-test",
        """
        LightGBM; ndcg@1 0.524255; ndcg@10 0.527371
        XGBoost hist; ndcg@10 0.496967
        """,
    ),
    *_of(
        "lightgbm-3425",
        "MSLR-WEB30K",
        VALI_1,
        "lightgbm",
        COUNTS_1,
        "web30k-1-vali",
        """
        LightGBM, 100 rounds, full lists; ndcg@5 0.487863
        LightGBM, 100 rounds, truncation 20; ndcg@5 0.489424
        """,
    ),
    *_of(
        "pobrotyn-2020",
        "MSLR-WEB30K",
        VALI_5,
        "lightgbm",
        COUNTS_1,
        "web30k-vali",
        """
        self-attention, NDCGLoss 2++; ndcg@5 52.65; ndcg@10 54.49; ndcg@30 59.80
        self-attention, LambdaRank; ndcg@10 54.08
        MLP, NDCGLoss 2++; ndcg@5 49.15; ndcg@10 51.22
        MLP, LambdaRank; ndcg@10 50.85
        """,
    ),
    *_of(
        "tfr-148",
        "MSLR-WEB30K",
        TEST_1,
        "other",
        LEFT_OUT,
        "web30k-1-test",
        """
        GSF(1), as in its paper; ndcg@5 40.4
        GSF(1), repeated by a reader; ndcg@5 39.56517
        """,
    ),
    *_of(
        "lgrz",
        "MSLR-WEB30K",
        UNSAID,
        "other",
        NOT_KNOWN,
        "c",
        """
        LightGBM, LambdaRank; ndcg@10 0.5046; err@10 0.3881
        XGBoost, GBDT; ndcg@10 0.5034
        jforests, LambdaRank; ndcg@10 0.5025
        QuickRank, LambdaMART; ndcg@10 0.4942
        """,
    ),
    *_of(
        "catboost",
        "MSLR-WEB10K",
        TEST_1,
        "lightgbm,ties=worst",
        COUNTS_1,
        "a",
        """
        CatBoost, QueryRMSE; ndcg@10 0.50998
        CatBoost, YetiRank; ndcg@10 0.507434
        LightGBM, pairwise; ndcg@10 0.5060907
        XGBoost, LambdaMART; ndcg@10 0.504549
        """,
    ),
    *_of(
        "ganjisaffar-2011",
        "MSLR-WEB10K",
        TEST_5,
        "mslr",
        COUNTS_0,
        "a",
        """
        LambdaMART; ndcg@1 0.4580
        BL-MART; ndcg@1 0.4642
        """,
    ),
    *_of(
        "ganjisaffar-2011",
        "MSLR-WEB10K",
        TEST_5,
        "mslr",
        COUNTS_0,
        "b",
        """
        LambdaMART; ndcg@3 0.4467
        BL-MART; ndcg@3 0.4516
        """,
    ),
    *_of(
        "ganjisaffar-2011",
        "MSLR-WEB10K",
        TEST_5,
        "mslr",
        COUNTS_0,
        "d",
        """
        LambdaMART; map 0.3670
        BL-MART; map 0.3705
        """,
    ),
    *_of(
        "lgrz",
        "MSLR-WEB10K",
        UNSAID,
        "other",
        NOT_KNOWN,
        "c",
        """
        LightGBM, LambdaRank; ndcg@10 0.4913; err@10 0.3735
        XGBoost, GBDT; ndcg@10 0.4893
        """,
    ),
    *_of(
        "lightgbm-2020",
        "Yahoo set 1",
        SET_TEST,
        "lightgbm",
        COUNTS_1,
        "a",
        """
        LightGBM, best round of each measure; ndcg@1 0.732981; ndcg@3 0.735689
        LightGBM, best round of each measure; ndcg@5 0.75352; ndcg@10 0.793498
        XGBoost hist, best round; ndcg@10 0.782957
        """,
    ),
    *_of(
        "catboost",
        "Yahoo set 1",
        SET_TEST,
        "lightgbm,ties=worst",
        COUNTS_1,
        "a",
        """
        CatBoost, YetiRank; ndcg@10 0.802972
        LightGBM, pairwise; ndcg@10 0.801347
        XGBoost, LambdaMART; ndcg@10 0.800048
        """,
    ),
    *_of(
        "lgrz",
        "Yahoo set 1",
        SET_TEST,
        "other",
        NOT_KNOWN,
        "c",
        """
        XGBoost, GBDT; ndcg@10 0.7858; err@10 0.4745
        LightGBM, LambdaRank; ndcg@10 0.7845; err@10 0.4761
        """,
    ),
    *_of(
        "lgrz",
        "Yahoo set 2",
        SET_TEST,
        "other",
        NOT_KNOWN,
        "c",
        """
        XGBoost, GBDT; ndcg@10 0.7746
        LightGBM, LambdaRank; ndcg@10 0.7735; err@10 0.4613
        """,
    ),
    *_of(
        "lgrz",
        "Istella-S",
        SET_TEST,
        "other",
        NOT_KNOWN,
        "c",
        """
        LightGBM, LambdaRank; ndcg@10 0.7614; err@10 0.7566
        jforests, LambdaRank; ndcg@10 0.7612
        QuickRank, LambdaMART; ndcg@10 0.7559
        """,
    ),
    *_of(
        "lgrz",
        "Istella",
        SET_TEST,
        "other",
        NOT_KNOWN,
        "c",
        """
        LightGBM, LambdaRank; ndcg@10 0.7165; err@10 0.7625
        jforests, LambdaRank; ndcg@10 0.7133
        QuickRank, LambdaMART; ndcg@10 0.7049
        """,
    ),
    *_of(
        "ganjisaffar-2011",
        "MQ2007",
        TEST_5,
        "letor",
        COUNTS_0,
        "a",
        """
        RankSVM-Struct; ndcg@1 0.4096; map 0.4645
        ListNet; ndcg@1 0.4002; map 0.4652
        RankBoost; ndcg@1 0.4134; map 0.4662
        LambdaMART; ndcg@1 0.4147; map 0.4660
        BL-MART; ndcg@1 0.4200; map 0.4731
        """,
    ),
    *_of(
        "letor4",
        "MQ2008",
        TEST_5,
        "letor",
        COUNTS_0,
        "mq2008-test",
        """
        RankSVM-Struct; ndcg@1 0.36266; map 0.46956
        RankBoost; ndcg@1 0.3856; map 0.4775
        AdaRank-MAP; ndcg@1 0.3754; map 0.4764
        AdaRank-NDCG; ndcg@1 0.3826; map 0.4824
        """,
    ),
    *_of(
        "letor4",
        "MQ2008",
        TEST_5,
        "letor",
        COUNTS_0,
        "b",
        """
        AdaRank-NDCG; ndcg@5 0.4821; ndcg@10 0.2307
        """,
    ),
    *_of(
        "catboost",
        "MQ2008",
        TEST_1,
        "lightgbm,ties=worst",
        COUNTS_1,
        "mq2008-1-test",
        """
        CatBoost, RMSE; ndcg@10 0.830443
        CatBoost, YetiRank; ndcg@10 0.828799
        LightGBM, pairwise; ndcg@10 0.822661
        """,
    ),
)  # fmt: skip


def table() -> str:
    """Return all figures as the table of docs/published-figures.md."""
    header = (
        "data set", "split", "model", "measure", "published", "convention", "empty queries",
        "share of empty", "counted 0", "left out", "counted 1", "source",
    )  # fmt: skip
    numbers = {key: k for k, key in enumerate(SOURCES, start=1)}
    rows = []
    for one in FIGURES:
        share = one.share_of_empty
        shown = f"- ({one.share})" if share is None else f"{share:.6f}"
        results = [one.converted(to) or "-" for to in (COUNTS_0, LEFT_OUT, COUNTS_1)]
        rows.append(
            [one.data, one.split, one.model, one.measure, one.value, one.convention, one.empty,
             shown, *results, f"[{numbers[one.source]}]"]
        )  # fmt: skip
    return markdown(header, rows)


def sources_list() -> str:
    """Return the sources as a numbered list."""
    return "\n".join(f"{k}. {text}" for k, text in enumerate(SOURCES.values(), start=1))


def comparable(data: str, split: str, conventions: list[str]) -> list[Figure]:
    """Return the figures of a data set and split that a convention of rankgrove was used for.

    A difference in the order of ties alone, after the comma, is let pass.
    """
    return [
        one
        for one in FIGURES
        if one.data == data and one.split == split and one.convention.split(",")[0] in conventions
    ]
