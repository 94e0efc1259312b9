"""Train on MSLR-WEB, Yahoo or Istella, and measure by all conventions at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

import rankgrove as rg
from rankgrove.measures.base import exact_mean
from rankgrove.tuning.tables import markdown
from rankgrove.validation import check_choice, check_integer, counted
from rankgrove_papers.published.figures import comparable
from rankgrove_papers.published.layouts import KNOWN, LAYOUTS, Part
from rankgrove_papers.study import Experiment, Findings, Study

CONVENTIONS = ("papers", "letor", "mslr", "trec", "yahoo", "lightgbm", "sklearn", "ranklib")
MEASURES = ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map", "err", "err@10")
RANKERS: dict[str, type[Any]] = {"lambdamart": rg.LambdaMART, "mart": rg.MART, "mcrank": rg.McRank}
SETTINGS: dict[str, Any] = {"n_leaves": 64, "learning_rate": 0.1, "min_leaf": 50}
STOP_AFTER = 50  # rounds without a better NDCG@10 of the validation part
HELD_OUT = 0.1  # share of the training queries that decide where there is no validation part

# convention -> measure -> mean
Means = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Plan:
    """What is trained, and how; plain values, because it travels to workers.

    Attributes
    ----------
    layout, ranker : their names
    n_trees : rounds of boosting at most
    low_memory : bins on disk instead of features in memory
    bins : folder for the bins; None: next to the files
    """

    layout: str
    ranker: str
    n_trees: int
    low_memory: bool
    bins: str | None

    def __str__(self) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in SETTINGS.items())
        return f"{self.ranker}, at most {self.n_trees} rounds, {settings}"

    def new_ranker(self, n_threads: int | None) -> Any:
        """Return the untrained ranker."""
        return RANKERS[self.ranker](
            n_trees=self.n_trees, early_stopping=STOP_AFTER, n_threads=n_threads, **SETTINGS
        )


def experiment(
    which: str,
    folder: Path,
    *,
    ranker: str = "lambdamart",
    trees: int | None = None,
    low_memory: bool = False,
    out: Path | None = None,
) -> Experiment:
    """Return the experiment on a publisher's data in a folder.

    Parameters
    ----------
    which : "mslr", "yahoo" or "istella"
    folder : the folder of the data
    ranker : key of `RANKERS`
    trees : rounds of boosting at most; None: 100 at small scale, 500 at full scale
    low_memory : bins on disk instead of features in memory
    out : folder of the results, where bins go too; None: bins are next to the files
    """
    check_choice("ranker", "reproduce", ranker, RANKERS)
    if trees is not None:
        check_integer("trees", "reproduce", trees, low=1)
    layout = LAYOUTS[which]
    parts = layout.parts(folder)
    bins = None if out is None else str(out / "bins")
    return Experiment(
        which,
        "published",
        f"{layout.about}: all conventions at once",
        partial(_run, parts, which, ranker, trees, low_memory, bins),
        data=_described(parts),
        measured="",
    )


def _described(parts: list[Part]) -> str:
    """Return the names of the data sets, and how many divisions there are."""
    names = dict.fromkeys(part.data for part in parts)
    splits = "1 split" if len(parts) == 1 else f"{len(parts)} splits"
    return f"{', '.join(names)} ({splits})"


def _key(part: Part, plan: Plan) -> str:
    """Return the key of a result; other files have another checksum of their names and sizes."""
    sizes = [(path.name, path.stat().st_size) for path in part.files]
    return f"{part.data}, {part.split}, {plan}, files {crc32(repr(sizes).encode()):08x}"


def _run(
    parts: list[Part],
    which: str,
    ranker: str,
    trees: int | None,
    low_memory: bool,
    bins: str | None,
    study: Study,
) -> Findings:
    """Train on every division, only on the first of each data set at small scale; return tables."""
    n_trees = study.size(100, 500) if trees is None else trees
    plan = Plan(which, ranker, n_trees, low_memory, bins)
    of_data: dict[str, list[Part]] = {}
    for part in parts:
        of_data.setdefault(part.data, []).append(part)
    chosen = {name: some[: study.size(1, len(some))] for name, some in of_data.items()}
    keys = {part: _key(part, plan) for some in chosen.values() for part in some}
    results = study.cells({key: (train_and_measure, plan, part) for part, key in keys.items()})
    text = [
        f"{plan}, stopped after {STOP_AFTER} rounds without a better NDCG@10 of the validation "
        f"part; all other parameters are rankgrove's defaults. Test data is measured once, with "
        "the rounds that the validation part chose."
    ]
    for name, some in chosen.items():
        left_out = len(of_data[name]) - len(some)
        text += _tables(name, some, [results[keys[part]] for part in some], left_out)
    return Findings("\n\n".join(text), {})


# -- one division ---------------------------------------------------------------------------------


def train_and_measure(study: Study, plan: Plan, part: Part) -> dict[str, Any]:
    """Train on a division; return sizes, rounds and the means of all conventions."""
    train, valid, test = _read(study, plan, part)
    model = plan.new_ranker(study.n_threads)
    rest, decides = (train, valid) if valid is not None else rg.hold_out(train, HELD_OUT, seed=1)
    model.fit(rest, valid=decides)
    scores = model.predict(test)
    means: Means = {}
    for convention in CONVENTIONS:
        found = rg.evaluate(scores, test, MEASURES, convention=convention)
        means[convention] = {measure: float(found.mean[measure]) for measure in MEASURES}
    labels = test.y if test.order is None else test.y[test.order]
    highest = np.maximum.reduceat(labels, test.query_ptr[:-1])
    return {
        "rows": [data.n_rows if data is not None else 0 for data in (train, valid, test)],
        "queries": test.n_queries,
        "empty": int((highest <= 0).sum()),
        "rounds": int(model.best_round_),
        "means": means,
    }


def _read(study: Study, plan: Plan, part: Part) -> tuple[Any, Any, Any]:
    """Return the training, validation (None: there is no such file) and test data."""
    options: dict[str, Any] = {
        "n_features": LAYOUTS[plan.layout].n_features,
        "n_threads": study.n_threads,
    }
    if not plan.low_memory:
        files = (part.train, part.valid, part.test)
        train, valid, test = (
            rg.read_letor(list(some), **options) if some else None for some in files
        )
        return train, valid, test
    train = rg.open_binned(
        list(part.train), folder=_bins(plan, part, "train"), say=study.say, **options
    )
    valid, test = (
        rg.open_binned(
            list(some), folder=_bins(plan, part, role), like=train, say=study.say,
            n_threads=study.n_threads,
        )
        if some
        else None
        for some, role in ((part.valid, "valid"), (part.test, "test"))
    )  # fmt: skip
    return train, valid, test


def _bins(plan: Plan, part: Part, role: str) -> Path | None:
    if plan.bins is None:
        return None
    name = f"{part.data} {part.split} {role}".replace(",", "").replace(" ", "-").lower()
    return Path(plan.bins, name)


# -- tables ---------------------------------------------------------------------------------------


def _tables(
    name: str, parts: list[Part], results: list[dict[str, Any]], left_out: int
) -> list[str]:
    """Return the tables of a data set: by convention, and next to published figures."""
    known = KNOWN.get(sum(results[0]["rows"]))
    means = {part.split: result["means"] for part, result in zip(parts, results, strict=True)}
    if len(parts) > 1:
        means[f"mean of {len(parts)} folds"] = _mean(list(means.values()))
    rows = [
        [split, measure, *(f"{of[convention][measure]:.4f}" for convention in CONVENTIONS)]
        for split, of in means.items()
        for measure in MEASURES
    ]
    about = [
        f"{part.split}: {r['rows'][0]:,} rows for training, {r['rows'][1]:,} for validation"
        f"{_held_out(part)}, {r['rows'][2]:,} for testing; {r['empty']:,} of {r['queries']:,} test "
        f"queries ({100 * r['empty'] / r['queries']:.2f} %) without anything relevant; "
        f"{counted(r['rounds'], 'round')}"
        for part, r in zip(parts, results, strict=True)
    ]
    more = [f"{counted(left_out, 'more fold')} with --scale full."] if left_out else []
    size = "" if known else ", not of a published size"
    title = f"### {known or name}{size}"
    lines = "\n".join(f"- {line}" for line in [*about, *more])
    return [title, lines, markdown(("split", "measure", *CONVENTIONS), rows), _beside(known, means)]


def _held_out(part: Part) -> str:
    return "" if part.valid else f" ({100 * HELD_OUT:.0f} % of the training queries held out)"


def _mean(of_folds: list[Means]) -> Means:
    return {
        convention: {
            measure: exact_mean(np.array([of[convention][measure] for of in of_folds]))
            for measure in MEASURES
        }
        for convention in CONVENTIONS
    }


def _beside(known: str | None, means: dict[str, Means]) -> str:
    """Return our figures next to published ones of the same data, split, measure and convention."""
    if known is None:
        return (
            "No published figures next to these: the number of rows is not that of a published "
            f"data set ({', '.join(KNOWN.values())})."
        )
    rows = [
        [split, one.measure, one.convention, one.model, one.value, f"{ours:.4f}"]
        for split, of in means.items()
        for one in comparable(known, _published_split(split), list(CONVENTIONS))
        if (ours := of[one.convention.split(",")[0]].get(one.measure)) is not None
    ]
    if not rows:
        return (
            "No published figure that we know was measured on this split by one of these "
            "conventions: see the page on published figures."
        )
    header = ("split", "measure", "convention", "published: model", "published", "here")
    return (
        f"Published figures of the same split, measure and convention:\n\n{markdown(header, rows)}"
    )


def _published_split(split: str) -> str:
    return split if split == "test" else f"{split}, test"
