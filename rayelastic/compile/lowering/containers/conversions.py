"""Conversions that Numba does silently and CPython doesn't: rejected, or done exactly.

Numba truncates a float that is put into a list of ints, and rounds an int beyond 2**53 to a float. It converts a bool
next to a number, and orders the items of a set differently. It compares with `is` values that have no identity in
compiled code. Checked once types are known, in the user's functions.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

from numba.core import ir, types
from numba.core.errors import TypingError, UnsupportedError

from rayelastic.compile.lowering.base.declare import overloads
from rayelastic.compile.lowering.containers import lists as containers
from rayelastic.compile.reasons import Code, packed

# Functions that may have a set as their argument: the order of its items makes no difference.
_WITHOUT_ORDER = (
    len, bool, set, frozenset, isinstance, operator.contains, operator.eq, operator.ne, operator.lt, operator.le,
    operator.gt, operator.ge, operator.or_, operator.and_, operator.sub, operator.xor, operator.ior, operator.iand,
    operator.isub, operator.ixor, operator.not_, operator.truth, containers.in_order, containers.unordered,
)  # fmt: skip
_PUT = {"append": 0, "extend": 0, "insert": 1, "remove": 0, "index": 0, "count": 0, "add": 0, "discard": 0}


def check_conversions(state: Any) -> None:
    """Raise for unsupported conversions, with the line."""
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.SetItem):
                _check_item(state, statement, statement.index, statement.value)
            elif isinstance(statement, ir.StaticSetItem):
                _check_item(state, statement, None, statement.value)
            elif isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Expr):
                _check_expression(state, statement.value, _kind(state, statement.target))
            elif isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Var):
                target = statement.target
                _check_assigned(state, _kind(state, target), statement.value, target, statement.loc)


def _check_assigned(state: Any, target: Any, value: Any, shown: Any, loc: Any) -> None:
    """Check an assignment: only an int alone, not in a tuple or beside None, becomes a float (exact.py)."""
    given = _kind(state, value)
    _check_bool(target, given, shown, loc)
    inside = any(isinstance(kind, types.Optional | types.BaseTuple) for kind in (target, given))
    if inside and not _is_small(_constant(state.func_ir, value)):
        _check(target, given, shown, loc)


def _is_small(known: Any) -> bool:
    """Return whether it is a constant whose numbers all become equal floats."""
    if isinstance(known, tuple):
        return all(map(_is_small, known))
    return known is not None and not (isinstance(known, int) and abs(known) > 2**53)


def _kind(state: Any, variable: Any) -> Any:
    return state.typemap[variable.name]


def _check_item(state: Any, statement: Any, index: Any, value: Any) -> None:
    target = _kind(state, statement.target)
    if isinstance(target, types.DictType):
        if index is not None:
            _check(target.key_type, _kind(state, index), statement.target, statement.loc)
        _check(target.value_type, _kind(state, value), statement.target, statement.loc)
        _check_bool(target.value_type, _kind(state, value), statement.target, statement.loc)
    elif isinstance(target, types.List) and not isinstance(_kind(state, value), types.List):
        _check(target.dtype, _kind(state, value), statement.target, statement.loc)
        _check_bool(target.dtype, _kind(state, value), statement.target, statement.loc)


def _shown(variable: Any, other: str) -> str:
    name = variable.name.partition(".")[0]
    return other if name.startswith(("$", "rel_")) else f"'{name}'"


def _check_bool(wanted: Any, given: Any, variable: Any, loc: Any) -> None:
    """Reject a bool that becomes a number, because True then can't be distinguished from 1 or 1.0."""
    for first, other in _alike(wanted, given):
        if number := _number_beside_bool([first, other]):
            what = _shown(variable, "a value")
            raise UnsupportedError(packed(Code.TWO_KINDS, what=what, first="bool", second=number), loc)


