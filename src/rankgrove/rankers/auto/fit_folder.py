"""The folder that keeps the fits of an AutoRanker."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankgrove.errors import ModelFileError
from rankgrove.rankers.auto.crossfit import FoldFit, Task, curve_of
from rankgrove.rankers.ensembles.bag_folder import open_folder


class FitFolder:
    """Fits by candidate, division and fold, each in its own model file.

    Parameters
    ----------
    path : the folder, made if it does not exist
    run : what the fits depend on, plain values by name; the folder of another search is refused
    """

    def __init__(self, path: str | Path, run: Mapping[str, Any]) -> None:
        self.path = open_folder(path, run, "auto.json", "AutoRanker", "search")

    def read(self, task: Task) -> FoldFit | None:
        """Return a fit, or None if it is not there."""
        from rankgrove.rankers.load import load  # it imports all rankers

        file = self._file(task)
        if not file.exists():
            return None
        try:
            model = load(file)
        except ModelFileError as error:
            raise ModelFileError(f"{error} Remove it: it will be trained again.") from None
        return FoldFit(model, curve_of(model), 0.0)

    def write(self, task: Task, fit: FoldFit) -> None:
        """Keep a fit; its file is complete or does not exist."""
        fit.model.save(self._file(task))

    def _file(self, task: Task) -> Path:
        digest = hashlib.blake2b(task.candidate.key.encode(), digest_size=8).hexdigest()
        return self.path / f"{digest}-{task.repeat}-{task.fold}.rg"
