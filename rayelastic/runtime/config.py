"""What the runtime takes from its environment."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["state_directory"]


def state_directory() -> Path:
    """Where is kept what outlives a job and may be lost: $XDG_STATE_HOME/rayelastic, or ~/.local/state/rayelastic."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "state") / "rayelastic"
