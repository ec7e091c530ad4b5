"""The table of guarantees is the one that the tests' marks make."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.guarantees import PAGE, guarantees, page

MARKED = """import pytest

@pytest.mark.guarantee(source="files", sink="Parquet", lost="a node", rows="each once")
def test_it(): ...
"""


def test_the_page_has_what_the_tests_say() -> None:
    assert page(PAGE.read_text()) == PAGE.read_text(), "run python -m tools.guarantees"
    assert len(guarantees()) >= 19


def test_marks_are_read(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(MARKED)
    [found] = guarantees(tmp_path)
    assert (found.source, found.lost, found.test) == ("files", "a node", "test_a.py::test_it")


def test_a_mark_has_all_columns(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(MARKED.replace(', rows="each once"', ""))
    with pytest.raises(ValueError, match="a guarantee has source, sink, lost, rows"):
        guarantees(tmp_path)
