"""Training of one model on many files, each read by one of a cluster's workers."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.boosting.loop import Callback, Objective
from rankgrove.boosting.tree_checkpoint import TreeCheckpoint
from rankgrove.cluster.client import connected
from rankgrove.cluster.part import FileFacts, PartFacts, PartTraining, ReadFile
from rankgrove.cluster.parts import Parts
from rankgrove.cluster.rows import ClusterRows
from rankgrove.compiling import announce
from rankgrove.data.binning import Binner
from rankgrove.data.categories import Categories
from rankgrove.data.category_bins import exact_unit
from rankgrove.data.concatenate import concatenate, merged_categories
from rankgrove.data.file_kinds import is_table
from rankgrove.data.letor import read_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.data.tabular import read_table
from rankgrove.errors import DataError, ParameterError
from rankgrove.growth.grower import check_layout
from rankgrove.growth.splitting import SplitRules
from rankgrove.measures.base import Measure
from rankgrove.model.tree import Tree
from rankgrove.objectives.lambdas import check_pairs
from rankgrove.objectives.position_bias import Cells, PositionBias
from rankgrove.rankers import positions
from rankgrove.rankers.categorical import coded_like
from rankgrove.rankers.fitting import (
    Training,
    check_alike,
    digest_of,
    listed_callbacks,
    watch_of,
)
from rankgrove.rankers.given import check_names, valid_datasets
from rankgrove.rankers.trees.category_rules import rules_of
from rankgrove.rankers.trees.constraints import constraints_of
from rankgrove.rankers.trees.fit_here import fit_here
from rankgrove.rankers.trees.recipe import rows_of_leaf
from rankgrove.rankers.trees.starts import ZERO
from rankgrove.training.watch import Watch
from rankgrove.validation import refuse

if TYPE_CHECKING:
    from typing import Self

    from rankgrove.rankers.trees.boosted import BoostedRanker as _Base
else:
    _Base = object


_OF_LETOR = ("absent", "zero_based", "n_features", "cache", "categorical")
_POSITIONS = ("position", "position_context")
_OF_TABLES = ("label", "qid", "features", "weight", "docid", "categorical", *_POSITIONS)


@dataclass(frozen=True)
class _Whole:
    """Properties of the data in all files together."""

    n_rows: int
    n_queries: int
    n_features: int
    given_names: tuple[str, ...] | None
    lowest_label: float
    highest_label: float
    absent: str
    categories: Categories
    contexts: tuple[str, ...] | None
    highest_position: int

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of features, as those of a data set."""
        return self.given_names or tuple(f"f{i + 1}" for i in range(self.n_features))


