"""A user function's constants and values from outside, in the form that is compiled.

str and bytes become views. Plain helper functions become dispatchers. Functions of modules are looked up now. A value
that may change without the code's knowledge is rejected with a message.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import datetime as dt
import functools
import heapq
import re
import types as python_types
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import ir
from numba.core.dispatcher import Dispatcher
from numba.core.errors import UnsupportedError
from numba.core.extending import _Intrinsic

from rayelastic.compile.lowering.base import raised, tables
from rayelastic.compile.lowering.base.views import BytesLiteral, TextLiteral
from rayelastic.compile.lowering.containers import lists as containers
from rayelastic.compile.lowering.numbers import builtins as numbers
from rayelastic.compile.lowering.numbers import numpy_functions
from rayelastic.compile.lowering.passes import objects, operator_functions, regular_calls
from rayelastic.compile.lowering.regular import matches as regular
from rayelastic.compile.lowering.regular.patterns import NoPatternError
from rayelastic.compile.lowering.text import format as text_format
from rayelastic.compile.lowering.text import numbers as text_numbers
from rayelastic.compile.lowering.times import moments, times_of_day
from rayelastic.compile.lowering.times import text as moment_text
from rayelastic.compile.originals import is_member
from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reasons import Code, packed
from rayelastic.graph.records.data_type import own_class

# Builtins and functions of modules that Numba would implement with its own string type, or differently from CPython.
_REPLACED: dict[Any, Any] = {
    str: text_format.text_of,
    sorted: containers.in_order,
    dt.time: times_of_day.new_time,
    **text_numbers.REPLACED,
    **numbers.REPLACED,
    **moments.CONSTRUCTORS,
    **regular_calls.FUNCTIONS,
}
_CLASSES = {id(_REPLACED[kind]): kind for kind in (int, str)}  # {replacement: class}

_MOMENT_CLASSES: dict[Any, str] = {
    moments.new_datetime: "datetime",
    moments.new_date: "date",
    moments.new_timedelta: "timedelta",
}


def definition(func_ir: Any, variable: Any) -> Any:
    """Return what a variable is assigned; None if it has several assignments."""
    try:
        return func_ir.get_definition(variable)
    except KeyError:
        return None


def folded(func_ir: Any, value: Any, helper: Callable[[Any], Any]) -> Any:
    """Return the right side of an assignment, with outer values and constants in the form that is compiled.

    Args:
        func_ir: The function.
        value: The right side.
        helper: Makes a dispatcher of a plain function that the user calls.
    """
    if isinstance(value, ir.Const):
        _check_size(value.value, value.loc)
        value.value = literal(value.value)
    elif isinstance(value, ir.Global | ir.FreeVar):
        replaced = _outer_value(value.value, value.name, value.loc, helper)
        if replaced is not value.value:
            return ir.Global(value.name, replaced, value.loc)
    elif isinstance(value, ir.Expr) and value.op == "getattr":
        return _attribute(func_ir, value, helper)
    return value


def _check_size(value: Any, loc: Any) -> None:
    """Reject integers beyond 64 bits: Numba has unsigned ones, with other results than CPython's."""
    for item in value if isinstance(value, tuple | frozenset) else (value,):
        if type(item) is int and not -(2**63) <= item < 2**63:
            raise UnsupportedError(packed(Code.INTEGER_TOO_LARGE, value=str(item)), loc)


