"""The environment variables of the runtime."""

from __future__ import annotations

import os
from pathlib import Path


def state_directory() -> Path:
    """Return the folder of data that outlives a job: $XDG_STATE_HOME/rayelastic, or ~/.local/state/rayelastic."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base else Path.home() / ".local" / "state") / "rayelastic"
