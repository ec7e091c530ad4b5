"""The guide: examples run as printed, its index is whole, links lead somewhere, messages are quoted as they are."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
ALL = sorted(DOCS.rglob("*.md"))
PAGES = [path for path in ALL if "```python" in path.read_text()]
NOT_IN_INDEX = {"index.md", "architecture.md", "contributing.md", "changelog.md"}  # the root's, shown by the site


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS).with_suffix("")))
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    program = tmp_path / f"{page.stem}_page.py"
    program.write_text("\n".join(blocks))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(program), run_name=program.stem)


def test_the_index_names_every_page() -> None:
    index = (DOCS / "index.md").read_text()
    assert {path.name for path in DOCS.glob("*.md")} - NOT_IN_INDEX == set(re.findall(r"\]\((\w+\.md)\)", index))
    assert len(re.findall(r"^## \d+\.", (DOCS / "cookbook.md").read_text(), re.MULTILINE)) == 12


def test_every_page_is_in_the_sites_contents() -> None:
    listed = {"index"}
    for page in ALL:
        for contents in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            names = [line for line in contents.splitlines() if line and not line.startswith(":")]
            listed |= {str((page.parent / name).relative_to(DOCS)) for name in names}
    assert listed == {str(path.relative_to(DOCS).with_suffix("")) for path in ALL}


@pytest.mark.parametrize("page", [*ALL, *ROOT.glob("*.md")], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_what_papers_names_is_there() -> None:
    """Paths are given in full, or below the folder of the one before."""
    names = re.findall(
        r"`((?:rayelastic|native_sched|topologies)/[\w/]+(?:\.\w+)?/?)`", (DOCS / "papers.md").read_text()
    )
    assert len(names) > 30
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_troubleshooting_quotes_messages_of_the_code() -> None:
    text = (DOCS / "troubleshooting.md").read_text()
    code = [*(ROOT / "rayelastic").rglob("*.py"), *(ROOT / "native_sched" / "src").rglob("*.cpp")]
    sources = "\n".join(path.read_text() for path in code)
    spoken = re.sub(r'"\s*\n\s*f?"', "", sources)  # a string over several lines
    quotes = re.findall(r"^\| `([^|]+?)`(?: \(`\w+`\))?(?: [^|`]*)?\|", text, re.MULTILINE)
    pieces = [piece.strip() for quote in quotes for piece in re.split(r"\.\.\.|\b[NM]\b|`, `", quote) if len(piece) > 8]
    known = [piece for piece in pieces if piece in spoken]
    assert sorted(set(pieces) - set(known)) == ["No module named 'x'"]