def _attribute(func_ir: Any, value: Any, helper: Callable[[Any], Any]) -> Any:
    """Return an attribute of a constant: of a module or int, of an object, or of a class."""
    value_of = definition(func_ir, value.value)
    if not isinstance(value_of, ir.Global | ir.FreeVar):
        return value
    owner, shown = _CLASSES.get(id(value_of.value), value_of.value), f"{value_of.name}.{value.attr}"
    method = _unbound_method(owner, value.attr)
    if method is not None:
        return ir.Global(shown, helper(method), value.loc)
    if owner is int or isinstance(owner, python_types.ModuleType):
        if not hasattr(owner, value.attr):
            return value
        member = getattr(owner, value.attr)
        replaced = _outer_value(member, shown, value.loc, helper)
        as_it_is = owner is int and replaced is member and not is_tuple_class(member)
        return value if as_it_is else ir.Global(shown, replaced, value.loc)  # Numba would go by the name
    if isinstance(owner, objects.Frozen) or is_tuple_class(type(owner)):
        known = owner.value if isinstance(owner, objects.Frozen) else owner
        member = objects.attribute(known, value.attr, value_of.name, value.loc)
    elif owner in _MOMENT_CLASSES:
        member = moment_text.CLASS_ATTRIBUTES.get((owner, value.attr))
        if member is None:
            raise UnsupportedError(packed(what=f"{_MOMENT_CLASSES[owner]}.{value.attr}"), value.loc)
        return ir.Global(shown, moments.constant(member) if isinstance(member, dt.date) else member, value.loc)
    elif isinstance(owner, tuple | tables.Table) and value.attr in objects.CHANGERS:
        objects.refuse_change(f"{value_of.name}", value.loc)
    else:
        return value
    if isinstance(member, objects.Computed):
        return ir.Global(shown, objects.Computed(helper(member.function)), value.loc)
    if type(member) is frozenset:  # a table, too: as a tuple it would have an order
        member = set(member)
    return ir.Global(shown, _outer_value(member, shown, value.loc, helper), value.loc)


def _unbound_method(owner: Any, name: str) -> Any:
    """Return a function that calls an unbound method of str or bytes, of a text alone; None for other methods."""
    known = owner is str or owner is bytes
    return (
        _method(name) if known and isinstance(getattr(owner, name, None), python_types.MethodDescriptorType) else None
    )


@functools.cache
def _method(name: str) -> Any:
    space: dict[str, Any] = {}
    exec(f"def {name}(text): return text.{name}()", space)
    return space[name]


_REFUSED: dict[Any, tuple[Code, dict[str, str]]] = {  # Numba has its own version of some, with other results
    print: (Code.NEEDS_INTERPRETER, {}),
    repr: (Code.WRITE_INSTEAD, {"instead": "str(..)"}),
    ascii: (Code.UNSUPPORTED, {}),
    type: (Code.WRITE_INSTEAD, {"instead": "isinstance(..)"}),
    id: (Code.UNSUPPORTED, {}),
}


