"""The environment variables of the compile layer."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """Return the folder of compiled code: $XDG_CACHE_HOME/rayelastic, or ~/.cache/rayelastic."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "rayelastic"
