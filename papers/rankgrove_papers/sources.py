"""The judged data of experiments: published collections by name, or a collection of the user."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from rankgrove import DataError, QueryDataset, dataset_from_runs, k_fold, read_letor
from rankgrove.data.concatenate import concatenate, refuse_shared_queries
from rankgrove.data.folds import Fold

Files = tuple[Path, ...]

# Numbers of rows and queries of published collections, which identify them in any folder.
PUBLISHED = {
    (15211, 784): "MQ2008",
    (69623, 1692): "MQ2007",
    (74146, 75): "TD2004",
    (16140, 106): "OHSUMED",
    (1200192, 10000): "MSLR-WEB10K",
}
ROLES = ("train", "vali", "test")  # the file names of a fold begin with these
TEXT = (".txt", ".txt.gz", ".letor", ".letor.gz", ".svm", ".svm.gz", ".dat", ".dat.gz", ".gz", "")
FORMS = (
    "S1.txt to S5.txt (LETOR's parts), folders Fold1, Fold2, ... with train.txt, vali.txt and "
    "test.txt, or these three files alone; each may end in .gz"
)


@dataclass(frozen=True)
class Collection:
    """A collection in LETOR form.

    It holds only file names, also on the workers of a cluster: every process reads the folds that
    it works on.

    Attributes
    ----------
    name : the name in tables
    files : for every fold, the files of the training, validation and test data
    """

    name: str
    files: tuple[tuple[Files, Files, Files], ...]

    def fold(self, k: int) -> Fold:
        """Return fold k, counted from 1."""
        return _read_fold(self.files[k - 1])

    def numbers(self, most: int | None = None) -> range:
        """Return the numbers of the first folds, at most `most` of them."""
        n = len(self.files)
        return range(1, (n if most is None else min(n, most)) + 1)

    def whole(self) -> QueryDataset:
        """Return all queries; every fold contains all of them."""
        fold = self.fold(1)
        assert fold.valid is not None
        return concatenate([fold.train, fold.valid, fold.test])

    def sizes(self) -> tuple[int, int]:
        """Return the numbers of documents and of queries."""
        parts = [part for part in self.fold(1) if part is not None]
        return sum(part.n_rows for part in parts), sum(part.n_queries for part in parts)

    def described(self, numbers: Sequence[int]) -> str:
        """Return name and sizes in words, and how many of the folds are used."""
        n_rows, n_queries = self.sizes()
        return (
            f"{self.name}: {n_queries:,} queries, {n_rows:,} documents, "
            f"{self.fold(1).train.n_features} features, {len(numbers)} of {len(self.files)} folds"
        )

    def about(self) -> str:
        """Return the name and a checksum of file names and sizes, without reading the files."""
        sizes = [(p.name, p.stat().st_size) for fold in self.files for part in fold for p in part]
        return f"{self.name} {crc32(repr(sizes).encode()):08x}"


@dataclass(frozen=True)
class Redrawn:
    """A collection whose queries are divided into five new parts.

    Attributes
    ----------
    collection : the collection
    seed : seed of the split
    """

    collection: Collection
    seed: int

    @property
    def name(self) -> str:
        """The name of the collection."""
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
        """Return the documents that any run retrieved, with the runs' scores as features."""
        return dataset_from_runs(dict(self.runs), self.qrels)

    def about(self) -> str:
        """Return the name and a checksum of file names and sizes, without reading the files."""
        sizes = [(p.name, p.stat().st_size) for p in (self.qrels, *(run for _, run in self.runs))]
        return f"{self.name} {crc32(repr(sizes).encode()):08x}"


def _published_folder() -> Path:
    return Path(os.environ.get("RANKGROVE_DATA", "../shared/data"))


@dataclass(frozen=True)
class Sources:
    """The places of judged data.

    Attributes
    ----------
    folder : a folder that holds published data sets, each in a folder of its name
    user_data : the user's data, used instead of them
    """

    folder: Path = field(default_factory=_published_folder)
    user_data: Collection | TrecRuns | None = None

    @staticmethod
    def of(path: Path) -> Sources:
        """Return the data of a folder: one collection, TREC runs, or several data sets by name."""
        if not path.is_dir():
            raise DataError(f"There is no folder {path}.")
        if files := _letor_files(path):
            collection = Collection(path.resolve().name, files)
            known = PUBLISHED.get(collection.sizes())
            return Sources(path, Collection(known or collection.name, files))
        if runs := _trec_files(path):
            return Sources(path, TrecRuns(path.resolve().name, *runs))
        subfolders = [folder for folder in path.iterdir() if folder.is_dir()]
        lacks = _missing_files(path)
        if lacks or not any(_letor_files(folder) or _trec_files(folder) for folder in subfolders):
            raise DataError(
                f"{path} holds no data set{lacks}. A collection is: {FORMS}. TREC runs "
                "are: one file whose name begins with qrels, and two runs or more. Or give a "
                "folder with such folders, by name (mq2008, ohsumed, ...)."
            )
        return Sources(path)

    def collections(self, *names: str) -> list[Collection]:
        """Return the user's collection, if there is one, else the published ones of these names."""
        if isinstance(self.user_data, Collection):
            return [self.user_data]
        return [self._collection(name) for name in names]

    def trec(self, name: str) -> TrecRuns:
        """Return the user's runs, if there are any, else the published ones of this name."""
        if isinstance(self.user_data, TrecRuns):
            return self.user_data
        files = _trec_files(self._named(name))
        if files is None:
            raise DataError(f"{self.folder / name} must hold one file of qrels, and runs.")
        return TrecRuns(name, *files)

    def baseline(self, name: str) -> list[str] | None:
        """Return the lines of a published file of results, or None if it is absent."""
        path = self.folder / "letor4-baselines" / name
        return path.read_text().splitlines() if path.is_file() else None

    def _collection(self, name: str) -> Collection:
        files = _letor_files(self._named(name))
        if not files:
            raise DataError(f"{self.folder / name} is not a collection in LETOR form: {FORMS}.")
        return Collection(name.upper(), files)

    def _named(self, name: str) -> Path:
        if self.folder.is_dir():
            for folder in sorted(self.folder.iterdir()):
                if folder.is_dir() and folder.name.lower() == name:
                    return folder
        if not (self.folder / name).is_dir():
            raise DataError(
                f"The experiment needs the data set {name!r}, and there is no folder "
                f"{self.folder / name}. Put it there, set RANKGROVE_DATA to the folder that holds "
                "it, or give your own data (--data)."
            )
        return self.folder / name


