"""All parts of the training data: starting them, sending commands, and rebuilding lost parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rankgrove.cluster.client import check_alive, gone, threads_of_workers, wait_for_workers
from rankgrove.cluster.part import Command, FileFacts, Part, ReadFile
from rankgrove.data.binning import Binner, ColumnBins
from rankgrove.data.category_means import CategorySums
from rankgrove.data.counting import merged_bins
from rankgrove.errors import ClusterError, DataError, RankgroveError

_Result = TypeVar("_Result")

LOOK_SECONDS = 2.0  # between two checks whether the scheduler is still there
COLUMNS_AT_ONCE = 16  # counted by all parts and summed by one worker
VALUES_AT_ONCE = 1 << 28  # limits the columns if there are many rows
MOST_LOSSES = 20  # of parts, in one training


class PartsLostError(Exception):
    """Workers were lost, together with their parts of the data."""


def share_out(files: Sequence[Path], n_parts: int) -> list[list[int]]:
    """Distribute files over parts of about equal size; return the file numbers of every part."""
    sizes = [file.stat().st_size if file.exists() else 1 for file in files]
    shares: list[list[int]] = [[] for _ in range(min(n_parts, len(files)))]
    load = [0] * len(shares)
    for i in sorted(range(len(files)), key=lambda i: (-sizes[i], i)):
        least = load.index(min(load))
        shares[least].append(i)
        load[least] += sizes[i]
    return [sorted(share) for share in shares]


class Parts:
    """The files, read by workers; every worker has one part if there are enough files.

    Attributes
    ----------
    trips : number of requests to all parts so far
    bytes_in : bytes of arrays in their answers
    """

    def __init__(
        self, client: Any, files: Sequence[Path], read: ReadFile, n_threads: int | None
    ) -> None:
        self._client = client
        self._files = list(files)
        self._read = read
        self._n_threads = n_threads
        workers = list(threads_of_workers(client))
        self.shares = share_out(files, len(workers))
        self._history: list[Command] = []  # the commands that rebuild a part
        self._lost: set[int] = set()
        self._n_lost = 0
        self.trips = 0
        self.bytes_in = 0
        self._futures: list[Any] = [None] * len(self.shares)
        self._actors: list[Any] = [None] * len(self.shares)
        for i in range(len(self.shares)):
            self._start(i, workers[i])
        for i in range(len(self.shares)):
            self._actors[i] = self._made(i)

    def __len__(self) -> int:
        return len(self.shares)

    def tell(self, *commands: Command) -> list[Any]:
        """Like :meth:`ask`, but rebuilds lost parts; parts rebuilt later get the commands too."""
        answers = self.surely(lambda: self.ask(*commands))
        self._history += commands
        return answers

    def remember(self, command: Command) -> None:
        """Record a command that a rebuilt part must get too."""
        self._history.append(command)

    def ask(self, *commands: Command) -> list[Any]:
        """Send commands to all parts; return their answers in order.

        An error that a part finds in its data is raised unchanged. PartsLostError is raised if some
        parts are lost, after all others have answered.
        """
        self.trips += 1
        asked = [self._tell(i, commands) for i in range(len(self))]
        answers = [self._answer(i, future) for i, future in enumerate(asked)]
        if self._lost:
            raise PartsLostError
        self.bytes_in += sum(_bytes(answer) for answer in answers)
        return answers

    def surely(self, work: Callable[[], _Result]) -> _Result:
        """Return the result of `work`; if workers are lost, run it again from the start."""
        while True:
            try:
                return work()
            except PartsLostError:
                self._mend()

    def _mend(self) -> None:
        """Rebuild lost parts on the remaining workers, in the state of the others."""
        while self._lost:
            check_alive(self._client)
            self._n_lost += len(self._lost)
            if self._n_lost > MOST_LOSSES:
                raise ClusterError(
                    f"Workers were lost {self._n_lost} times. Usually they run out of memory: "
                    "use more workers, or more memory for each."
                )
            lost = sorted(self._lost)
            self._lost.clear()
            for i in lost:
                self._start(i, self._least_loaded())
            for i in lost:
                self._actors[i] = self._made(i)
            if self._history:
                asked = [(i, self._tell(i, self._history)) for i in lost]
                for i, future in asked:
                    self._answer(i, future)

    def close(self) -> None:
        """Free the data on the workers."""
        if self._client.status == "running":
            for future in self._futures:
                if future is not None:
                    future.release()
        self._actors = []
        self._futures = []

    # -- before training --------------------------------------------------------------------------

    def facts(self) -> list[FileFacts]:
        """Return the facts of every file, in the order of the files."""
        by_file: dict[int, FileFacts] = {}
        for share, facts in zip(self.shares, self.ask(("facts",)), strict=True):
            by_file.update(zip(share, facts, strict=True))
        return [by_file[i] for i in range(len(self._files))]

    def refuse_shared_queries(self, facts: Sequence[FileFacts]) -> None:
        """Raise DataError if a query is in two files: its documents must be together."""
        keys = np.concatenate([file.query_keys for file in facts])
        home = np.repeat(np.arange(len(facts)), [file.query_keys.size for file in facts])
        order = np.argsort(keys, kind="stable")
        twice = np.flatnonzero(keys[order][1:] == keys[order][:-1])
        pairs = {(int(home[order[i]]), int(home[order[i + 1]])) for i in twice.tolist()}
        for first, second in sorted(pairs):
            shared = set(self._ids(first)) & set(self._ids(second))  # keys may agree by chance
            if shared:
                raise DataError(
                    f"The query {min(shared)!r} is in {self._files[first]} and in "
                    f"{self._files[second]}: all documents of a query must be in one file. Split "
                    "the data between queries."
                )

    def bins(
        self,
        n_features: int,
        n_rows: int,
        max_bins: int,
        categorical: frozenset[int],
        unit: float,
    ) -> Binner:
        """Return the bins of all rows; workers count the values and sum the counts.

        Many categories are ordered by labels, in a `unit` for which sums are exact.
        """
        width = max(1, min(COLUMNS_AT_ONCE, VALUES_AT_ONCE // n_rows))
        starts = range(0, n_features, width)
        groups = [range(start, min(start + width, n_features)) for start in starts]
        jobs = [
            self._client.submit(
                _merge, self._actors, columns, max_bins, categorical, unit, pure=False
            )
            for columns in groups
        ]
        columns: list[ColumnBins] = []
        try:
            for job in jobs:
                columns += self._joined(job)
        except PartsLostError:
            self._client.cancel(jobs, force=True)
            raise
        except Exception as error:
            self._raise_unless_lost(error)
        return Binner.of(n_features, columns)

    def _joined(self, job: Any) -> list[ColumnBins]:
        """Wait for a job that asks all parts; PartsLostError if one of them is lost."""
        while True:
            try:
                return job.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                if job.status == "error":  # the job itself raised it
                    raise
                workers = threads_of_workers(self._client)
                for i, actor in enumerate(self._actors):
                    if actor._address not in workers:
                        self._lose(i)
                if self._lost:
                    raise PartsLostError from None

    # -- inside -----------------------------------------------------------------------------------

    def _ids(self, file: int) -> list[str]:
        part = next(i for i, share in enumerate(self.shares) if file in share)
        commands = [("query_ids", self.shares[part].index(file))]
        ids: list[str] = self._answer(part, self._tell(part, commands))
        if self._lost:
            raise PartsLostError
        return ids

    def _start(self, i: int, worker: str) -> None:
        files = [self._files[j] for j in self.shares[i]]
        self._futures[i] = self._client.submit(
            Part, files, self._read, self._n_threads,
            actor=True, workers=[worker], allow_other_workers=True, pure=False,
        )  # fmt: skip

    def _made(self, i: int) -> Any:
        from distributed import CancelledError, KilledWorker

        try:
            while True:
                try:
                    return self._futures[i].result(timeout=LOOK_SECONDS)
                except TimeoutError:
                    if self._futures[i].status == "error":  # the part itself raised it
                        raise
                    if not self._is_held(self._futures[i]):
                        self._start(i, self._least_loaded())
        except CancelledError:
            raise gone(self._client) from None
        except KilledWorker:
            files = ", ".join(str(self._files[j]) for j in self.shares[i])
            raise ClusterError(
                f"Every worker that tried to read {files} was lost. Usually it runs out of "
                "memory: split the data into more files, and use more workers."
            ) from None

    def _is_held(self, future: Any) -> bool:
        """Return whether a worker is making a part or has it.

        Dask may silently lose a part whose worker is killed between the two.
        """
        try:
            held = [*self._client.processing().values(), *self._client.has_what().values()]
        except (OSError, TimeoutError):
            raise gone(self._client) from None
        return any(future.key in keys for keys in held)

    def _least_loaded(self) -> str:
        """Return the worker with the fewest parts; wait for one if all are lost."""
        parts = Counter(getattr(actor, "_address", "") for actor in self._actors)
        while not (workers := threads_of_workers(self._client)):
            wait_for_workers(self._client)
        return min(workers, key=lambda worker: parts[worker])

    def _tell(self, i: int, commands: Sequence[Command]) -> Any:
        """Send commands to a part; return the future of its answer, None if the part is lost."""
        try:
            return self._actors[i].run(list(commands))
        except RuntimeError:  # "Worker holding Actor was lost"
            self._lose(i)
            return None

    def _answer(self, i: int, future: Any) -> Any:
        """Wait for a part's answer; if there is none, record that the part is lost."""
        if future is None:
            return None
        while True:
            try:
                return future.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                if future.done():  # it ended just now, or raised the TimeoutError itself
                    return future.result()
                if self._client.status in ("closed", "closing"):
                    raise gone(self._client) from None
                if self._actors[i]._address not in threads_of_workers(self._client):
                    self._lose(i)
                    return None
            except Exception as error:
                if not _is_loss(error):
                    raise
                self._lose(i)
                return None

    def _lose(self, i: int) -> None:
        self._lost.add(i)
        self._actors[i] = None

    def _raise_unless_lost(self, error: Exception) -> None:
        """Raise PartsLostError if a job failed because parts are lost, else its error."""
        for i, future in [(i, self._tell(i, ())) for i in range(len(self))]:
            self._answer(i, future)
        if self._lost:
            raise PartsLostError from None
        raise error


def _merge(
    actors: list[Any], columns: range, max_bins: int, categorical: frozenset[int], unit: float
) -> list[ColumnBins]:
    """Choose the bins of some columns, on a worker that asks all parts for their counts."""

    def answers(*command: Any) -> list[Any]:
        asked = [actor.run([command]) for actor in actors]
        return [future.result() for future in asked]

    def sums_of(column: int, codes: np.ndarray) -> CategorySums:
        return CategorySums.merged(answers("category_sums", column, codes, unit))

    counts = answers("count_columns", columns.start, columns.stop)
    return merged_bins(columns.start, counts, max_bins, categorical, sums_of)


def _is_loss(error: Exception) -> bool:
    """Return whether an error means that a part is lost."""
    if isinstance(error, RankgroveError):
        return False
    return isinstance(error, OSError) or "Worker holding Actor was lost" in str(error)


def _bytes(answer: Any) -> int:
    if isinstance(answer, np.ndarray):
        return int(answer.nbytes)
    return sum(map(_bytes, answer)) if isinstance(answer, list) else 0
