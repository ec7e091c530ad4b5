"""What a function changes outside itself, and so remembers between tuples; found in its source or byte code.

Outside are globals, cells of enclosing functions, bound parameters (`self`, defaults), modules and classes. A local
name that was assigned from there stands for what is outside. Called functions count as well, down to those of installed
packages. The content of a `threading.local` doesn't count: any thread may run an operator, so it holds connections and
the like, not what was seen. Knows no Numba.
"""

from __future__ import annotations

import ast
import bisect
import decimal
import functools
import heapq
import inspect
import linecache
import operator
import random
import threading
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rayelastic.compile.effects.scopes import (
    UNKNOWN,
    assigned,
    attribute,
    callee,
    defaults,
    moves_on,
    own_names,
    stored,
)
from rayelastic.compile.originals import is_member
from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reading.cells import cells_written
from rayelastic.compile.reading.syntax import definition, value_of

_CHANGERS = frozenset(
    ["append", "extend", "insert", "remove", "pop", "popitem", "clear", "update", "setdefault", "add", "discard",
     "appendleft", "popleft", "extendleft", "rotate", "sort", "reverse", "move_to_end", "subtract", "difference_update",
     "intersection_update", "symmetric_difference_update", "put", "put_nowait", "get_nowait", "set", "send", "throw",
     "seed", "shuffle", "fill", "resize", "__setitem__", "__delitem__", "__next__"]
)  # fmt: skip
_LEADS_INSIDE = frozenset(["get", "setdefault", "values", "items", "keys", "__getitem__", "__enter__"])
_FIRST_ARGUMENT = frozenset(
    map(
        id,
        (
            setattr, delattr, next, operator.setitem, operator.delitem, operator.iadd, operator.ior, operator.iconcat,
            heapq.heappush, heapq.heappop, heapq.heapify, heapq.heapreplace, heapq.heappushpop, bisect.insort,
            bisect.insort_left, bisect.insort_right, random.shuffle,
        ),
    )
)  # fmt: skip
_SHARED = (decimal.getcontext, globals)  # these return a shared object
_OF_ARGUMENT = (type, vars)  # these return something that belongs to their argument
_UNCHANGING = (bool, int, float, complex, str, bytes, range, frozenset, types.BuiltinFunctionType)
_DEPTH = 8  # of followed calls


def remembered(function: Callable[..., Any] | None, given: int | None = 1) -> tuple[str, ...]:
    """Name what a function is known to change outside itself, as the user writes it.

    Args:
        function: Anything that is called for a tuple.
        given: The number of arguments of its call; None: all that have no default.

    >>> seen = set()
    >>> def is_new(t):
    ...     known = t.id in seen
    ...     seen.add(t.id)
    ...     return not known
    >>> remembered(is_new), remembered(lambda t: t.id in seen)
    (('seen',), ())
    """
    return tuple(_changes(function, given))


def first_change(function: Callable[..., Any], given: int) -> tuple[str, str, int] | None:
    """Return the first such change, with file and line; None if none is known."""
    return next(((name, *place) for name, place in _changes(function, given).items()), None)


def _changes(function: Callable[..., Any] | None, given: int | None) -> dict[str, tuple[str, int]]:
    found = None if function is None else taken_apart(function, given) or taken_apart(function)
    if found is None:
        return {}
    code = found.function.__code__
    tuples = [name for name in code.co_varnames[: code.co_argcount] if name not in found.values][:given]
    known = {name: value for name, value in defaults(found.function).items() if name not in tuples}
    walk = _Walk()
    walk.function(found.function, {name: (name, value) for name, value in (known | found.values).items()})
    return walk.found


Outer = tuple[str, Any]  # something outside: the user's expression for it, and its value if that is known


@dataclass
class _Walk:
    """Follows a function and its callees."""

    found: dict[str, tuple[str, int]] = field(default_factory=dict)
    seen: set[tuple[int, tuple[str, ...]]] = field(default_factory=set)
    depth: int = 0

    def function(self, function: types.FunctionType, bound: Mapping[str, Outer]) -> None:
        key = id(function.__code__), tuple(sorted(bound))
        if key in self.seen or self.depth > _DEPTH or _is_installed(function):
            return
        self.seen.add(key)
        self.depth += 1
        node = _syntax(function)
        if node is None:
            code = function.__code__
            self.found |= dict.fromkeys(cells_written(code), (code.co_filename, code.co_firstlineno))
        else:
            _Reader(self, function, bound).read(node)
        self.depth -= 1


