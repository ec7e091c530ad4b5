"""Conversion of datetime and date from and to text: strptime and strftime with constant formats, fromisoformat.

strptime matches the regular expression that Python makes of the format. Directives that depend on a locale or a time
zone aren't compiled. Forms of ISO 8601 other than `2020-05-17` and `2020-05-17T03:04[:05[.678[901]]]` are rejected.
"""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import _strptime  # type: ignore[import-not-found]
import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import constants, overloads_method, primitive, stand_in
from rayelastic.compile.lowering.base.moment_types import PointType
from rayelastic.compile.lowering.base.optional import present
from rayelastic.compile.lowering.base.refusal import refuse_if
from rayelastic.compile.lowering.base.views import TEXT, TextLiteral, byte_at, cut, new_view, put_byte, size_of
from rayelastic.compile.lowering.regular.matches import MatchType, Pattern, PatternType, constant, match_spans, searched
from rayelastic.compile.lowering.regular.patterns import NoPatternError
from rayelastic.compile.lowering.text.format import put_number
from rayelastic.compile.lowering.text.numbers import int_of_text
from rayelastic.compile.lowering.times.moments import (
    civil,
    date,
    day_number,
    day_of,
    made,
    microseconds,
    moment,
    new_date,
    new_datetime,
)
from rayelastic.compile.lowering.times.times_of_day import combined
from rayelastic.compile.reasons import Code, packed

_WIDTHS = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2, "f": 6, "y": 2, "j": 3, "%": 1}
_PARSED = "YymdHMSf"


# --- strptime -------------------------------------------------------------------------------------------------------


