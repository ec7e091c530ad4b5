"""Finds names that are read where some path leaves them unassigned: a flow analysis of the user's source.

CPython raises UnboundLocalError there, compiled code would read zeros. flags.py adds the checks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NoReturn

from rayelastic.compile.reading.callables import NotRewrittenError
from rayelastic.reasons import Code

Names = frozenset[str]
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def bound(target: ast.AST | None) -> Names:
    """Return the names that a target assigns."""
    if target is None:
        return frozenset()
    return frozenset(n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def captured(pattern: ast.pattern) -> Names:
    """Return the names that a pattern assigns."""
    found = (getattr(one, "name", None) or getattr(one, "rest", None) for one in ast.walk(pattern))
    return frozenset(name for name in found if name)


def _locals(node: ast.FunctionDef) -> set[str]:
    """Return the names of a function that aren't parameters."""
    parameters = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
    found: set[str] = set()
    rest: list[ast.AST] = list(node.body)
    while rest:
        one = rest.pop()
        if isinstance(one, ast.FunctionDef):
            found.add(one.name)
        elif isinstance(one, ast.Lambda):
            continue
        else:
            if isinstance(one, ast.Global | ast.Nonlocal):
                parameters |= set(one.names)
            elif isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                found.add(one.id)
            elif isinstance(one, ast.ExceptHandler) and one.name:
                found.add(one.name)
            elif isinstance(one, ast.pattern):
                found |= captured(one)
            inside = isinstance(one, Comprehension)
            rest += (n for n in ast.walk(one) if isinstance(n, ast.NamedExpr)) if inside else ast.iter_child_nodes(one)
    return found - parameters


