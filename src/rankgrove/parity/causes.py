"""The causes of differences that are known by name, and what to do about each."""

from __future__ import annotations

from dataclasses import dataclass

UNEXPLAINED = "unexplained"
ROUNDING = "rounding"


@dataclass(frozen=True)
class CauseKind:
    """A cause: its title, and the remedy."""

    title: str
    remedy: str


CAUSES = {
    "missing-as-zero": CauseKind(
        "missing values are taken as 0",
        "Use a version of the engine that keeps missing values, or convert and evaluate the model "
        'with missing="zero" (--missing zero), after training on data with 0 in their place.',
    ),
    "missing-as-number": CauseKind(
        "missing values are taken as another number",
        "Remove the default value of the feature in the engine, or train with the same value.",
    ),
    "zero-as-missing": CauseKind(
        "zeros are taken as missing values",
        'Have the features sent with their zeros, or train with absent="missing" so that zeros '
        "and missing values are the same to the model.",
    ),
    "missing-right": CauseKind(
        "missing values always go to the right",
        "This is what OpenSearch does from 3.2 until issue 378 was fixed (3.8). Upgrade, or "
        "convert for that version: --engine names it.",
    ),
    "missing-left": CauseKind(
        "missing values always go to the left",
        "Look for a default direction in the engine's file, and convert the model again.",
    ),
    "missing-opposite": CauseKind(
        "missing values go to the other side than the model says",
        "Look for exchanged children or an inverted default direction (default_left, missing) in "
        "the engine's file, and convert the model again.",
    ),
    "float32": CauseKind(
        "numbers are rounded to float32",
        "Documents whose values are at a threshold move. Train on float32 values, or convert with "
        "rg.convert, which writes thresholds that decide alike on float32 values.",
    ),
    "strict-compare": CauseKind(
        "values equal to a threshold go right (x < t instead of x <= t)",
        "The file was written for an engine that asks x <= t. Convert it for this engine: "
        "rankgrove convert moves the thresholds by one step.",
    ),
    "loose-compare": CauseKind(
        "values equal to a threshold go left (x <= t instead of x < t)",
        "The file was written for an engine that asks x < t. Convert it for this engine: "
        "rankgrove convert moves the thresholds by one step.",
    ),
    "stale-features": CauseKind(
        "scores are of other feature values than those logged",
        "Log features in the same request as scores, and look for a cache or an index that is "
        "behind.",
    ),
    "feature-order": CauseKind(
        "features are in another order",
        "Name the features in the order of the training data's columns: rankgrove convert "
        "--features names.txt.",
    ),
    "feature-normalised": CauseKind(
        "feature values are changed before they reach the model",
        "Compute the feature in the engine as for training, or train on logged values: rankgrove "
        "join.",
    ),
    "feature-lost": CauseKind(
        "a feature does not reach the model",
        "Compare the feature's name in the engine's feature set and in the model's file, and its "
        "parameters in the request.",
    ),
    "feature-changed": CauseKind(
        "one feature has other values than those logged",
        "Log features and scores in the same request. Compare how the engine computes this feature "
        "with what is logged: a cache, parameters, units, a default value. If you know the right "
        "values, give them: --reference features.csv.",
    ),
    "model-version": CauseKind(
        "scored by another model", "Upload the model again, and check the name in the request."
    ),
    "truncated": CauseKind(
        "some trees are not added",
        "The file was cut, the trees of a submodel are missing, or an older, smaller model is in "
        "use: upload the model again.",
    ),
    "constant": CauseKind(
        "all scores are off by a constant",
        "The ranking is the same. Where thresholds or sums of scores matter, convert again with or "
        "without --shift, or with --base-score.",
    ),
    "scale": CauseKind(
        "scores are multiplied",
        "The ranking by the model alone is the same. Look for a boost, rescore_query_weight or "
        "tree weights in the request and in the file.",
    ),
    "rescore": CauseKind(
        "the model's score is combined with another one",
        "Set query_weight to 0 and score_mode to total in rescore, if the model alone is to rank.",
    ),
    "score-rounded": CauseKind(
        "scores are rounded", "Ties then hide the model's order: log and sort by the full score."
    ),
    "score-clipped": CauseKind(
        "scores are cut at a bound",
        "Documents at the bound are tied. Convert with --shift, so that no score is negative.",
    ),
    "score-transformed": CauseKind(
        "scores are transformed",
        "The ranking is the same if the function rises. Look for an objective (a sigmoid) in the "
        "file, or a function around the score.",
    ),
    "engine-rules": CauseKind(
        "scored by the rules of another engine or version",
        "Say which engine and version is in use (--engine), and convert the model for it.",
    ),
    ROUNDING: CauseKind(
        "rounding: sums of float32 in another order",
        "Harmless, as long as no ties depend on it: raise --tolerance.",
    ),
    UNEXPLAINED: CauseKind(
        "not explained",
        "Give what may have been in use instead: --also other.rg, --reference features.csv, other "
        "--features names; and check that features and scores were logged in the same request.",
    ),
}