class Parser:
    """A format of strptime."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern


class ParserType(types.Type):
    """Carries the pattern; its groups have the names of the directives."""

    def __init__(self, value: Parser) -> None:
        self.pattern = PatternType(value.pattern.made, value.pattern.pattern)
        super().__init__(name=f"strptime by {self.pattern.name}")


constants(Parser, ParserType, ParserType)


def parser(written: str) -> Parser:
    """Compile a format of strptime.

    Raises:
        NoPatternError: It can't be compiled; the message has the reason.
    """
    directives = re.findall("%(.?)", written.replace("%%", ""))
    if not set(directives) <= set(_PARSED):
        raise NoPatternError(Code.DIRECTIVES, directives=[f"%{letter}" for letter in _PARSED])
    if len({"Y", "y"} & set(directives)) != 1:
        raise NoPatternError(Code.UNSUPPORTED, what="strptime without one year, %Y or %y,")
    try:
        return Parser(constant(re.compile(_strptime.TimeRE().pattern(written), re.IGNORECASE)))
    except re.error as error:
        raise NoPatternError(Code.INVALID, what=f"the format {written!r} of strptime", error=str(error)) from None


@primitive
def _matched(typingctx: Any, parser: Any, text: Any) -> Any:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        i32, i64 = ir.IntType(32), ir.IntType(64)
        return searched(context, builder, parser.pattern, args[1], i64(0), i32(1))

    return MatchType(parser.pattern)(parser, text), codegen


@stand_in
def parsed(parser: Any, text: Any) -> Any:
    """Stand in for datetime.strptime of a known format (regular_calls.py)."""
    if not isinstance(parser, ParserType) or text != TEXT:
        raise TypingError(packed(what="strptime of this"))
    groups = parser.pattern.made.names
    part = {name: _part(groups[name]) if name in groups else None for name in _PARSED}
    year_4, year_2, months, days = part["Y"], part["y"], part["m"] or _one, part["d"] or _one
    hours, minutes, seconds = part["H"] or _nothing, part["M"] or _nothing, part["S"] or _nothing
    years = year_4 or _century(year_2)
    fractions = _fraction(groups["f"]) if "f" in groups else _nothing

    def read(parser: Any, text: Any) -> Any:
        match = _matched(parser, text)
        spans = match_spans(match)
        if not match or spans[1] != size_of(text):
            raise ValueError("time data does not match format")
        return made(
            years(text, spans), months(text, spans), days(text, spans), hours(text, spans), minutes(text, spans),
            seconds(text, spans), fractions(text, spans),
        )  # fmt: skip

    return read


@register_jitable
def _one(text: Any, spans: Any) -> int:
    return 1


@register_jitable
def _nothing(text: Any, spans: Any) -> int:
    return 0


def _part(group: int) -> Callable[..., int]:
    low, high = 2 * group, 2 * group + 1
    return register_jitable(lambda text, spans: int_of_text(cut(text, spans[low], spans[high]), 10))


def _century(two: Any) -> Callable[..., int]:
    """Return the year of %y: 69 to 99 are in the 20th century."""
    return register_jitable(lambda text, spans: two(text, spans) + (2000 if two(text, spans) <= 68 else 1900))


def _fraction(group: int) -> Callable[..., int]:
    low, high = 2 * group, 2 * group + 1

    def fraction(text: Any, spans: Any) -> int:
        number = int_of_text(cut(text, spans[low], spans[high]), 10)
        for _ in range(6 - (spans[high] - spans[low])):
            number *= 10
        return number

    return register_jitable(fraction)


# --- fromisoformat: Modules/_datetimemodule.c, 3.11 -----------------------------------------------------------------


@register_jitable
def _digits(text: Any, at: int, count: int) -> int:
    """Return the number of so many ASCII digits; raise for other characters."""
    number = 0
    for place in range(at, at + count):
        digit = byte_at(text, place) - 48
        if digit < 0 or digit > 9:
            raise ValueError("Invalid isoformat string")
        number = number * 10 + digit
    return number


@register_jitable
def _iso_day(text: Any) -> int:
    """Return the day of the first ten bytes."""
    if size_of(text) < 7:
        raise ValueError("Invalid isoformat string")
    year, mark = _digits(text, 0, 4), byte_at(text, 4)
    refuse_if(mark == 87 or (mark >= 48 and mark <= 57) or (mark == 45 and byte_at(text, 5) == 87))  # W, digits, -W
    if mark != 45 or size_of(text) < 10:
        raise ValueError("Invalid isoformat string")
    month, after = _digits(text, 5, 2), byte_at(text, 7)
    if after != 45:
        raise ValueError("Invalid isoformat string")
    return day_of(year, month, _digits(text, 8, 2))


@register_jitable
def _iso_time(text: Any) -> int:
    """Return the microseconds of the text after the eleventh byte, in forms that all versions of Python share."""
    size = size_of(text)
    refuse_if(byte_at(text, 10) >= 128 or (size != 13 and size != 16 and size != 19 and size != 23 and size != 26))
    for at in range(11, size):
        byte = byte_at(text, at)
        refuse_if(byte == 43 or byte == 45 or byte == 90)  # + - Z: a time zone
    hour, minute, second, micro = _digits(text, 11, 2), 0, 0, 0
    refuse_if(hour == 24)
    if size > 13:
        refuse_if(byte_at(text, 13) != 58)
        minute = _digits(text, 14, 2)
    if size > 16:
        refuse_if(byte_at(text, 16) != 58)
        second = _digits(text, 17, 2)
    if size > 19:
        refuse_if(byte_at(text, 19) != 46)
        micro = _digits(text, 20, size - 20) * (1000 if size == 23 else 1)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError("hour must be in 0..23")
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micro


@stand_in
def moment_of_text(text: Any) -> Any:
    """Stand in for datetime.fromisoformat."""
    if text != TEXT:
        return None

    def read(text: Any) -> Any:
        day = _iso_day(text)
        return moment(day * 86_400_000_000 + (_iso_time(text) if size_of(text) > 10 else 0))

    return read


@stand_in
def date_of_text(text: Any) -> Any:
    """Stand in for date.fromisoformat."""
    if text != TEXT:
        return None

    def read(text: Any) -> Any:
        size = size_of(text)
        if size != 7 and size != 8 and size != 10:
            raise ValueError("Invalid isoformat string")
        return date(_iso_day(text))

    return read


# --- strftime -------------------------------------------------------------------------------------------------------


def check_format(form: str) -> None:
    """Check a format of strftime.

    Raises:
        NoPatternError: A directive isn't supported.
    """
    if "\0" in form or set(re.findall("%(.?)", form.replace("%%", ""), re.DOTALL)) - set(_WIDTHS):
        raise NoPatternError(Code.DIRECTIVES, directives=[f"%{letter}" for letter in _WIDTHS])


_LIKE = TextLiteral("")
_Y, _M, _D, _HOUR, _MINUTE, _SECOND, _F, _YY, _J = (ord(letter) for letter in "YmdHMSfyj")


@register_jitable
def _width(letter: int) -> int:
    if letter == _Y:
        return 4
    if letter == _F:
        return 6
    return 3 if letter == _J else 1 if letter == 37 else 2


@register_jitable
def _directive(letter: int, number: int) -> int:
    """Return the number that a directive writes."""
    year, month, day = civil(day_number(number))
    if letter == _Y:
        return year
    if letter == _YY:
        return year % 100
    if letter == _M:
        return month
    if letter == _D:
        return day
    if letter == _J:
        return day_number(number) - day_of(year, 1, 1) + 1
    if letter == _HOUR:
        return number // 3_600_000_000 % 24
    if letter == _MINUTE:
        return number // 60_000_000 % 60
    return number // 1_000_000 % 60 if letter == _SECOND else number % 1_000_000


@overloads_method(PointType, "strftime")
def _strftime(value: Any, form: Any) -> Any:
    """Exist for its type only; it is never called."""


@stand_in
def written(value: Any, form: Any) -> Any:
    """Stand in for value.strftime(form), which is known and checked (regular_calls.py)."""
    if not isinstance(value.type if isinstance(value, types.Optional) else value, PointType):
        raise TypingError(packed(what="strftime of this"))

    def write(value: Any, form: Any) -> Any:
        refuse_if(value is None)
        number = microseconds(present(value))
        refuse_if(civil(day_number(number))[0] < 1000)  # the C library decides what %Y writes
        size, at = 0, 0
        while at < size_of(form):
            if byte_at(form, at) == 37:
                at += 1
                size += _width(byte_at(form, at))
            else:
                size += 1
            at += 1
        made_text = new_view(_LIKE, size)
        at, place = 0, 0
        while at < size_of(form):
            byte = byte_at(form, at)
            letter = byte_at(form, at + 1) if byte == 37 else 37
            if letter == 37:
                put_byte(made_text, place, byte)
                place += 1
            else:
                put_number(made_text, place, _width(letter), _directive(letter, number))
                place += _width(letter)
            at += 2 if byte == 37 else 1
        return made_text

    return write


# --- other operations of the classes --------------------------------------------------------------------------------


@overloads_method(PointType, "isocalendar")
def _isocalendar(value: Any) -> Any:
    def calendar(value: Any) -> Any:
        day = day_number(microseconds(value))
        weekday = (day + 3) % 7
        thursday = day - weekday + 3
        year = civil(thursday)[0]
        return year, (thursday - day_of(year, 1, 1)) // 7 + 1, weekday + 1

    return calendar


class ClassMethod:
    """A class method of datetime whose other argument has to be constant."""

    def __init__(self, name: str) -> None:
        self.name = name


class ClassMethodType(types.Type):
    """No value: calls of it are replaced."""


constants(ClassMethod, ClassMethodType, lambda value: ClassMethodType(name=value.name))


# The replacements of the classes' attributes.
CLASS_ATTRIBUTES: dict[tuple[Any, str], Any] = {
    (new_datetime, "strptime"): ClassMethod("strptime"),
    (new_datetime, "fromisoformat"): moment_of_text,
    (new_date, "fromisoformat"): date_of_text,
    (new_datetime, "combine"): combined,
    (new_datetime, "min"): dt.datetime.min,  # noqa: DTZ901
    (new_datetime, "max"): dt.datetime.max,  # noqa: DTZ901
    (new_date, "min"): dt.date.min,
    (new_date, "max"): dt.date.max,
}
