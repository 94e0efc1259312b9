"""Training on files in this process, which holds their bins on disk and never their features."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rankgrove.data.binned_dataset import BinnedDataset
from rankgrove.data.bins_folder import scratch_folder
from rankgrove.data.file_kinds import is_folder_of_bins, is_table
from rankgrove.rankers.trees.open_binned import check_reading, open_binned

if TYPE_CHECKING:
    from rankgrove.rankers.trees.boosted import BoostedRanker

    _Fitted = TypeVar("_Fitted", bound=BoostedRanker)


def fit_here(
    ranker: _Fitted,
    files: list[Path],
    folder: str | Path | None,
    reading: dict[str, Any],
    owner: str,
    *,
    valid: Any = None,
    **watched: Any,
) -> _Fitted:
    """Train on files; `watched` are further arguments of ``fit``."""
    if not is_folder_of_bins(files[0]):
        given = {name: value for name, value in reading.items() if name != "cache"}
        check_reading(given, is_table(files), owner, ("folder", "bins"))
    ranker.check_parameters()
    ranker.check_validation(valid is not None, watched.get("valid_measures"))
    options = {name: value for name, value in reading.items() if name != "cache"}
    options |= {"n_threads": ranker.n_threads, "progress": ranker.progress}
    with ExitStack() as stack:
        if folder is None:
            place = stack.enter_context(scratch_folder(files[0].with_name(f"{files[0].name}.bins")))
            home = place / "train"
        else:
            home = Path(folder)
        train = open_binned(files, folder=home, max_bins=ranker.max_bins, **options)
        shown = _watched(valid, train, home, options)
        return ranker.fit(train, valid=shown, **watched)


def _watched(valid: Any, train: BinnedDataset, home: Path, options: dict[str, Any]) -> Any:
    """Return validation data with files replaced by their bins."""
    if isinstance(valid, dict):
        return {
            name: _watched(files, train, home.with_name(f"{home.name}.{i}"), options)
            for i, (name, files) in enumerate(valid.items(), 1)
        }
    several = isinstance(valid, list) and all(isinstance(file, str | Path) for file in valid)
    if not (several or isinstance(valid, str | Path)):
        return valid
    left_out = ("weight", "absent", "n_features", "categorical", "features")
    same = {name: value for name, value in options.items() if name not in left_out}
    files = [Path(file) for file in (valid if several else [valid])]
    return open_binned(files, folder=home.with_name(f"{home.name}.valid"), like=train, **same)
