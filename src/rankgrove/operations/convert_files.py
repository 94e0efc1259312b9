"""The files of ``rg.convert``: which format an ending means, and what may be written beside."""

from __future__ import annotations

from pathlib import Path

from rankgrove.errors import ParameterError
from rankgrove.formats.endings import FORMAT_OF
from rankgrove.formats.targets import Target
from rankgrove.formats.write import FORMATS
from rankgrove.validation import check_choice, check_output_file

OURS = "rankgrove"


def definitions_file(path: str | Path | None, form: str, model: Path) -> Path | None:
    """Return the checked path of the second file, if one is asked for."""
    if path is None:
        return None
    able = [name for name, other in FORMATS.items() if other.definitions is not None]
    if form not in able:
        raise ParameterError(
            f"convert: feature_set= (--feature-set) is for search engines ({', '.join(able)}), "
            f"and the format is {form!r}. Leave it out."
        )
    target = check_output_file("feature_set", "convert", path)
    if target.resolve() == model.resolve():
        raise ParameterError(
            f"convert: feature_set= (--feature-set) and the model are the same file, {target}."
        )
    return target


def check_ending(path: Path, engine: Target) -> None:
    """Refuse an ending that says another format than the engine reads."""
    ending = path.suffix.lower()
    said = FORMAT_OF.get(ending, engine.format)
    if said != engine.format and ending != ".txt":  # any text may be in it
        raise ParameterError(
            f"convert: engine={engine.name!r} (--engine) reads the format {engine.format!r}, and "
            f"the ending of {path} says {said!r}. Use another ending, such as .json, or leave "
            "engine= (--engine) out."
        )


def format_of(path: Path, to: str | None) -> str:
    """Return the format that is asked for, or that the ending of a file says."""
    if to is not None:
        check_choice("to", "convert", to, [*FORMATS, OURS])
        if to == "xgboost" and path.suffix.lower() == ".ubj":
            raise ParameterError(
                f"XGBoost models are written as JSON, and XGBoost reads {path} as UBJ by its "
                "ending: use the ending .json."
            )
        return to
    if path.suffix.lower() in FORMAT_OF:
        return FORMAT_OF[path.suffix.lower()]
    known = ", ".join(f"{ending} ({name})" for ending, name in FORMAT_OF.items())
    raise ParameterError(
        f"The ending of {path} does not say which format is meant: give to= (--to), one of "
        f"{', '.join([*FORMATS, OURS])}; or one of these endings: {known}."
    )
