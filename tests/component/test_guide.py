"""Every example of the guide runs as printed, and every page is in its index."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(path for path in DOCS.glob("*.md") if "```python" in path.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    program = tmp_path / f"{page.stem}_page.py"
    program.write_text("\n".join(blocks))
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(program), run_name=program.stem)


def test_the_index_names_every_page() -> None:
    index = (DOCS / "index.md").read_text()
    assert {path.name for path in DOCS.glob("*.md")} == {"index.md", *re.findall(r"\]\((\w+\.md)\)", index)}
    assert len(re.findall(r"^## \d+\.", (DOCS / "cookbook.md").read_text(), re.MULTILINE)) == 12
