"""The built site's own search finds the page that answers an ordinary task, and finds it first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import site_search

LANGUAGE = "const stopwords = new Set(['a']); class Stemmer { stemWord(word) { return word; } }"
SEARCH = """const Search = {
  setIndex: (index) => { Search.index = index; },
  _parseQuery: (query) => [query],
  _performSearch: (query) => (Search.index[query] || []).map((page) => [page, page, "", null, 1]).reverse(),
};"""


def site(folder: Path, found: dict[str, list[str]]) -> Path:
    """A site whose search finds these pages, best first."""
    (folder / "_static").mkdir()
    (folder / "_static" / "language_data.js").write_text(LANGUAGE)
    (folder / "_static" / "searchtools.js").write_text(SEARCH)
    (folder / "searchindex.js").write_text(f"Search.setIndex({json.dumps(found)})")
    return folder


@pytest.fixture
def found() -> dict[str, list[str]]:
    return {query: [page, "changelog"] for page, queries in site_search.TASKS.items() for query in queries}


def test_a_site_whose_pages_come_first_has_no_mistake(tmp_path: Path, found: dict[str, list[str]]) -> None:
    assert list(site_search.astray(site(tmp_path, found))) == []


def test_a_page_that_is_second_or_not_found_is_a_mistake(tmp_path: Path, found: dict[str, list[str]]) -> None:
    found["limit threads"].reverse()
    found["kafka"] = []
    assert list(site_search.astray(site(tmp_path, found))) == [
        "search 'limit threads': how_to/limit_resources is number 2; first is changelog",
        "search 'kafka': how_to/read_from_kafka is not found; first is nothing",
    ]


@pytest.mark.nightly
def test_the_guide_is_found_by_what_people_type(tmp_path: Path) -> None:
    sphinx = pytest.importorskip("sphinx.cmd.build", reason="./dev docs installs it")
    source = Path(site_search.__file__).parents[1] / "docs"
    assert sphinx.build_main(["-q", "-d", str(tmp_path / "trees"), str(source), str(tmp_path / "site")]) == 0
    assert list(site_search.astray(tmp_path / "site")) == []