class FitsFiles(_Base):
    """A boosted ranker that can be trained on files of which no process reads all."""

    if TYPE_CHECKING:
        split: str
        step_on: str
        min_leaf: int | float
        min_gain: float
        max_depth: int | None
        n_leaves: int
        query_fraction: float
        row_fraction: float
        feature_fraction: float
        growth: str
        monotone: Mapping[str | int, int] | None
        interactions: Sequence[Sequence[str | int]] | None
        category_rules: Mapping[str, float] | None
        random_state: int
        position_bias: str | None
        propensities: Any
        n_positions: int | None

        def _additive(self) -> positions.Additive: ...

        @property
        def _is_exact(self) -> bool: ...

        @property
        def _leaf_l2(self) -> float: ...

        def _followed(self) -> Measure: ...

        def objective_on(
            self,
            train: QueryDataset,
            keys: np.ndarray,
            training: Training | None = None,
            *,
            target: Measure | None = None,
            in_parts: bool = False,
            bias: PositionBias | None = None,
        ) -> Objective: ...

    def fit_files(
        self,
        files: str | Path | Sequence[str | Path],
        *,
        cluster: Any = None,
        valid: Any = None,
        valid_measures: str | Measure | Iterable[str | Measure] | None = None,
        callbacks: Callback | Iterable[Callback] | None = None,
        bins: str | Path | None = None,
        **reading: Any,
    ) -> Self:
        """Train on files that memory cannot hold, in this process or on a Dask cluster.

        The model is the same to the bit as that of ``fit`` on all of the data.

        In this process the files become bins on disk, in blocks (:func:`rankgrove.open_binned`).
        On a cluster each file is read by one of the workers, and only histograms are sent here; the
        model does not depend on the number of workers and files. If a worker is lost, another one
        reads its files again.

        Parameters
        ----------
        files : a LETOR file or a table (parquet, CSV), or a list of such. On a cluster under names
            that workers can open, with all documents of a query in one file; the workers read about
            equal amounts, so there should be at least as many files as workers
        cluster : None: this process; ``"local"``: processes on this machine; the address of a Dask
            scheduler, such as ``"tcp://host:8786"``; or a ``distributed.Client``
        valid : as in ``fit``, or files: one name, or a list of names as a dict's value. With a
            cluster, this process holds the validation data
        valid_measures, callbacks : as in ``fit``
        bins : without a cluster: a folder in which bins are kept, and used again if the files have
            not changed; None: a temporary one, next to the first file
        **reading : how files are read, as in ``read_letor`` (absent, zero_based, n_features,
            categorical), or in ``read_table`` (label, qid, features, weight, categorical; on a
            cluster also position, position_context)
        """
        owner = f"{type(self).__name__}.fit_files"
        if cluster is None:
            self._check_no_positions(reading, owner)
            watched = {"valid": valid, "valid_measures": valid_measures, "callbacks": callbacks}
            return fit_here(self, _paths(files, owner), bins, reading, owner, **watched)
        if bins is not None:
            raise ParameterError(f"{owner}: bins are kept only without a cluster: leave bins out.")
        announce()
        self.check_parameters()
        self._check_parts_allowed(owner)
        called = listed_callbacks(callbacks, owner)
        paths = _paths(files, owner)
        read = _reader(paths, reading, owner)
        measures = self.check_validation(valid is not None, valid_measures)
        with connected(cluster, len(paths), self.n_threads) as client:
            parts = Parts(client, paths, read, self.n_threads)
            try:
                whole = parts.surely(lambda: _look(parts, paths, owner))
                more = (is_table(paths), reading, whole.n_features, self.n_threads)
                watched = valid_datasets(_valid_read(valid, *more), owner)
                for name, data in watched.items():
                    check_alike(
                        data, name, whole.n_features, whole.given_names, type(self).__name__
                    )
                watched = {
                    name: coded_like(
                        data,
                        whole.categories,
                        whole.n_features,
                        f"{owner}, the {name} data",
                        whose="the training data",
                    )
                    for name, data in watched.items()
                }
                parts.tell(("join", whole.n_features, whole.categories))
                bias = self._bias_in_parts(parts, whole, owner)
                binner = parts.surely(lambda: _bins(parts, whole, self.max_bins))
                training = Training(whole, watched, measures, called, owner)  # type: ignore[arg-type]
                watch = watch_of(
                    training, self.early_stopping, self.n_threads,
                    scores=lambda data: ZERO.scores(data, 1), binner=binner, bias=bias,
                )  # fmt: skip
                rows, saver, missing = self._in_the_cluster(parts, binner, whole, training, bias)
                trees, steps = _resumed(saver, rows, watch, self.n_trees)
                step = self._step(None, watch)  # exact weights are found on `watch`
                done = self._loop(rows, step, 0, watch, trees, steps, saver, called)
                traffic = {"trips": parts.trips, "bytes": parts.bytes_in}
            finally:
                parts.close()
        learned = self._learned(done, ZERO, 1, whole.n_features)
        if bias is not None:
            learned["position_bias_"] = bias.learned(learned["ensemble_"].n_rounds)
        return self._keep(learned | {"saw_missing_": missing, "traffic_": traffic}, whole)

    def _check_no_positions(self, reading: Mapping[str, Any], owner: str) -> None:
        """Refuse positions where files become bins on disk."""
        if self.position_bias is not None or any(name in reading for name in _POSITIONS):
            raise ParameterError(
                f"{owner}: bins on disk have no positions. Use a cluster (cluster='local'), or "
                "give them to the data: fit(rg.open_binned(files).with_positions(positions))."
            )

    def _check_parts_allowed(self, owner: str) -> None:
        """Refuse parameters that need all rows in one process."""
        if self.position_bias in ("ips", "affine") and self.propensities is None:
            raise ParameterError(
                f"{owner} cannot estimate propensities from data that is in several places: give "
                "propensities=, or use position_bias='additive' or 'ratios'."
            )
        if self.submodel is not None:
            raise ParameterError(
                f"{owner} cannot start from a submodel: leave 'submodel' out, or use fit."
            )
        if self._is_exact and self.step_on == "train":
            raise ParameterError(
                f"{owner} cannot find exact weights on training data that is in several places: "
                "set step_on='valid', step='newton', or use fit."
            )

    def _bias_in_parts(self, parts: Parts, whole: _Whole, owner: str) -> PositionBias | None:
        """Return what is learned about positions, before the first round."""
        if self.position_bias is None:
            return None
        if whole.contexts is None:
            raise DataError(
                f"{owner}: position_bias={self.position_bias!r} needs files with positions: name "
                "the column, position=."
            )
        n = self.n_positions or whole.highest_position
        clicked = partial(positions.clicked_rows, owner=owner, method=self.position_bias)
        count = ("count_cells", n, whole.contexts, clicked)
        shown, clicks = np.sum(parts.surely(lambda: parts.ask(count)), axis=0)
        cells = Cells(whole.contexts, n, shown, clicks)
        return positions.bias_on(self, cells, owner, self._additive())

    def _in_the_cluster(
        self,
        parts: Parts,
        binner: Binner,
        whole: _Whole,
        training: Training,
        bias: PositionBias | None,
    ) -> tuple[ClusterRows, TreeCheckpoint | None, bool]:
        """Prepare the workers for the first tree.

        Return their rows, the checkpoint, and whether values are missing.
        """
        if binner.columns.size == 0:
            raise DataError(
                "Every feature has the same value in all rows: there is nothing to split."
            )
        target = self._followed()
        if getattr(target, "max_grade", 0.0) is None:  # ERR's highest grade is that of all the data
            target = target.with_(max_grade=max(0.0, whole.highest_label))
        ranker = copy.copy(self)
        ranker.n_threads = None
        for_parts = PartTraining(
            binner,
            check_layout(self.split, whole.n_rows),
            partial(ranker.objective_on, target=target, in_parts=True, bias=bias),
            self.random_state,
            wants_digest=self.checkpoint is not None,
        )
        facts: list[PartFacts] = parts.tell(("train", for_parts))
        check_pairs(any(part.has_pairs for part in facts), target)
        saver = self._files_saver(facts, binner, training, bias)
        varies = any(part.varies_by_round for part in facts)
        rows = self._cluster_rows(parts, for_parts, whole, varies, bias)
        return rows, saver, any(part.has_missing for part in facts)

    def _cluster_rows(
        self,
        parts: Parts,
        training: PartTraining,
        whole: _Whole,
        varies_by_round: bool,
        bias: PositionBias | None,
    ) -> ClusterRows:
        rules = SplitRules(
            split=self.split,
            min_leaf=rows_of_leaf(self.min_leaf, whole.n_rows),
            min_gain=self.min_gain,
            max_depth=self.max_depth,
            l2=self._leaf_l2,
            feature_fraction=self.feature_fraction,
            growth=self.growth,
            constraints=constraints_of(self, whole.feature_names, whole.categories),
            categories=rules_of(self.category_rules),
        )
        return ClusterRows(
            parts,
            training,
            n_queries=whole.n_queries,
            n_rows=whole.n_rows,
            query_fraction=self.query_fraction,
            row_fraction=self.row_fraction,
            n_leaves=self.n_leaves,
            rules=rules,
            varies_by_round=varies_by_round,
            bias=bias,
            n_threads=self.n_threads,
        )

    def _files_saver(
        self,
        facts: list[PartFacts],
        binner: Binner,
        training: Training,
        bias: PositionBias | None,
    ) -> TreeCheckpoint | None:
        if self.checkpoint is None:
            return None
        run = self._run_of(training)
        total = sum(int(part.digest, 16) for part in facts)  # the same for any order of parts
        bins = digest_of(binner.content())
        run["training data"] = f"{bins} {total % (1 << 128):032x}"
        if bias is not None:
            run["position bias"] = digest_of([bias.start])
        every, n_features = self.checkpoint_every, binner.n_features
        return TreeCheckpoint(self.checkpoint, every, run, n_features, bias)


