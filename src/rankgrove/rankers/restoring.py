"""Trained rankers built from the content of a model file, all of which is checked.

Rankers inside a ranker, such as a bag's models or a submodel, are built here first: so content is
checked at every depth, and inner rankers are checked against the outer one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rankgrove.errors import ModelFileError
from rankgrove.model import sense
from rankgrove.model.store import DAMAGE, said
from rankgrove.rankers.base import OF_THE_RUN, Arrays, Content, Ranker, class_of
from rankgrove.rankers.categorical import unpacked
from rankgrove.rankers.positions import unpacked as unpacked_bias
from rankgrove.validation import counted


def restored(kind: str, content: Any, arrays: Arrays) -> Ranker:
    """Return the trained ranker of a kind that a file's content and arrays describe."""
    try:
        return _checked(class_of(kind), sense.table(content, "the content"), arrays)
    except ModelFileError:
        raise
    except DAMAGE as error:
        damage = f"is damaged: {type(error).__name__}, {said(error)}."
        raise ModelFileError(f"the file's content for a {kind!r} {damage}") from None


def _checked(ranker_class: type[Ranker], content: Content, arrays: Arrays) -> Ranker:
    parameters = sense.table(content["parameters"], "the parameters")
    n_features = sense.whole(content["n_features"], "n_features")
    if "feature_names" in content:
        names = sense.texts(content["feature_names"], "the names of features")
        if len(names) != n_features:
            raise ValueError(f"{counted(n_features, 'feature')}, and {len(names)} names of them.")
    if "categories" in content:
        unpacked(content["categories"], n_features)
    for word, check in _WORDS.items():
        if word in content:
            check(content[word], word)
    best = content.get("best_round") or content.get("best_epoch") or 0
    for measures in content.get("history", {}).values():
        if any(len(values) < best for values in measures.values()):
            raise ValueError(f"a history that ends before its best round, {best}.")
    # the caller decides how to run: a file could name a checkpoint to write to
    of_learning = {name: value for name, value in parameters.items() if name not in OF_THE_RUN}
    ranker = ranker_class.restore({**content, "parameters": of_learning}, arrays)
    _check_model(ranker)
    for member in ranker.members():
        _check_member(member, ranker)
    return ranker


# -- the keys of a file ----------------------------------------------------------------------------


def _number_or_none(value: object, word: str) -> None:
    if value is not None:
        sense.number(value, word)


def _round_or_none(value: object, word: str) -> None:
    if value is not None:
        sense.whole(value, word)


def _flag(value: object, word: str) -> None:
    if not isinstance(value, bool):
        raise ValueError(f"{word} must be true or false.")


def _pruning(value: object, word: str) -> None:
    record = sense.table(value, word)
    for n_trees in record["trees"]:
        sense.whole(n_trees, "the trees of a pass")
    for values in sense.table(record["values"], word).values():
        sense.numbers(values, "the values of the passes")


def _rounds(value: object, word: str) -> None:
    if not isinstance(value, list):
        sense.whole(value, word)
        return
    for step in value:
        if sense.numbers(step, word).size != 3:
            raise ValueError(f"{word} must hold feature, weight and value of every round.")


def _objective(value: object, word: str) -> None:
    if value is not None and not isinstance(value, str):
        sense.numbers(value, word)


def _solution(value: object, word: str) -> None:
    solution = sense.table(value, word)
    sense.number(solution["C"], "C")
    for item in solution.values():
        if not isinstance(item, str | int | float | None):
            raise ValueError(f"{word} must hold plain values.")


def _solutions(value: object, word: str) -> None:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{word} must be a list.")
    for solution in value:
        _solution(solution, word)


def _skipped(value: object, word: str) -> None:
    for n_queries in sense.table(value, word).values():
        sense.whole(n_queries, word)


def _submodel(value: object, word: str) -> None:
    if value is not None and value != "base_score":
        sense.table(value, word)


def _leaderboard(value: object, word: str) -> None:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{word} must be a list of candidates.")
    for entry in value:
        settings: object = entry["settings"]
        while settings is not None:
            content = sense.table(settings, "the settings of a candidate")
            sense.texts([content["kind"]], "the kind of a candidate")
            sense.table(content["parameters"], "the parameters of a candidate")
            settings = content.get("base")
        sense.texts([entry["name"]], "the name of a candidate")
        sense.numbers([entry[key] for key in _OF_CANDIDATES], word)
        _round_or_none(entry["trees"], "the trees of a candidate")