def _alike(wanted: Any, given: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the corresponding parts of two kinds; of tuples and lists, the parts of their items."""
    first, other = (kind.type if isinstance(kind, types.Optional) else kind for kind in (wanted, given))
    if isinstance(first, types.List) and isinstance(other, types.List):
        yield from _alike(first.dtype, other.dtype)
    elif isinstance(first, types.BaseTuple) and isinstance(other, types.BaseTuple) and len(first) == len(other):
        for pair in zip(first, other, strict=True):  # type: ignore[call-overload]
            yield from _alike(*pair)
    else:
        yield wanted, given


def _number_beside_bool(kinds: Iterable[Any]) -> str:
    """Return 'int' or 'float' if there are bools beside numbers of it; empty if there are none."""
    plain = [_without_none(kind) for kind in kinds]
    number = next((kind for kind in plain if isinstance(kind, types.Integer | types.Float)), None)
    if number is None or not any(isinstance(kind, types.Boolean) for kind in plain):
        return ""
    return "float" if isinstance(number, types.Float) else "int"


@overloads(min)
@overloads(max)
def _extreme(*values: Any) -> None:
    """Reject min and max of bools and numbers, which Numba 0.65 lacks, as if it converted them."""
    alone = len(values) == 1 and isinstance(values[0], types.BaseTuple)
    if number := _number_beside_bool(values[0] if alone else values):
        raise TypingError(packed(Code.TWO_KINDS, what="a value", first="bool", second=number))


def _without_none(kind: Any) -> Any:
    kind = types.unliteral(kind)
    return kind.type if isinstance(kind, types.Optional) else kind


def _check(wanted: Any, given: Any, variable: Any, loc: Any) -> None:
    for first, other in _alike(wanted, given):
        _check_number(first, other, variable, loc)


def _check_number(wanted: Any, given: Any, variable: Any, loc: Any) -> None:
    if isinstance(given, types.IntegerLiteral) and abs(given.literal_value) <= 2**53:
        return
    wanted, given = _without_none(wanted), _without_none(given)
    numbers = (types.Integer, types.Boolean), (types.Float,)
    for kinds, others in (numbers, numbers[::-1]):
        if isinstance(wanted, kinds) and isinstance(given, others):
            what = _shown(variable, "an item of a list or dict")
            first, second = ("int", "float") if kinds is numbers[0] else ("float", "int")
            raise UnsupportedError(packed(Code.TWO_KINDS, what=what, first=first, second=second), loc)


def _check_expression(state: Any, value: Any, target: Any) -> None:
    if value.op in ("getiter", "exhaust_iter"):
        _check_order(state, value.value, value.loc)
    elif value.op == "cast":
        _check_assigned(state, target, value.value, value.value, value.loc)
    elif value.op == "build_list" and isinstance(target, types.List):
        for item in value.items:
            _check(target.dtype, _kind(state, item), item, value.loc)
            _check_bool(target.dtype, _kind(state, item), item, value.loc)
    elif value.op == "build_map" and isinstance(target, types.DictType):
        for _, item in value.items:
            _check(target.value_type, _kind(state, item), item, value.loc)
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
        if isinstance(kinds[0], types.BaseTuple) and len(kinds) == 1:
            parts = list(kinds[0])  # type: ignore[call-overload]
            for kind in parts:
                _check(parts[0], kind, value.args[0], value.loc)
                _check_bool(parts[0], kind, value.args[0], value.loc)
    if called is hash and any(map(_holds_floats, kinds)):
        raise UnsupportedError(packed(Code.BY_IDENTITY, what="hash() of a float"), value.loc)
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
        raise UnsupportedError(packed(Code.WRITE_INSTEAD, what="~ of a bool", instead="not"), value.loc)
    if value.fn in (operator.is_, operator.is_not):
        is_known = any(isinstance(kind, types.NoneType) for kind in kinds) or kinds == [types.boolean] * 2
        if not is_known and not all(isinstance(kind, _WITH_IDENTITY) for kind in kinds):
            raise UnsupportedError(packed(Code.WRITE_INSTEAD, what="is", instead="=="), value.loc)
    if value.fn is operator.contains:
        _check_contains(state, value, kinds[0], kinds[1])
    elif value.op != "unary" and all(isinstance(kind, types.List) for kind in kinds):
        _check(kinds[0], kinds[1], value.lhs, value.loc)  # which are added or compared
        if value.fn in (operator.add, operator.iadd):
            _check_bool(kinds[0], kinds[1], value.lhs, value.loc)
    elif value.op == "binop" and value.fn in _COMPARE and all(isinstance(kind, types.BaseTuple) for kind in kinds):
        for first, other in zip(*kinds, strict=False):
            _check(first, other, value.lhs, value.loc)


_COMPARE = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def _check_contains(state: Any, value: Any, container: Any, item: Any) -> None:
    """Reject a search for an int among floats, or the reverse: it may equal a neighbour only."""
    if isinstance(container, types.Set | types.List):
        _check(container.dtype, item, value.lhs, value.loc)
        if isinstance(container.dtype, types.Boolean) and isinstance(container, types.Set):
            _check_bool(container.dtype, item, value.lhs, value.loc)
    elif isinstance(container, types.BaseTuple):
        for kind in _parts(state, value.lhs, container):
            small = isinstance(kind, types.IntegerLiteral) and abs(kind.literal_value) <= 2**53
            if not small:
                _check(kind, item, value.lhs, value.loc)


def _parts(state: Any, variable: Any, container: Any) -> list[Any]:
    """Return the kinds of a tuple's items, with known constants if it is built of them."""
    try:
        definition = state.func_ir.get_definition(variable)
    except KeyError:
        definition = None
    built = isinstance(definition, ir.Expr) and definition.op == "build_tuple"
    return [_kind(state, item) for item in definition.items] if built else list(container)


def _holds_floats(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return any(map(_holds_floats, parts))
    return isinstance(types.unliteral(kind), types.Float)


def _is_without_order(called: Any) -> bool:
    return any(called is function for function in _WITHOUT_ORDER)


def _check_method(state: Any, function: Any, call: Any) -> None:
    name, owner = function.typing_key, function.this
    name = name[1] if isinstance(name, tuple) else str(name).rpartition(".")[2]
    given = [_kind(state, argument) for argument in call.args]
    variable = call.func
    _check_owner(owner, state.calltypes[call].recvr, call.loc)
    if isinstance(owner, types.Set) and name == "pop":
        raise UnsupportedError(packed(what="set.pop"), call.loc)
    if isinstance(owner, types.DictType):
        kinds = (owner.key_type, owner.value_type) if name in ("get", "setdefault", "pop") else ()
        for wanted, kind in zip(kinds, given, strict=False):
            _check(wanted, kind, variable, call.loc)
        for kind in given[1:] if kinds else ():
            _check_bool(owner.value_type, kind, variable, call.loc)
        for other in given if name == "update" else ():
            if isinstance(other, types.DictType):
                _check(owner.key_type, other.key_type, variable, call.loc)
                _check(owner.value_type, other.value_type, variable, call.loc)
                _check_bool(owner.value_type, other.value_type, variable, call.loc)
    elif isinstance(owner, types.List | types.Set) and name in _PUT and len(given) > _PUT[name]:
        kind = given[_PUT[name]]
        kind = getattr(kind, "dtype", kind) if name == "extend" else kind
        _check(owner.dtype, kind, variable, call.loc)
        if name in ("append", "insert", "extend") or isinstance(owner.dtype, types.Boolean):
            _check_bool(owner.dtype, kind, variable, call.loc)


def _check_owner(owner: Any, taken: Any, loc: Any) -> None:
    """Reject a method that would write items of another size than the list has.

    Numba keeps the typing of a method from when its list was one of `str`. A later `append` may have made it one of
    `str | None` since.
    """
    if isinstance(owner, types.List | types.Set) and types.unliteral(taken.dtype) != types.unliteral(owner.dtype):
        if not taken.dtype.is_precise():
            return
        raise UnsupportedError(packed(Code.MIXED_KINDS, what="items of a list"), loc)


def check_constant_sets(func_ir: Any) -> None:
    """Raise if a constant set's items are used in their order, before constants are folded."""
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
        definition = func_ir.get_definition(variable)
    except KeyError:
        return None
    if isinstance(definition, ir.Expr) and definition.op == "build_tuple":
        return tuple(_constant(func_ir, item) for item in definition.items)
    if isinstance(definition, ir.Expr) and definition.op == "exhaust_iter":
        return _constant(func_ir, definition.value)
    if isinstance(definition, ir.Expr) and definition.op == "static_getitem":
        whole, at = _constant(func_ir, definition.value), definition.index
        is_part = isinstance(whole, tuple) and isinstance(at, int) and -len(whole) <= at < len(whole)
        return whole[at] if is_part else None
    return definition.value if isinstance(definition, ir.Const | ir.Global | ir.FreeVar) else None


def _is_constant_set(func_ir: Any, variable: Any) -> bool:
    return isinstance(_constant(func_ir, variable), set | frozenset)


_ORDER = packed(Code.WRITE_INSTEAD, what="the order of a set's items", instead="sorted(..)")


def _check_order(state: Any, variable: Any, loc: Any) -> None:
    if isinstance(_kind(state, variable), types.Set):
        raise UnsupportedError(_ORDER, loc)
