"""None where compiled code requires a value and CPython doesn't: rejected where a handler could catch the exception.

Numba unwraps a value that may be None, and raises TypeError for None. CPython does so in arithmetic and most calls, but
not in lookups. Outside of `try` this doesn't matter, because Python then runs the tuple.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from numba.core import ir, types
from numba.core.errors import UnsupportedError
from numba.core.unsafe import eh

from rayelastic.compile.lowering.base.tables import TableType
from rayelastic.compile.lowering.base.views import ViewType
from rayelastic.compile.reasons import Code, packed

_LOOKED_UP = types.List | types.Set | types.DictType | types.BaseTuple | types.RangeType
_WITH_BOUNDS = ("find", "rfind", "index", "rindex", "count", "startswith", "endswith")
_CALLED = ("hash", "slice")


def check_nones(state: Any, *, helper: bool) -> None:
    """Check a function whose types are known.

    Args:
        state: Numba's state of the function.
        helper: Whether other user functions call it, perhaps inside `try`.

    Raises:
        UnsupportedError: At the first such line.
    """
    if not helper and not any(_tries(state, call) for call in _calls(state.func_ir)):
        return
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            for variable in _taken(state, statement):
                kind = state.typemap[variable.name]
                if isinstance(kind, types.Optional):
                    raise UnsupportedError(packed(Code.MAY_BE_NONE), statement.loc)


def _calls(func_ir: Any) -> Iterator[Any]:
    for block in func_ir.blocks.values():
        yield from block.find_exprs("call")


def _tries(state: Any, call: Any) -> bool:
    try:
        return getattr(state.func_ir.get_definition(call.func), "value", None) is eh.mark_try_block
    except KeyError:
        return False


def _taken(state: Any, statement: Any) -> Iterator[Any]:
    """Yield variables whose value a statement requires, though CPython would accept None."""
    if isinstance(statement, ir.SetItem | ir.StaticSetItem):
        container = state.typemap[statement.target.name]
        if isinstance(container, types.DictType) and isinstance(statement, ir.SetItem):
            yield statement.index
        item = container.value_type if isinstance(container, types.DictType) else getattr(container, "dtype", None)
        if not isinstance(item, types.Optional):
            yield statement.value
    value = statement.value if isinstance(statement, ir.Assign) else None
    if not isinstance(value, ir.Expr):
        return
    if value.op == "binop" and value.fn is operator.contains:
        if isinstance(state.typemap[value.lhs.name], _LOOKED_UP):
            yield value.rhs
    elif value.op == "getitem" and isinstance(state.typemap[value.value.name], types.DictType):
        yield value.index
    elif value.op == "call":
        yield from _of_call(state, value)


def _of_call(state: Any, call: Any) -> Iterator[Any]:
    function = state.typemap[call.func.name]
    given = [*call.args, *(argument for _, argument in call.kws)]
    if not isinstance(function, types.BoundFunction):
        name = getattr(getattr(function, "typing_key", None), "__name__", "")
        yield from given if name in _CALLED else given[1:] if name == "round" else ()
    elif not isinstance(function.this, ViewType | TableType | types.Optional):
        yield from given
    elif str(function.typing_key).rpartition(".")[2].strip("')") in _WITH_BOUNDS:
        yield from given[1:]
