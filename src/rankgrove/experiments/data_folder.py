"""Where the published data sets lie, which are not part of the project."""

from __future__ import annotations

import os
from pathlib import Path

from rankgrove.errors import DataError


def data_folder(name: str) -> Path:
    """Return the folder of a data set: in ``$RANKGROVE_DATA``, else in ``../shared/data``."""
    base = Path(os.environ.get("RANKGROVE_DATA", "../shared/data"))
    if not (base / name).is_dir():
        raise DataError(
            f"The experiment needs the data set {name!r}, and there is no folder {base / name}. "
            "Put it there, or set RANKGROVE_DATA to the folder that holds it."
        )
    return base / name