# -- finding files --------------------------------------------------------------------------------


def _letor_files(folder: Path) -> tuple[tuple[Files, Files, Files], ...]:
    """Return the files of every fold, or nothing if the folder is not in LETOR form."""
    parts = [part for k in range(1, 6) if (part := _one_file(folder, rf"s{k}")) is not None]
    if len(parts) == 5:
        return tuple(
            (
                tuple(parts[(k + j) % 5] for j in range(3)),
                (parts[(k + 3) % 5],),
                (parts[(k + 4) % 5],),
            )
            for k in range(5)
        )
    numbered = [
        (int(m[1]), path)
        for path in folder.iterdir()
        if path.is_dir() and (m := re.fullmatch(r"fold[ _-]?(\d+)", path.name, re.IGNORECASE))
    ]
    folds = [_three_files(path) for _, path in sorted(numbered)] or [_three_files(folder)]
    return tuple(fold for fold in folds if fold is not None) if all(folds) else ()


def _missing_files(folder: Path) -> str:
    """Return a text on the missing files of a folder that is almost a data set; empty otherwise."""
    parts = [k for k in range(1, 6) if _one_file(folder, rf"s{k}")]
    if parts:
        lacking = ", ".join(f"S{k}" for k in range(1, 6) if k not in parts)
        return f" (of LETOR's parts it lacks {lacking})"
    for path in sorted([folder, *(f for f in folder.iterdir() if f.is_dir())]):
        roles = [role for role in ROLES if _one_file(path, rf"{role}\w*")]
        is_fold = path is not folder and path.name.lower().startswith("fold")
        if len(roles) < len(ROLES) and (roles or is_fold):
            lacking = ", ".join(f"{role}.txt" for role in ROLES if role not in roles)
            return f" ({path} lacks {lacking}, or has several)"
    files = [f.name.lower() for f in folder.iterdir() if f.is_file()]
    qrels = sum(name.startswith("qrels") for name in files)
    if qrels:
        return f" (files of qrels: {qrels}; other files: {len(files) - qrels})"
    return ""


def _three_files(folder: Path) -> tuple[Files, Files, Files] | None:
    train, valid, test = (_one_file(folder, rf"{role}\w*") for role in ROLES)
    if train is None or valid is None or test is None:
        return None
    return (train,), (valid,), (test,)


def _one_file(folder: Path, stem: str) -> Path | None:
    """Return the only file of a name with any text ending; None if there is none, or several."""
    endings = "|".join(re.escape(ending) for ending in TEXT)
    files = [
        path
        for path in folder.iterdir()
        if path.is_file() and re.fullmatch(rf"{stem}(?:{endings})", path.name, re.IGNORECASE)
    ]
    return files[0] if len(files) == 1 else None


def _trec_files(folder: Path) -> tuple[tuple[tuple[str, Path], ...], Path] | None:
    """Return runs by name, and the qrels."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name[0] != ".")
    qrels = [path for path in files if path.name.lower().startswith("qrels")]
    others = [path for path in files if path not in qrels]
    runs = [path for path in others if not path.name.lower().startswith("readme")]
    if len(qrels) != 1 or len(runs) < 2:
        return None
    return tuple((_run_name(path), path) for path in runs), qrels[0]


def _run_name(path: Path) -> str:
    return re.sub(r"(\.txt)?(\.gz)?$", "", path.name).replace("results-", "")


@lru_cache(maxsize=2)
def _read_fold(files: tuple[Files, Files, Files]) -> Fold:
    parts = [read_letor(list(part)) for part in files]
    width = max(part.n_features for part in parts)
    train, valid, test = (
        part if part.n_features == width else read_letor(list(paths), n_features=width)
        for paths, part in zip(files, parts, strict=True)
    )
    refuse_shared_queries([train, valid, test])
    return Fold(train, valid, test)


# -- published figures ----------------------------------------------------------------------------


def published_figures(lines: Sequence[str]) -> dict[str, list[float]]:
    """Return the test figures of a published file by our names of measures, by fold."""
    start = next(i for i, line in enumerate(lines) if line.startswith("Performance on testing set"))
    figures: dict[str, list[float]] = {}
    names: list[str] = []
    for line in _until_blank_twice(lines[start + 1 :]):
        head, *cells = line.split()
        if head in ("Folds", "Para"):  # "Para" in the file of RankSVM-Struct: the C of every fold
            names = [cell.lower().replace("pre@", "p@") for cell in cells]
        elif head.lower() not in ("average", "avg"):
            for name, cell in zip(names, cells, strict=True):
                figures.setdefault(name, []).append(float(cell))
    return figures


def _until_blank_twice(lines: Iterable[str]) -> Iterable[str]:
    """Yield the lines of the first two tables; a blank line ends a table."""
    blanks = 0
    for line in lines:
        if line.strip():
            yield line
        else:
            blanks += 1
            if blanks == 2:
                return
