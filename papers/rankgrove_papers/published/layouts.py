"""The files of MSLR-WEB, Yahoo and Istella, as their publishers have them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rankgrove import DataError
from rankgrove_papers.sources import TEXT, Files

# Numbers of rows of the published data sets, by which they are known in any folder.
KNOWN = {
    3_771_125: "MSLR-WEB30K",
    1_200_192: "MSLR-WEB10K",
    709_877: "Yahoo set 1",
    172_870: "Yahoo set 2",
    10_454_629: "Istella",
    3_408_630: "Istella-S",
    26_791_447: "Istella-X",
}


@dataclass(frozen=True)
class Part:
    """One division of a data set into training, validation and test data.

    Attributes
    ----------
    data : the name of the data set, as far as the files' names tell it
    split : "fold 1", ...; "test" where there is only one division
    train, valid, test : files; `valid` is empty where the publisher has none
    """

    data: str
    split: str
    train: Files
    valid: Files
    test: Files

    @property
    def files(self) -> Files:
        """All files."""
        return self.train + self.valid + self.test


@dataclass(frozen=True)
class Layout:
    """How a publisher arranges files.

    Attributes
    ----------
    name : the word of the command
    about : the data sets of the publisher
    files : the files in words
    n_features : the number of features
    """

    name: str
    about: str
    files: str
    n_features: int

    def parts(self, folder: Path) -> list[Part]:
        """Return all divisions that are in a folder; none or an incomplete one is an error."""
        if not folder.is_dir():
            raise DataError(f"There is no folder {folder}. --data is the folder of {self.about}.")
        found = list(_FINDERS[self.name](folder, self))
        if not found:
            raise DataError(
                f"{folder} does not hold {self.about}. Expected {self.files}; each may end in .gz."
            )
        return found

    def lacks(self, folder: Path, names: str) -> DataError:
        """Return the error for a folder without some of the files."""
        return DataError(
            f"{folder} lacks {names}. {self.about} is {self.files}; each may end in .gz."
        )


LAYOUTS = {
    "mslr": Layout(
        "mslr",
        "MSLR-WEB10K or MSLR-WEB30K",
        "Fold1 to Fold5 with train.txt, vali.txt and test.txt in each",
        136,
    ),
    "yahoo": Layout(
        "yahoo",
        "the Yahoo learning to rank challenge (C14)",
        "set1.train.txt, set1.valid.txt and set1.test.txt, likewise for set2, or folders set1 and "
        "set2 with train.txt, vali.txt and test.txt; also in a folder ltrc_yahoo",
        700,
    ),
    "istella": Layout(
        "istella",
        "Istella, Istella-S or Istella-X",
        "train.txt and test.txt, vali.txt where there is one; also in a folder sample or full",
        220,
    ),
}


def _file(folder: Path, stem: str) -> Files:
    """Return the file whose name is `stem`, a pattern, and any ending of text."""
    endings = "|".join(re.escape(ending) for ending in TEXT)
    pattern = re.compile(rf"{stem}(?:{endings})", re.IGNORECASE)
    files = sorted(path for path in folder.iterdir() if pattern.fullmatch(path.name))
    files = [path for path in files if path.is_file()]
    if len(files) > 1:
        names = ", ".join(path.name for path in files)
        raise DataError(f"{folder} has several files for one part: {names}. Leave one of them.")
    return tuple(files)


def _three(
    folder: Path, layout: Layout, data: str, split: str, before: str = "", needs_valid: bool = True
) -> Part | None:
    """Return the division whose files begin with `before`; None if there is no file of it."""
    train, valid, test = (
        _file(folder, re.escape(before) + role) for role in ("train", "vali(?:d)?", "test")
    )
    if not train + valid + test:
        return None
    names = {"train": train, "vali" if not before else "valid": valid, "test": test}
    missing = [
        f"{before}{name}.txt"
        for name, files in names.items()
        if not files and (needs_valid or not name.startswith("vali"))
    ]
    if missing:
        raise layout.lacks(folder, ", ".join(missing))
    return Part(data, split, train, valid, test)


def _mslr(folder: Path, layout: Layout) -> Iterator[Part]:
    for k in range(1, 6):
        fold = _subfolder(folder, f"fold{k}")
        if fold is None:
            continue
        part = _three(fold, layout, "MSLR-WEB", f"fold {k}")
        if part is None:
            raise layout.lacks(fold, "train.txt, vali.txt, test.txt")
        yield part


def _yahoo(folder: Path, layout: Layout) -> Iterator[Part]:
    inner = _subfolder(folder, "ltrc_yahoo") or folder
    for k in (1, 2):
        name = f"Yahoo set {k}"
        part = _three(inner, layout, name, "test", before=f"set{k}.")
        own = _subfolder(inner, f"set{k}")
        if part is None and own is not None:
            part = _three(own, layout, name, "test")
        if part is not None:
            yield part


def _istella(folder: Path, layout: Layout) -> Iterator[Part]:
    part = _three(folder, layout, "Istella", "test", needs_valid=False)
    if part is not None:
        yield part
        return
    for name in ("sample", "full"):
        inner = _subfolder(folder, name)
        if inner is not None:
            part = _three(inner, layout, f"Istella, {name}", "test", needs_valid=False)
            if part is not None:
                yield part


def _subfolder(folder: Path, name: str) -> Path | None:
    """Return the folder of a name in upper or lower case, if there is one."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name.lower() == name:
            return path
    return None


_FINDERS = {"mslr": _mslr, "yahoo": _yahoo, "istella": _istella}
