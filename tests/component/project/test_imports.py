"""Importing the package is cheap: nothing heavy comes in before it is used."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import rayelastic
print([name for name in ("ray", "numba", "numpy", "pyarrow", "pyspark", "rayelastic._native") if name in sys.modules])
"""


def test_import_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
