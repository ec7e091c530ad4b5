"""Resolves a user's callable: the plain function that runs, and its parameters with known values.

A method of an object has its `self`, a functools.partial its arguments, an object with `__call__` itself; other
parameters have their defaults. Knows no Numba.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Bound:
    """A resolved callable.

    Args:
        function: The function that runs.
        values: The known values of its parameters, by name.
    """

    function: types.FunctionType
    values: dict[str, Any]

    @property
    def tuple_name(self) -> str:
        """The parameter of the tuple; empty if it has none."""
        code = self.function.__code__
        return next((name for name in code.co_varnames[: code.co_argcount] if name not in self.values), "")


def taken_apart(function: Any, given: int | None = None) -> Bound | None:
    """Resolve a callable; None if it isn't made of plain functions, or can't be called so.

    Args:
        function: Anything.
        given: The number of positional arguments of its call; None: unknown, so defaults aren't known either.

    >>> class Scale:
    ...     def __init__(self, by): self.by = by
    ...     def __call__(self, t): return t.x * self.by
    >>> taken_apart(Scale(2)).function is Scale.__call__, taken_apart(Scale(2), 1).tuple_name
    (True, 't')
    >>> taken_apart(functools.partial(lambda by, t, low=0: t, 3), 1).values
    {'by': 3, 'low': 0}
    """
    before: tuple[Any, ...] = ()
    by_name: dict[str, Any] = {}
    while not isinstance(function, types.FunctionType):
        if isinstance(function, functools.partial):
            before, by_name = (*function.args, *before), {**function.keywords, **by_name}
            function = function.func
        elif isinstance(function, types.MethodType):
            before, function = (function.__self__, *before), function.__func__
        elif is_callable_object(function):
            before, function = (function, *before), inspect.getattr_static(type(function), "__call__")
        else:
            return None
    values = _values(function, before, by_name, given)
    return None if values is None else Bound(function, values)


def is_callable_object(value: Any) -> bool:
    """Return whether it is an object whose class defines `__call__` in Python."""
    return not isinstance(value, type) and isinstance(
        inspect.getattr_static(type(value), "__call__", None), types.FunctionType
    )


def _values(
    function: types.FunctionType, before: tuple[Any, ...], by_name: dict[str, Any], given: int | None
) -> dict[str, Any] | None:
    if not before and not by_name and (given is None or given == function.__code__.co_argcount):
        return {} if _is_simple(function) or given is None else None
    signature = inspect.Signature.from_callable(function, follow_wrapped=False)
    try:
        if given is None:
            return dict(signature.bind_partial(*before, **by_name).arguments)
        tuples = [object() for _ in range(given)]
        found = signature.bind(*before, *tuples, **by_name)
    except TypeError:
        return None
    found.apply_defaults()
    values = {name: value for name, value in found.arguments.items() if not any(value is one for one in tuples)}
    missing = len(found.arguments) - len(values) != given  # a tuple in *args
    return None if missing else values


def _is_simple(function: types.FunctionType) -> bool:
    flags = function.__code__.co_flags
    return not flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) and not function.__code__.co_kwonlyargcount


def bind(node: ast.FunctionDef, bound: Mapping[str, Any]) -> dict[str, Any]:
    """Turn parameters with values into free variables of a definition; return the values by the variable's name."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    left = [(one, default) for one, default in zip(positional, defaults, strict=True) if one.arg not in bound]
    named = [pair for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True) if pair[0].arg not in bound]
    stars = [one if one is None or one.arg not in bound else None for one in (given.vararg, given.kwarg)]
    node.args = ast.arguments(
        [], [one for one, _ in left], stars[0], [one for one, _ in named], [default for _, default in named],
        stars[1], [default for _, default in left if default is not None],
    )  # fmt: skip
    stored = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    changed = sorted(stored & bound.keys())
    for name in changed:  # an assigned parameter is a local variable
        value = ast.Assign([ast.Name(name, ast.Store())], ast.Name(f"rel_{name}", ast.Load()))
        node.body.insert(0, ast.copy_location(value, node))
    return {f"rel_{name}" if name in changed else name: value for name, value in bound.items()}
