"""The page of an AutoRanker: what was tried, what was chosen, and what it is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from rankgrove.rankers.auto.auto import WAYS, AutoRanker
from rankgrove.rankers.auto.leaderboard import Entry, interval_text, share_text
from rankgrove.rankers.base import class_of
from rankgrove.reporting.page import breakable, framed
from rankgrove.validation import counted

SCRIPTS = ("charts.js", "frame.js", "auto.js")
SHOWN = 20  # candidates, the best ones; the others are folded away
BAR_WIDTH, BAR_HEIGHT = 176.0, 16.0


def auto_page(ranker: AutoRanker, title: str | None = None) -> str:
    """Return the page's HTML."""
    estimate, _, luck = ranker.estimate_text().partition(". ")
    failed = ranker.failed_
    knows_time = any(step.seconds > 0.0 for step in ranker.search_)
    steps = [
        {
            "name": step.name,
            "fits": step.fits,
            "seconds": round(step.seconds, 2) if knows_time else None,
            "value": round(step.value, 6),
            "best": round(step.best, 6),
        }
        for step in ranker.search_
        if math.isfinite(step.value)
    ]
    return framed(
        "auto.html",
        SCRIPTS,
        {"models": [], "measure": str(ranker.measure), "steps": steps},
        title=escape(title or f"AutoRanker for {ranker.measure}"),
        verdict=escape(estimate.removesuffix(".") + "."),
        details=escape(luck),
        facts=_facts(ranker),
        board_lead=escape(
            f"Every candidate by its out-of-fold scores: mean {ranker.measure} with its 95 % "
            "interval, and its weight in the final model. The dashed line is the nested estimate "
            f"of the final model{_scale_text(ranker)}."
        ),
        board=_board(ranker),
        choice=_choice(ranker),
        parameters=_parameters([e for e in ranker.leaderboard_ if e.weight > 0.0]),
        failed="" if not failed else _failed(failed),
    )


def _facts(ranker: AutoRanker) -> str:
    board = ranker.leaderboard_
    seconds = sum(entry.seconds for entry in board)
    n_trees = ranker.tree_count()
    facts = [
        counted(len(board), "candidate"),
        counted(sum(entry.fits for entry in board), "fit"),
        *([f"{seconds:,.0f} seconds of training"] if seconds > 0.0 else []),
        f"{counted(len(ranker.model_.models_), 'model')} in the final mean",
        *([] if n_trees is None else [counted(n_trees, "tree")]),
        counted(ranker.n_features_in_, "feature"),
    ]
    parts = [fact.split(" ", 1) for fact in facts]
    items = [f"<li><b>{value}</b> {name}</li>" for value, name in parts]
    if ranker.interrupted_:
        items.append("<li><b>interrupted</b> before its limit</li>")
    return "".join(items)


# -- the leaderboard -------------------------------------------------------------------------------


def _board(ranker: AutoRanker) -> str:
    entries = list(ranker.leaderboard_)
    first = [e for i, e in enumerate(entries) if i < SHOWN or e.weight > 0.0]
    rest = [e for i, e in enumerate(entries) if i >= SHOWN and e.weight == 0.0]
    table = _board_table(ranker, first, "Candidates")
    if not rest:
        return table
    others = _board_table(ranker, rest, "Other candidates")
    return (
        f'{table}<details class="tests"><summary>{counted(len(rest), "other candidate")}</summary>'
        f"{others}</details>"
    )