class Flow:
    """The names that are surely assigned, statement by statement. A set of None means that a place is unreachable.

    Attributes:
        suspects: Names that are read where they may be unassigned.
        reads: Those reads, by `id` of the node.
    """

    def __init__(self, node: ast.FunctionDef, path: str) -> None:
        self._node, self._path = node, path
        self.names = _locals(node)
        self.suspects: set[str] = set()
        self.reads: set[int] = set()
        self._within: ast.AST | None = None  # the current comprehension
        self._leaves: list[list[Names | None]] = []  # states where `break` leaves each loop

    def run(self) -> None:
        """Analyse the whole function."""
        self._block(self._node.body, frozenset())

    def _block(self, body: Iterable[ast.stmt], state: Names | None) -> Names | None:
        for one in body:
            if state is None:  # unreachable
                return None
            state = self._statement(one, state)
        return state

    def _statement(self, node: ast.stmt, state: Names) -> Names | None:
        special = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if special is not None:
            found: Names | None = special(node, state)
            return found
        for field, value in ast.iter_fields(node):  # values before targets
            if field not in ("targets", "target"):
                for one in value if isinstance(value, list) else [value]:
                    state = self._reads(one, state) if isinstance(one, ast.expr) else state
        targets = getattr(node, "targets", None) or [one for one in [getattr(node, "target", None)] if one is not None]
        for one in targets:
            state = self._reads(one, state)
            state |= bound(one)
        return state

    # --- statements ---

    def _of_augassign(self, node: ast.AugAssign, state: Names) -> Names:
        state = self._reads(node.value, state)
        if isinstance(node.target, ast.Name):
            self._read(node.target, state)
            return state | {node.target.id}
        return self._reads(node.target, state)

    def _of_annassign(self, node: ast.AnnAssign, state: Names) -> Names:
        return self._reads(node.value, state) | bound(node.target) if node.value is not None else state

    def _of_delete(self, node: ast.Delete, state: Names) -> Names:
        for one in node.targets:
            state = self._reads(one, state)
            if isinstance(one, ast.Name):
                self._read(one, state)
                state -= {one.id}
        return state

    def _of_return(self, node: ast.Return, state: Names) -> None:
        self._reads(node.value, state)

    def _of_raise(self, node: ast.Raise, state: Names) -> None:
        self._reads(node.exc, state)
        self._reads(node.cause, state)

    def _of_break(self, _: ast.Break, state: Names) -> None:
        if self._leaves:
            self._leaves[-1].append(state)

    def _of_continue(self, *_: object) -> None:
        return None

    def _of_functiondef(self, node: ast.FunctionDef, state: Names) -> Names:
        for one in [*node.args.defaults, *(one for one in node.args.kw_defaults if one)]:
            state = self._reads(one, state)
        state |= {node.name}
        self._closure(node, _free(node), state)
        return state

    def _of_if(self, node: ast.If, state: Names) -> Names | None:
        true, false = self._test(node.test, state)
        return _met(self._block(node.body, true), self._block(node.orelse, false))

    def _of_while(self, node: ast.While, state: Names) -> Names | None:
        state -= _deleted(node.body)
        true, false = self._test(node.test, state)
        self._leaves.append([])
        self._block(node.body, true)
        left = self._leaves.pop()
        end = None if _is_true(node.test) else self._block(node.orelse, false)
        return _met(end, *left)

    def _of_for(self, node: ast.For, state: Names) -> Names | None:
        state = self._reads(node.iter, state) - _deleted(node.body)
        self._leaves.append([])
        self._block(node.body, self._reads(node.target, state) | bound(node.target))
        left = self._leaves.pop()
        return _met(self._block(node.orelse, state), *left)

    def _of_with(self, node: ast.With, state: Names) -> Names | None:
        for one in node.items:
            state = self._reads(one.context_expr, state) | bound(one.optional_vars)
        return self._block(node.body, state)

    def _of_try(self, node: ast.Try, state: Names) -> Names | None:
        before = state - _deleted(node.body)
        ends = [self._block([*node.body, *node.orelse], state)]
        for one in node.handlers:
            inside = self._block(one.body, before | ({one.name} if one.name else set()))
            ends.append(inside - {one.name} if inside is not None and one.name else inside)
        parts = [*node.body, *node.orelse, *(s for one in node.handlers for s in one.body)]
        self._block(node.finalbody, state - _deleted(parts))
        end = _met(*ends)
        return self._block(node.finalbody, end)

    def _of_match(self, node: ast.Match, state: Names) -> Names | None:
        state = self._reads(node.subject, state)
        ends: list[Names | None] = []
        for case in node.cases:
            inside = state | captured(case.pattern)
            self._pattern(case.pattern, state)
            true, false = self._test(case.guard, inside) if case.guard is not None else (inside, None)
            ends.append(self._block(case.body, true))
            if false is None and _catches_all(case.pattern):
                return _met(*ends)
        return _met(state, *ends)

    def _pattern(self, pattern: ast.pattern, state: Names) -> None:
        for one in ast.walk(pattern):
            if isinstance(one, ast.MatchValue):
                self._reads(one.value, state)
            elif isinstance(one, ast.MatchClass):
                self._reads(one.cls, state)

    # --- expressions ---

    def _read(self, node: ast.Name, state: Names) -> None:
        if node.id in self.names and node.id not in state:
            if self._within is not None:
                self._refuse(node.id, node)
            self.suspects.add(node.id)
            self.reads.add(id(node))

    def _test(self, node: ast.expr, state: Names) -> tuple[Names, Names]:
        """Return the states where an expression is true, and where it is false."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            true, false = self._test(node.operand, state)
            return false, true
        if not isinstance(node, ast.BoolOp):
            state = self._reads(node, state)
            return state, state
        is_and = isinstance(node.op, ast.And)
        leaving: list[Names] = []
        for one in node.values:
            true, false = self._test(one, state)
            state, left = (true, false) if is_and else (false, true)
            leaving.append(left)
        end = frozenset.intersection(*leaving)
        return (state, end) if is_and else (end, state)

    def _reads(self, node: ast.AST | None, state: Names) -> Names:
        """Analyse the reads of an expression; return the state after it."""
        if node is None:
            return state
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                self._read(node, state)
            return state
        if isinstance(node, ast.NamedExpr):
            return self._reads(node.value, state) | {node.target.id}
        if isinstance(node, ast.BoolOp):
            return frozenset.intersection(*self._test(node, state))
        if isinstance(node, ast.IfExp):
            true, false = self._test(node.test, state)
            return self._reads(node.body, true) & self._reads(node.orelse, false)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            state = self._reads(node.comparators[0], self._reads(node.left, state))
            inner = state
            for one in node.comparators[1:]:
                inner = self._reads(one, inner)
            return state
        if isinstance(node, ast.Lambda):
            self._closure(node, _free(node), state)
            return state
        if isinstance(node, Comprehension):
            return self._comprehension(node, state)
        for part in ast.iter_child_nodes(node):
            state = self._reads(part, state)
        return state

    def _comprehension(self, node: Comprehension, state: Names) -> Names:
        state = inner = self._reads(node.generators[0].iter, state)
        outside, self._within = self._within, node
        for at, one in enumerate(node.generators):
            inner = (self._reads(one.iter, inner) if at else inner) | bound(one.target)
            for test in one.ifs:
                inner, _ = self._test(test, inner)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            inner = self._reads(part, inner)
        self._within = outside
        return state

    def _closure(self, node: ast.AST, free: Names, state: Names) -> None:
        """Analyse an inner function, into which no flag is passed."""
        if missing := sorted((free & self.names) - state):
            self._refuse(missing[0], node)

    def _refuse(self, name: str, node: ast.AST) -> NoReturn:
        raise NotRewrittenError(Code.UNASSIGNED, self._path, getattr(node, "lineno", self._node.lineno), name=name)


def _met(*states: Names | None) -> Names | None:
    reached = [one for one in states if one is not None]
    return frozenset.intersection(*reached) if reached else None


def _deleted(body: Iterable[ast.AST]) -> Names:
    """Return the names that are deleted somewhere in these statements."""
    found: set[str] = set()
    for one in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(one, ast.Delete):
            found |= {target.id for target in one.targets if isinstance(target, ast.Name)}
        elif isinstance(one, ast.ExceptHandler) and one.name:
            found.add(one.name)
    return frozenset(found)


def _catches_all(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return any(map(_catches_all, pattern.patterns))
    return isinstance(pattern, ast.MatchAs) and (pattern.pattern is None or _catches_all(pattern.pattern))


def _free(node: ast.AST) -> Names:
    """Return the names that an inner function reads of the outer one; an approximation that includes all."""
    read = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    given = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    if isinstance(node, ast.FunctionDef):
        given |= _locals(node)
    for one in ast.walk(node):
        if isinstance(one, ast.comprehension):
            given |= bound(one.target)
    return frozenset(read - given)
