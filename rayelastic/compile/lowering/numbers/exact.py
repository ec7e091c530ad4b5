"""Integers and floats with CPython's semantics where Numba's differ: overflow of 64 bits is rejected, never wrapped.

Once types are known, operators on numbers are replaced by those below. In a function without loops and state, + - *
only record a suspicion of overflow, in a form that vectorises. The loop checks it once per run, and repeats a suspect
run carefully (loop.py). Elsewhere, and in a careful run, each operation is followed by its check.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG002 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import ir as numba_ir
from numba.core import types
from numba.core.errors import UnsupportedError
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature

from rayelastic.compile.lowering.base import optional
from rayelastic.compile.lowering.base.refusal import refuse
from rayelastic.compile.lowering.numbers import not_a_number, whole_numbers
from rayelastic.compile.reasons import Code, packed

# Byte offsets in records.FRAME.
FRAME_CAREFUL_OFFSET, FRAME_SUSPICION_OFFSET = 40, 48

I64 = ir.IntType(64)

SMALL = 2**62
# How an operator treats overflow of 64 bits: it rejects it, records a suspicion, or relies on an earlier suspicion. In
# a careful run, the last two reject it.
CHECKS, SUSPECTS, TRUSTS = "checks", "suspects", "trusts"

_replacements: dict[tuple[Any, str, str], Any] = {}  # by operator, kinds of its operands, treatment of overflow


def _declare(function: Any, kinds: str, result: Any, lower: Callable[..., Any], way: str = CHECKS) -> None:
    """Declare a replacement operator; `kinds` has an i or an f for each operand."""

    def exact(*operands: Any) -> Any:
        raise TypeError("only compiled")

    exact.__name__ = f"{function.__name__}_of_{kinds}_that_{way}"
    globals()[exact.__name__] = exact  # Numba looks it up here
    operands = tuple(types.int64 if kind == "i" else types.float64 for kind in kinds)

    @infer_global(exact)
    class Exact(AbstractTemplate):
        prefer_literal = True

        def generic(self, args: Any, kws: Any) -> Any:
            return signature(result, *args) if tuple(types.unliteral(a) for a in args) == operands else None

    lower_builtin(exact, *[types.Any] * len(kinds))(lower)
    _replacements[function, kinds, way] = exact


# --- the pass -------------------------------------------------------------------------------------------------------


def make_exact(state: Any, *, suspects: bool) -> bool:
    """Replace operators on numbers; return whether one of them records suspicions."""
    has_suspicions = False
    small = _Small(state)
    for _, block in sorted(state.func_ir.blocks.items()):
        for statement in list(block.find_insts(numba_ir.Assign)):
            value = statement.value
            if isinstance(value, numba_ir.Expr) and value.op == "call":
                _compare_as_floats(state, block, value)
            elif _turns_float(state, statement.target, value):
                statement.value = numba_ir.Expr.unary(float, _operand(value), statement.loc)
                _replaced(state, statement.value)
            elif isinstance(value, numba_ir.Expr):
                kind = _replaced(state, value, small.kinds(value) if suspects else (CHECKS,))
                small.note(statement.target, kind)
                has_suspicions |= kind in (SUSPECTS, TRUSTS)
    return has_suspicions


class _Small:
    """Variables of a function without loops that are below 2**62, unless a suspicion was recorded before."""

    def __init__(self, state: Any) -> None:
        self._state = state
        targets = [s.target.name for b in state.func_ir.blocks.values() for s in b.find_insts(numba_ir.Assign)]
        self._once = {name for name, times in Counter(targets).items() if times == 1}
        self._small: set[str] = set()

    def kinds(self, value: Any) -> tuple[str, ...]:
        """Return the kinds of operator that are sufficient for an expression, the cheapest first."""
        if value.op in ("binop", "inplace_binop") and all(self._is_small(v) for v in (value.lhs, value.rhs)):
            return TRUSTS, SUSPECTS, CHECKS
        return SUSPECTS, CHECKS

    def note(self, target: Any, kind: str) -> None:
        """Record the result of an operator of a kind."""
        if kind == SUSPECTS and target.name in self._once:
            self._small.add(target.name)

    def _is_small(self, variable: Any) -> bool:
        kind = self._state.typemap[variable.name]
        if isinstance(kind, types.IntegerLiteral):
            return abs(kind.literal_value) < SMALL
        return variable.name in self._small


def _turns_float(state: Any, target: Any, value: Any) -> bool:
    """Return whether an int is assigned or returned as a float."""
    operand = _operand(value)
    if operand is None or state.typemap[target.name] != types.float64:
        return False
    return isinstance(types.unliteral(state.typemap[operand.name]), types.Integer)


def _operand(value: Any) -> Any:
    is_cast = isinstance(value, numba_ir.Expr) and value.op == "cast"
    return value.value if is_cast else value if isinstance(value, numba_ir.Var) else None


def _compare_as_floats(state: Any, block: Any, call: Any) -> None:
    """Rewrite min and max of ints and floats: Numba returns a float, which has to equal the int."""
    function = state.typemap[call.func.name]
    kinds = [_number(state.typemap[argument.name])[1] for argument in call.args]
    if getattr(function, "typing_key", None) not in (min, max) or set(kinds) != {"i", "f"}:
        return
    place = next(at for at, s in enumerate(block.body) if getattr(s, "value", None) is call)
    for at, (argument, kind) in enumerate(zip(call.args, kinds, strict=True)):
        if kind == "i":
            number = numba_ir.Var(block.scope, f"$float.{at}.{id(call)}", call.loc)
            state.typemap[number.name] = types.float64
            turned = numba_ir.Expr.unary(float, argument, call.loc)
            _replaced(state, turned)
            block.body.insert(place, numba_ir.Assign(turned, number, call.loc))
            call.args[at] = number
            place += 1
    state.calltypes.pop(call)
    state.calltypes[call] = function.get_call_type(state.typingctx, (types.float64,) * len(kinds), {})


def _replaced(state: Any, value: Any, ways: tuple[str, ...] = (CHECKS,)) -> str:
    """Insert the first existing one of these kinds of operator; return which, or ''."""
    if value.op == "binop":
        name, operands = "fn", [value.lhs, value.rhs]
    elif value.op == "inplace_binop":
        name, operands = "immutable_fn", [value.lhs, value.rhs]
    elif value.op == "unary":
        name, operands = "fn", [value.value]
    else:
        return ""
    if _compares_optionals(state, value):
        return ""
    if _replaced_otherwise(state, value, name, [types.unliteral(state.typemap[one.name]) for one in operands]):
        return ""
    kinds = [_number(state.typemap[operand.name]) for operand in operands]
    power = getattr(value, name) is operator.pow and isinstance(kinds[-1][0], types.IntegerLiteral)
    if power and kinds[0][1] == "i" and kinds[-1][0].literal_value < 0:
        raise UnsupportedError(
            packed(Code.WRITE_INSTEAD, what="an int to a negative power", instead="float(..) ** .."), value.loc
        )
    for way in ways:
        ours = _replacements.get((getattr(value, name), "".join(kind for _, kind in kinds), way))
        if ours is not None:
            function = state.typingctx.resolve_value_type(ours)
            state.calltypes.pop(value, None)
            state.calltypes[value] = function.get_call_type(state.typingctx, tuple(kind for kind, _ in kinds), {})
            setattr(value, name, ours)
            return way
    return ""


def _replaced_otherwise(state: Any, value: Any, name: str, operands: list[Any]) -> bool:
    """Replace an operator on tuples and lists of floats; return whether it is one."""
    ours = not_a_number.replacement(getattr(value, name), operands, value.loc)
    if ours is not None:
        call = state.typingctx.resolve_value_type(ours).get_call_type(state.typingctx, tuple(operands), {})
        state.calltypes.pop(value, None)
        state.calltypes[value] = call
        setattr(value, name, ours)
    return ours is not None


def _compares_optionals(state: Any, value: Any) -> bool:
    """Replace ==, != or `not` of values that may be None, which Numba would unwrap; return whether it is one."""
    if value.op not in ("binop", "unary") or value.fn not in _EQUALITIES:
        return False
    operands = (value.value,) if value.op == "unary" else (value.lhs, value.rhs)
    kinds = tuple(types.unliteral(state.typemap[operand.name]) for operand in operands)
    if not any(isinstance(kind, types.Optional) for kind in kinds) or types.none in kinds:
        return False
    value.fn = _EQUALITIES[value.fn]
    state.calltypes.pop(value, None)
    state.calltypes[value] = state.typingctx.resolve_value_type(value.fn).get_call_type(state.typingctx, kinds, {})
    return True


def _number(kind: Any) -> tuple[Any, str]:
    """Return the type that an operand is cast to, and its letter."""
    if isinstance(kind, types.Optional):
        kind = kind.type  # the cast raises for None
    if isinstance(kind, types.IntegerLiteral):
        return kind, "i"
    kind = types.unliteral(kind)
    if isinstance(kind, types.Boolean) or kind == types.int64:
        return types.int64, "i"
    if kind == types.float64:
        return kind, "f"
    return kind, "-"


# --- + - * ----------------------------------------------------------------------------------------------------------


def _checked(builder: Any, symbol: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Return the result, and whether it overflows."""
    pair = getattr(builder, f"s{symbol}_with_overflow")(a, b)
    return builder.extract_value(pair, 0), builder.extract_value(pair, 1)


