"""lower, upper, title and so on, and the predicates isdigit, isalpha, ... of str and bytes."""

from __future__ import annotations

from collections.abc import Sequence

from numba.core import types

from rayelastic.compile.lowering.base.services import is_bytes
from rayelastic.compile.lowering.base.views import TEXT, ViewType
from rayelastic.compile.lowering.text import unicode_tables as tables
from rayelastic.compile.lowering.text.methods import Method, declare

# A method: rel_text_case, and the methods that convert characters, and those at the start of a word.
_CASES = {
    "lower": (0, "lower", ""),
    "upper": (1, "upper", ""),
    "casefold": (2, "casefold", ""),
    "swapcase": (3, "swapcase", ""),
    "capitalize": (4, "lower", "title"),
    "title": (5, "lower", "title"),
}
_SIGMA_MATTERS = ("lower", "swapcase", "capitalize", "title")

# A predicate: the classes of the first character and of all others, and the answer for an empty text.
_QUESTIONS = {
    **{name: (name, name, 0) for name in ("isalpha", "isdigit", "isalnum", "isspace", "isdecimal", "isnumeric")},
    "isascii": ("isascii", "isascii", 1),
    "isprintable": ("isprintable", "isprintable", 1),
    "isidentifier": ("isidentifier", "identifier part", 0),
}
_OF_BYTES_TOO = ("isalpha", "isdigit", "isalnum", "isspace", "isascii")


def _declare_case(name: str, how: int, mapping: str, initial: str) -> None:
    def constants(view: ViewType) -> Sequence[int | bytes]:
        if view != TEXT:
            return how, 1, b"", b"", b"", b""
        sigma = (tables.cased(), tables.ignorable()) if name in _SIGMA_MATTERS else (bytes(16), bytes(16))
        return how, 0, tables.mapping(mapping), tables.mapping(initial) if initial else b"", *sigma

    of = ("str",) if name == "casefold" else ("str", "bytes")
    declare(name, Method("rel_text_change_case", (), constants, of=of))


def _declare_question(name: str, first: str, rest: str, when_empty: int) -> None:
    def constants(view: ViewType) -> Sequence[int | bytes]:
        class_of = tables.class_of if view == TEXT else tables.bytes_class
        return when_empty, is_bytes(view), class_of(first), class_of(rest)

    of = ("str", "bytes") if name in _OF_BYTES_TOO else ("str",)
    declare(name, Method("rel_text_is_of", (), constants, types.boolean, of=of))


def _declare_cased(name: str, which: int) -> None:
    def constants(view: ViewType) -> Sequence[int | bytes]:
        class_of = tables.class_of if view == TEXT else tables.bytes_class
        return which, is_bytes(view), class_of("isupper"), class_of("islower"), class_of("title")

    declare(name, Method("rel_text_is_cased", (), constants, types.boolean))


for _name, _case in _CASES.items():
    _declare_case(_name, *_case)
for _name, _question in _QUESTIONS.items():
    _declare_question(_name, *_question)
for _which, _name in enumerate(("isupper", "islower", "istitle")):
    _declare_cased(_name, _which)
