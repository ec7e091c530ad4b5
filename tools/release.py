"""Makes a release of what is committed: version, changelog, wheels, commit and tag: `./dev release 0.2.0`.

Nothing leaves this machine: a maintainer pushes the tag and uploads the wheels.
"""

from __future__ import annotations

import argparse
import datetime as dt
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.environment import ROOT, SetupError, say

VERSION = re.compile(r"\d+\.\d+\.\d+")
NAMING = (  # the version
    Path("pyproject.toml"),
    Path("rayelastic/__init__.py"),
    Path("README.md"),
    Path("cluster/Dockerfile"),
    Path("cluster/kuberay.yaml"),
    Path("docs/get_started/tutorial.md"),
)
OPEN = "## [Unreleased]\n\n"


def version_of(project: str) -> str:
    """Return the version that the text of pyproject.toml has.

    Raises:
        SetupError: it has none.
    """
    found = re.search(r'^version = "([^"]+)"$', project, re.MULTILINE)
    if found is None:
        raise SetupError("pyproject.toml has no version")
    return found[1]


def renamed(text: str, old: str, new: str) -> str:
    """Return a text that names a version, with another one.

    Raises:
        SetupError: it doesn't name it.

    >>> renamed("rayelastic-0.1.0-cp311, 10.1.0, 0.1.01", "0.1.0", "0.2.0")
    'rayelastic-0.2.0-cp311, 10.1.0, 0.1.01'
    """
    result, count = re.subn(rf"(?<![\d.]){re.escape(old)}(?![\d]|\.\d)", new, text)
    if not count:
        raise SetupError(f"a file that should name version {old} doesn't")
    return result


def write_section(root: Path, version: str, day: str) -> None:
    """Write the fragments of the changelog as the section of a version, and remove their files.

    Lines that stood under `[Unreleased]` before there were fragments join that section.

    Raises:
        SetupError: The version has a section, or nothing is unreleased.
    """
    changelog, fragments = root / "CHANGELOG.md", root / "changes"
    before = changelog.read_text()
    if f"## [{version}]" in before:
        raise SetupError(f"{changelog.name} has a section {version}")
    if OPEN not in before and not list(fragments.glob("*.md")):
        raise SetupError(f"nothing is unreleased: {fragments.name}/ has no fragment")
    build = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, "--date", day]
    done = subprocess.run(build, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"towncrier: {done.stderr.strip() or done.stdout.strip()}")
    changelog.write_text(changelog.read_text().replace(OPEN, ""))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def main(arguments: Sequence[str]) -> int:
    """Make a release."""
    parser = argparse.ArgumentParser(prog="./dev release", description="Version, changelog, wheels, commit and tag.")
    parser.add_argument("version", help="three numbers, such as 0.2.0")
    parser.add_argument("--without-wheels", action="store_true", help="build none")
    given = parser.parse_args(arguments)
    try:
        if not VERSION.fullmatch(given.version):
            raise SetupError(f"{given.version!r} is no version: give three numbers, such as 0.2.0")
        if changed := _git("status", "--porcelain"):
            raise SetupError(f"what isn't committed isn't released:\n{changed}")
        if _git("tag", "--list", f"v{given.version}"):
            raise SetupError(f"there is a tag v{given.version}")
        day = dt.datetime.now(dt.UTC).date().isoformat()
        old = version_of((ROOT / NAMING[0]).read_text())
        if _numbers(old) >= _numbers(given.version):
            raise SetupError(f"{given.version} doesn't come after {old}")
        written = {path: renamed((ROOT / path).read_text(), old, given.version) for path in NAMING}
        write_section(ROOT, given.version, day)
        for path, text in written.items():
            (ROOT / path).write_text(text)
        wheels = [sys.executable, "-m", "tools.wheels", "--try-out"]
        if not given.without_wheels and subprocess.run(wheels, cwd=ROOT, check=False).returncode:
            _git("reset", "--hard", "--quiet")
            raise SetupError("the wheels weren't built, so nothing was released")
        _git("commit", "--quiet", "--all", "--message", f"Version {given.version}")
        _git("tag", "--annotate", f"v{given.version}", "--message", f"Version {given.version}")
    except SetupError as error:
        say(f"./dev release: {error}")
        return 1
    say(
        f"{old} -> {given.version}: committed, tagged v{given.version}. To publish: git push --follow-tags, upload dist"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
