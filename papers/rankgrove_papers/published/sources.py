"""Where the published figures were found, in words for the page."""

from __future__ import annotations

# key -> authors, title, year, place, table, and how the figures were measured
SOURCES: dict[str, str] = {
    "lightgbm-2020": (
        "Guolin Ke, *boosting_tree_benchmarks*, 2020, "
        "`github.com/guolinke/boosting_tree_benchmarks`, `result.md` and the logs beside it "
        "(commit 9c03163), the run of March 2020 that LightGBM's documentation (*Experiments*) "
        "refers to. 500 rounds, 255 leaves, rate .1, trained on S1 to S3 and tested on S5 of "
        "MSLR-WEB30K, or on `set1.train.txt` and `set1.test.txt`. The script that makes the "
        "table takes the highest value over all rounds **of the test data**, for every measure "
        "apart; the logs have the last round too. Measured by LightGBM and XGBoost themselves."
    ),
    "lightgbm-2017": (
        "LightGBM's documentation, *Experiments*, a version before that of 2020 (the first is "
        "of 2017), `docs/Experiments.rst` in `github.com/microsoft/LightGBM` (commit 01a8c0a), "
        "section Accuracy. The same data and settings; which round is not said."
    ),
    "lightgbm-3425": (
        "metpavel, *Add support to optimize for NDCG at a given truncation level*, 2020, pull "
        "request 3425 of LightGBM, comment of 2020-10-01: default `train.conf`, 100 rounds, the "
        "validation part of fold 1."
    ),
    "pobrotyn-2020": (
        "Pobrotyn, Bartczak, Synowiec, Białobrzeski and Bojar, *Context-Aware Learning to Rank "
        "with Self-Attention*, 2020, arXiv 2005.10084, the table of results on WEB30K, as "
        "quoted in issue 62 of `github.com/allegro/allRank`. Split, convention and the numbers "
        "of queries without relevant documents are in `reproducibility/HOWTO.md` of that "
        "repository (commit c884756): means of the *validation* parts of the five folds, such "
        "queries count 1. A reader reports lower figures there (50.59 for 54.49)."
    ),
    "tfr-148": (
        "The paper on groupwise scoring functions (GSF), arXiv 1811.04415, 2018, as quoted in "
        "issue 148 of `github.com/tensorflow/ranking`, 2019, with the figure that the writer of "
        "the issue got. It says that queries whose labels are all 0 were removed. Gain, "
        "discount and ties are those of TF-Ranking at that time, which we have not read."
    ),
    "lgrz": (
        "lgrz, *LTR Baseline*, 2019, `github.com/lgrz/ltr-baseline`, `README.md` (commit "
        "821fb2e), one table per data set. Neither the program that measured nor the folds are "
        "named."
    ),
    "catboost": (
        "CatBoost's developers, *Ranking benchmark*, 2018 and 2019, "
        "`github.com/catboost/benchmarks`, `ranking/Readme.md`, section Results. 8,000 rounds; "
        "depth, rate and bins are the best of a grid, and so is the round; there is no "
        "validation part, so both were chosen on test data. Measured by `ranking/utils.py`: "
        "gain 2^l - 1, discount 1/log2(1+r), 1 where nothing is relevant, and of tied documents "
        "the less relevant first."
    ),
    "ganjisaffar-2011": (
        "Ganjisaffar, Caruana and Lopes, *Bagging Gradient-Boosted Trees for High Precision, "
        "Low Variance Ranking Models*, SIGIR 2011, Table 4 (b) and (c); LambdaMART without "
        "randomisation, BL-MART with overfitting, and figures of others as quoted there. "
        "Measured by the evaluation scripts of the data sets."
    ),
    "letor4": (
        "Qin and Liu, *Introducing LETOR 4.0 Datasets*, 2013, arXiv 1306.2597: the publishers' "
        "files of baselines on MQ2008 (RankSVM-Struct, RankBoost, AdaRank-MAP, AdaRank-NDCG), "
        "the averages of the table *Performance on testing set*. Measured by LETOR's script."
    ),
}
