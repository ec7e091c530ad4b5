"""Rewrites `for x in (int(w) for w in words)` and `for x in map(int, words)`, so that each item is made in its turn.

The generator's loop becomes the statement's own, its item a variable. Elsewhere all items are made before the first is
used; if that could make a difference, the function isn't compiled. Knows no Numba.
"""

# ruff: noqa: N802 -- called by ast

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any

from rayelastic.compile.reading.callables import ITEM, Callables, NotRewrittenError, assigned, load, placed
from rayelastic.reasons import Code

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_QUIET_METHODS = {
    "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold", "swapcase", "startswith",
    "endswith", "find", "rfind", "isdigit", "isalpha", "isalnum", "isspace", "isdecimal", "isnumeric", "isupper",
    "islower", "removeprefix", "removesuffix", "replace", "count", "items", "keys", "values",
}  # fmt: skip
_QUIET = (
    ast.Name, ast.Constant, ast.Attribute, ast.expr_context, ast.Compare, ast.cmpop, ast.BoolOp, ast.boolop,
    ast.UnaryOp, ast.unaryop, ast.IfExp, ast.Tuple, ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.Add, ast.Sub,
    ast.Mult, ast.comprehension, ast.GeneratorExp, ast.Slice, ast.keyword,
)  # fmt: skip
_CHANGES = {
    "append", "extend", "insert", "remove", "pop", "sort", "reverse", "clear", "add", "discard", "update", "setdefault",
    "popitem",
}  # fmt: skip