def _outer_value(value: Any, name: str, loc: Any, helper: Callable[[Any], Any]) -> Any:
    """Return the compiled form of a global, a closure variable or an attribute of a module."""
    value = own_class(value) if isinstance(value, type) else value
    if isinstance(value, dict | set):
        table = tables.table_of(name, dict(value) if isinstance(value, dict) else set(value))
        if table is None:
            raise UnsupportedError(
                packed(Code.CAN_CHANGE, name=name, kind=type(value).__name__, cure="constants of one kind"), loc
            )
        return table
    if type(value) is list and value and (_is_plain(value) or tables.is_rows(value)):
        return literal(tuple(value))
    if is_tuple_class(type(value)):
        items = [literal(item) for item in value]
        known = all(isinstance(item, int | float | str | bytes | tuple | None) for item in items)
        known = known and not any(isinstance(item, frozenset) for item in value)
        return type(value)._make(items) if known else objects.Frozen(value)
    if isinstance(value, list | bytearray):
        raise UnsupportedError(packed(Code.CAN_CHANGE, name=name, kind=type(value).__name__, cure="a tuple"), loc)
    if isinstance(value, np.ndarray) and value.flags.writeable:
        cure = f"an array with {name}.flags.writeable = False"
        raise UnsupportedError(packed(Code.CAN_CHANGE, name=name, kind="array", cure=cure), loc)
    if objects.is_frozen(value):
        return objects.Frozen(value)
    try:
        if value in _REPLACED:
            return _REPLACED[value]
    except TypeError:  # unhashable
        return value
    if operator_functions.is_operator_function(value):
        function = operator_functions.written(value)
        if function is None:
            raise UnsupportedError(packed(what=f"operator.{value.__name__}"), loc)
        return helper(function)
    if problem := numpy_functions.refusal(value, name):
        raise UnsupportedError(problem, loc)
    if value in numbers.DIFFERENT:
        raise UnsupportedError(packed(Code.LAST_DIGIT, what=f"{value.__module__}.{value.__name__}"), loc)
    if isinstance(value, re.RegexFlag):
        return int(value)
    if isinstance(value, re.Pattern):
        try:
            return regular.constant(value)
        except NoPatternError as error:
            raise UnsupportedError(error.of(f"'{name}'"), loc) from None
    if isinstance(value, dt.datetime | dt.date | dt.timedelta) and moments.constant(value) is not None:
        return moments.constant(value)
    if isinstance(value, dt.time) and times_of_day.constant(value) is not None:
        return times_of_day.constant(value)
    if value in (map, filter, reversed):
        raise UnsupportedError(packed(Code.ITEMS_AT_ONCE, what=value.__name__), loc)
    _check_size(value, loc)
    if isinstance(value, type) and issubclass(value, Exception):
        raised.note(value)
    if value in _REFUSED:
        code, values = _REFUSED[value]
        raise UnsupportedError(packed(code, what=value.__name__, **values), loc)
    if isinstance(value, python_types.FunctionType) and not _is_ours(value):
        if value in _PURE_IN_PYTHON:
            return value
        if is_member(value):
            raise UnsupportedError(packed(what=f"{value.__module__}.{value.__name__}"), loc)
        return helper(value)
    if isinstance(value, python_types.MethodType | functools.partial):
        function = getattr(value, "__func__", None)
        if isinstance(function, python_types.FunctionType) and is_member(function):
            raise UnsupportedError(packed(what=name), loc)
        if taken_apart(value) is None:
            raise UnsupportedError(packed(what=f"'{name}', which calls what isn't written in Python,"), loc)
        return helper(value)
    if name == "inner" and isinstance(value, Dispatcher):  # records/loop.py: a flat_map's function returns no tuples
        problem = packed(Code.WRITE_INSTEAD, what="what it returns", instead="yield, or return a list")
        raise UnsupportedError(problem, loc)
    if callable(value) and not _is_pure(value):
        kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
        said = packed(what=name) if "." in name else packed(Code.OUTSIDE, name=name, kind=kind)
        raise UnsupportedError(said, loc)
    return literal(value)


# Modules whose C functions change at most a list that they receive, as far as Numba supports them.
_PURE = ("builtins", "math", "_heapq")
_PURE_IN_PYTHON = (heapq.nlargest, heapq.nsmallest)


def _is_pure(value: Any) -> bool:
    """Return whether a call has no side effects, and the same arguments always have the same result."""
    if isinstance(value, python_types.BuiltinFunctionType):
        return isinstance(value.__self__, python_types.ModuleType) and value.__self__.__name__ in _PURE
    if isinstance(value, type):
        return value.__module__ in _PURE or issubclass(value, BaseException) or is_tuple_class(value)
    return _is_ours(value)


def _is_ours(value: Any) -> bool:
    """Return whether it is this project's, or Numba's own, and replaces something of the user's."""
    is_function = isinstance(value, python_types.FunctionType | _Intrinsic)
    home = value.__module__ if is_function else type(value).__module__
    return (home or "").startswith(("rayelastic.compile.", "numba.")) and not isinstance(value, Dispatcher)


def _is_plain(items: list[Any]) -> bool:
    return all(type(item) in (int, float, bool, str) for item in items)


def literal(value: Any) -> Any:
    """Return a constant's compiled form: text as a view, a frozenset as a tuple."""
    if type(value) is str:
        return TextLiteral(value)
    if type(value) is bytes:
        return BytesLiteral(value)
    if type(value) is frozenset:
        value = tuple(sorted(value, key=repr))
    if type(value) is tuple:
        return tuple(literal(item) for item in value)
    return value


def is_tuple_class(value: Any) -> bool:
    """Return whether it is a NamedTuple class."""
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")
