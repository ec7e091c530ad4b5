"""Builds the documentation's site, allowing no warning, and checks its links without a network: `python -m tools.site`.

Public is what `rayelastic.__all__`, `rayelastic.spark`, `rayelastic.testing` and `rayelastic.errors` name: each has a
docstring and an entry in the reference. The site's search finds ordinary tasks (`tools/site_search.py`).
"""

from __future__ import annotations

import argparse
import html
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

from tools.site_search import astray

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "docs" / "html"
MODULES = ("rayelastic", "rayelastic.spark", "rayelastic.testing", "rayelastic.errors")


def public() -> Iterator[tuple[str, object]]:
    """Every public name but those of modules, with what it names.

    >>> "rayelastic.JobConfig" in dict(public())
    True
    """
    for module in map(importlib.import_module, MODULES):
        for name in getattr(module, "__all__", []):
            value = getattr(module, name)
            if not isinstance(value, ModuleType):
                yield f"{module.__name__}.{name}", value


def undocumented() -> Iterator[str]:
    """Public names without a docstring.

    >>> list(undocumented())
    []
    """
    return (name for name, value in public() if not inspect.getdoc(value))


def broken_links(folder: Path) -> Iterator[str]:
    """Link between pages of a built site that lead nowhere, as 'page: link'; those to other sites aren't followed."""
    texts = {path: path.read_text() for path in folder.rglob("*.html")}
    anchors = {
        path: {html.unescape(found) for found in re.findall(r'\bid="([^"]+)"', text)} for path, text in texts.items()
    }
    for page, text in texts.items():
        for link in sorted({html.unescape(found) for found in re.findall(r'\b(?:href|src)="([^"]+)"', text)}):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            gone = not target.exists() or (
                parts.fragment and target in anchors and unquote(parts.fragment) not in anchors[target]
            )
            if gone:
                yield f"{page.relative_to(folder)}: {link}"


def not_in_reference(folder: Path) -> Iterator[str]:
    """Public names that the built reference has no entry of."""
    text = "".join(path.read_text() for path in (folder / "reference").glob("*.html"))
    return (name for name, _ in public() if f'id="{name}"' not in text)


def main(arguments: Sequence[str]) -> int:
    """Builds, checks, and opens a browser if asked to."""
    parser = argparse.ArgumentParser(prog="./dev docs", description="Builds the documentation's site and checks it.")
    parser.add_argument("--open", action="store_true", help="show it in the browser")
    given = parser.parse_args(arguments)
    shutil.rmtree(SITE, ignore_errors=True)  # else pages that are gone stay
    options = ["-q", "-E", "-W", "--keep-going", "-d", str(ROOT / "build" / "docs" / "doctrees")]
    sphinx = [sys.executable, "-m", "sphinx", *options, "-b", "html", str(ROOT / "docs"), str(SITE)]
    if status := subprocess.run(sphinx, check=False).returncode:
        return status
    wrong = [f"leads nowhere: {link}" for link in broken_links(SITE)]
    wrong += [f"not in the reference: {name}" for name in not_in_reference(SITE)]
    wrong += astray(SITE)
    pages = len(list(SITE.rglob("*.html")))
    print("\n".join([*wrong, f"{pages} pages, {len(wrong)} mistakes: {SITE / 'index.html'}"]))
    if given.open and not wrong:
        webbrowser.open((SITE / "index.html").as_uri())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
