"""What Numba would convert without a word, and CPython wouldn't: refused, or done exactly.

Numba cuts the fraction off a float that is put into a list of ints, turns an int beyond 2**53 into the float next to
it, and gives the items of a set in an order of its own. Looked at after types are known, in the functions of the user.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import operator
from typing import Any

from numba.core import ir, types
from numba.core.errors import UnsupportedError

from rayelastic.compile.lowering.containers import lists as containers

# What may have a set as its argument: the order of its items makes no difference.
_WITHOUT_ORDER = (
    len, bool, set, frozenset, isinstance, operator.contains, operator.eq, operator.ne, operator.lt, operator.le,
    operator.gt, operator.ge, operator.or_, operator.and_, operator.sub, operator.xor, operator.ior, operator.iand,
    operator.isub, operator.ixor, operator.not_, operator.truth, containers.in_order, containers.unordered,
)  # fmt: skip
_PUT = {"append": 0, "insert": 1, "remove": 0, "index": 0, "count": 0, "add": 0, "discard": 0}


def check_conversions(state: Any) -> None:
    """Raises for what can't be had, with the line."""
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.SetItem):
                _check_item(state, statement, statement.index, statement.value)
            elif isinstance(statement, ir.StaticSetItem):
                _check_item(state, statement, None, statement.value)
            elif isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
                _check_expression(state, statement.value)


def _kind(state: Any, variable: Any) -> Any:
    return state.typemap[variable.name]


def _check_item(state: Any, statement: Any, index: Any, value: Any) -> None:
    target = _kind(state, statement.target)
    if isinstance(target, types.DictType):
        if index is not None:
            _check(state, target.key_type, _kind(state, index), statement.target, statement.loc)
        _check(state, target.value_type, _kind(state, value), statement.target, statement.loc)
    elif isinstance(target, types.List) and not isinstance(_kind(state, value), types.List):
        _check(state, target.dtype, _kind(state, value), statement.target, statement.loc)


def _check(state: Any, wanted: Any, given: Any, variable: Any, loc: Any) -> None:
    if isinstance(given, types.IntegerLiteral) and abs(given.literal_value) <= 2**53:
        return
    given = types.unliteral(given)
    if isinstance(wanted, types.BaseTuple) and isinstance(given, types.BaseTuple) and len(wanted) == len(given):
        for a, b in zip(wanted, given, strict=True):  # type: ignore[call-overload]
            _check(state, a, b, variable, loc)
        return
    numbers = (types.Integer, types.Boolean), (types.Float,)
    for kinds, others in (numbers, numbers[::-1]):
        if isinstance(wanted, kinds) and isinstance(given, others):
            name = variable.name.partition(".")[0]
            what = f"'{name}'" if not name.startswith("$") else "a list or dict"
            names = ("int", "float") if kinds is numbers[0] else ("float", "int")
            raise UnsupportedError(f"{what} holds {names[0]} and is given {names[1]}: make all of one kind", loc)


def _check_expression(state: Any, value: Any) -> None:
    if value.op in ("getiter", "exhaust_iter"):
        _check_order(state, value.value, value.loc)
    if value.op != "call":
        return
    function = _kind(state, value.func)
    if isinstance(function, types.BoundFunction):
        _check_method(state, function, value)
        return
    called = getattr(function, "typing_key", None)
    for argument in value.args:
        if isinstance(_kind(state, argument), types.Set) and not _is_without_order(called):
            if called in (min, max, sum) and isinstance(_kind(state, argument).dtype, types.Integer):
                continue
            _check_order(state, argument, value.loc)


def _is_without_order(called: Any) -> bool:
    return any(called is one for one in _WITHOUT_ORDER)


def _check_method(state: Any, function: Any, call: Any) -> None:
    name, owner = function.typing_key, function.this
    name = name[1] if isinstance(name, tuple) else str(name).rpartition(".")[2]
    given = [_kind(state, argument) for argument in call.args]
    variable = call.func
    if isinstance(owner, types.Set) and name == "pop":
        raise UnsupportedError("set.pop isn't compiled: which item it gives isn't defined", call.loc)
    if isinstance(owner, types.DictType):
        kinds = (owner.key_type, owner.value_type) if name in ("get", "setdefault", "pop") else ()
        for wanted, kind in zip(kinds, given, strict=False):
            _check(state, wanted, kind, variable, call.loc)
    elif isinstance(owner, types.List | types.Set) and name in _PUT and len(given) > _PUT[name]:
        _check(state, owner.dtype, given[_PUT[name]], variable, call.loc)


def check_constant_sets(func_ir: Any) -> None:
    """Raises where the items of a set that is a constant are taken in their order: before constants are folded."""
    for block in func_ir.blocks.values():
        for value in (s.value for s in block.find_insts(ir.Assign) if isinstance(s.value, ir.Expr)):
            if value.op in ("getiter", "exhaust_iter") and _is_constant_set(func_ir, value.value):
                raise UnsupportedError(_ORDER, value.loc)
            if value.op == "call" and any(_is_constant_set(func_ir, argument) for argument in value.args):
                function = _constant(func_ir, value.func)
                if function in (list, tuple, enumerate, zip, iter, containers.listed):
                    raise UnsupportedError(_ORDER, value.loc)


def _constant(func_ir: Any, variable: Any) -> Any:
    try:
        made = func_ir.get_definition(variable)
    except KeyError:
        return None
    return made.value if isinstance(made, ir.Const | ir.Global | ir.FreeVar) else None


def _is_constant_set(func_ir: Any, variable: Any) -> bool:
    return isinstance(_constant(func_ir, variable), set | frozenset)


_ORDER = "the order of a set's items isn't CPython's in compiled code: write sorted(..)"


def _check_order(state: Any, variable: Any, loc: Any) -> None:
    if isinstance(_kind(state, variable), types.Set):
        raise UnsupportedError(_ORDER, loc)
