"""Model files that every later version must load: ``python -m tools.saved_models add``.

`add` trains a small model of every kind and form that ``tests/saved_models`` has no file of yet,
and writes the file with its scores. Existing files are never written again: they are what an
earlier version wrote, and their scores are the promise of docs/releases.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import rankgrove as rg
from rankgrove.files import write_atomically
from tools.damaging_subjects import WITH_CATEGORIES, make_models, some_categories, some_data

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "saved_models"
SCORES = FOLDER / "scores.json"


def scored_data(name: str) -> rg.QueryDataset:
    """Return the data that the model of a file scores."""
    return some_categories(5) if name in WITH_CATEGORIES else some_data(5)


def header_of(path: Path) -> dict[str, Any]:
    """Return the header of a model file: its kind, and the version that wrote it."""
    with zipfile.ZipFile(path) as archive:
        header: dict[str, Any] = json.loads(archive.read("header.json"))
    return header


def more_models(folder: Path) -> dict[str, Path]:
    """Write models of kinds and forms that `make_models` has none of; return the files by name."""
    data = some_data()
    trees: dict[str, Any] = {"n_trees": 3, "n_leaves": 4, "min_leaf": 2, "n_threads": 1}
    shown = np.concatenate([np.arange(1, size + 1) for size in np.diff(data.query_ptr)])
    clicked = data.with_positions(shown)
    holes = np.array(data.X)
    holes[::3, 2] = np.nan
    missing = rg.QueryDataset(holes, data.y, data.qid)
    weights = folder / "ranklib.txt"
    weights.write_text("## Linear Regression\n## Lambda = 1.0E-10\n0:0.5 1:1.5 2:-0.25 4:2.0\n")
    rankers: dict[str, Any] = {
        "prepared": rg.PreparedRanker(
            rg.LambdaMART(**trees), features=[1, 3, 5], normalise="zscore"
        ).fit(data),
        "weights": rg.load(weights),
        "missing": rg.LambdaMART(**trees).fit(missing),
        "symmetric": rg.LambdaMART(growth="symmetric", **trees).fit(data),
        "position-bias": rg.LambdaMART(position_bias="additive", **trees).fit(clicked),
        "mcrank-ordinal": rg.McRank("ordinal", **trees).fit(data),
        "mart-logistic": rg.MART("logistic", **trees).fit(data),
    }
    for name, ranker in {
        "svm-roc": rg.SVMRoc, "svm-mrr": rg.SVMMrr, "svm-ndcg": rg.SVMNdcg, "svm-acc": rg.SVMAcc,
    }.items():  # fmt: skip
        rankers[name] = ranker(C=1.0, n_threads=1).fit(data)
    paths = {name: folder / f"{name}.rg" for name in rankers}
    for name, ranker in rankers.items():
        ranker.save(paths[name])
    return paths


def add(folder: Path = FOLDER) -> list[str]:
    """Write the files that are absent, and their scores; return their names."""
    scores_file = folder / SCORES.name
    scores = json.loads(scores_file.read_text()) if scores_file.exists() else {}
    with tempfile.TemporaryDirectory() as work:
        files = make_models(Path(work)) | more_models(Path(work))
        added = [name for name in files if not (folder / f"{name}.rg").exists()]
        for name in added:
            scores[name] = rg.load(files[name]).predict(scored_data(name), n_threads=1).tolist()
        for name in added:
            shutil.copyfile(files[name], folder / f"{name}.rg")
    lines = ",\n".join(
        f" {json.dumps(name)}: {json.dumps(scores[name])}" for name in sorted(scores)
    )
    write_atomically(scores_file, f"{{\n{lines}\n}}\n")
    return added


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["add"])
    parser.parse_args()
    print("\n".join(add()) or "every kind and form has its file")
