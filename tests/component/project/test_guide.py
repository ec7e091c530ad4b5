"""The guide: examples print what they show, contents are whole, links lead somewhere, messages are as quoted."""

from __future__ import annotations

import contextlib
import inspect
import io
import operator
import re
import runpy
from pathlib import Path

import pytest

import rayelastic as rel

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
ALL = sorted(DOCS.rglob("*.md"))
PAGES = [path for path in ALL if "```python" in path.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS).with_suffix("")))
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python blocks of a page are one program; an `output` block is what the block before it prints."""
    blocks = re.findall(r"^```(python|output)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    wanted: list[str | None] = []
    for kind, text in blocks:
        if kind == "python":
            wanted.append(None)
        else:
            wanted[-1] = text
    program = tmp_path / f"{page.stem}_page.py"
    program.write_text("\nprint(end='\\0')\n".join(text for kind, text in blocks if kind == "python"))
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(program), run_name=program.stem)
    texts = printed.getvalue().split("\0")
    assert [text for text, output in zip(texts, wanted, strict=True) if output is not None] == [
        output for output in wanted if output is not None
    ]


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
        r"`((?:rayelastic|native_sched|papers|topologies)/[\w/]+(?:\.\w+)?/?)`", (DOCS / "papers.md").read_text()
    )
    assert len(names) > 30
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_troubleshooting_quotes_messages_of_the_code() -> None:
    text = (DOCS / "how_to" / "troubleshooting.md").read_text()
    code = [*(ROOT / "rayelastic").rglob("*.py"), *(ROOT / "native_sched" / "src").rglob("*.cpp")]
    sources = "\n".join(path.read_text() for path in code)
    spoken = re.sub(r'"\s*\n\s*f?"', "", sources)  # a string over several lines
    quotes = re.findall(r"^\| `([^|]+?)`(?: \(`\w+`\))?(?: [^|`]*)?\|", text, re.MULTILINE)
    pieces = [piece.strip() for quote in quotes for piece in re.split(r"\.\.\.|\b[NM]\b|`, `", quote) if len(piece) > 8]
    known = [piece for piece in pieces if piece in spoken]
    assert sorted(set(pieces) - set(known)) == ["No module named 'x'"]


def test_names_of_the_public_interface_are_there() -> None:
    """What prose names as `rel.x(y=)` or `JobConfig(y=)` is public and has these parameters."""
    wrong, count = [], 0
    for page in [ROOT / "README.md", *ALL]:
        text = re.sub(r"^(```+).*?^\1\s*$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        code = "\n".join(re.findall(r"`([^`\n]+)`", text))
        for name, arguments in re.findall(r"(?<![\w.])(rel\.[\w.]*\w|JobConfig)(\([^()]*\))?", code):
            count += 1
            try:
                named = operator.attrgetter(name.removeprefix("rel."))(rel)
            except AttributeError:
                wrong.append((page.name, name))
                continue
            for keyword in re.findall(r"\b(\w+)=", arguments):
                taken = inspect.signature(named).parameters.values()
                if not any(one.name == keyword or one.kind is one.VAR_KEYWORD for one in taken):
                    wrong.append((page.name, f"{name}({keyword}=)"))
    assert wrong == []
    assert count > 300
