"""What the compile layer finds in its environment: the folder of its cache, and the packages that it needs."""

from __future__ import annotations

import functools
import os
from importlib.util import find_spec
from pathlib import Path


def cache_directory() -> Path:
    """Return the folder of compiled code: $XDG_CACHE_HOME/rayelastic, or ~/.cache/rayelastic."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "rayelastic"


@functools.cache
def missing_package() -> str:
    """Return the name of a package that compiling needs and this Python lacks; empty if all are here."""
    return next((name for name in ("numba", "llvmlite") if find_spec(name) is None), "")
