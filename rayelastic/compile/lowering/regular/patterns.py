r"""Translates a pattern of Python's `re` to one of PCRE2 that matches the same texts in the same places.

It is written from the parsed pattern. `\w`, `\d`, `\s` and letters without case become the exact characters of Python's
own tables. So the Unicode versions of the libraries don't matter. Constructs that both treat differently are rejected:
groups inside repetitions, repetitions of possibly empty parts, and rare ones. Knows no Numba.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from re import _casefix, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from rayelastic.compile.reasons import Code, packed

_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.ASCII | re.UNICODE
_MOST_RANGE = 512  # characters of a range whose case is looked up one by one


class NoPatternError(Exception):
    """The reason why a pattern isn't compiled: a feature, or another code."""

    def __init__(self, code: Code = Code.PATTERN, **values: Any) -> None:
        super().__init__(*values.values())
        self.code, self.values = code, values

    def of(self, what: str) -> str:
        """Return the reason why something with this pattern isn't compiled, as the message of an error."""
        return packed(self.code, **{"what": what, **self.values})


@dataclass(frozen=True, slots=True)
class Translated:
    """A pattern for PCRE2.

    Args:
        text: The pattern's text.
        groups: The number of groups, without the whole match.
        names: Names of groups, with their numbers.
        certain: Numbers of the groups that take part in every match.
    """

    text: str
    groups: int
    names: dict[str, int]
    certain: frozenset[int]


def translated(pattern: re.Pattern[str]) -> Translated:
    """Translate a pattern for PCRE2.

    Raises:
        NoPatternError: No pattern is surely equivalent.

    >>> translated(re.compile("a(b|c)+x")).text
    Traceback (most recent call last):
    rayelastic.compile.lowering.regular.patterns.NoPatternError: a group inside a repetition
    >>> translated(re.compile("(?P<key>a.)=", re.DOTALL)).certain
    frozenset({1})
    """
    if not isinstance(pattern.pattern, str):
        raise NoPatternError(feature="bytes")
    if pattern.flags & ~_FLAGS:
        raise NoPatternError(feature="flags other than I, M, S, X and A")
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE if pattern.flags & re.ASCII else pattern.flags)
    writer = _Writer()
    text = writer.sequence(parsed, pattern.flags, certain=True, repeated=False)
    return Translated(text, pattern.groups, dict(pattern.groupindex), frozenset(writer.certain))


class _Writer:
    def __init__(self) -> None:
        self.certain: set[int] = set()

    def sequence(self, items: Any, flags: int, *, certain: bool, repeated: bool) -> str:
        return "".join(self.item(op, given, flags, certain, repeated) for op, given in items)

    def item(self, op: Any, given: Any, flags: int, certain: bool, repeated: bool) -> str:
        name = str(op)
        if name == "LITERAL":
            return _one({given}, flags)
        if name == "NOT_LITERAL":
            return "[^" + _members(_caseless({given}, flags)) + "]"
        if name == "ANY":
            return "(?s:.)" if flags & re.DOTALL else "[^\\x{a}]"
        if name == "IN":
            return _class(given, flags)
        if name == "AT":
            return _place(str(given), flags)
        if name == "BRANCH":
            return "(?:" + "|".join(self.sequence(b, flags, certain=False, repeated=repeated) for b in given[1]) + ")"
        if name == "SUBPATTERN":
            return self._group(given, flags, certain, repeated)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            return self._repeat(name, given, flags, certain, repeated)
        if name == "ATOMIC_GROUP":
            return "(?>" + self.sequence(given, flags, certain=certain, repeated=repeated) + ")"
        if name in ("ASSERT", "ASSERT_NOT"):
            if any(str(o) == "SUBPATTERN" and v[0] is not None for o, v in given[1]):
                raise NoPatternError(feature="a group inside a look-around")
            sign = ("<" if given[0] < 0 else "") + ("=" if name == "ASSERT" else "!")
            return f"(?{sign}" + self.sequence(given[1], flags, certain=False, repeated=True) + ")"
        if name == "GROUPREF" and not flags & re.IGNORECASE:
            return f"\\g{{{given}}}"
        raise NoPatternError(feature=name.lower().replace("_", " "))

    def _group(self, given: Any, flags: int, certain: bool, repeated: bool) -> str:
        number, add, remove, items = given
        flags = (flags | add) & ~remove
        if number is None:
            return "(?:" + self.sequence(items, flags, certain=certain, repeated=repeated) + ")"
        if repeated:
            raise NoPatternError(feature="a group inside a repetition")
        if certain:
            self.certain.add(number)
        return "(" + self.sequence(items, flags, certain=certain, repeated=repeated) + ")"

    def _repeat(self, name: str, given: Any, flags: int, certain: bool, repeated: bool) -> str:
        least, most, items = given
        if most != 1 and items.getwidth()[0] == 0:
            raise NoPatternError(feature="a repetition of what may be empty")
        written = self.sequence(items, flags, certain=certain and least > 0, repeated=repeated or most != 1)
        upper = "" if most is _constants.MAXREPEAT else str(most)
        if least > 60_000 or (upper and int(upper) > 60_000):
            raise NoPatternError(feature="more than 60,000 repetitions")
        suffix = {"MAX_REPEAT": "", "MIN_REPEAT": "?", "POSSESSIVE_REPEAT": "+"}[name]
        return f"(?:{written}){{{least},{upper}}}{suffix}"


