"""The tests nearest to what changed: `python -m tools.changed [BASE] [PYTEST ARGUMENTS]`.

A file is changed if it differs from the point where this branch left BASE, committed or not. BASE is `main` by default,
and on `main` itself the last commit.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.nearest import NATIVE, Nearest

ROOT = Path(__file__).resolve().parent.parent
MAIN = "main"


def base(root: Path, named: str) -> str:
    """Return the commit to compare with."""
    if not named and git(root, "rev-parse", "--abbrev-ref", "HEAD") in (MAIN, "HEAD"):
        return "HEAD"
    return git(root, "merge-base", "HEAD", named or MAIN) or "HEAD"


def changed(root: Path, since: str) -> list[Path]:
    """Return the files that differ from a commit, and those that git doesn't know yet."""
    listed = [git(root, "diff", "--name-only", since), git(root, "ls-files", "--others", "--exclude-standard")]
    return [Path(line) for text in listed for line in text.splitlines()]


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main(arguments: Sequence[str]) -> int:
    named = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    options = list(arguments[1:] if named else arguments)
    files = changed(ROOT, base(ROOT, named))
    tests = Nearest(ROOT).of_files(files)
    print(f"{len(files)} files changed, {len(tests)} test files near them", flush=True)
    if Path(NATIVE) in tests:
        print("C++ changed: ./dev test-native runs the tests of the native core", flush=True)
    if not tests:
        return 0
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, tests)], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
