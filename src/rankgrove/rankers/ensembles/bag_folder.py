"""The folder that keeps the models of a bag as they are trained."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankgrove.errors import DataError, ModelFileError
from rankgrove.files import told_errors, write_atomically
from rankgrove.rankers.base import Ranker
from rankgrove.validation import check_output_file


class BagFolder:
    """Models by number, each in its own file; ``bag.json`` holds the data and parameters.

    Parameters
    ----------
    path : the folder, created if it does not exist
    run : values that the models depend on, by name; a folder with other values is refused
    """

    def __init__(self, path: str | Path, run: Mapping[str, Any]) -> None:
        self.path = open_folder(path, run, "bag.json", "BaggedRanker", "bag")

    def read(self, n_models: int) -> dict[int, Ranker]:
        """Return the models in the folder, by number."""
        from rankgrove.rankers.load import load  # imports all rankers, also bags

        models = {}
        for m in range(n_models):
            if self._file(m).exists():
                try:
                    models[m] = load(self._file(m))
                except ModelFileError as error:
                    raise ModelFileError(f"{error} Remove it: it will be trained again.") from None
        return models

    def write(self, model: int, ranker: Ranker) -> None:
        """Write a model; its file is complete or does not exist."""
        ranker.save(self._file(model))

    def _file(self, model: int) -> Path:
        return self.path / f"model-{model:04d}.rg"


def open_folder(path: str | Path, run: Mapping[str, Any], name: str, owner: str, what: str) -> Path:
    """Open a folder of trained models, or make it; the folder of another run is refused.

    Parameters
    ----------
    path : the folder
    run : what the models depend on, plain values by name
    name : the file in the folder that keeps `run`
    owner, what : the ranker and what it trains ("bag"), for error messages
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DataError(
            f"'checkpoint' must be a folder for the models of a {what}. {path} is a file."
        )
    with told_errors(path, "made"):
        folder.mkdir(parents=True, exist_ok=True)
    about, told = folder / name, json.loads(json.dumps(dict(run)))
    check_output_file("checkpoint", owner, about)
    if not about.exists():
        if any(folder.iterdir()):
            raise DataError(f"{path} holds other files: give 'checkpoint' an empty folder.")
        write_atomically(about, json.dumps(told, indent=1))
        return folder
    before = _read(about)
    for key in sorted({*told, *before}):
        if before.get(key) != told.get(key):
            values = f"there {key} was {before.get(key)!r}, here it is {told.get(key)!r}"
            if key.endswith(" data"):  # known by a hash, which says nothing to people
                values = f"its {key} had other values, rows or queries"
            raise DataError(
                f"{path} belongs to another {what}: {values}. Train with the same data and "
                "parameters, remove the folder, or give another one."
            )
    return folder


def _read(about: Path) -> dict[str, Any]:
    """Return the values that the models of a folder depend on."""
    try:
        with told_errors(about):
            before = json.loads(about.read_bytes())
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        before = None
    if not isinstance(before, dict):
        raise DataError(f"{about} is damaged. Remove the folder, or give another one.")
    return before
