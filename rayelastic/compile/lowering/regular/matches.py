"""Compiled patterns of Python's `re` in compiled code: search, match, fullmatch, and the methods of a match.

The pattern is an object outside the function, or a constant argument of re.search and the like. PCRE2 matches
(pattern.h), with a pattern of the same meaning (patterns.py). A match that exceeds a limit of PCRE2 is rejected.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG002, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import ctypes
import hashlib
import operator
import re
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin, lower_cast
from numba.core.typing.templates import AbstractTemplate, infer, infer_global, signature
from numba.extending import register_jitable

from rayelastic.compile.cache.loader import engine_symbols
from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.code_points import count_points
from rayelastic.compile.lowering.base.declare import constants, overloads_method, primitive, structure, truth
from rayelastic.compile.lowering.base.refusal import refuse
from rayelastic.compile.lowering.base.views import TEXT, cut, literal_data, parts
from rayelastic.compile.lowering.regular.patterns import NoPatternError, Translated, translated
from rayelastic.compile.reasons import Code, packed

I32, I64 = ir.IntType(32), ir.IntType(64)
POINTER = ir.IntType(8).as_pointer()
_SEARCH, _MATCH, _FULL = 0, 1, 2  # rel_pattern_mode


class Pattern:
    """A user's pattern, and its translation for PCRE2."""

    def __init__(self, pattern: re.Pattern[str], made: Translated) -> None:
        self.pattern, self.made = pattern, made


def constant(pattern: re.Pattern[Any]) -> Pattern:
    """Return the pattern for compiled code.

    Raises:
        NoPatternError: It can't be compiled; the message has the reason.
    """
    translation = translated(pattern)
    raw = translation.text.encode()
    address = engine_symbols().get("rel_pattern")
    ask = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)
    if address is None or not ask(address)(raw, len(raw)):
        raise NoPatternError(Code.NO_PATTERN_ENGINE)
    return Pattern(pattern, translation)


class PatternType(types.Type):
    """Carries the pattern."""

    def __init__(self, made: Translated, source: re.Pattern[str]) -> None:
        self.made = made
        digest = hashlib.sha256(repr((source.pattern, source.flags)).encode()).hexdigest()[:16]
        super().__init__(name=f"pattern {digest}")


class MatchType(types.Type):
    """A match, or none: the text and the offsets of its groups."""

    def __init__(self, pattern: PatternType) -> None:
        self.pattern = pattern
        super().__init__(name=f"match of {pattern.name}")

    @property
    def spans(self) -> Any:
        """The type of the offsets: start and end of each group."""
        return types.UniTuple(types.int64, 2 * (self.pattern.made.groups + 1))

    def number(self, group: Any) -> int:
        """Return the number of a group, from its number or name."""
        known = getattr(group, "literal_value", group)
        if isinstance(known, str):
            known = self.pattern.made.names.get(known, -1)
        if not isinstance(known, int) or not 0 <= known <= self.pattern.made.groups:
            raise TypingError(packed(what=f"group {known!r} of a match, no constant of its pattern,"))
        return known


# Whether there is a match, its text, its offsets.
structure(MatchType, lambda kind: [("found", types.boolean), ("text", TEXT), ("spans", kind.spans)])

constants(Pattern, PatternType, lambda value: PatternType(value.made, value.pattern))


@primitive
def _find(typingctx: Any, pattern: Any, text: Any, mode: Any) -> Any:
    """Call rel_pattern_find for the pattern in the text."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return searched(context, builder, pattern, args[1], I64(0), builder.trunc(args[2], I32))

    return MatchType(pattern)(pattern, text, types.int64), codegen


def handle_of(builder: Any, pattern: PatternType) -> Any:
    """Return the pattern in PCRE2, compiled on first use."""
    raw = pattern.made.text.encode()
    slot = cgutils.add_global_variable(builder.module, POINTER, builder.module.get_unique_name("pattern"))
    slot.linkage, slot.initializer = "internal", ir.Constant(POINTER, None)
    handle = cgutils.alloca_once(builder, POINTER)
    builder.store(builder.load(slot), handle)
    with builder.if_then(cgutils.is_null(builder, builder.load(handle)), likely=False):
        asked = engine.pattern(builder, literal_data(builder.module, raw), I64(len(raw)))
        with builder.if_then(cgutils.is_null(builder, asked), likely=False):
            refuse(builder)
        builder.store(asked, slot)  # the same for every thread
        builder.store(asked, handle)
    return builder.load(handle)


def searched(
    context: Any, builder: Any, pattern: PatternType, text: Any, start: Any, mode: Any, wanted: Any = None
) -> Any:
    """Return the match that rel_pattern_find finds from an offset on; none where it isn't wanted."""
    match, count = MatchType(pattern), pattern.made.groups + 1
    handle = handle_of(builder, pattern)
    spans = cgutils.alloca_once(builder, ir.ArrayType(I64, 2 * count))
    count_found = cgutils.alloca_once(builder, I64)
    builder.store(I64(0), count_found)
    builder.store(spans.type.pointee(None), spans)
    data, size = parts(context, builder, TEXT, text)
    first = builder.bitcast(spans, I64.as_pointer())
    with builder.if_then(ir.IntType(1)(1) if wanted is None else wanted):
        given = engine.pattern_find(builder, handle, data, size, start, mode, I64(count), first)
        with builder.if_then(builder.icmp_signed("<", given, I64(0)), likely=False):
            refuse(builder)
        builder.store(given, count_found)
    result = cgutils.create_struct_proxy(match)(context, builder)
    result.found = builder.icmp_signed("!=", builder.load(count_found), I64(0))
    result.text, result.spans = text, builder.load(spans)
    return result._getvalue()


