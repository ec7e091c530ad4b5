"""Declares the project's types to Numba: overload and overload_method for annotated code, and constants.

Numba requires the same signature, annotations included, of a typing function and its implementations. This module
removes the annotations, so that both can have the types that mypy requires.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba.core import types
from numba.core.datamodel import models
from numba.core.imputils import lower_constant
from numba.extending import intrinsic, overload, overload_attribute, overload_method, register_model, typeof_impl

Typing = Callable[..., Any]
Value = TypeVar("Value")
Parameters = ParamSpec("Parameters")
MUTABLE = types.EphemeralPointer(types.int64)


def overloads(function: Any) -> Callable[[Typing], Typing]:
    """Declare what a function does with the project's types."""
    return lambda typing: overload(function)(_bare(typing))


def stand_in(typing: Callable[Parameters, Any]) -> Callable[Parameters, Any]:
    """Return a function that exists in compiled code alone; `typing` declares what it does."""

    @functools.wraps(typing)
    def only_compiled(*arguments: Parameters.args, **named: Parameters.kwargs) -> Any:  # noqa: ARG001
        raise TypeError("only compiled")

    overloads(only_compiled)(typing)
    return only_compiled


def overloads_method(kind: type, name: str) -> Callable[[Typing], Typing]:
    """Declare a method of one of the project's types."""
    return lambda typing: overload_method(kind, name)(_bare(typing))


def overload_attribute_of(kind: type, name: str) -> Callable[[Typing], Typing]:
    """Declare an attribute of a type."""
    return lambda typing: overload_attribute(kind, name)(_bare(typing))


def primitive(typing: Typing, *, prefer_literal: bool = False) -> Any:
    """Numba's intrinsic, untyped: it is declared over types and called with values."""
    return intrinsic(prefer_literal=prefer_literal)(typing)


def structure(kind: type[types.Type], members: Callable[[Any], list[tuple[str, types.Type]]]) -> None:
    """Lay out the values of one of the project's types.

    Args:
        kind: The class of the types.
        members: Names and types of a value's parts, from its type; MUTABLE for a number that iteration changes.
    """

    class Model(models.StructModel):
        def __init__(self, dmm: Any, fe_type: types.Type) -> None:
            super().__init__(dmm, fe_type, members(fe_type))

    register_model(kind)(Model)


def truth(kind: type, is_true: Callable[[Any], Any], is_false: Callable[[Any], Any]) -> None:
    """Declare `bool(value)` and `not value` of one of the project's types."""
    overloads(bool)(lambda value: is_true if isinstance(value, kind) else None)
    overloads(operator.not_)(lambda value: is_false if isinstance(value, kind) else None)


def membership(applies: Callable[[Any, Any], bool]) -> None:
    """Declare `wanted in items` by a loop, for the types of both of which `applies` holds."""

    def contains(items: Any, wanted: Any) -> Any:
        for item in items:  # noqa: SIM110
            if item == wanted:
                return True
        return False

    overloads(operator.contains)(lambda items, wanted: contains if applies(items, wanted) else None)


def constants(cls: type[Value], kind: type[types.Type], typed: Callable[[Value], types.Type]) -> None:
    """Declare objects outside the function that are known when it is compiled; their type carries their content.

    Args:
        cls: The objects' class.
        kind: The class of their types, which have no value.
        typed: Makes the type of an object.
    """

    def of_value(value: Value, context: Any) -> types.Type:  # noqa: ARG001
        return typed(value)

    def nothing(context: Any, builder: Any, typ: types.Type, value: Value) -> Any:  # noqa: ARG001
        return context.get_dummy_value()

    register_model(kind)(models.OpaqueModel)
    typeof_impl.register(cls)(of_value)
    lower_constant(kind)(nothing)


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
