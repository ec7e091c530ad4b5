"""The systems compared, and the environment that each runs in."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ENVIRONMENTS = Path(__file__).resolve().parent / "environments"


class NotInstallableError(Exception):
    """A system can't be had on this machine; the message says why."""


@dataclass(frozen=True, slots=True)
class System:
    """A system to compare with.

    Args:
        name: also the name of its program in each work's folder.
        requirements: exact pins for an environment of its own; none to use the one that runs this.
    """

    name: str
    requirements: tuple[str, ...] = ()

    def python(self) -> Path:
        """Return the interpreter, its environment made on first use.

        Raises:
            NotInstallableError: pip has no such release for this Python or platform.
        """
        if not self.requirements:
            return Path(sys.executable)
        folder = ENVIRONMENTS / self.name
        python, stamp = folder / "bin" / "python", folder / "requirements"
        wanted = "\n".join(self.requirements)
        if stamp.exists() and stamp.read_text() == wanted:
            return python
        print(f"installing {self.name}: {', '.join(self.requirements)}", file=sys.stderr, flush=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", str(folder)], [*pip, *self.requirements]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
                raise NotInstallableError(lines[-1] if lines else f"{command[1:3]} failed")
        stamp.write_text(wanted)
        return python

    def variables(self) -> dict[str, str]:
        """Return the environment variables of its processes."""
        chosen = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        chosen |= {"LANE": "python" if self.name.endswith("_python") else "compiled"}
        return chosen if self.requirements else chosen | {"PYTHONPATH": str(ROOT)}


SYSTEMS = {
    system.name: system
    for system in (
        System("cpython"),
        System("numba"),
        System("numpy"),
        System("bytewax", ("bytewax==0.21.1", "numpy==2.4.6")),
        System("pathway", ("pathway==0.33.0",)),
        System("polars", ("polars==2.1.0",)),
        System("duckdb", ("duckdb==2.0.0", "pyarrow==26.0.1")),
        System("spark"),
        System("ray_data"),
        System("rayelastic"),
        System("rayelastic_python"),
    )
}
