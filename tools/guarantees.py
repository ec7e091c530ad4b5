"""The table of docs/guarantees.md, made from the tests that show it: `python -m tools.guarantees` writes it.

A test declares what it shows by `@pytest.mark.guarantee(source=..., sink=..., lost=..., rows=...)`, one or more times.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path("docs/guarantees.md")
COLUMNS = ("source", "sink", "lost", "rows")
HEAD = "| source | sink | what is lost | rows | shown by |\n|---|---|---|---|---|\n"
BEGIN, END = "<!-- made by tools.guarantees -->\n", "<!-- end -->"


@dataclass(frozen=True, slots=True, order=True)
class Guarantee:
    """A guarantee that one test shows.

    Args:
        source: where the rows come from.
        sink: where they go.
        lost: what dies, or is away.
        rows: how often each row counts then.
        test: its file and name.
    """

    source: str
    sink: str
    lost: str
    rows: str
    test: str


def guarantees(folder: Path = Path("tests")) -> list[Guarantee]:
    """Return all that the tests say they show, in the order of the table."""
    paths = [path for path in folder.rglob("test_*.py") if "guarantee" in path.read_text()]
    return sorted(one for path in paths for one in _of(path))


def _of(path: Path) -> Iterator[Guarantee]:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.guarantee":
                    said = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in mark.keywords}
                    if set(said) != set(COLUMNS):
                        raise ValueError(f"{path}:{node.lineno}: a guarantee has {', '.join(COLUMNS)}")
                    yield Guarantee(**said, test=f"{path.name}::{node.name}")


def table() -> str:
    """The table as Markdown; names of tests in comments of their rows' last cells would break it, so they are code."""
    rows = (f"| {one.source} | {one.sink} | {one.lost} | {one.rows} | `{one.test}` |\n" for one in guarantees())
    return BEGIN + HEAD + "".join(rows) + END


def page(text: str) -> str:
    """Return the page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    return before + table() + rest.partition(END)[2]


def main() -> int:
    PAGE.write_text(page(PAGE.read_text()))
    print(f"{PAGE}: {len(guarantees())} guarantees")
    return 0


if __name__ == "__main__":
    sys.exit(main())