def _look(parts: Parts, paths: list[Path], owner: str) -> _Whole:
    """Return the properties of all files together; refuse files that do not belong together."""
    facts = parts.facts()
    parts.refuse_shared_queries(facts)
    first = facts[0]
    for path, file in zip(paths, facts, strict=True):
        check_names(first.feature_names, file.feature_names, f"{owner}, {path}")
    n_features = max(file.n_features for file in facts)
    if n_features == 0:
        raise DataError(f"{owner} needs data with at least one feature.")
    return _Whole(
        sum(file.n_rows for file in facts),
        sum(file.query_keys.size for file in facts),
        n_features,
        first.feature_names,
        min(file.lowest_label for file in facts),
        max(file.highest_label for file in facts),
        "missing" if any(file.absent == "missing" for file in facts) else "zero",
        merged_categories(
            [file.categories for file in facts],
            first.feature_names or [f"f{j + 1}" for j in range(n_features)],
            [str(path) for path in paths],
        ),
        _contexts(facts, paths, owner),
        max(file.highest_position for file in facts),
    )


def _contexts(
    facts: Sequence[FileFacts], paths: Sequence[Path], owner: str
) -> tuple[str, ...] | None:
    """Return the contexts of positions of all files, None without positions."""
    without = [path for file, path in zip(facts, paths, strict=True) if file.contexts is None]
    if not without:
        return tuple(sorted({name for file in facts for name in file.contexts or ()}))
    if len(without) < len(facts):
        raise DataError(f"{owner}: {without[0]} has no positions, but another file has.")
    return None


