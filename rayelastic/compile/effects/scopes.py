"""The names in a function's scopes, and the known values outside it. Knows no Numba."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import random
import types
from collections.abc import Iterator
from typing import Any

from rayelastic.compile.originals import is_member
from rayelastic.compile.reading.bound import is_callable_object

UNKNOWN: Any = object()  # stands for an unknown value


def assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a node assigns, and from what."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((one.id, value) for one in targets if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
            yield name, value
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, value
        case ast.For(target=target, iter=value):
            yield from ((one.id, part_of(value)) for one in ast.walk(target) if isinstance(one, ast.Name))
        case ast.withitem(context_expr=value, optional_vars=ast.Name(id=name)):
            yield name, value


def part_of(value: ast.expr) -> ast.expr:
    """Return the code of one item of a value."""
    return ast.Subscript(value, ast.Constant(0), ast.Load())


def own_names(node: Any) -> set[str]:
    """Return the parameters and variables of a function."""
    arguments = node.args
    names = {one.arg for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    names |= {one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None}
    body = node.body if isinstance(node.body, list) else [node.body]
    return names | stored(body)


def stored(body: list[Any]) -> set[str]:
    """Return the names that statements assign in their own scope, without global and nonlocal ones."""
    stored: set[str] = set()
    outside: set[str] = set()
    rest: list[ast.AST] = list(body)
    while rest:
        node = rest.pop()
        match node:
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                outside |= set(names)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                stored.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                stored.add(name)
                continue
            case ast.ExceptHandler(name=str(name)):
                stored.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                stored |= {(one.asname or one.name).partition(".")[0] for one in aliases}
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                stored.add(name)
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                stored |= {one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr)}
                continue
        rest += ast.iter_child_nodes(node)
    return stored - outside


def attribute(owner: Any, name: str) -> Any:
    """Return an attribute of a value without computing it; UNKNOWN if it is dynamic."""
    if owner is UNKNOWN:
        return UNKNOWN
    found = inspect.getattr_static(owner, name, UNKNOWN)
    if isinstance(found, types.FunctionType) and not isinstance(owner, type | types.ModuleType):
        is_own = name in getattr(owner, "__dict__", {})
        return found if is_own else types.MethodType(found, owner)
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, classmethod):
        return types.MethodType(found.__func__, owner if isinstance(owner, type) else type(owner))
    if isinstance(found, types.MemberDescriptorType) and not isinstance(owner, type):
        return getattr(owner, name, UNKNOWN)  # a slot
    of_instance = types.MethodDescriptorType | types.WrapperDescriptorType
    made = isinstance(found, property | types.GetSetDescriptorType)
    return UNKNOWN if made or (isinstance(found, of_instance) and not isinstance(owner, type)) else found


def callee(value: Any) -> Any:
    """Return the part of a callable to analyse; None: unknown, or a cache that changes no result (lru_cache)."""
    function = getattr(value, "__func__", None)
    if isinstance(function, types.FunctionType) and is_member(function):
        return None  # a method of a built-in container, known by its name
    if isinstance(value, types.FunctionType | types.MethodType | functools.partial):
        return value
    return value if value is not UNKNOWN and is_callable_object(value) else None


def defaults(function: types.FunctionType) -> dict[str, Any]:
    """Return default values by the names of the parameters."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    values = function.__defaults__ or ()
    return dict(zip(names[len(names) - len(values) :], values, strict=True)) | (function.__kwdefaults__ or {})


def moves_on(value: Any) -> bool:
    """Return whether each use of an object changes it: an iterator, a generator of random numbers."""
    kind = type(value)
    if isinstance(value, types.ModuleType | type | io.IOBase):
        return False
    draws = isinstance(value, random.Random) or (kind.__module__.startswith("numpy.random") and not callable(value))
    return draws or (hasattr(kind, "__next__") and hasattr(kind, "__iter__"))
