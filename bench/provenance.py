"""Where and when a measurement was made: what every table keeps beside its figures."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def machine_of() -> dict[str, Any]:
    return {
        "CPU": cpu_name(),
        "cores": os.cpu_count(),
        "Python": platform.python_version(),
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
        "load average": load_average(),
    }


def stamp() -> dict[str, str]:
    """Columns of a CSV: date, commit, machine."""
    machine = machine_of()
    return {
        "date": machine["date"],
        "commit": machine["commit"],
        "machine": f"{machine['CPU']}, {machine['cores']} cores, Python {machine['Python']}",
    }


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit() -> str:
    """Return the commit, with `-changed` if the tree isn't what it says."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=-changed"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    return told.stdout.strip() or "unknown"


def load_average() -> float:
    return round(os.getloadavg()[0], 2)