def _declare_method(name: str, mode: int) -> None:
    @overloads_method(PatternType, name)
    def _method(pattern: Any, string: Any) -> Any:
        if string != TEXT:
            return None
        return lambda pattern, string: _find(pattern, string, mode)


for _name, _mode in (("search", _SEARCH), ("match", _MATCH), ("fullmatch", _FULL)):
    _declare_method(_name, _mode)


# --- a match --------------------------------------------------------------------------------------------------------


@primitive
def _found(typingctx: Any, match: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return cgutils.as_bool_bit(builder, builder.extract_value(args[0], 0))

    return types.boolean(match), codegen


@primitive
def _text(typingctx: Any, match: Any) -> Any:
    return TEXT(match), lambda context, builder, sig, args: builder.extract_value(args[0], 1)


@primitive
def match_spans(typingctx: Any, match: Any) -> Any:
    """Return the offsets of its groups."""
    return match.spans(match), lambda context, builder, sig, args: builder.extract_value(args[0], 2)


def _declare_is(function: Any, *, when_none: bool) -> None:
    @infer_global(function)
    class IsNone(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and isinstance(args[0], MatchType) and isinstance(args[1], types.NoneType):
                return signature(types.boolean, *args)
            return None

    @lower_builtin(function, MatchType, types.NoneType)
    def _is(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        is_match = cgutils.as_bool_bit(builder, builder.extract_value(args[0], 0))
        return builder.not_(is_match) if when_none else is_match


_declare_is(operator.is_, when_none=True)
_declare_is(operator.is_not, when_none=False)


truth(MatchType, lambda value: _found(value), lambda value: not _found(value))


@lower_cast(MatchType, types.boolean)
def _truth(context: Any, builder: Any, source: Any, target: Any, value: Any) -> Any:
    return cgutils.as_bool_bit(builder, builder.extract_value(value, 0))


def _group_of(kind: MatchType, number: int) -> Any:
    """Make code for a group's text, or None if it may not take part."""
    low, high = 2 * number, 2 * number + 1
    if number == 0 or number in kind.pattern.made.certain:

        def certain(match: Any) -> Any:
            if not _found(match):
                raise AttributeError("'NoneType' object has no attribute 'group'")
            return cut(_text(match), match_spans(match)[low], match_spans(match)[high])

        return certain

    def perhaps(match: Any) -> Any:
        if not _found(match):
            raise AttributeError("'NoneType' object has no attribute 'group'")
        if match_spans(match)[low] < 0:
            return None
        return cut(_text(match), match_spans(match)[low], match_spans(match)[high])

    return perhaps


@infer
class MatchItem(AbstractTemplate):
    """Implements m[1] and m["name"]."""

    key = "static_getitem"

    def generic(self, args: Any, kws: Any) -> Any:
        """Return a text, or an optional text."""
        if len(args) != 2 or not isinstance(args[0], MatchType):
            return None
        number = args[0].number(args[1])
        is_certain = number == 0 or number in args[0].pattern.made.certain
        return signature(TEXT if is_certain else types.Optional(TEXT), *args)


@lower_builtin("static_getitem", MatchType, types.Any)
def _static_item(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    taken = _group_of(sig.args[0], sig.args[0].number(args[1]))
    return context.compile_internal(builder, taken, signature(sig.return_type, sig.args[0]), [args[0]])


@overloads_method(MatchType, "group")
def _group(match: Any, group: Any = 0) -> Any:
    number = 0 if isinstance(group, types.Omitted | int) else match.number(group)
    taken = register_jitable(_group_of(match, number))
    return lambda match, group=0: taken(match)


def _declare_bound(name: str, which: int) -> None:
    @overloads_method(MatchType, name)
    def _bound(match: Any, group: Any = 0) -> Any:
        number = 0 if isinstance(group, types.Omitted | int) else match.number(group)
        place = 2 * number + which

        def bound(match: Any, group: Any = 0) -> Any:
            if not _found(match):
                raise AttributeError("'NoneType' object has no such attribute")
            offset = match_spans(match)[place]
            return -1 if offset < 0 else count_points(_text(match), 0, offset)

        return bound


_declare_bound("start", 0)
_declare_bound("end", 1)
