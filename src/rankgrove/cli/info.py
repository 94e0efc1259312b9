"""``rankgrove info``: the content of model files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rankgrove.rankers.auto.auto import AutoRanker
    from rankgrove.rankers.base import Ranker
    from rankgrove.reporting.learning import LearningCurve

SHOWN_NAMES = 8


def info(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...",
            help="Model files: rankgrove's, LightGBM's (text, dumped JSON), XGBoost's (JSON, UBJ, "
            "dumped JSON), RankLib's, QuickRank's or Solr's.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write everything to this JSON file.")
    ] = None,
) -> None:
    """Show model files: kind, size, features, parameters, training record, validation values.

    Examples:

    rankgrove info web.rg

    rankgrove info web.rg lightgbm.txt --out models.json
    """
    import json

    from rankgrove.cli.inputs import check_exists
    from rankgrove.cli.outputs import check_writable, say_written
    from rankgrove.files import write_atomically

    for path in models:
        check_exists(path)
    check_writable("info", {"--out": out}, models)
    descriptions = [described(path) for path in models]
    typer.echo("\n\n".join(_text(description) for description in descriptions))
    if out is not None:
        write_atomically(out, json.dumps(descriptions, indent=1) + "\n")
    say_written(out)


def described(path: Path) -> dict[str, Any]:
    """Return the content of a model file, as plain values."""
    from rankgrove.rankers.load import load

    ranker = load(path)
    return {"file": str(path), "bytes": path.stat().st_size, **_describe(ranker)}


def _describe(ranker: Ranker) -> dict[str, Any]:
    from rankgrove.rankers.base import plain_parameters
    from rankgrove.reporting.learning import learning_curves

    names = getattr(ranker, "feature_names_", None)
    members = [*getattr(ranker, "rankers_", ()), getattr(ranker, "ranker_", None)]
    base = ranker.adapted_from()
    return {
        "kind": f"{ranker.kind} ({type(ranker).__name__})",
        "features": ranker.n_features_in_,
        "feature names": None if names is None else list(names),
        "categorical features": _categorical(ranker),
        "trees": ranker.tree_count(),
        "parameters": plain_parameters(ranker),
        "training record": [_record(curve) for curve in learning_curves("", ranker)],
        **_values(ranker),
        "pruning": getattr(ranker, "pruning_", None),
        "rankers": [_describe(member) for member in [*members, base] if hasattr(member, "kind")],
        "summary": ranker.summary().splitlines() if hasattr(ranker, "summary") else [],
    }


def _categorical(ranker: Ranker) -> dict[str, Any]:
    """Return the names of the categories of every categorical feature; None: only codes."""
    return {
        ranker._names()[j]: None if names is None else list(names)
        for j, names in ranker.categories_.items()
    }


def _values(ranker: Ranker) -> dict[str, Any]:
    """Return the values that combinations and bags have instead of a training record."""
    from rankgrove.rankers.auto.auto import AutoRanker

    if isinstance(ranker, AutoRanker):
        return {"search": _search(ranker)}
    measured = {
        "value on the data of the weights": getattr(ranker, "value_", None),
        "out of bag": getattr(ranker, "out_of_bag_", None),
    }
    values = {
        name: {str(ranker.measure): value} for name, value in measured.items() if value is not None
    }
    if hasattr(ranker, "rankers_") and hasattr(ranker, "weights_"):
        values["weights"] = ranker.weights_.tolist()
    return values


def _search(ranker: AutoRanker) -> dict[str, Any]:
    """Return what an AutoRanker found: its estimate, and every candidate with its weight."""
    return {
        "measure": str(ranker.measure),
        "nested estimate": ranker.value_,
        "95 % interval": [None if math.isnan(end) else end for end in ranker.interval_],
        "optimism": ranker.optimism_,
        "microseconds per document": ranker.microseconds_,
        "models": len(ranker.model_.models_),
        "candidates": ranker.leaderboard_.to_list(),
        "failed": ranker.failed_,
        "interrupted": ranker.interrupted_,
    }


def _record(curve: LearningCurve) -> dict[str, Any]:
    """Return a training record: its first, last and kept points."""
    import numpy as np

    known = np.flatnonzero(~np.isnan(curve.y))
    x, y = curve.x[known], curve.y[known]
    kept = np.flatnonzero(x == (np.nan if curve.best is None else curve.best))
    at = int(kept[0]) if kept.size else -1
    return {
        "data": curve.data,
        "measure": curve.measure,
        "ranker": curve.member,
        "unit": curve.unit,
        "first": [float(x[0]), float(y[0])] if x.size else None,
        "last": [float(x[-1]), float(y[-1])] if x.size else None,
        "kept": [float(x[at]), float(y[at])] if x.size else None,
    }


def _text(description: dict[str, Any], indent: str = "") -> str:
    """Return the description as text."""
    from rankgrove.data.categories import names_text

    lines = (
        [f"{description['file']}: {description['bytes']:,} bytes"] if "file" in description else []
    )
    lines.append(f"kind: {description['kind']}")
    names = description["feature names"] or []
    more = f", ... ({len(names) - SHOWN_NAMES} more)" if len(names) > SHOWN_NAMES else ""
    named = f" ({', '.join(names[:SHOWN_NAMES])}{more})" if names else ", without names"
    lines.append(f"features: {description['features']:,}{named}")
    for feature, texts in description["categorical features"].items():
        shown = names_text(None if texts is None else tuple(texts), SHOWN_NAMES)
        lines.append(f"categorical feature {feature}: {shown}")
    if description["trees"] is not None:
        lines.append(f"trees: {description['trees']:,}")
    if description["parameters"]:
        params = [f"{name}={value}" for name, value in description["parameters"].items()]
        lines.append(f"parameters: {', '.join(params)}")
    lines += [_record_text(record) for record in description["training record"] if record["kept"]]
    for name in ("value on the data of the weights", "out of bag"):
        lines += [f"{name}: {m} {v:.4f}" for m, v in description.get(name, {}).items()]
    if "weights" in description:
        lines.append(f"weights: {', '.join(f'{weight:.4g}' for weight in description['weights'])}")
    if description["pruning"]:
        before, *_, after = description["pruning"]["trees"]
        lines.append(f"pruned: {before:,} trees before, {after:,} left")
    if description["summary"]:
        lines += ["summary:", *(f"  {line}" for line in description["summary"])]
    for number, member in enumerate(description["rankers"], 1):
        lines += [f"ranker {number}:", _text(member, "  ")]
    return "\n".join(indent + line for part in lines for line in part.split("\n"))


def _record_text(record: dict[str, Any]) -> str:
    (first, low), (last, end), (kept, value) = record["first"], record["last"], record["kept"]
    prefix = f"{record['ranker']}, " if record["ranker"] else ""
    return (
        f"training record: {prefix}{record['data']} {record['measure']} {low:.4f} with {first:g} "
        f"{record['unit']}, {end:.4f} with {last:g}; kept: {value:.4f} with {kept:g}"
    )
