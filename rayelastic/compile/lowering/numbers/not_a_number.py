"""`in`, == and < over tuples and lists of floats: if two NaN meet, the tuple of the stream is rejected.

CPython compares identity before equality there, so that a NaN equals itself and no other. Compiled code has no
identities. If no two NaN meet, the answer is the same.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG002 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.core.errors import UnsupportedError
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from rayelastic.compile.lowering.base.refusal import refuse_if
from rayelastic.compile.reasons import Code, packed

_ORDERS = {
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}


def replacement(function: Any, operands: list[Any], loc: Any) -> Any:
    """Return the replacement of an operator on tuples and lists of floats; None: Numba's is right.

    Raises:
        UnsupportedError: Neither is.
    """
    if function is operator.contains and _holds_floats(operands[0]) and _holds_floats(operands[1], at_all=True):
        if not isinstance(operands[0], types.UniTuple | types.List) or not isinstance(_item(operands[0]), types.Float):
            raise UnsupportedError(
                packed(Code.BY_IDENTITY, what=f"'in' {_named(operands[0])} with floats and more"), loc
            )
        return _contains
    if function not in _ORDERS or not all(_holds_floats(operand) for operand in operands):
        return None
    if isinstance(operands[0], types.BaseTuple) and isinstance(operands[1], types.BaseTuple):
        if any(_holds_floats(item) for operand in operands for item in _items(operand)):
            raise UnsupportedError(packed(Code.BY_IDENTITY, what="comparing tuples in tuples with floats"), loc)
        return _COMPARISONS[function]
    raise UnsupportedError(packed(Code.BY_IDENTITY, what=f"comparing {_named(operands[0])} with floats"), loc)


def _items(kind: Any) -> Any:
    """Return the types of a tuple's items; Numba's stubs don't say that its tuple types can be iterated over."""
    return kind


def _named(kind: Any) -> str:
    return "a tuple" if isinstance(kind, types.BaseTuple) else "a list"


def _item(kind: Any) -> Any:
    return types.unliteral(kind.dtype)


def _holds_floats(kind: Any, *, at_all: bool = False) -> bool:
    """Return whether a tuple or a list holds floats; `at_all`: or is a float itself."""
    kind = types.unliteral(kind)
    if isinstance(kind, types.BaseTuple):
        return any(_holds_floats(item, at_all=True) for item in _items(kind))
    if isinstance(kind, types.List):
        return _holds_floats(kind.dtype, at_all=True)
    if isinstance(kind, types.Optional):
        return _holds_floats(kind.type, at_all=at_all)
    return at_all and isinstance(kind, types.Float)


def _stand_in(name: str) -> Any:
    def stand_in(a: Any, b: Any) -> Any:
        raise TypeError("only compiled")

    stand_in.__name__ = name
    globals()[name] = stand_in  # Numba looks it up here

    @infer_global(stand_in)
    class Declared(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(types.boolean, *args)

    return stand_in


def _found(items: Any, item: Any) -> Any:
    is_there = False
    unsure = False
    for entry in items:
        is_there = is_there or entry == item
        unsure = unsure or (entry != entry and item != item)
    refuse_if(unsure)
    return is_there


_found.__annotations__ = {}
_contains = _stand_in("contains_floats")


@lower_builtin(_contains, types.Any, types.Any)
def _lower_contains(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return context.compile_internal(builder, _found, sig, args)


def _comparison(function: Any) -> Any:
    """Compare item by item up to the first difference, as CPython does."""
    stand_in = _stand_in(f"{function.__name__}_of_tuples_of_floats")
    sign = _ORDERS[function]

    @lower_builtin(stand_in, types.Any, types.Any)
    def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        both = min(len(sig.args[0]), len(sig.args[1]))
        lines = ["def compared(a, b):"]
        for at in range(both):
            if all(isinstance(types.unliteral(one[at]), types.Float) for one in sig.args):
                lines.append(f"    refuse_if(a[{at}] != a[{at}] and b[{at}] != b[{at}])")
            lines.append(f"    if not a[{at}] == b[{at}]: return {_differs(sign, at)}")
        lines.append(f"    return {len(sig.args[0])} {sign} {len(sig.args[1])}")
        space: dict[str, Any] = {"refuse_if": refuse_if}
        exec("\n".join(lines), space)
        return context.compile_internal(builder, space["compared"], sig, args)

    return stand_in


def _differs(sign: str, at: int) -> str:
    return {"==": "False", "!=": "True"}.get(sign, f"a[{at}] {sign} b[{at}]")


_COMPARISONS = {function: _comparison(function) for function in _ORDERS}
