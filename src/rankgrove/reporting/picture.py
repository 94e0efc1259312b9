"""The figure class of all plots; importing it needs Matplotlib."""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from rankgrove.reporting.look import style

_DPI = 110  # of the image as a notebook shows it; it is drawn at twice this resolution


class Picture(Figure):
    """A figure in the page's look, which notebooks show once, as an image."""

    def draw(self, renderer: Any) -> None:
        """Draw in the page's look: Matplotlib looks up colours such as "C0" only when drawing."""
        with rc_context(style()):
            super().draw(renderer)

    def _ipython_display_(self) -> None:
        """Show the figure in a notebook, and take it out of pyplot's list, which would show it too.

        IPython calls this before the formatters registered for all Matplotlib figures.
        """
        display = importlib.import_module("IPython.display").display
        data, size = self._repr_png_()
        bundle = {"image/png": data, "text/plain": repr(self)}
        display(bundle, raw=True, metadata={"image/png": size})
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.close(self)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=2 * _DPI)
        width, height = self.get_size_inches() * _DPI
        return out.getvalue(), {"width": int(width), "height": int(height)}
