"""A matplotlib figure that notebooks show, also without pyplot. Imports matplotlib: loaded with the first picture."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Picture"]


class Picture(Figure):
    """A figure that shows itself in notebooks."""

    def _repr_svg_(self) -> str:
        drawn = io.StringIO()
        self.savefig(drawn, format="svg")
        return drawn.getvalue()
