"""Names of measures: ``ndcg@10``, ``map[letor]``, ``dcg@5[gain=0/1/3/7/10,discount=ln]``.

A name is a measure, a cutoff and, in brackets, a convention and single parameters. Parameters that
are not given come from the `convention` argument, ``papers`` by default. ``str(measure)`` has
all differences from ``papers``, so it parses back to the same measure.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from rankgrove.errors import ParameterError
from rankgrove.measures import (  # noqa: F401  (importing them registers them)
    binary,
    correlation,
    err,
    judged,
    ndcg,
    pairwise_accuracy,
)
from rankgrove.measures.base import REGISTRY, Measure
from rankgrove.measures.conventions import CONVENTIONS, convention_parameters
from rankgrove.validation import nearest

ParameterValue = float | str | tuple[float, ...] | None

ALIASES = {
    "ap": "map",
    "rr": "mrr",
    "precision": "p",
    "prec": "p",
    "rocarea": "auc",
    "roc": "auc",
    "mean_ndcg": "meanndcg",
    "r_precision": "rprec",
    "hit_rate": "success",
    "hitrate": "success",
    "gm_map": "gmap",
    "inf_ap": "infap",
    "kendalltau": "kendall",
    "kendall_tau": "kendall",
    "tau": "kendall",
    "spearmanr": "spearman",
    "rho": "spearman",
    "recip_rank": "mrr",
}
# trec_eval's names with a cutoff (P_10 in its output, P.10 in its options) -> our names.
_TREC_NAMES = {
    "p": "p",
    "recall": "recall",
    "success": "success",
    "ndcg_cut": "ndcg",
    "map_cut": "map",
}
_TREC_FORM = re.compile(
    rf"\s*(?P<name>{'|'.join(_TREC_NAMES)})[._](?P<cutoff>\d+)(?P<rest>\s*(\[.*)?)", re.IGNORECASE
)

_FORM = re.compile(
    r"\s*(?P<name>[A-Za-z_]\w*)\s*(?:@\s*(?P<cutoff>[^\[\s]+))?\s*(?:\[(?P<items>[^\]]*)\])?\s*"
)


def measure(
    spec: str | Measure, convention: str | None = None, **parameters: ParameterValue
) -> Measure:
    """Return the measure that a name stands for.

    Parameters
    ----------
    spec : a name such as ``"ndcg@10"``, or a measure
    convention : the source of parameters that are not given: ``"papers"`` (default), ``"letor"``,
        ``"mslr"``, ``"trec"``, ``"yahoo"``, ``"lightgbm"``, ``"sklearn"`` or ``"ranklib"``
    parameters : single parameters (``gain``, ``discount``, ``cutoff``, ``empty``, ``ties``,
        ``relevant``, ``max_grade``, ``short``, ``denominator``, ``p``, ``decay``), which override
        the name and the convention

    Examples
    --------
    >>> import rankgrove as rg
    >>> m = rg.measure("ndcg@10", convention="letor")
    >>> str(m)
    'ndcg@10[letor]'
    >>> rg.measure(str(m)) == m
    True
    >>> rg.measure("dcg@5", gain=(0, 1, 3, 7, 10), discount="ln").value([4, 0, 2])
    16.59...
    """
    if isinstance(spec, Measure):
        return spec.with_(**parameters) if parameters else spec
    if not isinstance(spec, str):
        raise ParameterError(
            f"A measure is a name such as 'ndcg@10', or a Measure. Got {spec!r} instead."
        )
    match = _FORM.fullmatch(_from_trec(spec))
    if match is None:
        raise ParameterError(
            f"{spec!r} is not a measure's name. Write 'ndcg@10', 'map', "
            "'ndcg@10[letor]' or 'dcg@5[gain=0/1/3/7/10,discount=ln]'."
        )
    name = match["name"].lower()
    name = ALIASES.get(name, name)
    if name not in REGISTRY:
        known = ", ".join(sorted(REGISTRY))
        raise ParameterError(
            f"There is no measure {name!r}{nearest(name, [*REGISTRY, *ALIASES])}. "
            f"The measures are {known}."
        )
    cls = REGISTRY[name]
    names = {field.name for field in fields(cls)}
    values, in_brackets = _items(spec, match["items"] or "")
    if match["cutoff"] is not None:
        values["cutoff"] = _cutoff(spec, match["cutoff"])
    values |= parameters
    unknown = [key for key in values if key not in names]
    if unknown:
        raise ParameterError(
            f"The measure {name!r} has no parameter {unknown[0]!r}{nearest(unknown[0], names)}. "
            f"It has: {', '.join(sorted(names))}."
        )
    chosen = in_brackets or convention or "papers"
    return cls(**(convention_parameters(chosen, name, names) | values))


def _from_trec(spec: str) -> str:
    """Translate a trec_eval name with a cutoff: ``P_10`` becomes ``p@10``."""
    match = _TREC_FORM.fullmatch(spec)
    if match is None:
        return spec
    return f"{_TREC_NAMES[match['name'].lower()]}@{match['cutoff']}{match['rest']}"


def target_measure(spec: str | Measure, convention: str | None = None) -> Measure:
    """Return the measure to train for, or refuse one that no ranker can be trained for."""
    target = measure(spec, convention)
    target.check_target()
    return target


def format_measure(m: Measure) -> str:
    """Return the name that :func:`measure` parses back to `m`."""
    head = m.name if m.cutoff is None else f"{m.name}@{m.cutoff}"
    values = m.parameters()
    del values["cutoff"]
    usual = convention_parameters("papers", m.name, set(values))
    if values == usual:
        return head
    # The name of a convention is enough if no other one has the same values. (The scripts of MSLR
    # and LETOR differ only in the lowest relevant label.)
    same = [c for c in CONVENTIONS if convention_parameters(c, m.name, set(values)) == values]
    if len(same) == 1 or same == ["letor", "mslr"]:
        return f"{head}[{same[0]}]"
    items = [f"{k}={_text(values[k])}" for k in sorted(values) if values[k] != usual[k]]
    return f"{head}[{','.join(items)}]"


def full_name(spec: str | Measure) -> str:
    """Return the name of a measure with its convention, even the usual one: ndcg@10[papers]."""
    head, _, items = format_measure(measure(spec)).partition("[")
    listed = items.removesuffix("]").split(",") if items else []
    if listed[:1] and listed[0] in CONVENTIONS:
        return f"{head}[{items}"
    return f"{head}[{','.join(['papers', *listed])}]"


def _text(value: ParameterValue) -> str:
    if isinstance(value, tuple):
        return "/".join(map(_text, value))
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _items(spec: str, text: str) -> tuple[dict[str, Any], str | None]:
    """Parse the text in brackets: parameters, and a convention or None."""
    values: dict[str, Any] = {}
    convention = None
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if equals:
            values[key] = _parse_value(value)
        elif item in CONVENTIONS and convention is None:
            convention = item
        else:
            raise ParameterError(
                f"In {spec!r}, {item!r} is neither a convention ({', '.join(CONVENTIONS)}) nor "
                f"'parameter=value'{nearest(item, CONVENTIONS)}."
            )
    return values, convention


def _parse_value(text: str) -> Any:
    if "/" in text:
        return tuple(_parse_value(part) for part in text.split("/"))
    if text == "None":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _cutoff(spec: str, text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise ParameterError(
            f"In {spec!r}, the cutoff after '@' must be a whole number of at least 1. "
            f"Got {text!r} instead."
        )
    return int(text)
