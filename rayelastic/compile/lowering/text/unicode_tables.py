"""Tables of Unicode for the engine's text services (text.h), made of the running Python's own str, so that both agree.

Made when first needed: about a tenth of a second; the tables that are used become part of the compiled code. Knows no
Numba.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any

__all__ = ["bytes_class", "cased", "class_of", "ignorable", "mapping", "replacements"]

_BLOCK = 128  # characters that are looked at together: most blocks have nothing in them
_MOST = 8  # bytes of what one character becomes
_EVERYWHERE = (range(0x80, 0xD800), range(0xE000, 0x110000))
# Where cased and case-ignorable characters are (Unicode 16 and earlier): not among ideographs and private use.
_SCRIPTS = (range(0x80, 0x3100), range(0xA000, 0xD800), range(0xF900, 0x20000), range(0xE0000, 0xE0200))
_SIGMA, _SMALL, _FINAL = "\u03a3", "\u03c3", "\u03c2"


@functools.cache
def mapping(name: str) -> bytes:
    """Characters beyond ASCII that a method of str changes, with what they become: rel_text_mapping."""
    method: Callable[[str], str] = getattr(str, name)
    found: dict[int, str] = {}
    for part in _EVERYWHERE:
        for start in range(part.start, part.stop, _BLOCK):
            characters = [chr(c) for c in range(start, start + _BLOCK)]
            block = " ".join(characters)  # each begins a word
            if method(block) != block:
                found |= {ord(c): method(c) for c in characters if method(c) != c}
    return _packed(found) or b""


def replacements(table: Mapping[Any, Any]) -> bytes | None:
    """What str.translate() gets, as rel_text_mapping; None if it isn't of characters, or one becomes too many."""
    try:
        changes = {ord(chr(point)): chr(by) if isinstance(by, int) else by or "" for point, by in table.items()}
        return _packed(changes)
    except (TypeError, ValueError, OverflowError):
        return None


def _packed(changes: dict[int, str]) -> bytes | None:
    made = {point: by.encode() for point, by in sorted(changes.items())}
    if any(len(raw) > _MOST for raw in made.values()):
        return None
    return b"".join(struct.pack("<II8s", point, len(raw), raw) for point, raw in made.items())


def _class(test: Callable[[str], bool], where: Iterable[range]) -> bytes:
    """Bits for ASCII, then sorted borders beyond it: what text.h calls a class."""
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
    """Return the class of characters of which a method of str says so.

    `identifier part` is what may stand in an identifier behind its beginning, `title` what is neither upper nor lower.
    """
    if name == "identifier part":
        return _class(lambda c: ("a" + c).isidentifier(), _EVERYWHERE)
    if name == "title":
        return _class(lambda c: c.istitle() and not c.isupper(), _SCRIPTS)
    return _class(getattr(str, name), _SCRIPTS if name in ("isupper", "islower") else _EVERYWHERE)


@functools.cache
def bytes_class(name: str) -> bytes:
    """Return the class of bytes of which a method of bytes says so: ASCII alone."""
    if name == "title":
        return bytes(16)
    return _class(lambda c: bool(getattr(c.encode(), name)()), ())


@functools.cache
def cased() -> bytes:
    """Unicode's Cased, asked of Python: what makes title() go on with a small letter."""
    return _class(lambda c: (c + "a").title()[-1] == "a", _SCRIPTS)


@functools.cache
def ignorable() -> bytes:
    """Unicode's Case_Ignorable, asked of Python: what a capital sigma skips where it looks for the end of its word."""
    return _class(lambda c: ("A" + c + _SIGMA).lower()[-1] == _FINAL and (c + _SIGMA).lower()[-1] == _SMALL, _SCRIPTS)
