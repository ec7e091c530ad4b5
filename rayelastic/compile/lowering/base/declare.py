"""Numba's overload and overload_method for code with annotations.

Numba insists on the typing function and its implementations having the same signature, annotations included; here they
are taken away, so that both can have the types that mypy wants.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from numba.extending import intrinsic, overload, overload_attribute, overload_method

Typing = Callable[..., Any]


def overloads(function: Any) -> Callable[[Typing], Typing]:
    """Declares what a function does to types of ours."""
    return lambda typing: overload(function)(_bare(typing))


def overloads_method(kind: type, name: str) -> Callable[[Typing], Typing]:
    """Declares a method of a type of ours."""
    return lambda typing: overload_method(kind, name)(_bare(typing))


def overload_attribute_of(kind: type, name: str) -> Callable[[Typing], Typing]:
    """Declares an attribute of a type."""
    return lambda typing: overload_attribute(kind, name)(_bare(typing))


def primitive(typing: Typing, *, prefer_literal: bool = False) -> Any:
    """Numba's intrinsic, untyped: it is declared over types and called with values."""
    return intrinsic(prefer_literal=prefer_literal)(typing)


def _bare(typing: Typing) -> Typing:
    typing.__annotations__ = {}

    @functools.wraps(typing)
    def bare(*args: Any, **kws: Any) -> Any:
        implementation = typing(*args, **kws)
        if implementation is not None and hasattr(implementation, "__annotations__"):
            implementation.__annotations__ = {}
        return implementation

    bare.__annotations__ = {}
    return bare
