"""What experiments on judged data run on: published collections by name, or a user's own."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from rankgrove.data.concatenate import concatenate, refuse_shared_queries
from rankgrove.data.folds import Fold, k_fold
from rankgrove.data.letor import read_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.data.trec import dataset_from_runs
from rankgrove.errors import DataError

Files = tuple[Path, ...]

# Rows and queries of published collections, by which one is known whatever its folder is called.
PUBLISHED = {
    (15211, 784): "MQ2008",
    (69623, 1692): "MQ2007",
    (74146, 75): "TD2004",
    (16140, 106): "OHSUMED",
    (1200192, 10000): "MSLR-WEB10K",
}
ROLES = ("train", "vali", "test")  # how the names of a fold's files begin
TEXT = (".txt", ".txt.gz", ".letor", ".letor.gz", ".svm", ".svm.gz", ".dat", ".dat.gz", ".gz", "")
FORMS = (
    "S1.txt to S5.txt (LETOR's parts), folders Fold1, Fold2, ... with train.txt, vali.txt and "
    "test.txt, or these three files alone; each may end in .gz"
)


@dataclass(frozen=True)
class Collection:
    """A collection in LETOR form.

    Only file names travel with it, to the workers of a cluster too: every process reads the folds
    it works on.

    Attributes
    ----------
    name : as tables show it
    files : of every fold, those that train, validate and test
    """

    name: str
    files: tuple[tuple[Files, Files, Files], ...]

    def fold(self, k: int) -> Fold:
        """Return fold k, counted from 1."""
        return _read_fold(self.files[k - 1])

    def numbers(self, most: int | None = None) -> range:
        """Return the numbers of the first folds, `most` at the most."""
        n = len(self.files)
        return range(1, (n if most is None else min(n, most)) + 1)

    def whole(self) -> QueryDataset:
        """Return all queries: every fold has them all."""
        fold = self.fold(1)
        assert fold.valid is not None
        return concatenate([fold.train, fold.valid, fold.test])

    def sizes(self) -> tuple[int, int]:
        """Return the numbers of documents and of queries."""
        parts = [part for part in self.fold(1) if part is not None]
        return sum(part.n_rows for part in parts), sum(part.n_queries for part in parts)

    def described(self, numbers: Sequence[int]) -> str:
        """Return name and sizes in words, and how many of the folds are looked at."""
        n_rows, n_queries = self.sizes()
        return (
            f"{self.name}: {n_queries:,} queries, {n_rows:,} documents, "
            f"{self.fold(1).train.n_features} features, {len(numbers)} of {len(self.files)} folds"
        )

    def about(self) -> str:
        """Return what tells the files' contents apart, at the price of a look at the folder."""
        sizes = [(p.name, p.stat().st_size) for fold in self.files for part in fold for p in part]
        return f"{self.name} {crc32(repr(sizes).encode()):08x}"


@dataclass(frozen=True)
class Redrawn:
    """A collection whose queries are divided anew, into five parts.

    Attributes
    ----------
    collection : whose queries they are
    seed : of the division
    """

    collection: Collection
    seed: int

    @property
    def name(self) -> str:
        """The collection's."""
        return self.collection.name

    def fold(self, k: int) -> Fold:
        """Return fold k, counted from 1."""
        return _redraw(self.collection, self.seed)[k - 1]


@lru_cache(maxsize=2)
def _redraw(collection: Collection, seed: int) -> list[Fold]:
    folds = k_fold(collection.whole(), 5, seed=seed, valid=True)
    return [fold for fold in folds if isinstance(fold, Fold)]


@dataclass(frozen=True)
class TrecRuns:
    """Runs of several retrieval functions, and judgements."""

    name: str
    runs: tuple[tuple[str, Path], ...]
    qrels: Path

    def read(self) -> QueryDataset:
        """Return the documents that any run found, with the runs' scores."""
        return dataset_from_runs(dict(self.runs), self.qrels)

    def about(self) -> str:
        """Return what tells the files' contents apart."""
        sizes = [(p.name, p.stat().st_size) for p in (self.qrels, *(run for _, run in self.runs))]
        return f"{self.name} {crc32(repr(sizes).encode()):08x}"


def _published_folder() -> Path:
    return Path(os.environ.get("RANKGROVE_DATA", "../shared/data"))


