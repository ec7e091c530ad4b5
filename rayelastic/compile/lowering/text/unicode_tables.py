"""Unicode tables for the engine's text services (text.h), made from the running Python's own str, so that both agree.

They are made on first use, in about a tenth of a second, and the used ones become part of the compiled code. Knows no
Numba.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_BLOCK = 128  # characters that are tested together: most blocks have no match
_MOST = 8  # bytes that one character can become
_EVERYWHERE = (range(0x80, 0xD800), range(0xE000, 0x110000))
# The ranges of cased and case-ignorable characters (Unicode 16 and earlier): not among ideographs and private use.
_SCRIPTS = (range(0x80, 0x3100), range(0xA000, 0xD800), range(0xF900, 0x20000), range(0xE0000, 0xE0200))
_SIGMA, _SMALL, _FINAL = "\u03a3", "\u03c3", "\u03c2"


@functools.cache
def mapping(name: str) -> bytes:
    """Return the non-ASCII characters that a method of str changes, with their results: a rel_text_mapping."""
    method: Callable[[str], str] = getattr(str, name)
    changes: dict[int, str] = {}
    for part in _EVERYWHERE:
        for start in range(part.start, part.stop, _BLOCK):
            characters = [chr(c) for c in range(start, start + _BLOCK)]
            block = " ".join(characters)  # each at the start of a word
            if method(block) != block:
                changes |= {ord(c): method(c) for c in characters if method(c) != c}
    return _packed(changes) or b""


def replacements(table: Mapping[Any, Any]) -> bytes | None:
    """Return the table of str.translate() as a rel_text_mapping; None if it is invalid or too long."""
    try:
        changes = {ord(chr(point)): chr(by) if isinstance(by, int) else by or "" for point, by in table.items()}
        return _packed(changes)
    except (TypeError, ValueError, OverflowError):
        return None


def _packed(changes: dict[int, str]) -> bytes | None:
    encoded = {point: by.encode() for point, by in sorted(changes.items())}
    if any(len(raw) > _MOST for raw in encoded.values()):
        return None
    return b"".join(struct.pack("<II8s", point, len(raw), raw) for point, raw in encoded.items())


def _class(test: Callable[[str], bool], where: Iterable[range]) -> bytes:
    """Return bits for ASCII, then sorted borders beyond it: a class of text.h."""
    borders, inside = [], False
    for part in where:
        for c in part:
            if test(chr(c)) != inside:
                borders.append(c)
                inside = not inside
        if inside:
            borders.append(part.stop)
            inside = False
    bits = sum(1 << c for c in range(128) if test(chr(c)))
    return bits.to_bytes(16, "little") + struct.pack(f"<{len(borders)}I", *borders)


@functools.cache
def class_of(name: str) -> bytes:
    """Return the class of characters for which a method of str is true.

    `identifier part` is a character that may continue an identifier, `title` one that is neither upper nor lower.
    """
    if name == "identifier part":
        return _class(lambda c: ("a" + c).isidentifier(), _EVERYWHERE)
    if name == "title":
        return _class(lambda c: c.istitle() and not c.isupper(), _SCRIPTS)
    return _class(getattr(str, name), _SCRIPTS if name in ("isupper", "islower") else _EVERYWHERE)


@functools.cache
def bytes_class(name: str) -> bytes:
    """Return the class of bytes for which a method of bytes is true: ASCII alone."""
    if name == "title":
        return bytes(16)
    return _class(lambda c: bool(getattr(c.encode(), name)()), ())


@functools.cache
def cased() -> bytes:
    """Return Unicode's Cased, found through Python: it makes title() continue in lower case."""
    return _class(lambda c: (c + "a").title()[-1] == "a", _SCRIPTS)


@functools.cache
def ignorable() -> bytes:
    """Return Unicode's Case_Ignorable, found through Python: a capital sigma skips it to find the end of its word."""
    return _class(lambda c: ("A" + c + _SIGMA).lower()[-1] == _FINAL and (c + _SIGMA).lower()[-1] == _SMALL, _SCRIPTS)