def _is_installed(function: types.FunctionType) -> bool:
    """Return whether a function isn't analysed: one of an installed package that isn't ours."""
    ours = function.__globals__.get("__name__", "").startswith("rayelastic.")
    return not ours and (is_member(function) or "site-packages" in function.__code__.co_filename)


@functools.lru_cache(maxsize=16)
def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except SyntaxError:
        return None


def _syntax(function: types.FunctionType) -> Any:
    """Return its definition; of an `async def`, which is never compiled, the one of its name at its line."""
    if not inspect.iscoroutinefunction(function) and not inspect.isasyncgenfunction(function):
        return definition(function)
    code = function.__code__
    tree = _tree("".join(linecache.getlines(code.co_filename, function.__globals__)))
    for node in () if tree is None else ast.walk(tree):
        first = [one.lineno for one in getattr(node, "decorator_list", ())][:1] or [getattr(node, "lineno", 0)]
        if isinstance(node, ast.AsyncFunctionDef) and node.name == code.co_name and first == [code.co_firstlineno]:
            return node
    return None


class _Reader(ast.NodeVisitor):
    """Reads one definition."""

    def __init__(self, walk: _Walk, function: types.FunctionType, bound: Mapping[str, Outer]) -> None:
        self.walk, self.user, self.bound = walk, function, bound
        self.line = function.__code__.co_firstlineno
        self.scopes: list[set[str]] = []
        self.aliases: dict[str, Outer] = {}

    def read(self, node: Any) -> None:
        self.scopes.append(own_names(node))
        self._follow(node)
        for statement in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(statement)

    def visit(self, node: ast.AST) -> None:
        """Visit a node, and remember its line."""
        self.line = getattr(node, "lineno", self.line)
        super().visit(node)

    def note(self, name: str) -> None:
        self.walk.found.setdefault(name, (self.user.__code__.co_filename, self.line))

    # --- the meaning of names and expressions -----------------------------------------------------------------------

    def _follow(self, node: ast.AST) -> None:
        """Find local names that stand for something outside."""
        before = -1
        while before != len(self.aliases):
            before = len(self.aliases)
            for one in ast.walk(node):
                for target, value in assigned(one):
                    if target not in self.aliases and (outer := self.outer(value)) is not None:
                        self.aliases[target] = outer

    def outer(self, node: ast.AST | None) -> Outer | None:
        """Return what outside an expression refers to, or is part of; None for something local or unknown."""
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=owner, attr=name):
                found = self.outer(owner)
                if found is not None and not isinstance(found[1], threading.local):
                    return f"{found[0]}.{name}", attribute(found[1], name)
            case ast.Subscript(value=owner):
                if (found := self.outer(owner)) is not None:
                    return found[0], UNKNOWN
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _LEADS_INSIDE:
                if (found := self.outer(owner)) is not None and not isinstance(found[1], types.ModuleType):
                    return found[0], UNKNOWN
            case ast.Call(func=called, args=arguments):
                known = self.outer(called)
                if known is not None and any(known[1] is one for one in _SHARED):
                    return f"{known[0]}()", UNKNOWN
                if known is not None and any(known[1] is one for one in _OF_ARGUMENT) and len(arguments) == 1:
                    given = self.outer(arguments[0])
                    return None if given is None else (f"{known[0]}({given[0]})", UNKNOWN)
            case ast.IfExp(body=one, orelse=other):
                return self.outer(one) or self.outer(other)
            case ast.BoolOp(values=values):
                return next((found for one in values if (found := self.outer(one)) is not None), None)
            case ast.NamedExpr(value=value) | ast.Starred(value=value) | ast.Await(value=value):
                return self.outer(value)
        return None

    def _name(self, name: str) -> Outer | None:
        if any(name in scope for scope in self.scopes[1:]):
            return None
        if name in self.bound:
            return self.bound[name]
        if self.scopes and name in self.scopes[0]:
            return self.aliases.get(name)
        return name, value_of(self.user, name)

    # --- changes ----------------------------------------------------------------------------------------------------

    def _change(self, node: ast.AST | None) -> None:
        """Record that the value of an expression is changed."""
        found = self.outer(node)
        if found is not None and not isinstance(found[1], _UNCHANGING):
            self.note(found[0])

    def _target(self, node: ast.AST) -> None:
        match node:
            case ast.Attribute(value=owner, attr=name):
                found = self.outer(owner)
                if found is not None and not isinstance(found[1], threading.local):
                    self.note(f"{found[0]}.{name}")
            case ast.Subscript(value=owner):
                self._change(owner)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                for item in items:
                    self._target(item)
            case ast.Starred(value=value):
                self._target(value)
            case ast.Name(id=name):
                if not any(name in scope for scope in self.scopes):
                    self.note(name)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._target(target)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._target(node.target)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._target(node.target)
        if isinstance(node.target, ast.Name):
            found = self.outer(node.target)
            if found is not None and isinstance(found[1], list | set | dict | bytearray):
                self.note(found[0])
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._target(target)
        self.generic_visit(node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self._target(node.target)
        self.generic_visit(node)

    def _loop(self, node: Any) -> None:
        self._target(node.target)
        self.generic_visit(node)

    visit_For = visit_AsyncFor = _loop  # noqa: N815

    def visit_Name(self, node: ast.Name) -> None:
        """Record an iterator, or a generator of numbers, whose position changes with each use."""
        if isinstance(node.ctx, ast.Load):
            self._use(self._name(node.id))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(self.outer(node))
        self.generic_visit(node)

    def _use(self, found: Outer | None) -> None:
        if found is not None and found[1] is not UNKNOWN and moves_on(found[1]):
            self.note(found[0])

    def visit_Call(self, node: ast.Call) -> None:
        called = self.outer(node.func)
        value = UNKNOWN if called is None else called[1]
        if id(value) in _FIRST_ARGUMENT and node.args:
            self._change(node.args[0])
        elif isinstance(value, types.MethodDescriptorType | types.WrapperDescriptorType):
            if value.__name__ in _CHANGERS and node.args:
                self._change(node.args[0])
        elif (inner := callee(value)) is not None:
            self._call(inner, node)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGERS:
            owner = self.outer(node.func.value)
            if owner is not None and not isinstance(owner[1], types.ModuleType | type):
                self._change(node.func.value)
        self.generic_visit(node)

    def _call(self, callee: Any, node: ast.Call) -> None:
        """Analyse a function of the user's, which may change its arguments."""
        found = taken_apart(callee)
        if found is None:
            return
        owner = self.outer(node.func.value) if isinstance(node.func, ast.Attribute) else self.outer(node.func)
        bound = {
            name: (owner[0] if owner is not None and not at else name, value)
            for at, (name, value) in enumerate(found.values.items())
        }
        code = found.function.__code__
        free = [name for name in code.co_varnames[: code.co_argcount] if name not in bound]
        given = [*zip(free, node.args, strict=False), *((one.arg, one.value) for one in node.keywords if one.arg)]
        for name, argument in given:
            if (outer := self.outer(argument)) is not None:
                bound[name] = outer
        for name, value in defaults(found.function).items():
            if name not in bound and name not in {one for one, _ in given}:
                bound[name] = (name, value)
        self.walk.function(found.function, bound)

    # --- inner functions --------------------------------------------------------------------------------------------

    def _inside(self, node: Any) -> None:
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self.scopes.append(own_names(node))
        for statement in node.body if isinstance(node.body, list) else [node.body]:
            self.visit(statement)
        self.scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _inside  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scopes.append(stored(node.body))
        self.generic_visit(node)
        self.scopes.pop()

    def _comprehension(self, node: Any) -> None:
        targets = {one.id for part in node.generators for one in ast.walk(part.target) if isinstance(one, ast.Name)}
        self.scopes.append(targets)
        self.generic_visit(node)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815
