"""Makes a difference small: the shortest function, then the simplest tuple, that still show one of the same kind.

Takes away statements, puts expressions in place of those that they are in, and constants in place of expressions; what
Python itself can't do any more is thrown out before it is compiled. Knows the compiler only by the check it is given.
"""

from __future__ import annotations

import ast
import builtins
import copy
import datetime as dt
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.oracle.compare import Difference
from tests.oracle.program import Program, parsed
from tests.oracle.rows import FIELDS

Row = dict[str, Any]
Check = Callable[[Program, list[tuple[Any, ...]]], Difference | None]
_SIMPLE: dict[str, list[Any]] = {
    "s": ["", "a", "0", " "], "b": [b"", b"a"], "i": [0, 1, 2], "x": [0.0, 1.0, 0.5], "p": [False],
    "a": [dt.datetime(1970, 1, 1)], "e": [dt.date(1970, 1, 1)],  # noqa: DTZ001
    "g": [dt.timedelta(), dt.timedelta(microseconds=1)],
}  # fmt: skip


class Shrinker:
    """Shrinks one difference.

    Args:
        check: whether a program shows the difference on tuples.
        budget: seconds, after which the best so far is given.
    """

    def __init__(self, check: Check, budget: float) -> None:
        self._check = check
        self._until = time.monotonic() + budget
        self._tried: set[str] = set()

    def shrunk(self, program: Program, found: Difference) -> tuple[Program, Difference]:
        """The smallest that was found."""
        rows = [dict(zip(program.fields, row, strict=True)) for row in found.rows]
        if len(rows) > 1:
            program, rows, found = self._fewer(program, rows, found)
        smaller = True
        while smaller and time.monotonic() < self._until:
            smaller = False
            for body in candidates(program.body):
                if time.monotonic() > self._until:
                    break
                one = replace(program, body=body)
                still = self._still(one, rows, found)
                if still is not None:
                    program, found, smaller = one, still, True
                    break
        if program.declared and (still := self._still(bare := replace(program, declared=()), rows, found)):
            program, found = bare, still
        return self._simple_row(program, rows, found) if rows else (program, found)

    def _still(self, program: Program, rows: list[Row], found: Difference) -> Difference | None:
        if program.body in self._tried and not program.declared:
            return None
        self._tried.add(program.body)
        try:
            given = [tuple(row.get(name, 0) for name in program.fields) for row in rows]
            now = self._check(program, given)
        except SyntaxError:
            return None
        return now if now is not None and now.kind == found.kind else None

    def _fewer(self, program: Program, rows: list[Row], found: Difference) -> tuple[Program, list[Row], Difference]:
        at = 0
        while at < len(rows) - 1 and time.monotonic() < self._until:
            less = rows[:at] + rows[at + 1 :]
            now = self._check(program, [tuple(row[name] for name in program.fields) for row in less])
            if now is not None and now.kind == found.kind:
                rows, found = less, now
            else:
                at += 1
        return program, rows, found

    def _simple_row(self, program: Program, rows: list[Row], found: Difference) -> tuple[Program, Difference]:
        """The last tuple's values made simple, one after the other."""
        row = {name: rows[-1].get(name, 0) for name in program.fields}
        before = [tuple(one.get(name, 0) for name in program.fields) for one in rows[:-1]]
        for name in program.fields:
            better = True
            while better and time.monotonic() < self._until:
                better = False
                for value in simpler(name, row[name]):
                    now = self._check(program, [*before, tuple({**row, name: value}.values())])
                    if now is not None and now.kind == found.kind:
                        row, found, better = {**row, name: value}, now, True
                        break
        return program, found


