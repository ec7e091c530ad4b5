"""The figures of the guide are those that tools/figures.py draws, and pages show them."""

from __future__ import annotations

from pathlib import Path

from tools.figures import PICTURES, figures

ROOT = Path(__file__).resolve().parents[3]


def test_the_figures_are_as_they_are_drawn() -> None:
    drawn = figures()
    assert {name: (PICTURES / name).read_text() for name in drawn} == drawn
    pages = "\n".join(page.read_text() for page in [*ROOT.glob("docs/concepts/*.md"), ROOT / "ARCHITECTURE.md"])
    assert [name for name in drawn if f"/pictures/{name})" not in pages] == []
