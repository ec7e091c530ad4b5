"""No ported program is longer than its original: in lines of code, without blank ones, comments and docstrings."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PORTED = Path(__file__).parents[3] / "examples" / "ported"
ORIGINALS = {  # lines of code of those whose source could be counted
    "anomalies": 47,
    "baskets": 21,
    "brc": 66,
    "complete_join": 23,
    "count_with_timeout": 47,
    "dynamic_sessions": 55,
    "find_outliers": 37,
    "http_enrichment": 38,
    "labelled_by_model": 22,
    "linear_regression": 56,
    "orderbook": 96,
    "search_sessions": 86,
    "structured_sessions": 38,
    "wiki_stream": 56,
}


def lines_of_code(path: Path) -> int:
    """Of a program, without the lines that feed it its sample."""
    text = path.read_text()
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'":
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.update(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and number not in left_out for number, line in lines)


@pytest.mark.parametrize("name", ORIGINALS)
def test_a_port_is_no_longer_than_its_original(name: str) -> None:
    assert lines_of_code(PORTED / f"{name}.py") <= ORIGINALS[name]