def _board_table(ranker: AutoRanker, entries: Sequence[Entry], name: str) -> str:
    knows_time = any(entry.seconds > 0.0 for entry in ranker.leaderboard_)
    titles = [
        "candidate",
        breakable(ranker.leaderboard_.measure),
        "95 % interval",
        "weight",
        "fits",
        *(["time"] if knows_time else []),
        "trees<br>per model",
    ]
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    rows = "".join(_board_row(ranker, entry, knows_time) for entry in entries)
    return _scrolled(f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>", name)


def _board_row(ranker: AutoRanker, entry: Entry, knows_time: bool) -> str:
    weight = ""
    if entry.weight > 0.0:
        weight = (
            f'<span class="share"><i style="width:{100 * entry.weight:.1f}%"></i></span>'
            f"<span>{share_text(entry.weight)}</span>"
        )
    seconds = f"{entry.seconds:,.1f} s" if entry.seconds > 0.0 else "–"
    cells = [
        f"<td{' class=top1' if entry is ranker.leaderboard_[0] else ''}>{entry.value:.4f}</td>",
        f'<td class="span">{_interval(ranker, entry)}<small>'
        f"{interval_text(entry.low, entry.high).replace('-', '–')}</small></td>",
        f'<td class="weight">{weight}</td>',
        f"<td>{entry.fits:,}</td>",
        *([f"<td>{seconds}</td>"] if knows_time else []),
        f"<td>{'–' if entry.trees is None else f'{entry.trees:,}'}</td>",
    ]
    return f'<tr><th scope="row" class="model">{breakable(entry.name)}</th>{"".join(cells)}</tr>'


def _scale(ranker: AutoRanker) -> tuple[float, float]:
    """Return the ends of the scale of all intervals."""
    known = [e for e in ranker.leaderboard_ if not math.isnan(e.low)]
    low = min([ranker.value_, *(e.low for e in known)])
    return low, max([ranker.value_, *(e.high for e in known)])


def _scale_text(ranker: AutoRanker) -> str:
    low, high = _scale(ranker)
    return f"; the bars are drawn from {low:.4f} to {high:.4f}" if high > low else ""


def _interval(ranker: AutoRanker, entry: Entry) -> str:
    """Return a drawing of an interval, on the scale of all candidates."""
    if math.isnan(entry.low):
        return ""
    low, high = _scale(ranker)
    scale = (BAR_WIDTH - 8.0) / (high - low) if high > low else 0.0
    left, mean, right, estimate = (
        f"{4.0 + scale * (value - low):.1f}"
        for value in (entry.low, entry.value, entry.high, ranker.value_)
    )
    paint = "var(--c0)" if entry.weight > 0.0 else "var(--c7)"
    middle = BAR_HEIGHT / 2
    return (
        f'<svg viewBox="0 0 {BAR_WIDTH:g} {BAR_HEIGHT:g}" aria-hidden="true">'
        f'<line class="cursor" x1="{estimate}" x2="{estimate}" y1="0" y2="{BAR_HEIGHT:g}"/>'
        f'<line x1="{left}" x2="{right}" y1="{middle}" y2="{middle}" style="stroke:{paint};'
        'stroke-width:2.5;stroke-linecap:round"/>'
        f'<circle cx="{mean}" cy="{middle}" r="4" style="fill:{paint}"/></svg>'
    )


# -- the choice ------------------------------------------------------------------------------------


def _choice(ranker: AutoRanker) -> str:
    lines = ranker.explain_choice().splitlines()
    # Indented lines are tables of the page, or follow in their own sections.
    words = [line for line in lines if not line.startswith("  ")]
    kept = [line for line in words if not line.endswith(":") and line != ranker.estimate_text()]
    text = "".join(f'<p class="words">{escape(line)}</p>' for line in kept)
    ways = ranker.ways()
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{value:.4f}</td></tr>' for name, value in ways
    )
    lead = "How candidates were combined, and its value on queries that had no part in it."
    if len(ways) > 1:
        lead = f"{WAYS}."
    head = (
        '<th scope="col">way to combine</th>'
        f'<th scope="col">{escape(ranker.leaderboard_.measure)}</th>'
    )
    table = _scrolled(
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>", "Ways to combine candidates", "ways"
    )
    return f'{text}<p class="lead">{lead}</p>{table}'


def _parameters(entries: Sequence[Entry]) -> str:
    rows = []
    for entry in entries:
        rows.append(
            f'<tr><th scope="row">{breakable(entry.name)}'
            f"<small>{share_text(entry.weight)}</small></th>"
            f"<td><code>{escape(_call(entry.settings))}</code></td></tr>"
        )
    return _scrolled(f"<tbody>{''.join(rows)}</tbody>", "Parameters", "settings")


def _call(settings: dict[str, Any]) -> str:
    """Return the Python text that makes a ranker with these settings."""
    base = [f"base={_call(settings['base'])}"] if "base" in settings else []
    items = [f"{name}={value!r}" for name, value in settings["parameters"].items()]
    return f"rg.{class_of(settings['kind']).__name__}({', '.join(base + items)})"


def _failed(failed: dict[str, str]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{breakable(name)}</th><td>{escape(error)}</td></tr>'
        for name, error in failed.items()
    )
    table = _scrolled(f"<tbody>{rows}</tbody>", "Failed candidates", "settings")
    return (
        '<section id="failed" data-title="Failed"><h2>Candidates that could not be trained</h2>'
        f'<p class="lead">What each said on this data; the others are not affected.</p>{table}'
        "</section>"
    )


def _scrolled(content: str, name: str, kind: str = "") -> str:
    shown = f' class="{kind}"' if kind else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
        f"<table{shown}>{content}</table></div>"
    )
