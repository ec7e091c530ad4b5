"""What counts as a small fault, and that each is planted where it is said to be."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tools import mutants
from tools.mutants import changes, planted

CASES = [
    ("x = a < b", ["a < b -> a <= b", "a < b -> a > b"]),
    ("x = a == b", ["a == b -> a != b"]),
    ("x = a is None", ["a is None -> a is not None"]),
    ("x = a not in b", ["a not in b -> a in b"]),
    ("x = a and b", ["a and b -> a or b"]),
    ("x = not a", ["not a -> a"]),
    ("x = a * b", ["a * b -> a / b"]),
    ("self.x += y", ["self.x += y -> self.x -= y", "self.x += y -> pass"]),
    ("if a: x = b", ["a -> not a"]),
    ("while a: go()", ["a -> not a", "go() -> pass"]),
    ("x = [a for a in b if a.c]", ["a.c -> not a.c"]),
    ("f(a, b)", ["f(a, b) -> pass", "f(a, b) -> f(b, a)"]),
    ("x = min(a, b)", ["min(a, b) -> max(a, b)"]),
    ("x = 3", ["3 -> 4"]),
    ("x = 0.5", ["0.5 -> 1.0"]),
    ("x = 0.0", ["0.0 -> 1.0"]),
    ("x = True", ["True -> False"]),
    ("self.x = y", ["self.x = y -> pass"]),
    ("for a in b: break", ["break -> pass"]),
    ("raise Wrong(1, 2)", ["raise Wrong(1, 2) -> pass"]),
    # what nobody decides
    ('"""A text."""', []),
    ("x: int | str = y", []),
    ("@dataclass(slots=True)\nclass A(B): pass", []),
    ("assert a < b", []),
    ("if TYPE_CHECKING:\n    import a", []),
    ("__all__ = ['a', 'b']", []),
    ("x = 'a' + b", []),
    ("x = f'{a + 1}'", []),
    ("x = f(a, a)", []),
    ("x = isinstance(a, b)", []),
    ("x = math.isclose(a, b)", []),
]


@pytest.mark.parametrize(("source", "expected"), CASES)
def test_changes(source: str, expected: list[str]) -> None:
    assert [f"{one.before} -> {one.after}" for one in changes(ast.parse(source))] == expected


def test_a_change_says_where_it_is() -> None:
    (change,) = changes(ast.parse("class A:\n    def f(self):\n        def g():\n            return a is b\n"))
    assert (change.line, change.function) == (4, "A.f.g")


SOURCE = "def largest(a, b):\n    if a > b:\n        return a\n    return b\n\nLIMIT = 2\n"


def test_each_change_is_planted_alone() -> None:
    found = [f"{one.before} -> {one.after}" for one in changes(ast.parse(SOURCE))]
    assert found == ["a > b -> a >= b", "a > b -> a < b", "2 -> 3"]
    smallest, more = namespace(1), namespace(2)
    assert (smallest["largest"](1, 2), smallest["LIMIT"]) == (1, 2)
    assert (more["largest"](1, 2), more["LIMIT"]) == (2, 3)


def test_every_change_of_a_real_file_compiles() -> None:
    source = Path(mutants.__file__).read_text()
    numbers = range(len(changes(ast.parse(source))))
    assert len(numbers) > 30
    for number in numbers[::5]:
        planted(source, "mutants.py", number)


def namespace(number: int) -> dict[str, Any]:
    made: dict[str, Any] = {}
    exec(planted(SOURCE, "source.py", number), made)
    return made
