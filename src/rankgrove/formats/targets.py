"""The search engines that models are written for, and what each does with missing values.

The command line reads this table before NumPy is imported. :mod:`rankgrove.parity` has emulators of
the same names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rankgrove.errors import ParameterError

# the plugin of Elasticsearch names the engine's version behind its own: 1.5.8-es8.9.2
_VERSION = re.compile(r"([a-z]+(?:-[a-z]+)*)-v?(\d+(?:\.\d+)*)(?:-es[\d.]+)?")
_ANY = 10**9  # a part of a version that was left out may be any number up to this


@dataclass(frozen=True)
class Target:
    """An engine, or those of its versions that follow the same rules.

    Attributes
    ----------
    name : as for ``engine=``
    title : engine and versions in words
    format : the format that it reads
    missing : what it does with a missing value at a split: ``"zero"``: treats it as 0;
        ``"right"``: sends it right; ``"learned"``: sends it to the side that the model says;
        ``"kept"``: the same, in all versions
    zero_flag : whether a model may say that all missing values are 0
    fills : whether the features of linear models and nets may have a value for missing ones
    """

    name: str
    title: str
    format: str
    missing: str
    zero_flag: bool = False
    fills: bool = False


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
    Target("solr-9.2", "Solr 9.2 and later", "solr", "learned", fills=True),
    Target("solr-9.1", "Solr up to 9.1", "solr", "zero", fills=True),
    Target("vespa", "Vespa", "vespa", "kept", fills=True),
    Target("vespa-fast-forest", "Vespa with vespa.eval.use_fast_forest", "vespa", "kept",
           fills=True),
    Target("ranklib", "RankLib", "ranklib", "zero"),
)  # fmt: skip
TARGETS = {target.name: target for target in _ALL}

# product -> (first version, name of the engine or "" where there is none), ascending; older
# versions are unknown
_SINCE: dict[str, list[tuple[tuple[int, ...], str]]] = {
    "opensearch": [
        ((1, 0), "opensearch-3.1"),
        ((3, 2), "opensearch-3.2"),
        ((3, 8), "opensearch-3.8"),
        ((3, 9), "opensearch-main"),
    ],
    "elasticsearch": [((8, 12), "elasticsearch-8.12")],
    "elasticsearch-ltr": [
        ((0, 1), "elasticsearch-ltr-2023"),
        ((1, 5, 9), "elasticsearch-ltr"),
        ((2, 0), ""),
    ],
    "solr": [((6, 4), "solr-9.1"), ((9, 2), "solr-9.2")],
    "vespa": [((7, 0), "vespa")],
}


def targets_of(form: str) -> list[Target]:
    """Return the engines that read a format; the first is the default."""
    return [target for target in TARGETS.values() if target.format == form]


def target_of(name: str, form: str | None = None, owner: str = "convert") -> Target:
    """Return an engine by its name; versions in between are those that follow the same rules.

    `form` : the format that was asked for, if any; an engine that reads another one is refused
    """
    target = TARGETS.get(engine_of(name))
    if target is None:
        raise ParameterError(f"{owner}: {unknown_engine(name, list(TARGETS))}")
    if form is not None and target.format != form:
        able = ", ".join(other.name for other in targets_of(form)) or "none"
        raise ParameterError(
            f"{owner}: engine={name!r} (--engine) reads the format {target.format!r}, not "
            f"{form!r}. Leave to= (--to) out; engines of {form!r}: {able}."
        )
    return target


def engine_of(name: str) -> str:
    """Return the engine whose rules a name or version means; the name itself if there is none."""
    plain = name.strip().lower()
    if plain in TARGETS:
        return plain
    meant = _engines_of_version(plain)
    return meant[0] if len(meant) == 1 and meant[0] else name


def unknown_engine(name: str, known: Sequence[str]) -> str:
    """Return a sentence about a name that means none of the known engines, or several of them."""
    plain = name.strip().lower()
    meant = [engine for engine in _engines_of_version(plain) if engine]
    if plain.rstrip("-") in _SINCE:
        meant = [engine for engine in TARGETS if engine.startswith(plain.rstrip("-") + "-")]
    if len(meant) > 1:
        listed = ", ".join(f"{engine} ({TARGETS[engine].title})" for engine in meant)
        return f"engine= (--engine) {name!r} may be one of several: {listed}. Name one of them."
    from rankgrove.validation import nearest  # the command line reads this file without NumPy

    hint = nearest(plain, known)
    if re.match(r"elasticsearch-(v?\d|native)", plain):
        hint = (
            " (Elasticsearch's own learning to rank begins with elasticsearch-8.12; the plugin is "
            "elasticsearch-ltr, or elasticsearch-ltr-2023 up to its version 1.5.8)"
        )
    return (
        f"engine= (--engine) is one of {', '.join(known)}, or another version, as opensearch-2.19, "
        f"solr-8.11 or elasticsearch-9.1; for other programs leave it out{hint}. Got {name!r}."
    )


def _engines_of_version(name: str) -> list[str]:
    """Return the engines that a version may mean: several where its last part decides."""
    match = _VERSION.fullmatch(name)
    if match is None or match[1] not in _SINCE:
        return []
    first = tuple(int(part) for part in match[2].split("."))
    last = (*first, _ANY) if len(first) < 3 else first
    since = _SINCE[match[1]]
    inside = [engine for begin, engine in since if first < begin <= last]
    before = [engine for begin, engine in since if begin <= first][-1:]
    return list(dict.fromkeys([*before, *inside]))
