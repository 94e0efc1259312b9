"""The report as one self-contained HTML file, with its styles, scripts and data inside.

Text from the data (ids, names) enters the page in two ways, both safe: escaped in the markup, and
as JSON in which ``<``, ``>`` and ``&`` are written as ``\\u003c`` and so on. A content security
policy allows only the page's own script, identified by its hash, and loads nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from string import Template

from rankgrove._version import __version__
from rankgrove.evaluation.compare import Contrast
from rankgrove.reporting.content import Content, Subject
from rankgrove.reporting.distribution import label_groups
from rankgrove.reporting.verdict import Verdict, is_significant, p_text, signed
from rankgrove.validation import counted

SCRIPTS = ("charts.js", "frame.js", "sections.js", "queries.js", "page.js")
N_COLOURS = 8
_PARTS = re.compile(r"(?<=[_./-])|(?<=[a-z])(?=[A-Z])")


def page(title: str, verdict: Verdict, subject: Subject, values: Content) -> str:
    """Return the page's HTML."""
    return framed(
        "report.html",
        SCRIPTS,
        {**values, "means": _means(subject)},
        title=escape(title),
        verdict=escape(verdict.sentence),
        details=escape(verdict.figures),
        facts=_facts(subject),
        measures_lead=escape(_lead(subject)),
        measures_table=_measures_table(subject, values["micros"]),
        tests=_tests(subject),
    )


def framed(template: str, scripts: Sequence[str], data: object, **parts: str) -> str:
    """Return a page with its style, scripts, data and policy inside; `parts` are markup."""
    script = "(() => {\n" + "\n".join(_template(name) for name in scripts) + "\n})();"
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Template(_template(template)).substitute(
        parts,
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        version=__version__,
        style=_template("report.css").strip(),
        data=embedded(data),
        script=script,
        footer=f"Made by rankgrove {__version__} on {now}.",
    )


def embedded(value: object) -> str:
    """Return JSON that is safe inside a script element, whatever strings it contains."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _template(name: str) -> str:
    return files("rankgrove.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _facts(subject: Subject) -> str:
    data = subject.data
    texts, groups = label_groups(data.y)
    counts = [int((groups == g).sum()) for g in range(len(texts))]
    facts = (
        counted(data.n_queries, "query", "queries"),
        counted(data.n_rows, "document"),
        counted(data.n_features, "feature"),
    )
    parts = [fact.split() for fact in facts]
    items = [f"<li><b>{value}</b> {name}</li>" for value, name in parts]
    labels = ", ".join(
        f"{escape(text)}: {n / data.n_rows:.1%}" for text, n in zip(texts, counts, strict=True)
    )
    items.append(f"<li>labels <b>{labels}</b></li>")
    items.append(f"<li>convention <b>{escape(subject.convention)}</b></li>")
    return "".join(items)


def _lead(subject: Subject) -> str:
    text = "Means over queries, with 95 % intervals."
    if subject.comparisons:
        first = subject.systems[0].name
        text += (
            f" ▲ and ▼: significantly better and worse than {first} (randomisation test, 5 %, "
            "corrected by Holm’s method)."
        )
    dropped = max(len(subject.evaluations[0].dropped[name]) for name in subject.measures)
    if dropped:
        text += (
            f" The convention leaves out {counted(dropped, 'query', 'queries')} without a "
            "preference between documents."
        )
    return text


def _means(subject: Subject) -> list[list[list[float | None]]]:
    """Return mean and interval of every measure and model."""

    def plain(value: float) -> float | None:
        return None if math.isnan(value) else round(value, 6)

    return [
        [
            [plain(evaluation.mean[name]), *(plain(v) for v in evaluation.interval[name])]
            for evaluation in subject.evaluations
        ]
        for name in subject.measures
    ]


def _measures_table(subject: Subject, micros: dict[str, float | None]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in subject.measures)
    time_head = '<th scope="col">scoring<br>µs / document</th>' if micros else ""
    best = {
        name: max(evaluation.mean[name] for evaluation in subject.evaluations)
        for name in subject.measures
    }
    contrasts = {
        (name, contrast.system): contrast
        for name, comparison in subject.comparisons.items()
        for contrast in comparison.contrasts
    }
    rows = []
    for k, (system, result) in enumerate(zip(subject.systems, subject.evaluations, strict=True)):
        cells = []
        for name in subject.measures:
            low, high = result.interval[name]
            top = len(subject.systems) > 1 and result.mean[name] == best[name]
            interval = f"{low:.4f} – {high:.4f}" if not math.isnan(low) else "no interval"
            cells.append(
                f"<td{' class=top1' if top else ''}>{result.mean[name]:.4f}"
                f"{_mark(contrasts.get((name, system.name)))}<small>{interval}</small></td>"
            )
        time = ""
        if micros:
            took = micros.get(system.name)
            time = f"<td>{'–' if took is None else f'{took:.3g}'}</td>"
        shown = breakable(system.name)
        rows.append(
            f'<tr><th scope="row" class="model"><span class="name"><span class="key" style="'
            f'background:var(--c{k % N_COLOURS})"></span><span>{shown}</span></span>'
            f"<small>{escape(system.about)}</small></th>{''.join(cells)}{time}</tr>"
        )
    return (
        f'<table><thead><tr><th scope="col">model</th>{head}{time_head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def breakable(name: str) -> str:
    """Return an escaped name in which lines may break between its parts."""
    return "<wbr>".join(escape(part) for part in _PARTS.split(name))


def _mark(contrast: Contrast | None) -> str:
    if contrast is None or not is_significant(contrast):
        return ""
    p = escape(p_text(contrast.holm_randomisation))
    if contrast.difference > 0:
        return f' <span class="better" title="significantly better, {p}">▲</span>'
    return f' <span class="worse" title="significantly worse, {p}">▼</span>'


def _tests(subject: Subject) -> str:
    """Return the table of all differences to the first model, with their significance tests."""
    if not subject.comparisons:
        return ""
    rows = []
    for name, comparison in subject.comparisons.items():
        for contrast in comparison.contrasts:
            mark = "better" if contrast.difference > 0 else "worse"
            shown = f' class="{mark}"' if is_significant(contrast) else ""
            p_values = (contrast.holm_t, contrast.holm_wilcoxon, contrast.holm_randomisation)
            cells = "".join(f"<td>{escape(_p_cell(p))}</td>" for p in p_values)
            interval = f"{signed(contrast.low)} – {signed(contrast.high)}"
            rows.append(
                f'<tr><th scope="row">{escape(name)}</th><td>{escape(contrast.system)}</td>'
                f"<td{shown}>{signed(contrast.difference)}</td>"
                f"<td>{'no interval' if math.isnan(contrast.low) else interval}</td>"
                f"<td>{contrast.wins:,} / {contrast.losses:,} / {contrast.ties:,}</td>{cells}</tr>"
            )
    titles = (
        "measure", "model", "difference", "95 % interval", "won / lost / tied", "t-test",
        "Wilcoxon", "randomisation",
    )  # fmt: skip
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    first = escape(subject.systems[0].name)
    return (
        f'<details class="tests"><summary>All differences to {first}, with three tests '
        "(p-values corrected by Holm’s method)</summary>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Differences and tests">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        "</details>"
    )


def _p_cell(p: float) -> str:
    return "–" if math.isnan(p) else p_text(p).removeprefix("p ").removeprefix("= ")