def _suspected(builder: Any, symbol: str, sig: Any, args: Any) -> tuple[Any, Any]:
    """Return a result below 2**62, and a number that isn't 0 if it may not be: in a form that vectorises."""
    a, b = args
    constant = next((at for at in (1, 0) if isinstance(sig.args[at], types.IntegerLiteral)), None)
    size = 64 if constant is None else abs(sig.args[constant].literal_value).bit_length()
    if constant is not None and size < 62:
        small = 62 - size if symbol == "mul" else 61  # bits of an int
        above = builder.lshr(builder.add(args[1 - constant], I64(1 << small)), I64(small + 1))
        return getattr(builder, symbol)(a, b), above
    if symbol == "mul":
        result, overflow = _checked(builder, symbol, a, b)
        return result, builder.or_(builder.zext(overflow, I64), _beyond(builder, result))
    low = [builder.lshr(builder.add(value, I64(1 << 61)), I64(62)) for value in args]
    return getattr(builder, symbol)(a, b), builder.or_(*low)


def _beyond(builder: Any, value: Any) -> Any:
    return builder.lshr(builder.add(value, I64(SMALL)), I64(63))


def _declare_whole(function: Any, symbol: str) -> None:
    def checks(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        result, overflow = _checked(builder, symbol, *args)
        with builder.if_then(overflow, likely=False):
            refuse(builder)
        return result

    def trusts(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        careful = builder.load(_frame_number(context, builder, FRAME_CAREFUL_OFFSET))
        with builder.if_then(builder.icmp_signed("!=", careful, I64(0))):
            checks(context, builder, sig, args)
        return getattr(builder, symbol)(*args)

    def suspects(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        trusts(context, builder, sig, args)
        result, suspected = _suspected(builder, symbol, sig, args)
        suspicion = _frame_number(context, builder, FRAME_SUSPICION_OFFSET)
        builder.store(builder.or_(builder.load(suspicion), suspected), suspicion)
        return result

    for way, lower in ((CHECKS, checks), (SUSPECTS, suspects), (TRUSTS, trusts)):
        if (way, symbol) != (TRUSTS, "mul"):
            _declare(function, "ii", types.int64, lower, way)


def _frame_number(context: Any, builder: Any, offset: int) -> Any:
    frame = context.call_conv.get_arguments(builder.function)[1]  # of the operator function's first argument
    return builder.bitcast(builder.gep(frame, [I64(offset)]), I64.as_pointer())


for _function, _symbol in ((operator.add, "add"), (operator.sub, "sub"), (operator.mul, "mul")):
    _declare_whole(_function, _symbol)


# --- the other operators, written in Python -------------------------------------------------------------------------


def _declare_written(function: Any, kinds: str, result: Any, written: Any) -> None:
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        plain = signature(sig.return_type, *(types.unliteral(kind) for kind in sig.args))
        return context.compile_internal(builder, written, plain, args)

    _declare(function, kinds, result, lower)


for _function, _written in (
    (operator.floordiv, whole_numbers.floor_divide),
    (operator.mod, whole_numbers.modulo),
    (operator.pow, whole_numbers.power),
    (operator.lshift, whole_numbers.shift_left),
    (operator.rshift, whole_numbers.shift_right),
):
    _declare_written(_function, "ii", types.int64, _written)
_declare_written(operator.truediv, "ii", types.float64, whole_numbers.divide)
_declare_written(operator.neg, "i", types.int64, whole_numbers.negative)
_declare_written(float, "i", types.float64, whole_numbers.as_float)
for _kinds in ("ff", "fi", "if"):
    _declare_written(operator.pow, _kinds, types.float64, whole_numbers.float_power)
for _function in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
    for _kinds in ("if", "fi"):
        _declare_written(_function, _kinds, types.boolean, whole_numbers.comparison(_function, _kinds))

_EQUALITIES: dict[Any, Any] = {}


def _declare_equality(function: Any, written: Any) -> None:
    def equality(*operands: Any) -> Any:
        raise TypeError("only compiled")

    equality.__name__ = f"{function.__name__}_of_optionals"
    globals()[equality.__name__] = equality
    written.__annotations__ = {}

    @infer_global(equality)
    class Equality(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(types.boolean, *args)

    @lower_builtin(equality, *[types.Any] * written.__code__.co_argcount)
    def _lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return context.compile_internal(builder, written, sig, args)

    _EQUALITIES[function] = equality


_declare_equality(operator.eq, optional.same)
_declare_equality(operator.ne, optional.other)
_declare_equality(operator.not_, optional.empty)
