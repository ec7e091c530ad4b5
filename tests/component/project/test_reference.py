"""Public names have docstrings; settings, commands and metrics have rows; `./dev docs` finds what has no entry."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

import rayelastic
from rayelastic import cli
from rayelastic.errors.codes import ErrorCode
from rayelastic.errors.meanings import MEANINGS
from rayelastic.reasons import Code
from tools.reference import FILES, PAGES, SETTINGS, filled, raised
from tools.site import broken_links, not_in_reference, public, undocumented


def test_every_public_name_is_documented() -> None:
    assert list(undocumented()) == []
    names = dict(public())
    assert {f"rayelastic.{name}" for name in dir(rayelastic) if name not in ("__version__", "errors", "spark")} <= set(
        names
    )
    assert {"rayelastic.spark.stream", "rayelastic.testing.collect", "rayelastic.errors.GraphError"} <= set(names)


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "reference").mkdir()
    entries = " ".join(f'<dt id="{name}">' for name, _ in public() if name != "rayelastic.JobConfig")
    (tmp_path / "reference" / "index.html").write_text(entries)
    (tmp_path / "a.html").write_text(
        '<h1 id="top"><a href="reference/index.html#rayelastic.run"> <a href="b.html"> <a href="#top"> <a href="#end">'
        '<a href="https://example.org/none"> <img src="gone.png">'
    )
    assert sorted(broken_links(tmp_path)) == ["a.html: #end", "a.html: b.html", "a.html: gone.png"]
    assert list(not_in_reference(tmp_path)) == ["rayelastic.JobConfig"]


TABLES = ("cli", "configuration", "errors", "metrics", "reasons")
MADE = ["how_to/monitor_and_alert", *(f"reference/{page}" for page in TABLES)]


def test_no_other_page_has_such_a_table() -> None:
    pages = [
        page.relative_to(PAGES).with_suffix("") for page in PAGES.rglob("*.md") if "<!-- made: " in page.read_text()
    ]
    assert sorted(map(str, pages)) == MADE


@pytest.mark.parametrize("page", MADE)
def test_tables_are_those_of_the_code(page: str) -> None:
    """`python -m tools.reference` makes them anew."""
    text = (PAGES / f"{page}.md").read_text()
    assert "<!-- made: " in text
    assert text == filled(text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_dashboard_and_the_alert_rules_are_those_of_the_metrics(path: Path) -> None:
    assert path.read_text() == FILES[path]()


def test_every_reason_is_listed() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", (PAGES / "reference/reasons.md").read_text(), re.MULTILINE)
    assert listed == [code.name.lower() for code in Code]


def test_every_setting_and_command_stands_there() -> None:
    settings, commands = ((PAGES / f"reference/{page}.md").read_text() for page in ("configuration", "cli"))
    names = [f"{kind.__name__}({one.name}=)" for kind in SETTINGS for one in dataclasses.fields(kind)]
    assert [name for name in names if settings.count(f"| `{name}` | `") != 1] == []
    assert [name for name in cli.COMMANDS if f"## rayelastic {name}\n" not in commands] == []


def test_every_code_of_errors_is_raised_and_documented() -> None:
    assert set(MEANINGS) == set(ErrorCode)
    assert set(raised()) == set(ErrorCode)
