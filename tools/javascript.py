"""Check the scripts of the web UI by TypeScript's compiler, a part of lint: `python -m tools.javascript`.

npm installs the compiler into `.venv` the first time. Without npm, or if it reaches no registry, nothing is checked and
a line says so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv" / "javascript"
TYPESCRIPT = "typescript@5.6.3"
CONFIG = ROOT / "tools" / "tsconfig.json"
PATIENCE = 120  # seconds for npm


def main() -> int:
    npm = shutil.which("npm")
    if npm is None:
        return _skipped("there is no npm")
    compiler = FOLDER / "node_modules" / ".bin" / "tsc"
    if not compiler.exists():
        command = [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(FOLDER), TYPESCRIPT]
        try:
            installed = subprocess.run(command, check=False, timeout=PATIENCE).returncode == 0
        except subprocess.TimeoutExpired:
            installed = False
        if not installed:
            return _skipped(f"npm can't install {TYPESCRIPT}")
    return subprocess.run([str(compiler), "--project", str(CONFIG)], check=False).returncode


def _skipped(reason: str) -> int:
    print(f"SKIPPED: the web UI's JavaScript isn't checked: {reason}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