def simpler(name: str, value: Any) -> Iterator[Any]:
    """Values that are simpler than this one."""
    kind = FIELDS[name][0].removeprefix("n")
    if value is None:
        return
    for one in _SIMPLE[kind]:
        if repr(one) == repr(value):
            return
        yield one
    if kind in "sb":
        for size in (len(value) // 2, 4, 2, 1):
            for at in range(0, len(value), size) if 0 < size < len(value) else ():
                yield value[:at] + value[at + size :]


# --- functions --------------------------------------------------------------------------------------------------------


def candidates(body: str) -> Iterator[str]:
    """Smaller functions, first those that lack whole statements, then by size."""
    made: dict[str, int] = {}
    for edit in _edits(parsed(body)):
        tree = parsed(body)
        nodes = list(ast.walk(tree))
        try:
            edit(nodes)
            text = ast.unparse(ast.fix_missing_locations(tree))
            ast.parse(text)
        except (SyntaxError, ValueError, AttributeError, TypeError):
            continue
        if len(text) < len(body):
            made.setdefault(text, len(made))
    lines = body.count("\n")
    yield from sorted(made, key=lambda text: (text.count("\n") == lines, len(text) if text.count("\n") == lines else 0))


Edit = Callable[[list[Any]], None]


def _edits(tree: ast.AST) -> Iterator[Edit]:
    """Changes, by the number of a node in the order of ast.walk."""
    for number, node in enumerate(ast.walk(tree)):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                for at, item in enumerate(value):
                    if isinstance(item, ast.stmt):
                        yield from _of_statement(number, name, at, item)
                    elif isinstance(item, ast.expr):
                        yield from _of_expression(number, name, at, item)
                    elif isinstance(item, ast.match_case | ast.ExceptHandler):
                        yield _cut(number, name, at)
                if value and isinstance(node, ast.Tuple | ast.List | ast.Set | ast.JoinedStr | ast.BoolOp):
                    yield from (_cut(number, name, at) for at in range(len(value)))
                if name in ("ifs", "finalbody", "orelse") and value:
                    yield lambda nodes, n=number, f=name: setattr(nodes[n], f, [])  # type: ignore[misc]
            elif isinstance(value, ast.expr):
                yield from _of_expression(number, name, None, value)
        if isinstance(node, ast.Dict):
            yield from (_cut(number, "keys", at, "values") for at in range(len(node.keys)))
        if isinstance(node, ast.Call):
            yield from (_cut(number, "args", at) for at in range(len(node.args)))
            yield from (_cut(number, "keywords", at) for at in range(len(node.keywords)))
        if isinstance(node, ast.Slice):
            yield from (lambda nodes, n=number, f=f: setattr(nodes[n], f, None) for f in ("lower", "upper", "step"))


def _cut(number: int, name: str, at: int, other: str = "") -> Edit:
    def edit(nodes: list[Any]) -> None:
        del getattr(nodes[number], name)[at]
        if other:
            del getattr(nodes[number], other)[at]

    return edit


def _of_statement(number: int, name: str, at: int, item: ast.stmt) -> Iterator[Edit]:
    def drop(nodes: list[Any]) -> None:
        block = getattr(nodes[number], name)
        del block[at]
        if not block and name == "body":
            block.append(ast.Pass())

    yield drop
    inner = [block for f in ("body", "orelse", "finalbody") if (block := getattr(item, f, None))]
    inner += [case.body for case in getattr(item, "cases", ())]
    for block in inner:

        def lift(nodes: list[Any], block: list[ast.stmt] = block) -> None:
            getattr(nodes[number], name)[at : at + 1] = copy.deepcopy(block)

        yield lift


def _of_expression(number: int, name: str, at: int | None, item: ast.expr) -> Iterator[Edit]:
    if isinstance(getattr(item, "ctx", None), ast.Store | ast.Del):
        return
    inside: list[ast.expr] = [one for one in ast.walk(item) if isinstance(one, ast.expr) and one is not item][:12]
    inside = [one for one in inside if isinstance(getattr(one, "ctx", ast.Load()), ast.Load)]
    if isinstance(item, ast.Constant):
        if isinstance(item.value, str | bytes) and len(item.value) > 1:
            inside += [ast.Constant(item.value[:1]), ast.Constant(item.value[:0])]
    elif not (isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name)):
        inside += [ast.Constant(value) for value in (0, "", 0.5, True)]
    for one in inside:

        def put(nodes: list[Any], one: ast.expr = one) -> None:
            if at is None:
                setattr(nodes[number], name, copy.deepcopy(one))
            else:
                getattr(nodes[number], name)[at] = copy.deepcopy(one)

        yield put


def skeleton(body: str) -> frozenset[str]:
    """What a function is made of: what a bigger one has, too, that shows the same fault."""
    parts = set()
    for node in ast.walk(parsed(body)):
        match node:
            case ast.Attribute(value=ast.Name(id="t"), attr=name):
                parts.add("field " + FIELDS[name][0] if name in FIELDS else name)
            case ast.Attribute(attr=name) | ast.Name(id=name, ctx=ast.Load()):
                parts.add(name if isinstance(node, ast.Attribute) or name in vars(builtins) else "name")
            case ast.operator() | ast.cmpop() | ast.unaryop() | ast.expr() | ast.stmt():
                parts.add(type(node).__name__)
    return frozenset(parts - {"Name", "Constant", "Load", "Store", "Return", "FunctionDef", "name", "t", "Attribute"})