def _bins(parts: Parts, whole: _Whole, max_bins: int) -> Binner:
    """Return the bins of the data in all files together."""
    unit = exact_unit(whole.lowest_label, whole.highest_label, whole.n_rows)
    categorical = frozenset(whole.categories)
    return parts.bins(whole.n_features, whole.n_rows, max_bins, categorical, unit)


def _paths(files: str | Path | Sequence[str | Path], owner: str) -> list[Path]:
    """Return the files as absolute paths, which workers can open."""
    listed = [files] if isinstance(files, str | Path) else files
    if not len(listed):
        refuse("files", owner, "the name of a file, or a list of at least one", files)
    paths = [Path(file).absolute() for file in listed]
    for path in paths:
        if paths.count(path) > 1:
            raise ParameterError(f"{owner}: {path} is given twice.")
    return paths


def _reader(paths: list[Path], reading: dict[str, Any], owner: str) -> ReadFile:
    """Return a function that reads one file, or several as one."""
    tables = {is_table([path]) for path in paths}
    if len(tables) > 1:
        raise ParameterError(f"{owner}: give either LETOR files, or parquet and CSV files.")
    (table,) = tables
    for name in reading:
        if name not in (_OF_TABLES if table else _OF_LETOR):
            known = ", ".join(_OF_TABLES if table else _OF_LETOR)
            kind = "tables" if table else "LETOR files"
            raise ParameterError(f"{owner} has no parameter {name!r}; {kind} are read by: {known}.")
    return partial(_read, table, reading)


def _read(
    table: bool, reading: dict[str, Any], path: Path | list[Path], n_threads: int | None
) -> QueryDataset:
    if not table:
        return read_letor(path, n_threads=n_threads, **reading)
    if isinstance(path, list):
        return concatenate([read_table(file, **reading) for file in path])
    return read_table(path, **reading)


def _valid_read(
    valid: Any, table: bool, reading: dict[str, Any], n_features: int, n_threads: int | None
) -> Any:
    """Return validation data with files replaced by their content."""
    if isinstance(valid, dict):
        again = (table, reading, n_features, n_threads)
        return {name: _valid_read(files, *again) for name, files in valid.items()}
    several = isinstance(valid, list) and all(isinstance(file, str | Path) for file in valid)
    if not (several or isinstance(valid, str | Path)):
        return valid
    paths = [Path(file) for file in (valid if several else [valid])]
    without_weight = {k: v for k, v in reading.items() if k != "weight"}  # weights are for training
    return _read(
        table,
        without_weight if table else {**without_weight, "n_features": n_features},
        paths,
        n_threads,
    )


def _resumed(
    saver: TreeCheckpoint | None, rows: ClusterRows, watch: Watch, most_rounds: int
) -> tuple[list[Tree], list[float]]:
    """Return a checkpoint's trees and weights; bring scores and history up to date with them."""
    state = saver.read(watch.history) if saver is not None else None
    if state is None:
        return [], []
    trees, steps, history = state
    trees, steps = trees[:most_rounds], steps[:most_rounds]
    rows.replay(trees)
    watch.history = history
    watch.cut(most_rounds)
    watch.catch_up(trees)
    return trees, steps