def _search(value: object, word: str) -> None:
    if not isinstance(value, list):
        raise ValueError(f"{word} must be a list of steps.")
    for step in value:
        sense.texts([step["name"]], "the name of a candidate")
        sense.numbers([step[key] for key in ("seconds", "fits", "value", "best")], word)


def _numbers_by_name(value: object, word: str) -> None:
    sense.numbers(list(sense.table(value, word).values()), word)


def _texts_by_name(value: object, word: str) -> None:
    sense.texts(list(sense.table(value, word).values()), word)


_OF_CANDIDATES = ("value", "low", "high", "weight", "fits", "seconds")
# Keys that mean the same in every kind of ranker.
_WORDS: dict[str, Callable[[Any, str], object]] = {
    "history": sense.history,
    "start_values": lambda value, word: sense.history(value, word, of_rounds=False),
    "best_round": _round_or_none,
    "best_epoch": _round_or_none,
    "epochs": sense.whole,
    "interrupted": _flag,
    "least_features": _flag,
    "steps": sense.numbers,
    "weights": sense.numbers,
    "classes": sense.numbers,
    "out_of_bag": _number_or_none,
    "submodel": _submodel,
    "submodel_weight": sense.number,
    "value": sense.number,
    "C": sense.number,
    "rounds": _rounds,
    "objective": _objective,
    "solution": _solution,
    "solutions": _solutions,
    "skipped": _skipped,
    "pruning": _pruning,
    "position_bias": unpacked_bias,
    "interval": sense.numbers,
    "optimism": sense.number,
    "leaderboard": _leaderboard,
    "microseconds": _number_or_none,
    "search": _search,
    "compared": _numbers_by_name,
    "failed": _texts_by_name,
}


# -- the model -------------------------------------------------------------------------------------


def _check_model(ranker: Ranker) -> None:
    """Refuse a model with other features than the ranker's, or with several scores per row."""
    network = None if hasattr(ranker, "rankers_") else getattr(ranker, "network_", None)
    ensemble = vars(ranker).get("ensemble_")  # not a property that builds one from other rankers
    for model in (ensemble, getattr(ranker, "linear_", None), network):
        if model is not None and model.n_features != ranker.n_features_in_:
            raise ValueError(
                f"a model of {counted(model.n_features, 'feature')} in a ranker of "
                f"{ranker.n_features_in_}."
            )
    n_rounds = getattr(ranker, "n_rounds_", 1)
    if not isinstance(n_rounds, int) or not getattr(ranker, "rounds_", [0]):
        raise ValueError("no number of rounds.")
    if hasattr(ranker, "solutions_"):
        tried = [solution["C"] for solution in ranker.solutions_]
        lengths = {len(v) for measures in ranker.history_.values() for v in measures.values()}
        if ranker.C_ not in tried or not lengths <= {len(tried)}:
            raise ValueError("C is not one of those tried, or their history is incomplete.")
    if ensemble is None:
        return
    shown = max(0, ensemble.n_rounds - getattr(ranker, "_n_before", 0))
    for measures in getattr(ranker, "history_", {}).values():
        if any(len(values) < shown for values in measures.values()):
            raise ValueError("a history of fewer rounds than the model has.")
    if len(getattr(ranker, "steps_", ())) != ensemble.n_trees:
        raise ValueError(f"{counted(ensemble.n_trees, 'tree')} with another number of steps.")
    if ensemble.n_columns > 1 and not (hasattr(ranker, "classes_") or hasattr(ranker, "source_")):
        raise ValueError(f"{ensemble.n_columns} scores per row, where there must be one.")


def _check_member(member: Ranker | str, around: Ranker) -> None:
    """Refuse a ranker that takes other features than the one that holds it."""
    if isinstance(member, str):  # scores that come with the data
        return
    fewer = getattr(member, "least_features_", False) and (
        member.n_features_in_ <= around.n_features_in_
    )
    if member.n_features_in_ != around.n_features_in_ and not fewer:
        raise ValueError(
            f"a {type(member).__name__} of {counted(member.n_features_in_, 'feature')} in a "
            f"{type(around).__name__} of {around.n_features_in_}."
        )
