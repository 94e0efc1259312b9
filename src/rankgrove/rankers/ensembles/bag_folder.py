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
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"'checkpoint' must be a folder for a bag's models. {path} is a file.")
        with told_errors(path, "made"):
            self.path.mkdir(parents=True, exist_ok=True)
        about, values = self.path / "bag.json", json.loads(json.dumps(dict(run)))
        check_output_file("checkpoint", "BaggedRanker", about)
        if not about.exists():
            if any(self.path.iterdir()):
                raise DataError(f"{path} holds other files: give 'checkpoint' an empty folder.")
            write_atomically(about, json.dumps(values, indent=1))
            return
        before = _read(about)
        for name in sorted({*values, *before}):
            if before.get(name) != values.get(name):
                raise DataError(
                    f"{path} belongs to another bag: there {name} was {before.get(name)!r}, here "
                    f"it is {values.get(name)!r}. Train with the same data and parameters, remove "
                    "the folder, or give another one."
                )

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
