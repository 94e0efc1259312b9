"""``rankgrove info``: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
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
    """Show a model file: kind, size, features, parameters, training record, validation value.

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
    found = [described(path) for path in models]
    typer.echo("\n\n".join(_text(one) for one in found))
    if out is not None:
        write_atomically(out, json.dumps(found, indent=1) + "\n")
    say_written(out)


def described(path: Path) -> dict[str, Any]:
    """Return what a model file holds, as plain values."""
    from rankgrove.rankers.load import load

    ranker = load(path)
    return {"file": str(path), "bytes": path.stat().st_size, **_of_ranker(ranker)}


def _of_ranker(ranker: Ranker) -> dict[str, Any]:
    from rankgrove.rankers.base import plain_parameters
    from rankgrove.rankers.trada import Trada
    from rankgrove.reporting.learning import learning_curves

    names = getattr(ranker, "feature_names_", None)
    inside = [*getattr(ranker, "rankers_", ()), getattr(ranker, "ranker_", None)]
    base = getattr(ranker, "base_", None) if isinstance(ranker, Trada) else None
    return {
        "kind": f"{ranker.kind} ({type(ranker).__name__})",
        "features": ranker.n_features_in_,
        "feature names": None if names is None else list(names),
        "trees": _n_trees(ranker),
        "parameters": plain_parameters(ranker),
        "training record": [_record(one) for one in learning_curves("", ranker)],
        **_values(ranker),
        "pruning": getattr(ranker, "pruning_", None),
        "rankers": [_of_ranker(one) for one in [*inside, base] if hasattr(one, "kind")],
        "summary": ranker.summary().splitlines() if hasattr(ranker, "summary") else [],
    }


def _n_trees(ranker: Any) -> int | None:
    trees = getattr(ranker, "ensemble_", None)
    if trees is not None:
        return int(trees.n_trees)
    members = getattr(ranker, "models_", [])
    if members and all(hasattr(one, "ensemble_") for one in members):
        return sum(one.ensemble_.n_trees for one in members)
    return None


def _values(ranker: Any) -> dict[str, Any]:
    """Return the figures that combinations and bags have in place of a training record."""
    measured = {
        "value on the data of the weights": getattr(ranker, "value_", None),
        "out of bag": getattr(ranker, "out_of_bag_", None),
    }
    found = {
        name: {str(ranker.measure): value} for name, value in measured.items() if value is not None
    }
    if hasattr(ranker, "rankers_") and hasattr(ranker, "weights_"):
        found["weights"] = ranker.weights_.tolist()
    return found


def _record(curve: LearningCurve) -> dict[str, Any]:
    """Return a training record: where it began and ended, and what was kept."""
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


def _text(found: dict[str, Any], indent: str = "") -> str:
    """Return the description as lines."""
    lines = [f"{found['file']}: {found['bytes']:,} bytes"] if "file" in found else []
    lines.append(f"kind: {found['kind']}")
    names = found["feature names"] or []
    more = f", ... ({len(names) - SHOWN_NAMES} more)" if len(names) > SHOWN_NAMES else ""
    named = f" ({', '.join(names[:SHOWN_NAMES])}{more})" if names else ", without names"
    lines.append(f"features: {found['features']:,}{named}")
    if found["trees"] is not None:
        lines.append(f"trees: {found['trees']:,}")
    if found["parameters"]:
        given = [f"{name}={value}" for name, value in found["parameters"].items()]
        lines.append(f"parameters: {', '.join(given)}")
    lines += [_record_text(one) for one in found["training record"] if one["kept"]]
    for name in ("value on the data of the weights", "out of bag"):
        lines += [f"{name}: {m} {v:.4f}" for m, v in found.get(name, {}).items()]
    if "weights" in found:
        lines.append(f"weights: {', '.join(f'{one:.4g}' for one in found['weights'])}")
    if found["pruning"]:
        before, *_, after = found["pruning"]["trees"]
        lines.append(f"pruned: {before:,} trees before, {after:,} left")
    if found["summary"]:
        lines += ["summary:", *(f"  {line}" for line in found["summary"])]
    for number, one in enumerate(found["rankers"], 1):
        lines += [f"ranker {number}:", _text(one, "  ")]
    return "\n".join(indent + line for part in lines for line in part.split("\n"))


def _record_text(one: dict[str, Any]) -> str:
    (first, low), (last, end), (kept, value) = one["first"], one["last"], one["kept"]
    who = f"{one['ranker']}, " if one["ranker"] else ""
    return (
        f"training record: {who}{one['data']} {one['measure']} {low:.4f} with {first:g} "
        f"{one['unit']}, {end:.4f} with {last:g}; kept: {value:.4f} with {kept:g}"
    )
