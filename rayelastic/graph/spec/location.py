"""Where in the user's program a declaration stands."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["caller_location"]

_PACKAGE = str(Path(__file__).parents[2]) + "/"
_PROGRAMS = f"{_PACKAGE}topologies/"  # they are in the package, but use it as any program does


def caller_location() -> str:
    """Tell 'file.py:12' of the innermost frame outside the package; '' if there is none."""
    frame = sys._getframe(1)
    while (file := frame.f_code.co_filename).startswith(_PACKAGE) and not file.startswith(_PROGRAMS):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{file}:{frame.f_lineno}"
