"""Files and folders that the documents name are there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (
    "rayelastic",
    "native_sched",
    "tests",
    "tools",
    "bench",
    "papers",
    "topologies",
    "examples",
    "cluster",
    "docs",
    "changes",
    ".ci",
)
DOCUMENTS = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "README.md",
    "docs/architecture",
    "docs/decisions",
    "docs/reference/security_model.md",
]
MADE = ("build/", "bench/results", "dist")  # by commands
PLACEHOLDERS = re.compile(r"\b[A-Z]{3,}\b(?!\.md)|^\./")


@cache
def known() -> frozenset[str]:
    """All files and folders, each by every end of its path that begins with a name."""
    beside = [path for path in ROOT.iterdir() if path.is_file()]
    inside = (path for folder in FOLDERS for path in [ROOT / folder, *(ROOT / folder).rglob("*")])
    parts = (path.relative_to(ROOT).parts for path in itertools.chain(beside, inside))
    return frozenset("/".join(path[start:]) for path in parts for start in range(len(path)))


def paths(text: str) -> Iterator[str]:
    """What a text in Markdown has in backticks and looks like a path, each of `{a,b}` for itself."""
    for found in re.findall(r"`([\w./{},*-]+)`", text):
        if re.search(r"[{/]|\.(py|cpp|hpp|toml|md)$", found) and not PLACEHOLDERS.search(found):
            yield from expanded(found.rstrip("/"))


def expanded(path: str) -> Iterator[str]:
    """`a/{b,c}/d` is `a/b/d` and `a/c/d`."""
    if match := re.match(r"(.*?)\{(.*?)\}(.*)", path):
        for one in match[2].split(","):
            yield from expanded(f"{match[1]}{one}{match[3]}")
    else:
        yield path


def documents() -> list[str]:
    """The documents themselves; each of a folder."""
    found = (
        path for one in DOCUMENTS for path in ((ROOT / one).glob("*.md") if (ROOT / one).is_dir() else [ROOT / one])
    )
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


@pytest.mark.parametrize("document", documents())
def test_what_a_document_names_is_there(document: str) -> None:
    named = set(paths((ROOT / document).read_text()))
    assert {path for path in named if "*" not in path and path not in known() and not path.startswith(MADE)} == set()


def test_paths_are_found_in_a_text() -> None:
    text = "`a/b.py`, `{x,y}/z`, `--flag`, `rel.run`, `plain.md`, `graph/NAME.py`, a/c, `./dev`, `key()`"
    assert list(paths(text)) == ["a/b.py", "x/z", "y/z", "plain.md"]
