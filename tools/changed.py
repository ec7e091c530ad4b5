"""Runs the tests of what changed: `python -m tools.changed [BASE] [PYTEST ARGUMENTS]`, as ./dev test --changed.

A file is changed if it differs from the point where this branch left BASE, committed or not. BASE is `main` by default,
and on `main` itself the last commit. The map of `./dev coverage` says which tests run the changed functions.
Without the map, or for a file that it doesn't know, all tests of the file's layer run.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.covered import Covered

ROOT = Path(__file__).resolve().parent.parent
MAIN = "main"
NATIVE = "tests/component/native"
PAGES = {"README.md": "tests/component/project/test_readme.py", "docs": "tests/component/project/test_guide.py"}


def base(root: Path, named: str) -> str:
    """Return the commit to compare with."""
    if not named and git(root, "rev-parse", "--abbrev-ref", "HEAD") in (MAIN, "HEAD"):
        return "HEAD"
    return git(root, "merge-base", "HEAD", named or MAIN) or "HEAD"


def changed(root: Path, since: str) -> list[Path]:
    """Return the files that differ from a commit, and those that git doesn't track."""
    listed = [git(root, "diff", "--name-only", since), git(root, "ls-files", "--others", "--exclude-standard")]
    return [Path(line) for text in listed for line in text.splitlines()]


def selected(root: Path, files: Iterable[Path], covered: Covered | None) -> list[str]:
    """Return the tests of changed files, as pytest takes them.

    Args:
        root: of the source tree.
        files: paths from the root.
        covered: the map of lines to tests, if there is one.
    """
    found: dict[str, None] = {}
    for path in files:
        found.update(dict.fromkeys(_tests_of_file(root, path, covered)))
    whole = [test for test in found if "::" not in test]
    single = [test for test in found if "::" in test]
    return whole + [test for test in single if not any(_is_inside(test, one) for one in whole)]


def _is_inside(test: str, folder: str) -> bool:
    return Path(test.partition("::")[0]).is_relative_to(folder)


def _tests_of_file(root: Path, path: Path, covered: Covered | None) -> list[str]:
    top = path.parts[0]
    if top == "native_sched":
        return [NATIVE]
    if top in PAGES:
        return [PAGES[top]]
    if path.suffix != ".py":
        return []
    if top == "tests":
        is_test = path.name.startswith("test_") and (root / path).exists()
        return [path.as_posix() if is_test else path.parent.as_posix()]
    doctests = [path.as_posix()] if (root / path).exists() and ">>> " in (root / path).read_text() else []
    tests = covered.tests_of_change(path) if covered is not None else []
    if covered is not None and tests:
        files = {Path(test.partition("::")[0]) for test in tests}
        moved = {file for file in files if not covered.is_unchanged(file)}  # its tests may have other names now
        known = [test for test in tests if Path(test.partition("::")[0]) not in moved]
        return doctests + known + [file.as_posix() for file in sorted(moved) if (root / file).exists()]
    return doctests + _tests_of_layer(root, path)


def _tests_of_layer(root: Path, path: Path) -> list[str]:
    """Return a layer's unit tests, or all where it has no folder, and all component tests."""
    layer = path.parts[1] if path.parts[0] == "rayelastic" and len(path.parts) > 2 else path.parts[0]
    unit = f"tests/unit/{layer}"
    return [unit if (root / unit).is_dir() else "tests/unit", "tests/component"]


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main(arguments: Sequence[str]) -> int:
    named = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    options = list(arguments[1:] if named else arguments)
    files = changed(ROOT, base(ROOT, named))
    try:
        covered = Covered(ROOT)
    except FileNotFoundError:
        covered = None
        print("./dev coverage writes the map that selects single tests; without it whole layers run", flush=True)
    tests = selected(ROOT, files, covered)
    print(f"{len(files)} files changed, {len(tests)} tests or folders of tests selected", flush=True)
    if NATIVE in tests:
        print("C++ changed: ./dev test-native runs the tests of the native core", flush=True)
    if not tests:
        return 0
    return subprocess.run([sys.executable, "-m", "pytest", *options, *tests], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