class LazyLoops(Callables):
    """The rewrite of one function, in place.

    Args:
        values: The values of names outside the function.
        local: The function's own names.
        path: The file, for errors.
        first: Its first parameter.
        helper: Whether other user functions call it, which may catch its exceptions.

    Attributes:
        made: Names of new variables.
    """

    def __init__(self, values: dict[str, Any], local: set[str], path: str, first: str | None, *, helper: bool) -> None:
        super().__init__(values, local, itertools.count())
        self._path, self._first, self._caught = path, first, helper
        self.made: set[str] = set()

    def begin(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite a function."""
        self._caught = self._caught or any(isinstance(one, ast.Try) for one in ast.walk(node))
        self.generic_visit(node)
        inside = list(_assigned_inside(node))
        for name, around in inside:
            own = {id(one): one for other, one in inside if other == name}
            if _uses(name, node) > sum(_uses(name, one) for one in own.values()):
                self._refuse(Code.UNASSIGNED, around, name=name)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        """Rewrite `yield from ..`."""
        if not isinstance(node.value, ast.YieldFrom):
            self.generic_visit(node)
            return node
        item = ast.Expr(ast.Yield(load(ITEM)))
        return self.visit(placed(ast.For(ast.Name(ITEM, ast.Store()), node.value.value, [item], [], None), node))

    # --- loops ---

    def visit_For(self, node: ast.For) -> Any:
        """Rewrite `for x in ..`."""
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        before: list[ast.stmt] = []
        numbered = node.iter if self._is_call(node.iter, {"enumerate"}) else None
        if isinstance(numbered, ast.Call) and numbered.args and self._is_lazy(numbered.args[0]):
            before = self._numbered(node, numbered)
        while (generator := self._generator(node.iter)) is not None and self._taken_apart(node, generator):
            pass
        for one in self._lazy_parts(node.iter):
            self._check_at_once(one, node)
            self._check_unchanged(one, node)
        node.iter = self.visit(node.iter)
        return [*before, node]

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made = [self.visit(one) for one in body]
        return [one for some in made for one in (some if isinstance(some, list) else [some])]

    def _new(self) -> str:
        name = f"rel_each_{next(self._numbers)}"
        self.made.add(name)
        return name

    def _numbered(self, node: ast.For, call: ast.Call) -> list[ast.stmt]:
        """Count in a loop over enumerate(..); return the statements that start the count."""
        given = [*call.args[1:], *(one.value for one in call.keywords if one.arg == "start")]
        number, item = self._new(), self._new()
        pair = ast.Tuple([load(number), load(item)], ast.Load())
        counted = ast.AugAssign(ast.Name(number, ast.Store()), ast.Add(), ast.Constant(1))
        node.body = [placed(one, node) for one in (ast.Assign([node.target], pair), counted)] + node.body
        node.target, node.iter = placed(ast.Name(item, ast.Store()), node), call.args[0]
        return [placed(assigned(number, given[0] if given else ast.Constant(0)), node)]

    def _generator(self, given: ast.expr) -> ast.GeneratorExp | None:
        made = self._as_generator(given)
        return made if isinstance(made, ast.GeneratorExp) else None

    def _taken_apart(self, node: ast.For, generator: ast.GeneratorExp) -> bool:
        """Make the loop of a generator the statement's own; not if `break` would have to leave two loops."""
        if len(generator.generators) > 1 and (node.orelse or any(map(_breaks, node.body))):
            return False
        self._rename(generator)
        body: list[ast.stmt] = [placed(ast.Assign([node.target], generator.elt), node), *node.body]
        for at, one in reversed(list(enumerate(generator.generators))):
            leave = [ast.If(ast.UnaryOp(ast.Not(), test), [ast.Continue()], []) for test in one.ifs]
            body = [*(placed(test, node) for test in leave), *body]
            if at:
                body = self._block([placed(ast.For(one.target, one.iter, body, [], None), node)])
        node.target, node.iter, node.body = generator.generators[0].target, generator.generators[0].iter, body
        return True

    def _rename(self, generator: ast.GeneratorExp) -> None:
        """Rename the variables of a generator; its first iterable sees the names around it."""
        first = generator.generators[0]
        begins, first.iter = first.iter, ast.Constant(None)
        names = {name for one in generator.generators for name in _stored(one.target)}
        _Renamed({name: self._new() for name in sorted(names)}).visit(generator)
        first.iter = begins

    # --- items that are made at once ---

    def _is_lazy(self, node: ast.expr) -> bool:
        return isinstance(node, ast.GeneratorExp) or self._is_call(node, {"map", "filter"})

    def _lazy_parts(self, given: ast.expr) -> list[ast.expr]:
        """Return the parts that zip() or a loop reads item by item in turn with others."""
        if isinstance(given, ast.Call) and self._is_call(given, {"zip", "enumerate"}):
            return [part for one in given.args for part in self._lazy_parts(one)]
        return [given] if self._is_lazy(given) else []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite `zip(map(..), words)`."""
        for one in self._lazy_parts(node) if not self._is_lazy(node) else []:
            self._check_at_once(one, node)
        self.generic_visit(node)
        return node

    def _comprehension(self, node: Any) -> Any:
        """Rewrite `.. for x in map(..)` as the inner one of two loops, unless its items raise nothing."""
        rest, node.generators = list(node.generators), []
        while rest:
            one = rest.pop(0)
            generator = self._generator(one.iter)
            if generator is not None and not all(map(self._is_quiet, ast.walk(generator))):
                self._rename(generator)
                item = placed(ast.Tuple([generator.elt], ast.Load()), node)
                rest = [*generator.generators, ast.comprehension(one.target, item, one.ifs, 0), *rest]
                continue
            for part in self._lazy_parts(one.iter):
                self._check_at_once(part, node)
            node.generators.append(one)
        self.generic_visit(node)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def _check_at_once(self, given: ast.expr, node: ast.expr | ast.stmt) -> None:
        """Reject code that could raise at an item that CPython wouldn't have reached, if a handler catches it."""
        if not self._may_be_at_once(self._generator(given)):
            self._refuse(Code.ITEMS_TOO_EARLY, node)

    def _may_be_at_once(self, generator: ast.GeneratorExp | None) -> bool:
        return not self._caught or (generator is not None and all(map(self._is_quiet, ast.walk(generator))))

    def _check_unchanged(self, given: ast.expr, loop: ast.For) -> None:
        """Reject code that reads a value that the loop changes meanwhile."""
        inside = [one for statement in loop.body for one in ast.walk(statement)]
        stored = _stored(loop.target).union(*map(_stored, loop.body))
        read = {one.id for one in ast.walk(given) if isinstance(one, ast.Name)} - _stored(given) - {self._first}
        if (any(map(_changes, inside)) and read & self._local) or read & stored:
            self._refuse(Code.ITEMS_TOO_EARLY, loop)

    def _is_quiet(self, node: ast.AST) -> bool:
        """Return whether a node raises nothing itself, and rejects nothing that CPython wouldn't reach."""
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                return node.func.attr in _QUIET_METHODS or (node.func.attr == "split" and not node.args)
            return self._is_call(node, {"len", "str", "bool", "abs", "range", "enumerate", "zip"})
        if isinstance(node, ast.Subscript):
            return isinstance(node.slice, ast.Slice) and node.slice.step is None
        return isinstance(node, _QUIET)

    def _refuse(self, code: Code, node: Any, **values: str) -> None:
        raise NotRewrittenError(code, self._path, node.lineno, **values)


class _Renamed(ast.NodeTransformer):
    """Renames variables everywhere."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._names.get(node.arg, node.arg)
        return node


def _uses(name: str, node: ast.AST) -> int:
    return sum(isinstance(one, ast.Name) and one.id == name for one in ast.walk(node))


def _stored(node: ast.AST) -> set[str]:
    """Return the names that a node assigns."""
    names = (one for one in ast.walk(node) if isinstance(one, ast.Name))
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def _changes(node: ast.AST) -> bool:
    """Return whether it changes a list, a dict or a set."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.AugAssign) or (isinstance(node, ast.Attribute) and node.attr in _CHANGES)


def _breaks(node: ast.AST) -> bool:
    """Return whether a statement leaves the loop that it is in."""
    if isinstance(node, ast.Break):
        return True
    if isinstance(node, ast.FunctionDef | ast.expr):
        return False
    return any(map(_breaks, node.orelse if isinstance(node, ast.For | ast.While) else ast.iter_child_nodes(node)))


def _assigned_inside(node: ast.AST, around: ast.expr | None = None) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that `:=` assigns inside comprehensions, and the outermost comprehension of each."""
    for child in ast.iter_child_nodes(node):
        outer = around if around is not None or not isinstance(child, _COMPREHENSIONS) else child
        if outer is not None and isinstance(child, ast.NamedExpr):
            yield child.target.id, outer
        yield from _assigned_inside(child, outer)
