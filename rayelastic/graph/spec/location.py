"""Where in the user's program a declaration stands."""

from __future__ import annotations

import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[2]) + "/"
_PROGRAMS = f"{_PACKAGE}topologies/"  # in the package, but written as users' programs


def is_users(file: str) -> bool:
    """Return whether a file is the user's, not this package's."""
    return not file.startswith(_PACKAGE) or file.startswith(_PROGRAMS)


def caller_location() -> str:
    """Return 'file.py:12' of the innermost frame outside the package; '' if there is none."""
    frame = sys._getframe(1)
    while not is_users(file := frame.f_code.co_filename):
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return f"{file}:{frame.f_lineno}"