# --- characters -----------------------------------------------------------------------------------------------------


def _one(points: set[int], flags: int) -> str:
    found = _caseless(points, flags)
    return f"\\x{{{next(iter(found)):x}}}" if len(found) == 1 else "[" + _members(found) + "]"


def _members(points: set[int]) -> str:
    """Write code points as the inside of a class."""
    written, ordered = [], sorted(points)
    at = 0
    while at < len(ordered):
        end = at
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        written.append(f"\\x{{{ordered[at]:x}}}" + (f"-\\x{{{ordered[end]:x}}}" if end > at else ""))
        at = end + 1
    return "".join(written)


def _caseless(points: set[int], flags: int) -> set[int]:
    """Return all characters that match one of these in Python: itself, or without case all with its lower case."""
    if not flags & re.IGNORECASE:
        return points
    if flags & re.ASCII:
        return {ord(other) for c in points for other in (chr(c).lower(), chr(c).upper()) if c < 128} | points
    by_lower = _by_lower()
    lowered = {_lower(c) for c in points}
    lowered |= {other for c in lowered for other in _casefix._EXTRA_CASES.get(c, ())}
    return {c for one in lowered for c in by_lower.get(one, (one,))}


def _lower(point: int) -> int:
    import _sre  # type: ignore[import-not-found]

    lower: int = _sre.unicode_tolower(point)
    return lower


@functools.cache
def _by_lower() -> dict[int, tuple[int, ...]]:
    by_lower: dict[int, list[int]] = {}
    for point in range(0x20000):  # no cased letters above
        lowered = _lower(point)
        if lowered != point:
            by_lower.setdefault(lowered, [lowered]).append(point)
    return {lowered: tuple(points) for lowered, points in by_lower.items()}


@functools.cache
def _category(name: str, is_ascii: bool) -> str:
    """Write the characters that Python's own `re` counts as digits, words or space as the inside of a class."""
    pattern = re.compile({"DIGIT": "\\d", "WORD": "\\w", "SPACE": "\\s"}[name], re.ASCII if is_ascii else 0)
    points = {c for c in range(128 if is_ascii else 0x110000) if not 0xD800 <= c < 0xE000 and pattern.match(chr(c))}
    return _members(points)


def _class(items: Any, flags: int) -> str:
    negated, written = "", []
    points: set[int] = set()
    for op, given in items:
        name = str(op)
        if name == "NEGATE":
            negated = "^"
        elif name == "LITERAL":
            points.add(given)
        elif name == "RANGE":
            low, high = given
            if flags & re.IGNORECASE:
                if high - low > _MOST_RANGE:
                    raise NoPatternError(feature="a wide range of characters without case")
                points |= set(range(low, high + 1))
            else:
                written.append(f"\\x{{{low:x}}}-\\x{{{high:x}}}")
        elif name == "CATEGORY":
            written.append(_inside(str(given), flags))
        else:
            raise NoPatternError(feature=f"{name.lower()} in a class")
    return f"[{negated}{''.join(written)}{_members(_caseless(points, flags))}]"


def _inside(name: str, flags: int) -> str:
    kind = name.removeprefix("CATEGORY_")
    if kind.startswith("NOT_"):
        return _complement(kind.removeprefix("NOT_"), bool(flags & re.ASCII))
    return _category(kind, bool(flags & re.ASCII))


@functools.cache
def _complement(name: str, is_ascii: bool) -> str:
    pattern = re.compile({"DIGIT": "\\D", "WORD": "\\W", "SPACE": "\\S"}[name], re.ASCII if is_ascii else 0)
    return _members({c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and pattern.match(chr(c))})


def _place(name: str, flags: int) -> str:
    if name == "AT_BEGINNING":
        return "(?:\\A|(?<=\\x{a}))" if flags & re.MULTILINE else "\\A"
    if name == "AT_END":
        return "(?=\\x{a}|\\z)" if flags & re.MULTILINE else "(?=\\x{a}?\\z)"
    if name in ("AT_BEGINNING_STRING", "AT_END_STRING"):
        return "\\A" if name == "AT_BEGINNING_STRING" else "\\z"
    if name in ("AT_BOUNDARY", "AT_NON_BOUNDARY"):
        word = "[" + _category("WORD", bool(flags & re.ASCII)) + "]"
        inside, outside = f"(?<={word})", f"(?<!{word})"
        if name == "AT_BOUNDARY":
            return f"(?:{inside}(?!{word})|{outside}(?={word}))"
        return f"(?:{inside}(?={word})|{outside}(?!{word}))"
    raise NoPatternError(feature=name.lower().replace("_", " "))
