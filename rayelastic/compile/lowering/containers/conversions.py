"""What Numba would convert without a word, and CPython wouldn't: refused, or done exactly.

Numba cuts the fraction off a float that is put into a list of ints, turns an int beyond 2**53 into the float next to
it, makes an int of a bool that meets one, and gives the items of a set in an order of its own. It compares with `is`
what has no identity in compiled code. Looked at after types are known, in the functions of the user.
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
                _check_expression(state, statement.value, _kind(state, statement.target))
            elif isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Var):
                _check_bool(
                    _kind(state, statement.target), _kind(state, statement.value), statement.target, statement.loc
                )


def _kind(state: Any, variable: Any) -> Any:
    return state.typemap[variable.name]


def _check_item(state: Any, statement: Any, index: Any, value: Any) -> None:
    target = _kind(state, statement.target)
    if isinstance(target, types.DictType):
        if index is not None:
            _check(state, target.key_type, _kind(state, index), statement.target, statement.loc)
        _check(state, target.value_type, _kind(state, value), statement.target, statement.loc)
        _check_bool(target.value_type, _kind(state, value), statement.target, statement.loc)
    elif isinstance(target, types.List) and not isinstance(_kind(state, value), types.List):
        _check(state, target.dtype, _kind(state, value), statement.target, statement.loc)
        _check_bool(target.dtype, _kind(state, value), statement.target, statement.loc)


def _shown(variable: Any, other: str) -> str:
    name = variable.name.partition(".")[0]
    return other if name.startswith(("$", "rel_")) else f"'{name}'"


def _check_bool(wanted: Any, given: Any, variable: Any, loc: Any) -> None:
    """Refuses a bool that becomes an int, of which True and 1 can't be told apart any more."""
    wanted, given = types.unliteral(wanted), types.unliteral(given)
    wanted = wanted.type if isinstance(wanted, types.Optional) else wanted
    given = given.type if isinstance(given, types.Optional) else given
    both = isinstance(wanted, types.Integer | types.Boolean) and isinstance(given, types.Integer | types.Boolean)
    if both and isinstance(wanted, types.Boolean) != isinstance(given, types.Boolean):
        what = _shown(variable, "a value")
        raise UnsupportedError(f"{what} is once bool and once int: make it one of them by int(..) or bool(..)", loc)


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
            what = _shown(variable, "a list or dict")
            names = ("int", "float") if kinds is numbers[0] else ("float", "int")
            raise UnsupportedError(f"{what} holds {names[0]} and is given {names[1]}: make all of one kind", loc)


def _check_expression(state: Any, value: Any, target: Any) -> None:
    if value.op in ("getiter", "exhaust_iter"):
        _check_order(state, value.value, value.loc)
    elif value.op == "cast":
        _check_bool(target, _kind(state, value.value), value.value, value.loc)
    elif value.op == "build_list" and isinstance(target, types.List):
        for item in value.items:
            _check_bool(target.dtype, _kind(state, item), item, value.loc)
    elif value.op == "build_map" and isinstance(target, types.DictType):
        for _, item in value.items:
            _check_bool(target.value_type, _kind(state, item), item, value.loc)
    elif value.op in ("binop", "inplace_binop", "unary"):
        _check_operator(state, value)
    if value.op != "call":
        return
    function = _kind(state, value.func)
    if isinstance(function, types.BoundFunction):
        _check_method(state, function, value)
        return
    called = getattr(function, "typing_key", None)
    kinds = [_kind(state, argument) for argument in value.args]
    if called in (min, max):
        for argument, kind in zip(value.args, kinds, strict=True):
            _check_bool(kinds[0], kind, argument, value.loc)
    if called is hash and any(map(_holds_floats, kinds)):
        raise UnsupportedError("hash() of a float isn't compiled: NaN's is that of an object", value.loc)
    for argument in value.args:
        if isinstance(_kind(state, argument), types.Set) and not _is_without_order(called):
            if called in (min, max, sum) and isinstance(_kind(state, argument).dtype, types.Integer):
                continue
            _check_order(state, argument, value.loc)


_WITH_IDENTITY = types.List | types.Set | types.DictType | types.NoneType


def _check_operator(state: Any, value: Any) -> None:
    operands = [value.value] if value.op == "unary" else [value.lhs, value.rhs]
    kinds = [types.unliteral(_kind(state, operand)) for operand in operands]
    if value.fn is operator.invert and isinstance(kinds[0], types.Boolean):
        raise UnsupportedError("~ of a bool isn't compiled, which is -1 or -2: write not", value.loc)
    if value.fn in (operator.is_, operator.is_not):
        is_known = any(isinstance(kind, types.NoneType) for kind in kinds) or kinds == [types.boolean] * 2
        if not is_known and not all(isinstance(kind, _WITH_IDENTITY) for kind in kinds):
            raise UnsupportedError(
                "is asks whether two are one object, which compiled code doesn't know: write ==", value.loc
            )
    if value.fn is operator.contains and isinstance(kinds[0], types.Set):
        _check(state, kinds[0].dtype, kinds[1], value.lhs, value.loc)
        if isinstance(kinds[0].dtype, types.Boolean):
            _check_bool(kinds[0].dtype, kinds[1], value.lhs, value.loc)


def _holds_floats(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return any(map(_holds_floats, parts))
    return isinstance(types.unliteral(kind), types.Float)


def _is_without_order(called: Any) -> bool:
    return any(called is one for one in _WITHOUT_ORDER)


def _check_method(state: Any, function: Any, call: Any) -> None:
    name, owner = function.typing_key, function.this
    name = name[1] if isinstance(name, tuple) else str(name).rpartition(".")[2]
    given = [_kind(state, argument) for argument in call.args]
    variable = call.func
    _check_owner(owner, state.calltypes[call].recvr, call.loc)
    if isinstance(owner, types.Set) and name == "pop":
        raise UnsupportedError("set.pop isn't compiled: which item it gives isn't defined", call.loc)
    if isinstance(owner, types.DictType):
        kinds = (owner.key_type, owner.value_type) if name in ("get", "setdefault", "pop") else ()
        for wanted, kind in zip(kinds, given, strict=False):
            _check(state, wanted, kind, variable, call.loc)
        for kind in given[1:] if kinds else ():
            _check_bool(owner.value_type, kind, variable, call.loc)
    elif isinstance(owner, types.List | types.Set) and name in _PUT and len(given) > _PUT[name]:
        _check(state, owner.dtype, given[_PUT[name]], variable, call.loc)
        if name in ("append", "insert") or isinstance(owner.dtype, types.Boolean):
            _check_bool(owner.dtype, given[_PUT[name]], variable, call.loc)


def _check_owner(owner: Any, taken: Any, loc: Any) -> None:
    """Refuses a method that would write items of another size than the list has.

    Numba keeps what a method was typed for while its list was one of `str`, though an `append` further down has made it
    one of `str | None` since.
    """
    if isinstance(owner, types.List | types.Set) and types.unliteral(taken.dtype) != types.unliteral(owner.dtype):
        if not taken.dtype.is_precise():
            return
        what = "values that may be None beside others" if _has_optional(owner.dtype) else "items of several types"
        raise UnsupportedError(f"a list is given {what}: make all of one kind", loc)


def _has_optional(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return any(map(_has_optional, parts))
    return isinstance(kind, types.Optional)


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
