"""Matplotlib settings that give figures the look of the report page."""

from __future__ import annotations

import importlib
import re
from functools import cache, wraps
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rankgrove.showing import in_notebook

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")
N_COLOURS = 8


@cache
def page_colours() -> dict[str, str]:
    """Return the colours of the report page's light theme, by their names in the style sheet."""
    css = files("rankgrove.reporting").joinpath("templates/report.css").read_text("utf-8")
    root = css[: css.index("}")]
    return dict(re.findall(r"--(\w+): (#[0-9a-f]+);", root))


@cache
def style() -> Any:
    """Return the page's colours, fonts and grid as Matplotlib settings."""
    from cycler import cycler
    from matplotlib.font_manager import get_font_names

    colour = page_colours()
    known = set(get_font_names())
    fonts = ["Segoe UI", "Roboto", "Noto Sans", "DejaVu Sans"]
    return {
        "axes.prop_cycle": cycler(color=[colour[f"c{k}"] for k in range(N_COLOURS)]),
        "axes.axisbelow": True,
        "axes.grid": True,
        "axes.edgecolor": colour["line"],
        "axes.facecolor": colour["surface"],
        "axes.labelcolor": colour["muted"],
        "axes.labelsize": 9.5,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": colour["text"],
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "figure.facecolor": colour["surface"],
        "figure.titlesize": 12,
        "figure.titleweight": "bold",
        "font.family": "sans-serif",
        "font.sans-serif": [font for font in fonts if font in known],
        "font.size": 9.5,
        "grid.color": colour["grid"],
        "grid.linewidth": 0.9,
        "legend.fontsize": 9,
        "legend.frameon": False,
        "legend.labelcolor": colour["muted"],
        "savefig.facecolor": colour["surface"],
        "text.color": colour["text"],
        "xtick.color": colour["line"],
        "xtick.labelcolor": colour["muted"],
        "xtick.labelsize": 9,
        "ytick.color": colour["line"],
        "ytick.labelcolor": colour["muted"],
        "ytick.labelsize": 9,
    }


def styled(plot: Callable[P, R]) -> Callable[P, R]:
    """Decorate a plotting function to use the page's look; global settings stay unchanged.

    Without Matplotlib the function itself raises an error that says how to install it.
    """

    @wraps(plot)
    def draw(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            from matplotlib import rc_context
        except ImportError:
            return plot(*args, **kwargs)
        if in_notebook():
            # loads the backend, which turns on inline images by a setting; inside rc_context that
            # setting would be undone
            importlib.import_module("matplotlib.pyplot").draw_if_interactive()
        with rc_context(style()):
            return plot(*args, **kwargs)

    return draw
