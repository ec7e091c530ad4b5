"""Small faults that a test should notice: operators swapped, boundaries moved, conditions negated, statements dropped.

A change replaces one node of a syntax tree. Texts of errors, annotations, decorators and asserts are never changed.
The module is also the pytest plugin that runs tests with one change.
"""

from __future__ import annotations

import ast
import copy
import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType
from typing import Any

MUTANT = "REL_MUTANT"  # an environment variable: module:path:number of the change

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
SYMMETRIC = {"compare_digest", "gcd", "isclose", *OPPOSITES}
SAME_EITHER_WAY = {"isinstance", "issubclass", "getattr", "range", "replace", "TypeVar", *SYMMETRIC}
LEFT_ALONE = (ast.Assert, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.JoinedStr)
LIKE_NUMBERS = (ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp)


@dataclass(frozen=True, slots=True)
class Change:
    """A node of a tree, and what to put in its place.

    Args:
        holder: the node that holds it, in `field`, at `index` if that is a list.
        field: of the holder.
        index: of the field; None if it is no list.
        new: takes its place.
        line: where it stands.
        function: around it, 'Class.method'; '' outside of all functions.
        before: its source, in one line.
        after: the source of what takes its place.
    """

    holder: ast.AST
    field: str
    index: int | None
    new: ast.AST
    line: int
    function: str
    before: str
    after: str

    def apply(self) -> None:
        """Put the new node into the tree."""
        held = getattr(self.holder, self.field)
        old = held if self.index is None else held[self.index]
        new = ast.fix_missing_locations(ast.copy_location(self.new, old))
        if self.index is None:
            setattr(self.holder, self.field, new)
        else:
            held[self.index] = new


def changes(tree: ast.AST) -> list[Change]:
    """Return all changes of a module, in the order of its source; the same for the same source."""
    return [change for change in _Walk().inside(tree) if change.before != change.after]


def one_line(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())


class _Walk:
    """Walks a tree with the names of classes and functions around the node."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def inside(self, node: ast.AST) -> Iterator[Change]:
        """Yield the changes of what a node holds."""
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_params", "bases"):
                continue
            nodes = value if isinstance(value, list) else [value]
            for index, child in enumerate(nodes):
                if isinstance(child, ast.AST):
                    yield from self._node(node, field, index if isinstance(value, list) else None, child)

    def _node(self, holder: ast.AST, field: str, index: int | None, node: ast.AST) -> Iterator[Change]:
        if isinstance(node, LEFT_ALONE) or is_for_readers(node) or is_error(holder, node) or is_strict(node):
            return
        for new in replacements(node, field):
            function, line = ".".join(self._names), getattr(node, "lineno", 0)
            yield Change(holder, field, index, new, line, function, one_line(node), one_line(new))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self._names.append(node.name)
            yield from self.inside(node)
            self._names.pop()
        else:
            yield from self.inside(node)


def is_for_readers(node: ast.AST) -> bool:
    """Return a docstring, or what the type checker alone reads."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return ast.unparse(node.test) in ("TYPE_CHECKING", "__name__ == '__main__'")
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("TypeVar", "cast", "NewType")


def is_error(holder: ast.AST, node: ast.AST) -> bool:
    """What an error says; that it is raised is a change of its own."""
    return isinstance(holder, ast.Raise) and isinstance(node, ast.Call)


def is_strict(node: ast.AST) -> bool:
    """That lengths are the same, which they are."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


def replacements(node: ast.AST, field: str) -> Iterator[ast.AST]:
    """What may take the place of a node that its holder has in `field`."""
    if isinstance(node, ast.Compare):
        yield from of_comparison(node)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and is_arithmetic(node):
        yield ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        yield ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
    elif isinstance(node, ast.Constant):
        yield from of_constant(node, field)
    elif isinstance(node, ast.Call):
        yield from of_call(node)
    if field in ("test", "ifs") and isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.BoolOp):
        yield ast.UnaryOp(ast.Not(), node)
    if isinstance(node, ast.stmt) and is_dropped(node):
        yield ast.Pass()


def of_comparison(node: ast.Compare) -> Iterator[ast.AST]:
    for at, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            new = copy.copy(node)
            new.ops = [*node.ops[:at], other(), *node.ops[at + 1 :]]
            yield new


def of_constant(node: ast.Constant, field: str) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int) and field != "slice":
        yield ast.Constant(value + 1)
    elif isinstance(value, float):
        yield ast.Constant(value * 2 or 1.0)


def of_call(node: ast.Call) -> Iterator[ast.AST]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    last = node.func.attr if isinstance(node.func, ast.Attribute) else name
    if name in OPPOSITES:
        yield ast.Call(ast.Name(OPPOSITES[name], ast.Load()), node.args, node.keywords)
    starred = any(isinstance(one, ast.Starred) for one in node.args[:2])
    if len(node.args) >= 2 and not starred and name not in SAME_EITHER_WAY and last not in SYMMETRIC:
        yield ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)


def is_arithmetic(node: ast.BinOp) -> bool:
    """Return whether it calculates, rather than putting texts or lists together or being a type."""
    sides = [node.left, node.right]
    if type(node.op) not in ARITHMETIC or not all(isinstance(side, LIKE_NUMBERS) for side in sides):
        return False
    return not any(isinstance(side, ast.Constant) and not isinstance(side.value, int | float) for side in sides)


def is_dropped(node: ast.stmt) -> bool:
    """Return whether a statement can go without a name going with it."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, ast.Expr | ast.AugAssign | ast.Continue | ast.Break | ast.Raise | ast.Delete)


# --- planting -------------------------------------------------------------------------------------------------------


def planted(source: str, path: str, number: int) -> CodeType:
    """Return the code of a module with one of its changes."""
    tree = ast.parse(source, path)
    changes(tree)[number].apply()
    code: CodeType = compile(tree, path, "exec", dont_inherit=True)
    return code


class Planted:
    """A finder of one module, with one of its changes; Python asks it first, so no file changes."""

    def __init__(self, module: str, path: Path, number: int) -> None:
        self._module, self._path = module, path
        self._code = planted(path.read_text(), str(path), number)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        if name != self._module:
            return None
        inside = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        loader: Any = self
        return spec_from_file_location(name, self._path, loader=loader, submodule_search_locations=inside)

    def create_module(self, spec: ModuleSpec) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: Any) -> None:
        exec(self._code, module.__dict__)


def pytest_configure() -> None:
    """Plant the mutant that the environment names, in a pytest run with `-p tools.mutants`."""
    if MUTANT in os.environ:
        module, path, number = os.environ[MUTANT].split(":")
        sys.meta_path.insert(0, Planted(module, Path(path), int(number)))
        importlib.import_module(module)  # pytest itself imports a file with examples by its path
