"""The search engines that models are written for, and what each does with missing values.

The command line reads this table before NumPy is imported. :mod:`rankgrove.parity` has emulators of
the same names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rankgrove.errors import ParameterError

_VERSION = re.compile(r"(.+)-(\d+)\.(\d+)(?:\.\d+)*")


@dataclass(frozen=True)
class Target:
    """An engine, or those of its versions that follow the same rules.

    Attributes
    ----------
    name : as for ``engine=``
    title : engine and versions in words
    format : the format that it reads
    missing : what it does with a missing value at a split: ``"zero"``: treats it as 0;
        ``"right"``: sends it right; ``"learned"``: sends it to the side that the model says
    zero_flag : whether a model may say that all missing values are 0
    """

    name: str
    title: str
    format: str
    missing: str
    zero_flag: bool = False


_ALL = (  # the first of a format is the default
    Target(
        "elasticsearch-ltr",
        "the Elasticsearch plugin from 1.5.9 (February 2024) on",
        "elasticsearch",
        "learned",
    ),
    Target(
        "elasticsearch-ltr-2023",
        "the Elasticsearch plugin up to 1.5.8 (2023)",
        "elasticsearch",
        "zero",
    ),
    Target("opensearch-3.8", "OpenSearch 3.8", "opensearch", "learned"),
    Target("opensearch-3.2", "OpenSearch 3.2 to 3.7", "opensearch", "right"),
    Target("opensearch-3.1", "OpenSearch up to 3.1", "opensearch", "zero"),
    Target(
        "opensearch-main",
        "OpenSearch after 3.8 (main of August 2026)",
        "opensearch",
        "learned",
        zero_flag=True,
    ),
    Target(
        "elasticsearch-8.12",
        "Elasticsearch's own learning to rank, from 8.12 on",
        "elasticsearch-native",
        "learned",
    ),
)
TARGETS = {target.name: target for target in _ALL}

# product -> (first version, name of the engine), ascending; older versions are unknown
_SINCE: dict[str, list[tuple[tuple[int, int], str]]] = {
    "opensearch": [
        ((1, 0), "opensearch-3.1"),
        ((3, 2), "opensearch-3.2"),
        ((3, 8), "opensearch-3.8"),
        ((3, 9), "opensearch-main"),
    ],
    "elasticsearch": [((8, 12), "elasticsearch-8.12")],
}


def targets_of(form: str) -> list[Target]:
    """Return the engines that read a format; the first is the default."""
    return [target for target in TARGETS.values() if target.format == form]


def target_of(name: str, form: str | None = None) -> Target:
    """Return an engine by its name; versions in between are those that follow the same rules.

    `form` : the format that was asked for, if any; an engine that reads another one is refused
    """
    target = TARGETS.get(name) or TARGETS.get(_engine_of_version(name))
    if target is None:
        raise ParameterError(
            f"convert: engine (--engine) is one of {', '.join(TARGETS)}; or opensearch-X.Y or "
            f"elasticsearch-X.Y (from 8.12 on) with another version. Got {name!r}."
        )
    if form is not None and target.format != form:
        able = ", ".join(other.name for other in targets_of(form)) or "none"
        raise ParameterError(
            f"convert: engine={name!r} (--engine) reads the format {target.format!r}, not "
            f"{form!r}. Leave to= (--to) out; engines of {form!r}: {able}."
        )
    return target


def _engine_of_version(name: str) -> str:
    match = _VERSION.fullmatch(name)
    if match is None or match[1] not in _SINCE:
        return ""
    version = (int(match[2]), int(match[3]))
    return next((own for first, own in reversed(_SINCE[match[1]]) if version >= first), "")
