"""``rg.convert``: a trained ranker written for another program."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.files import atomic_output, write_atomically
from rankgrove.formats.read import DUMP, kind_of
from rankgrove.formats.targets import target_of
from rankgrove.formats.write import FORMATS, Labels, Model, fitted, write
from rankgrove.model.ensemble import Ensemble
from rankgrove.operations.convert_files import OURS, check_ending, definitions_file, format_of
from rankgrove.operations.flat_models import flat_model, may_have_learned_missing
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.ensembles.bag_scores import summed
from rankgrove.rankers.ensembles.calibrated import CalibratedRanker
from rankgrove.rankers.ensembles.early_exit import EarlyExitRanker, calibrated_in
from rankgrove.rankers.ensembles.relevance_curves import Sigmoids
from rankgrove.rankers.foreign_models import of_object
from rankgrove.rankers.inner_rankers import loaded
from rankgrove.rankers.load import load
from rankgrove.validation import check_choice, check_output_file, counted, refuse, with_article

MISSING = ("refuse", "zero", "keep")
_log = logging.getLogger("rankgrove")


def convert(
    model: Any,
    path: str | Path,
    to: str | None = None,
    *,
    features: Sequence[str] | None = None,
    name: str | None = None,
    shift: bool | None = None,
    missing: str = "refuse",
    combine: str | None = None,
    base_score: float | None = None,
    expand_categories: bool = False,
    engine: str | None = None,
    feature_set: str | Path | None = None,
    relevance: float | None = None,
) -> None:
    """Write a trained ranker in the format of another program.

    A model that the format cannot hold is refused, with the reason and the nearest alternative.
    Differences from the model are logged as warnings.

    Parameters
    ----------
    model : a trained ranker, a model of LightGBM or XGBoost (a Booster, LGBMRanker, XGBRanker), or
        the path of a model file, ours or another library's
    path : the file to write
    to : ``"lightgbm"``, ``"xgboost"``, ``"ranklib"``, ``"solr"``, ``"elasticsearch"``
        (the plugin), ``"opensearch"``, ``"elasticsearch-native"`` (its own learning to rank),
        ``"vespa"``, ``"onnx"``, ``"python"``, ``"c"`` or ``"rankgrove"``; None: that of the
        engine, or by the file's ending (.txt, .xml, .onnx, .py, .c, .rg)
    features : names of all features, for programs that find them by name; None: the model's own,
        or f1, f2, ... For a dump of XGBoost, in the order of the columns, as in :func:`load`
    name : the model's name in the file; None: the file's name
    shift : add a constant so that no score is negative; None: only for the plugins of Elasticsearch
        and OpenSearch, which refuse negative scores
    missing : what becomes of missing values: ``"refuse"``: where the model learned to send them is
        kept, and refused if the program cannot do it; ``"zero"``: trees send them where they send
        0, whatever was learned; ``"keep"``: as ``"refuse"``, but with more splits where a program
        can be brought to it by them, and with the model's directions even if none were learned
    combine : ``"mean"``: for a bag that scales its models' scores within every query, which no
        format can express, write the plain mean of its models, which is a different ranking
    base_score : for a dump of XGBoost, the start of its scores, as in :func:`load`
    expand_categories : write trees without sets of categories: a categorical feature ``brand``
        becomes one feature per category that splits test, ``brand=acme`` (``f3=7`` without names),
        which is 1 where a document has the category, else 0
    engine : the search engine and version that reads the file, as engines differ in what they do
        with missing values: ``"elasticsearch-ltr"``, ``"elasticsearch-ltr-2023"``,
        ``"opensearch-3.8"``, ``"opensearch-3.2"``, ``"opensearch-3.1"``, ``"opensearch-main"``,
        ``"elasticsearch-8.12"``, ``"solr-9.2"``, ``"solr-9.1"``; also ``"vespa"``,
        ``"vespa-fast-forest"`` and ``"ranklib"``, which do the same in all versions; other versions
        in between may be named, as ``"opensearch-2.19"``. None: the first of the format
    relevance : for a calibrated ranker of ``method="sigmoid"``, a grade: the scores in the program
        are the probabilities that a document has this grade or a higher one. None: the ranker's own
        scores
    feature_set : for a search engine, a second file to write: a skeleton of the definitions of the
        features, whose queries are to be filled in

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_artificial(20, seed=1)
    >>> model = rg.LambdaMART(n_trees=3).fit(data)
    >>> rg.convert(model, "web.json", to="xgboost")
    >>> rg.load("web.json")
    TreeRanker(XGBoost rank:pairwise, 3 trees)
    """
    owner = "convert"
    rule = "a trained ranker or the path of a model file"
    if isinstance(model, str | Path) and Path(model).is_file() and kind_of(model) == DUMP:
        model = load(model, features=features, base_score=base_score)
    elif base_score is not None:
        raise ParameterError("convert: base_score= (--base-score) is for a dump of XGBoost.")
    ranker = of_object(loaded(model, "model", owner, rule))
    if not isinstance(ranker, Ranker):
        inside = getattr(ranker, "ranker", None)  # the result of a search
        if not isinstance(inside, Ranker):
            refuse("model", owner, rule, ranker)
        ranker = inside
    ranker._check_is_fitted()
    target = check_output_file("path", owner, path)
    read_by = None if engine is None else target_of(engine, to)
    if read_by is not None and to is None:
        check_ending(target, read_by)
    form = format_of(target, to if read_by is None else read_by.format)
    definitions = definitions_file(feature_set, form, target)
    check_choice("missing", owner, missing, MISSING)
    notes: list[str] = []
    if combine is not None:
        check_choice("combine", owner, combine, ["mean"])
        ranker, notes = _as_mean(ranker)
    if form == OURS:
        if relevance is not None:
            raise ParameterError(
                "convert: relevance= (--relevance) is for other programs; our own files hold the "
                "calibration. Leave it out."
            )
        if missing == "zero":
            raise ParameterError(
                "convert: missing='zero' (--missing zero) is for other programs; our own files "
                "hold what the model learned. Leave it out, or train on data in which missing "
                "values are 0."
            )
        if expand_categories:
            raise ParameterError(
                "convert: expand_categories=True (--expand-categories) is for other programs; our "
                "own files hold categories. Leave it out."
            )
        ranker.save(target)
        _log_notes(target, notes)
        return
    labels = _labels(ranker, target, features, name)
    flat = flat_model(ranker)
    if relevance is not None:
        flat, labels = _margins(ranker, flat, relevance), replace(labels, probability=True)
    elif calibrated_in(ranker) is not None:
        notes.append("The file has the ranker's own scores, without the calibration.")
    if _exits_early(ranker):
        notes.append("The file scores every document by all trees: early exit is left out.")
    held, labels, more = fitted(
        flat,
        form,
        labels,
        missing=missing,
        engine=read_by,
        shift=shift,
        learned_missing=may_have_learned_missing(ranker),
        expand_categories=expand_categories,
    )
    content, last = write(held, form, labels)
    if form == "vespa" and not isinstance(held, Ensemble) and target.suffix != ".profile":
        last = [*last, "This is a rank profile: Vespa reads it as schemas/SCHEMA/"
                f"{labels.name}.profile, and not from the folder models."]  # fmt: skip
    with atomic_output(target, pack=False) as out:
        out.write(content)
    _log_notes(target, [*notes, *more, *last])
    defined = FORMATS[form].definitions
    if definitions is not None and defined is not None:
        write_atomically(definitions, defined(held, labels))


def _margins(ranker: Ranker, model: Model, grade: float) -> Ensemble:
    """Return trees whose sum is the log odds of a grade or a higher one."""
    calibrated = calibrated_in(ranker)
    if calibrated is None or not isinstance(calibrated.curves_, Sigmoids):
        raise ParameterError(
            "convert: relevance= (--relevance) needs a ranker that was calibrated with "
            "method='sigmoid', whose probabilities programs can compute: rg.calibrate(model, data, "
            "method='sigmoid') (rankgrove calibrate --method sigmoid)."
        )
    grades = calibrated.grades_
    if not isinstance(model, Ensemble) or model.n_columns != 1 or grades is None:
        raise ParameterError(
            "convert: relevance= (--relevance) needs a ranker that is one sum of trees, such as "
            "rg.LambdaMART, calibrated with method='sigmoid'. Leave it out to write this ranker's "
            "own scores, whose order is the same."
        )
    if grade not in grades[1:].tolist():
        known = ", ".join(f"{known:g}" for known in grades[1:])
        refuse("relevance", "convert", f"a grade above the lowest, one of {known}", grade)
    curves = calibrated.curves_
    scaled = summed([model], np.array([curves.slope]), ranker.n_features_in_)
    intercept = float(curves.intercepts[grades[1:].tolist().index(grade)])
    return replace(scaled, base=scaled.base + intercept)


def _exits_early(ranker: Ranker) -> bool:
    return isinstance(ranker, EarlyExitRanker) or (
        isinstance(ranker, CalibratedRanker) and isinstance(ranker.ranker_, EarlyExitRanker)
    )


def _log_notes(path: Path, notes: Sequence[str]) -> None:
    for note in notes:
        _log.warning("%s: %s", path, note)


def _labels(ranker: Ranker, path: Path, features: Sequence[str] | None, name: str | None) -> Labels:
    n = ranker.n_features_in_
    names = getattr(ranker, "feature_names_", None) if features is None else features
    known = dict(getattr(ranker, "categories_", {}))
    if names is None:
        numbered = [f"f{j + 1}" for j in range(n)]
        return Labels(name or path.stem, numbered, False, ranker.absent_, known)
    if isinstance(names, str) or not all(isinstance(feature, str) and feature for feature in names):
        refuse("features", "convert", "a list of names", features)
    if len(names) != n:
        raise ParameterError(
            f"convert: the model has {counted(n, 'feature')}; {len(names)} names were given. Name "
            "all of them, in their order."
        )
    if len(set(names)) < n:
        twice = next(feature for at, feature in enumerate(names) if feature in names[:at])
        raise ParameterError(f"convert: the feature name {twice!r} is given twice.")
    return Labels(name or path.stem, list(names), True, ranker.absent_, known)


# -- bags and missing values ----------------------------------------------------------------------


def _as_mean(ranker: Ranker) -> tuple[Ranker, list[str]]:
    """Return the bag of the same models that takes their plain mean, and notes on that."""
    if not ranker.is_bag:
        raise ParameterError(
            "convert: combine='mean' is for a bag, and this is "
            f"{with_article(type(ranker).__name__)}: leave it out. (A bag within a combination "
            "must itself be trained with combine='mean', as the combination's weights are for the "
            "scores it had.)"
        )
    if ranker.combine == "mean":
        return ranker, []
    models, weights = ranker.averaged()
    return ranker.with_models(models, weights, "mean"), [
        f"This is the plain mean of the bag's {len(models)} models, not the bag itself "
        f"(combine={ranker.combine!r}): it may rank differently. Evaluate it before use."
    ]
