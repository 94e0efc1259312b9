"""Writing models for other programs: the formats, what they can hold, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.formats import (
    elasticsearch,
    elasticsearch_native,
    lightgbm,
    onnx,
    ranklib,
    solr,
    source,
    vespa,
    vespa_profile,
    xgboost,
)
from rankgrove.formats.category_chains import listed, one_hot
from rankgrove.formats.foreign import Categories
from rankgrove.formats.missing_values import as_held, depends_on_version
from rankgrove.formats.targets import Target, targets_of
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from rankgrove.validation import counted

Model = Ensemble | Linear | Network
Written = str | bytes | tuple[str, list[str]]


@dataclass(frozen=True)
class Labels:
    """The names of a model and its features; `given`: whether a user named the features.

    `absent` is the value of a feature that a row does not mention, None if that is not known.
    `categories` are the categorical columns, with the names of their codes or None.
    """

    name: str
    features: Sequence[str]
    given: bool
    absent: str | None = None
    categories: Categories = field(default_factory=dict)
    expanded: bool = False  # whether some features are categories of what was one feature
    missing_as_zero: bool = False  # whether the file is to say that missing values are 0
    probability: bool = False  # whether the program is to take the sigmoid of the score


@dataclass(frozen=True)
class Format:
    """A format that models are written in.

    Attributes
    ----------
    program : the program that reads it
    trees, linear, net : the functions that write such models; None: they cannot be written
    columns : whether trees may give several scores per row
    sets : whether splits may be on sets of categories
    positive : whether the program refuses scores below 0
    sigmoid : whether the program can take the sigmoid of the sum of trees
    definitions : returns a skeleton of what defines the features in the program; None: there is
        no such file
    """

    program: str
    trees: Callable[[Ensemble, Labels], Written]
    linear: Callable[[Linear, Labels], Written] | None = None
    net: Callable[[Network, Labels], Written] | None = None
    columns: bool = False
    sets: bool = False
    positive: bool = False
    sigmoid: bool = False
    definitions: Callable[[Model, Labels], str] | None = None


FORMATS = {  # their endings are in endings.py
    "lightgbm": Format(
        "LightGBM",
        lambda m, of: lightgbm.write_text(
            m, of.features if of.given else None, of.absent, of.categories, of.probability
        ),
        columns=True,
        sets=True,
        sigmoid=True,
    ),
    "xgboost": Format(
        "XGBoost",
        lambda m, of: xgboost.write_json(
            m, of.features if of.given else None, of.absent, of.categories, of.probability
        ),
        columns=True,
        sets=True,
        sigmoid=True,
    ),
    "ranklib": Format(
        "RankLib", lambda m, of: ranklib.write_text(m, of.features if of.expanded else ())
    ),
    "solr": Format(
        "Solr",
        lambda m, of: solr.write_trees(m, of.features, of.name),
        lambda m, of: solr.write_linear(m, of.features, of.name),
        lambda m, of: solr.write_net(m, of.features, of.name),
        definitions=lambda m, of: solr.features_json(m, of.features),
    ),
    "elasticsearch": Format(
        "Elasticsearch LTR",
        lambda m, of: elasticsearch.write_trees(
            m, of.features, of.name, probability=of.probability
        ),
        lambda m, of: elasticsearch.write_linear(m, of.features, of.name),
        positive=True,
        sigmoid=True,
        definitions=lambda m, of: elasticsearch.feature_set(of.features),
    ),
    "opensearch": Format(
        "OpenSearch LTR",
        lambda m, of: elasticsearch.write_trees(
            m, of.features, of.name, of.missing_as_zero, of.probability
        ),
        lambda m, of: elasticsearch.write_linear(m, of.features, of.name),
        positive=True,
        sigmoid=True,
        definitions=lambda m, of: elasticsearch.feature_set(of.features),
    ),
    "elasticsearch-native": Format(
        "Elasticsearch's own learning to rank",
        lambda m, of: elasticsearch_native.write_trees(m, of.features, of.name),
        definitions=lambda m, of: elasticsearch_native.inference_config(m, of.features),
    ),
    "vespa": Format(
        "Vespa",
        lambda m, of: vespa.write_json(
            m, of.features, of.absent, of.categories, of.expanded, of.probability
        ),
        lambda m, of: vespa_profile.write_linear(m, of.features, of.name),
        lambda m, of: vespa_profile.write_net(m, of.features, of.name),
        sets=True,
        sigmoid=True,
        definitions=lambda m, of: vespa_profile.profile(m, of.features, of.name, of.categories),
    ),
    "onnx": Format(
        "ONNX",
        lambda m, of: onnx.write_trees(m, of.name, of.probability),
        lambda m, of: onnx.write_linear(m, of.name),
        lambda m, of: onnx.write_net(m, of.name),
        columns=True,
        sets=True,
        sigmoid=True,
    ),
    "python": Format("Python source", lambda m, of: source.write_python(m, of.name), sets=True),
    "c": Format("C source", lambda m, of: source.write_c(m, of.name), sets=True),
}


def encode(
    model: Model,
    to: str,
    labels: Labels,
    *,
    zero: bool = False,
    keep: bool = False,
    engine: Target | None = None,
    shift: bool | None = None,
    learned_missing: bool = True,
    expand_categories: bool = False,
) -> tuple[bytes, list[str]]:
    """Return a model in a format, and notes on inexact conversions; see :func:`fitted`."""
    model, labels, notes = fitted(
        model,
        to,
        labels,
        missing="zero" if zero else "keep" if keep else "refuse",
        engine=engine,
        shift=shift,
        learned_missing=learned_missing,
        expand_categories=expand_categories,
    )
    written, more = write(model, to, labels)
    return written, [*notes, *more]


def fitted(
    model: Model,
    to: str,
    labels: Labels,
    *,
    missing: str = "refuse",
    engine: Target | None = None,
    shift: bool | None = None,
    learned_missing: bool = True,
    expand_categories: bool = False,
) -> tuple[Model, Labels, list[str]]:
    """Return a model as a format can hold it, its labels, and notes on inexact conversions.

    Parameters
    ----------
    model : the model to write
    to : one of FORMATS
    labels : names of the model and its features
    missing : what to do with missing values, as in :func:`rankgrove.convert`
    engine : the engine that reads the file; None: the default of the format
    shift : add a constant so that no score of trees is negative; None: if the format needs it
    learned_missing : whether the model's treatment of missing values was, or may have been,
        learned; otherwise it is dropped where the format requires it, with a note
    expand_categories : replace categorical features by one feature per category
    """
    form = FORMATS[to]
    _writer(form, model)
    notes: list[str] = []
    if labels.probability and not form.sigmoid:
        raise ParameterError(
            f"{form.program} cannot take the sigmoid of a score, which makes a probability of it. "
            f"{_others(lambda f: f.sigmoid)} can; or leave relevance= (--relevance) out and write "
            "the ranker's own scores, whose order is the same."
        )
    zero = missing == "zero"
    if isinstance(model, Ensemble) and model.n_columns > 1 and not form.columns:
        raise ParameterError(
            f"The trees give {model.n_columns} scores per row, one per class, but {form.program} "
            f"allows one. {_others(lambda f: f.columns)} can hold them; or train rg.MART or "
            "rg.LambdaMART, which give one."
        )
    if isinstance(model, Ensemble) and model.has_sets and expand_categories:
        model, labels, notes = _expanded(model, labels, zero or not learned_missing)
    elif isinstance(model, Ensemble) and model.has_sets and not form.sets:
        blamed = [labels.features[j] for j in model.categorical_features().tolist()]
        raise ParameterError(
            f"{form.program} cannot hold splits on sets of categories, and the model has some on "
            f"{listed(blamed)}. {_others(lambda f: f.sets)} can hold them; or pass "
            "expand_categories=True (--expand-categories), which replaces every such feature by "
            "one feature per category; or train without categorical features."
        )
    target = engine or next(iter(targets_of(to)), None)
    model, more = as_held(model, form.program, target, missing=missing, learned=learned_missing)
    notes += more
    if isinstance(model, Ensemble) and target is not None:
        labels = replace(labels, missing_as_zero=zero and target.zero_flag)
        if engine is None and depends_on_version(model, target):
            others = " or ".join(
                other.name for other in targets_of(to) if other.missing != target.missing
            )
            notes.append(
                f"Written for {target.title}: other versions treat missing values in another way. "
                f"If yours is another one, name it: engine= (--engine) {others}."
            )
    model, more = _scores(model, form, to, False if labels.probability else shift)
    return model, labels, [*notes, *more]


def write(model: Model, to: str, labels: Labels) -> tuple[bytes, list[str]]:
    """Return a file of a model that fits a format, and more notes."""
    written = _writer(FORMATS[to], model)(model, labels)
    notes: list[str] = []
    if isinstance(written, tuple):
        written, notes = written
    return (written.encode() if isinstance(written, str) else written), notes


def _scores(model: Model, form: Format, to: str, shift: bool | None) -> tuple[Model, list[str]]:
    """Return a model whose scores a program takes, and notes on how they differ."""
    notes: list[str] = []
    if isinstance(model, Ensemble):
        if form.positive if shift is None else shift:
            model, note = _shifted(model)
            notes.append(note)
    elif shift:
        raise ParameterError("Only scores of trees have a minimum: shift is only for trees.")
    elif form.positive:
        notes.append(
            f"{form.program} refuses scores below 0, and this model may give some: make sure that "
            "its features and weights do not, or use trees, whose scores are shifted."
        )
    if isinstance(model, Linear) and to not in ("onnx", "vespa"):
        intercept = model.raw_weights()[1]
        if form.positive and elasticsearch.normalised_features(model).any():
            intercept = model.intercept  # the rest is in the normalisers
        if to == "solr" and solr.has_norms(model):
            intercept = model.intercept
        if intercept:
            side = "lower" if intercept > 0 else "higher"
            notes.append(
                f"{form.program} has no intercept: all scores are {side} by "
                f"{abs(intercept):.9g}; the ranking is the same."
            )
    return model, notes


def _expanded(ensemble: Ensemble, labels: Labels, zero: bool) -> tuple[Ensemble, Labels, list[str]]:
    """Return trees on one feature per category, their labels, and a note on the features.

    `zero`: accept that a missing value is like an unknown category.
    """
    turned = ensemble.missing_left & (ensemble.set_of >= 0)
    blamed = [labels.features[j] for j in np.unique(ensemble.feature[turned]).tolist()]
    if blamed and not zero:
        raise ParameterError(
            "With one feature per category a missing value is like an unknown category, but "
            f"splits on {listed(blamed)} send it elsewhere. If no value is missing, or it may be "
            "like an unknown category, pass missing='zero' (--missing zero)."
        )
    model, names = one_hot(ensemble, labels.features, labels.categories)
    new = [name for name in names if name not in set(labels.features)]
    note = (
        f"{listed([labels.features[j] for j in ensemble.categorical_features().tolist()])} became "
        f"{counted(len(new), 'feature')}, {listed(new)}: 1 where a document has that category, "
        f"else 0. The model has {counted(len(names), 'feature')} now."
    )
    # a name that nobody gave is given now: its number is no longer that of its column
    return model, replace(labels, features=names, given=True, categories={}, expanded=True), [note]


def _writer(form: Format, model: Model) -> Callable[..., Written]:
    of_kind = {
        Ensemble: ("trees", form.trees),
        Linear: ("linear models", form.linear),
        Network: ("nets", form.net),
    }
    kind, writer = of_kind[type(model)]
    if writer is None:
        key = "linear" if isinstance(model, Linear) else "net"
        raise ParameterError(
            f"{form.program} cannot hold {kind}. {_others(lambda f: getattr(f, key) is not None)} "
            "can hold them."
        )
    return writer


def _others(able: Callable[[Format], bool]) -> str:
    names = [f"to={name!r}" for name, form in FORMATS.items() if able(form)]
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _shifted(ensemble: Ensemble) -> tuple[Ensemble, str]:
    """Return the ensemble with a base that makes no score negative, and a note."""
    least, size = ensemble.base, abs(ensemble.base)
    if ensemble.n_trees:
        starts = ensemble.leaf_ptr[:-1]
        lowest = np.minimum.reduceat(ensemble.value, starts)
        least += float(lowest.sum())
        size += float(np.maximum.reduceat(np.abs(ensemble.value), starts).sum())
    # sums in float32 may be lower, by one rounding per tree
    least -= size * (ensemble.n_trees + 2) * float(np.finfo(np.float32).eps)
    shifted = replace(ensemble, base=ensemble.base - least)
    return shifted, f"All scores are higher by {-least:.9g}, so that none is below 0."