@dataclass(frozen=True)
class Sources:
    """Where judged data is.

    Attributes
    ----------
    folder : published data sets by name, each a folder
    own : what the user gave in place of them
    """

    folder: Path = field(default_factory=_published_folder)
    own: Collection | TrecRuns | None = None

    @staticmethod
    def of(path: Path) -> Sources:
        """Return the data of a folder: one collection, TREC runs, or several data sets by name."""
        if not path.is_dir():
            raise DataError(f"There is no folder {path}.")
        if files := _letor_files(path):
            found = Collection(path.resolve().name, files)
            known = PUBLISHED.get(found.sizes())
            return Sources(path, Collection(known or found.name, files))
        if runs := _trec_files(path):
            return Sources(path, TrecRuns(path.resolve().name, *runs))
        inside = [one for one in path.iterdir() if one.is_dir()]
        lacks = _what_lacks(path)
        if lacks or not any(_letor_files(one) or _trec_files(one) for one in inside):
            raise DataError(
                f"{path} holds no data set{lacks}. A collection is: {FORMS}. TREC runs "
                "are: one file whose name begins with qrels, and two runs or more. Or give a "
                "folder that holds such folders by name (mq2008, ohsumed, ...)."
            )
        return Sources(path)

    def collections(self, *names: str) -> list[Collection]:
        """Return the user's collection; without one the published collections of these names."""
        if isinstance(self.own, Collection):
            return [self.own]
        return [self._collection(name) for name in names]

    def trec(self, name: str) -> TrecRuns:
        """Return the user's runs; without any the published ones of this name."""
        if isinstance(self.own, TrecRuns):
            return self.own
        found = _trec_files(self._named(name))
        if found is None:
            raise DataError(f"{self.folder / name} must hold one file of qrels, and runs.")
        return TrecRuns(name, *found)

    def baseline(self, name: str) -> list[str] | None:
        """Return the lines of a publishers' file of figures, or None where it is absent."""
        path = self.folder / "letor4-baselines" / name
        return path.read_text().splitlines() if path.is_file() else None

    def _collection(self, name: str) -> Collection:
        files = _letor_files(self._named(name))
        if not files:
            raise DataError(f"{self.folder / name} is not a collection in LETOR form: {FORMS}.")
        return Collection(name.upper(), files)

    def _named(self, name: str) -> Path:
        if self.folder.is_dir():
            for one in sorted(self.folder.iterdir()):
                if one.is_dir() and one.name.lower() == name:
                    return one
        if not (self.folder / name).is_dir():
            raise DataError(
                f"The experiment needs the data set {name!r}, and there is no folder "
                f"{self.folder / name}. Put it there, set RANKGROVE_DATA to the folder that holds "
                "it, or give data of your own (--data)."
            )
        return self.folder / name


# -- finding files --------------------------------------------------------------------------------


def _letor_files(folder: Path) -> tuple[tuple[Files, Files, Files], ...]:
    """Return every fold's files, or nothing where the folder is not in LETOR form."""
    parts = [_one_file(folder, rf"s{k}") for k in range(1, 6)]
    if all(parts):
        found = [part for part in parts if part is not None]
        return tuple(
            (
                tuple(found[(k + j) % 5] for j in range(3)),
                (found[(k + 3) % 5],),
                (found[(k + 4) % 5],),
            )
            for k in range(5)
        )
    numbered = [
        (int(m[1]), one)
        for one in folder.iterdir()
        if one.is_dir() and (m := re.fullmatch(r"fold[ _-]?(\d+)", one.name, re.IGNORECASE))
    ]
    folds = [_three_files(one) for _, one in sorted(numbered)] or [_three_files(folder)]
    return tuple(fold for fold in folds if fold is not None) if all(folds) else ()


def _what_lacks(folder: Path) -> str:
    """Say what a folder that is nearly a data set lacks; nothing where it is far from one."""
    parts = [k for k in range(1, 6) if _one_file(folder, rf"s{k}")]
    if parts:
        lacking = ", ".join(f"S{k}" for k in range(1, 6) if k not in parts)
        return f" (of LETOR's parts it lacks {lacking})"
    for one in sorted([folder, *(f for f in folder.iterdir() if f.is_dir())]):
        roles = [role for role in ROLES if _one_file(one, rf"{role}\w*")]
        fold = one is not folder and one.name.lower().startswith("fold")
        if len(roles) < len(ROLES) and (roles or fold):
            lacking = ", ".join(f"{role}.txt" for role in ROLES if role not in roles)
            return f" ({one} lacks {lacking}, or has several)"
    files = [f.name.lower() for f in folder.iterdir() if f.is_file()]
    qrels = sum(name.startswith("qrels") for name in files)
    if qrels:
        return f" (files of qrels: {qrels}; files beside them: {len(files) - qrels})"
    return ""


def _three_files(folder: Path) -> tuple[Files, Files, Files] | None:
    found = [_one_file(folder, rf"{role}\w*") for role in ROLES]
    train, valid, test = found
    if train is None or valid is None or test is None:
        return None
    return (train,), (valid,), (test,)


def _one_file(folder: Path, stem: str) -> Path | None:
    """Return the one file of a name, whatever its ending; None where there is none, or several."""
    endings = "|".join(re.escape(ending) for ending in TEXT)
    found = [
        one
        for one in folder.iterdir()
        if one.is_file() and re.fullmatch(rf"{stem}(?:{endings})", one.name, re.IGNORECASE)
    ]
    return found[0] if len(found) == 1 else None


def _trec_files(folder: Path) -> tuple[tuple[tuple[str, Path], ...], Path] | None:
    """Return runs by name, and the qrels."""
    files = sorted(one for one in folder.iterdir() if one.is_file() and one.name[0] != ".")
    qrels = [one for one in files if one.name.lower().startswith("qrels")]
    runs = [one for one in files if one not in qrels and not one.name.lower().startswith("readme")]
    if len(qrels) != 1 or len(runs) < 2:
        return None
    return tuple((_run_name(one), one) for one in runs), qrels[0]


def _run_name(path: Path) -> str:
    return re.sub(r"(\.txt)?(\.gz)?$", "", path.name).replace("results-", "")


@lru_cache(maxsize=2)
def _read_fold(files: tuple[Files, Files, Files]) -> Fold:
    parts = [read_letor(list(part)) for part in files]
    width = max(part.n_features for part in parts)
    train, valid, test = (
        part if part.n_features == width else read_letor(list(own), n_features=width)
        for own, part in zip(files, parts, strict=True)
    )
    refuse_shared_queries([train, valid, test])
    return Fold(train, valid, test)
