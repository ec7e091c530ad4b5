"""JSON in compiled code: parts by path, comparisons, and conversion to text or number.

A value is a view of its text, and never null: a nullable one is an Optional. The engine parses it each time (json.h);
if it isn't of the expected type, the tuple is left to Python.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import overloads, overloads_method, primitive, truth
from rayelastic.compile.lowering.base.services import fixed
from rayelastic.compile.lowering.base.views import TEXT
from rayelastic.compile.lowering.numbers.builtins import REPLACED
from rayelastic.compile.lowering.records.values import JsonType
from rayelastic.compile.lowering.text.format import text_of
from rayelastic.graph.records.forms import JSON

_VALUE = JsonType(JSON)
_UNORDERED = 2  # rel_json_order_int


@primitive
def _text_of(typingctx: Any, value: Any) -> Any:
    """Return the text of a value."""
    return TEXT(value), lambda context, builder, sig, args: args[0]


@primitive
def _value_of(typingctx: Any, text: Any) -> Any:
    """Return the value of a text, which isn't null."""
    return _VALUE(text), lambda context, builder, sig, args: args[0]


_is_null = fixed("rel_json_is_null", types.boolean(TEXT))
_member = fixed("rel_json_member", TEXT(TEXT, TEXT, types.int64))
_element = fixed("rel_json_element", TEXT(TEXT, types.int64))
_contains = fixed("rel_json_contains", types.boolean(TEXT, TEXT))
_length = fixed("rel_json_length", types.int64(TEXT))
_is_true = fixed("rel_json_is_true", types.boolean(TEXT))
_to_int = fixed("rel_json_to_int", types.int64(TEXT))
_to_float = fixed("rel_json_to_float", types.float64(TEXT))
_to_text = fixed("rel_json_to_text", TEXT(TEXT))
_is_text = fixed("rel_json_is_text", types.boolean(TEXT, TEXT))
_order_int = fixed("rel_json_order_int", types.int64(TEXT, types.int64, types.int64))
_order_float = fixed("rel_json_order_float", types.int64(TEXT, types.float64, types.int64))

# --- parts ------------------------------------------------------------------------------------------------------------


@register_jitable
def _found(text: Any) -> Any:
    return None if _is_null(text) else _value_of(text)


@overloads(operator.getitem)
def _getitem(value: Any, key: Any) -> Any:
    if not isinstance(value, JsonType):
        return None
    if isinstance(key, types.Integer):
        return lambda value, key: _found(_element(_text_of(value), key))
    return (lambda value, key: _found(_member(_text_of(value), key, 1))) if key == TEXT else None


@overloads_method(JsonType, "get")
def _get(value: Any, key: Any, default: Any = None) -> Any:
    if key != TEXT or not (default is None or isinstance(default, types.NoneType | types.Omitted)):
        return None
    return lambda value, key, default=None: _found(_member(_text_of(value), key, 0))


@overloads(operator.contains)
def _in(value: Any, key: Any) -> Any:
    if isinstance(value, JsonType) and key == TEXT:
        return lambda value, key: _contains(_text_of(value), key)
    return None


@overloads(len)
def _len(value: Any) -> Any:
    return (lambda value: _length(_text_of(value))) if isinstance(value, JsonType) else None


truth(JsonType, lambda value: _is_true(_text_of(value)), lambda value: not _is_true(_text_of(value)))


# --- conversions ------------------------------------------------------------------------------------------------------


@overloads(REPLACED[int])
def _int(x: Any = 0, base: Any = None) -> Any:
    if isinstance(x, JsonType) and (base is None or isinstance(base, types.Omitted)):
        return lambda x=0, base=None: _to_int(_text_of(x))
    return None


@overloads(text_of)
def _str(value: Any) -> Any:
    return (lambda value: _to_text(_text_of(value))) if isinstance(value, JsonType) else None


@overloads(float)
def _float(value: Any) -> Any:
    return (lambda value: _to_float(_text_of(value))) if isinstance(value, JsonType) else None


# --- comparisons ------------------------------------------------------------------------------------------------------

_TURNED = {
    operator.lt: operator.gt, operator.gt: operator.lt, operator.le: operator.ge, operator.ge: operator.le,
    operator.eq: operator.eq, operator.ne: operator.ne,
}  # fmt: skip


def _against(other: Any, symbol: Callable[[Any, Any], Any]) -> Any:
    """Return the comparison of a value with another one; None if that isn't compiled."""
    is_equality = symbol in (operator.eq, operator.ne)
    if other == TEXT:
        if not is_equality:
            return None
        wanted = symbol is operator.eq
        return lambda value, other: _is_text(_text_of(value), other) == wanted
    ordered = int(not is_equality)
    if isinstance(other, types.Integer | types.Boolean):
        order: Any = register_jitable(lambda value, other: _order_int(_text_of(value), int(other), ordered))
    elif isinstance(other, types.Float):
        order = register_jitable(lambda value, other: _order_float(_text_of(value), other, ordered))
    else:
        return None
    if symbol is operator.ne:
        return lambda value, other: order(value, other) != 0
    if symbol is operator.eq:
        return lambda value, other: order(value, other) == 0
    if symbol in (operator.lt, operator.le):
        return lambda value, other: symbol(order(value, other), 0)
    return lambda value, other: symbol(order(value, other), 0) and order(value, other) != _UNORDERED


def _register(symbol: Callable[[Any, Any], Any]) -> None:
    @overloads(symbol)
    def _compare(a: Any, b: Any) -> Any:
        if isinstance(a, JsonType):
            compared = _against(b, symbol)
            if compared is None:
                return None
            this = register_jitable(compared)
            return lambda a, b: this(a, b)
        if isinstance(b, JsonType):
            compared = _against(a, _TURNED[symbol])
            if compared is None:
                return None
            that = register_jitable(compared)
            return lambda a, b: that(b, a)
        return None


for _symbol in _TURNED:
    _register(_symbol)
