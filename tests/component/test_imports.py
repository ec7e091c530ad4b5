"""The declaring and deciding layers import where neither Ray nor the native extension is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import rayelastic

PACKAGE = Path(rayelastic.__file__).parent
ABSENT = ("ray", "raydp", "pyspark", "rayelastic._native")
LAYERS = [layer for layer in ("errors", "graph", "plan", "policy") if list(PACKAGE.glob(f"{layer}*"))]


def modules(layer: str) -> list[str]:
    folder = PACKAGE / layer
    if not folder.is_dir():
        return [f"rayelastic.{layer}"]
    files = sorted(path.relative_to(PACKAGE.parent).with_suffix("") for path in folder.rglob("*.py"))
    return [".".join(path.parts).removesuffix(".__init__") for path in files]


@pytest.mark.parametrize("layer", LAYERS)
def test_layer_imports_without_ray_and_extension(layer: str) -> None:
    program = f"import sys, importlib\nfor name in {ABSENT}: sys.modules[name] = None\n"
    program += f"for name in {modules(layer)}: importlib.import_module(name)\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_import_of_the_package_is_cheap() -> None:
    """Nothing heavy comes in before it is used."""
    program = "import rayelastic, sys; print([m for m in ('ray', 'numba', 'pyarrow', 'pyspark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
