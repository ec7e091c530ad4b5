"""Patterns over a whole text: sub, findall, split and finditer, from match to match as in CPython.

findall and split return lazy sequences, which can be iterated, counted, indexed and searched; finditer returns matches.
A replacement has to be a constant text; it is parsed when the function is compiled.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import hashlib
import operator
import re
import struct
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import RefType, iternext_impl, lower_builtin
from numba.core.types.common import SimpleIteratorType

from rayelastic.compile.lowering.base import engine
from rayelastic.compile.lowering.base.declare import (
    MUTABLE,
    constants,
    membership,
    overloads,
    overloads_method,
    primitive,
    stand_in,
    structure,
)
from rayelastic.compile.lowering.base.refusal import refuse
from rayelastic.compile.lowering.base.views import TEXT, literal_data, make_view, parts
from rayelastic.compile.lowering.regular.matches import MatchType, Pattern, PatternType, handle_of, searched
from rayelastic.compile.lowering.regular.patterns import NoPatternError
from rayelastic.compile.reasons import Code, packed

I32, I64 = ir.IntType(32), ir.IntType(64)
POINTER = ir.IntType(8).as_pointer()
_ADVANCE = 4  # REL_PATTERN_ADVANCE


# --- sub ------------------------------------------------------------------------------------------------------------


class Substitution:
    """A pattern and its replacement."""

    def __init__(self, pattern: Pattern, replacement: bytes) -> None:
        self.pattern, self.replacement = pattern, replacement


class SubstitutionType(types.Type):
    """Carries both."""

    def __init__(self, value: Substitution) -> None:
        self.pattern = PatternType(value.pattern.made, value.pattern.pattern)
        self.replacement = value.replacement
        super().__init__(name=f"{self.pattern.name} by {hashlib.sha256(value.replacement).hexdigest()[:16]}")


constants(Substitution, SubstitutionType, SubstitutionType)


def substitution(pattern: Pattern, replacement: str) -> Substitution:
    """Prepare `pattern.sub(replacement, ..)`.

    Raises:
        NoPatternError: The replacement is invalid; the message has the reason.
    """
    try:
        template: Any = _parser.parse_template(replacement, pattern.pattern)
    except (re.error, IndexError) as error:
        raise NoPatternError(Code.INVALID, what=f"the replacement {replacement!r}", error=str(error)) from None
    if isinstance(template, tuple):  # Python 3.11: groups by position, and literals with None there
        groups, literals = dict(template[0]), template[1]
        pieces = [(groups.get(at, -1), literals[at] or "") for at in range(len(literals))]
    else:  # literal, group, literal, ..
        pieces = [(piece, "") if isinstance(piece, int) else (-1, piece) for piece in template]
    written = b""
    for group, literal in pieces:
        raw = literal.encode()
        written += struct.pack("<ii", group, len(raw)) + raw
    return Substitution(pattern, written)


@primitive
def substitute(typingctx: Any, made: Any, text: Any, count: Any) -> Any:
    """Return the text that rel_pattern_sub makes, in memory of this call."""
    if not isinstance(made, SubstitutionType) or text != TEXT:
        raise TypingError(packed(what=f"sub() in {text}"))

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        handle = handle_of(builder, made.pattern)
        data, size = parts(context, builder, TEXT, args[1])
        out = cgutils.alloca_once(builder, POINTER)
        raw = made.replacement
        arguments = (handle, data, size, literal_data(builder.module, raw), I64(len(raw)), args[2], out)
        written = engine.pattern_sub(builder, *arguments)
        with builder.if_then(builder.icmp_signed("<", written, I64(0)), likely=False):
            refuse(builder)
        memory = engine.allocate(builder, engine.current_context(builder), written)
        with builder.if_then(cgutils.is_null(builder, memory), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ())
        cgutils.raw_memcpy(builder, memory, builder.load(out), written, 1)
        return make_view(context, builder, TEXT, memory, written)

    return TEXT(made, text, types.int64), codegen


@stand_in
def sub(made: Any, string: Any, count: Any = 0) -> Any:
    """Stand in for sub of a pattern whose replacement is known (regular_calls.py)."""
    return lambda made, string, count=0: substitute(made, string, count)


# --- findall, split, finditer ---------------------------------------------------------------------------------------


class ScanType(types.IterableType):
    """The matches of a pattern in a text, or the texts between them."""

    def __init__(self, pattern: PatternType, kind: str) -> None:
        self.pattern, self.kind = pattern, kind
        super().__init__(name=f"{kind} of {pattern.name}")

    @property
    def dtype(self) -> Any:
        """The type of an item."""
        groups = self.pattern.made.groups
        if self.kind == "finditer":
            return MatchType(self.pattern)
        return types.UniTuple(TEXT, groups) if self.kind == "findall" and groups > 1 else TEXT

    @property
    def iterator_type(self) -> ScanIterator:
        """The type of iter()."""
        return ScanIterator(self)


class ScanIterator(SimpleIteratorType):
    """A position."""

    def __init__(self, scan: ScanType) -> None:
        self.scan = scan
        super().__init__(name=f"iter({scan})", yield_type=scan.dtype)


# The text, and the number of splits; negative for all.
structure(ScanType, lambda _: [("text", TEXT), ("cuts", types.int64)])

# The scan, the start of the next search (-1: no more), its mode, and the splits left.
structure(ScanIterator, lambda kind: [("scan", kind.scan), ("at", MUTABLE), ("mode", MUTABLE), ("cuts", MUTABLE)])


def _declare(kind: str) -> None:
    @primitive
    def scan(typingctx: Any, pattern: Any, text: Any, cuts: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            value = cgutils.create_struct_proxy(sig.return_type)(context, builder)
            value.text, value.cuts = args[1], args[2]
            return value._getvalue()

        return ScanType(pattern, kind)(pattern, text, types.int64), codegen

    if kind == "split":

        @overloads_method(PatternType, kind)
        def _split(pattern: Any, string: Any, maxsplit: Any = 0) -> Any:
            if string != TEXT:
                return None
            if pattern.made.groups:
                raise TypingError(packed(what="split() by a pattern with groups"))
            return lambda pattern, string, maxsplit=0: scan(pattern, string, -1 if maxsplit == 0 else max(maxsplit, 0))

    else:

        @overloads_method(PatternType, kind)
        def _all(pattern: Any, string: Any) -> Any:
            return (lambda pattern, string: scan(pattern, string, -1)) if string == TEXT else None


for _kind in ("findall", "split", "finditer"):
    _declare(_kind)


@lower_builtin("getiter", ScanType)
def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    iterator = context.make_helper(builder, sig.return_type)
    iterator.scan = args[0]
    iterator.at = cgutils.alloca_once_value(builder, I64(0))
    iterator.mode = cgutils.alloca_once_value(builder, I64(0))
    iterator.cuts = cgutils.alloca_once_value(builder, builder.extract_value(args[0], 1))
    return iterator._getvalue()


@lower_builtin("iternext", ScanIterator)
@iternext_impl(RefType.UNTRACKED)
def _iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    scan = sig.args[0].scan
    iterator = context.make_helper(builder, sig.args[0], value=args[0])
    text = builder.extract_value(iterator.scan, 0)
    at, cuts = builder.load(iterator.at), builder.load(iterator.cuts)
    goes_on = builder.icmp_signed(">=", at, I64(0))
    wanted = builder.and_(goes_on, builder.icmp_signed("!=", cuts, I64(0)))
    found = searched(context, builder, scan.pattern, text, at, builder.trunc(builder.load(iterator.mode), I32), wanted)
    match = cgutils.create_struct_proxy(MatchType(scan.pattern))(context, builder, value=found)
    start, stop = (builder.extract_value(match.spans, place) for place in (0, 1))
    is_match = cgutils.as_bool_bit(builder, match.found)
    builder.store(builder.select(is_match, stop, I64(-1)), iterator.at)
    is_empty = builder.icmp_signed("==", start, stop)
    builder.store(builder.select(is_empty, I64(_ADVANCE), I64(0)), iterator.mode)
    builder.store(builder.sub(cuts, I64(1)), iterator.cuts)
    result.set_valid(goes_on if scan.kind == "split" else is_match)
    result.yield_(_item(context, builder, scan, text, match, at))


def _item(context: Any, builder: Any, scan: ScanType, text: Any, match: Any, at: Any) -> Any:
    """Return the item of a match; of split the text before it, or the rest of the text."""
    data, size = parts(context, builder, TEXT, text)

    def cut(start: Any, stop: Any) -> Any:
        """Return the text between two offsets; empty for a group that took no part, whose offsets are both -1."""
        none = builder.icmp_signed("<", start, I64(0))
        begin = builder.select(none, I64(0), start)
        return make_view(context, builder, TEXT, builder.gep(data, [begin]), builder.sub(stop, start))

    if scan.kind == "finditer":
        return match._getvalue()
    if scan.kind == "split":
        is_match = cgutils.as_bool_bit(builder, match.found)
        return cut(at, builder.select(is_match, builder.extract_value(match.spans, 0), size))
    groups = scan.pattern.made.groups
    wanted = range(1, groups + 1) if groups else (0,)
    bounds = [[builder.extract_value(match.spans, 2 * group + side) for side in (0, 1)] for group in wanted]
    items = [cut(start, stop) for start, stop in bounds]
    return items[0] if len(items) == 1 else context.make_tuple(builder, scan.dtype, items)


# --- other operations of a list -------------------------------------------------------------------------------------


def _is_list(scan: Any) -> bool:
    return isinstance(scan, ScanType) and scan.kind != "finditer"


@overloads(len)
def _len(scan: Any) -> Any:
    if not _is_list(scan):
        return None

    def count(scan: Any) -> Any:
        items = 0
        for _ in scan:
            items += 1
        return items

    return count


@overloads(bool)
def _bool(scan: Any) -> Any:
    if not _is_list(scan):
        return None

    def any_item(scan: Any) -> Any:
        for _ in scan:
            return True
        return False

    return any_item


@overloads(operator.not_)
def _not(scan: Any) -> Any:
    return (lambda scan: not bool(scan)) if _is_list(scan) else None


@overloads(operator.getitem)
def _getitem(scan: Any, index: Any) -> Any:
    if not _is_list(scan) or not isinstance(index, types.Integer):
        return None

    def item(scan: Any, index: Any) -> Any:
        if index < 0:
            index += len(scan)
        if index >= 0:
            for entry in scan:
                if index == 0:
                    return entry
                index -= 1
        raise IndexError("list index out of range")

    return item


membership(lambda items, wanted: _is_list(items) and wanted == items.dtype)
