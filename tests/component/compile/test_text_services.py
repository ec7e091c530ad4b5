"""Methods of str and bytes that the engine does (text.h), against CPython's own: drawn texts, and every character."""

# ruff: noqa: UP028 -- functions as users write them

from __future__ import annotations

import sys
from typing import Any

import pytest
from harness import FLAT_MAP, MAP
from hypothesis import given
from hypothesis import strategies as st
from test_text import Pair, Raw, numbers, quick, related, same, same_of_texts, texts  # type: ignore[import-not-found]

from rayelastic.errors import LaneError
from tests.raising import check_reason, raises

CODES = str.maketrans({"a": "<>", "b": "\u00e4", "\u00df": "ss"})
OTHERS = str.maketrans("ab\u03a3", "xy\U0001d11e")


def padded(t):
    try:
        return t.a.ljust(t.i, t.b) + t.a.rjust(t.j, t.b) + t.a.center(t.i, t.b)
    except Exception:
        return "no"


def ascii_or_not(t):
    try:
        return t.a.encode("ascii")
    except Exception:
        return b"no"


def character(t):
    try:
        return chr(t.i)
    except Exception:
        return "no"


def in_base(t):
    try:
        return int(t.a, t.i)
    except Exception:
        return -1


def in_common_bases(t):
    for base in (0, 2, 8, 10, 16, 36):
        try:
            yield int(t.a, base)
        except Exception:
            yield -1


def decoded(t):
    try:
        yield t.a.decode()
    except Exception:
        yield "no"
    try:
        yield t.b.decode("US-ASCII")
    except Exception:
        yield "no"


def cut_from_right(t):
    for w in t.a.rsplit():
        yield w
    for w in t.a.rsplit(None, t.i):
        yield w
    for w in t.a.rsplit(",", maxsplit=t.j):
        yield w
    if t.b:
        for w in t.a.rsplit(t.b):
            yield w


def lines(t):
    for line in t.a.splitlines():
        yield line
    for line in t.a.splitlines(keepends=True):
        yield line
    kept = t.a.splitlines()
    yield str(len(kept)) + "|".join(kept[t.i :]) + "|".join(kept[-2 : t.j])
    if t.b in kept and kept:
        yield kept[-1]


METHODS = {
    "replace": lambda t: (t.a.replace(t.b, "<>", t.i), t.a.replace("a", t.b, t.j % 3), t.a.replace("", t.b, t.j)),
    "starts": lambda t: (t.a.startswith(t.b, t.i), t.a.startswith(t.b, t.i, t.j), t.a.startswith(("a", t.b), t.j)),
    "ends": lambda t: (t.a.endswith(t.b, t.i), t.a.endswith(t.b, t.i, t.j), t.a.endswith(("", "b"), t.j, t.i)),
    "count": lambda t: (t.a.count(t.b, t.i), t.a.count(t.b, t.i, t.j), t.a.count("", t.j), t.a.rfind(t.b, t.j)),
    "rindex": lambda t: t.a.rindex(t.b),
    "step": lambda t: (t.a[::-1], t.a[t.i : t.j : 2], t.a[:: t.i or 1], t.a[t.j :: -3], t.a[: t.i : -1]),
    "rpartition": lambda t: t.a.rpartition(t.b),
    "last": lambda t: (t.a.rsplit(",", 1)[-1], t.a.rsplit(",", 1)[0]),
    "pad": lambda t: (t.a.ljust(t.i), t.a.rjust(t.j, "\u00e4"), t.a.center(t.i), t.a.center(t.j, "*")),
    "fill": padded,
    "zfill": lambda t: (t.a.zfill(t.i), ("-" + t.a).zfill(t.j), ("+" + t.b).zfill(20)),
    "tabs": lambda t: (t.a.expandtabs(), t.a.expandtabs(t.i), ("\t" + t.b + "\r\u00e4\t").expandtabs(tabsize=t.j % 9)),
    "case": lambda t: (t.a.title(), t.a.capitalize(), t.a.casefold(), t.a.swapcase(), t.b.upper(), t.b.lower()),
    "cased": lambda t: (t.a.isupper(), t.a.islower(), t.a.istitle(), t.a.title().istitle(), t.b.upper().isupper()),
    "is": lambda t: (
        t.a.isascii(),
        t.a.isprintable(),
        t.b.isprintable(),
        t.b.isidentifier(),
        ("a" + t.b).isidentifier(),
    ),
    "translate": lambda t: (t.a.translate(CODES), t.b.translate(OTHERS)),
    "encode": lambda t: (t.a.encode("latin-1", "replace"), t.a.encode("ascii", errors="ignore"), t.b.encode().hex()),
    "encode strictly": ascii_or_not,
    "chr": character,
    "greatest": lambda t: (max(t.a, t.b), min(t.a, t.b), max("b", t.a, t.b), min(t.b, "\u00e4", t.a, t.b[:1])),
    "numbers": lambda t: (hex(t.i), oct(t.j), bin(t.i), chr(abs(t.j) + 200), ord(chr(abs(t.i)))),
}

BYTES = {
    "replace": lambda t: (t.a.replace(t.b, b"<>", t.i), t.a.replace(b"a", t.b), t.a.replace(b"", t.b, t.j)),
    "places": lambda t: (t.a.startswith(t.b, t.i, t.j), t.a.endswith((b"b", t.b), t.j), t.a.rfind(t.b), t.a.count(b"")),
    "step": lambda t: (t.a[::-1], t.a[t.i : t.j : 2], t.a[:: t.i or 1]),
    "pad": lambda t: (t.a.ljust(t.i), t.a.rjust(t.j, b"*"), t.a.center(t.i), t.a.zfill(t.j), t.a.expandtabs(t.j % 9)),
    "case": lambda t: (t.a.title(), t.a.capitalize(), t.a.swapcase(), t.a.upper(), t.a.istitle(), t.a.isupper()),
    "is": lambda t: (t.a.islower(), t.a.isalpha(), t.b.isalnum(), t.b.isspace(), t.b.isdigit(), t.b.isascii()),
    "decode": lambda t: (
        t.a.decode(errors="replace"),
        t.b.decode("utf8", "ignore"),
        t.a.decode("latin1"),
        t.a.decode("ascii", "replace"),
        t.b.decode("ascii", "ignore"),
        t.a.hex(),
    ),
    "from_bytes": lambda t: (
        int.from_bytes(t.a[:7], "big"),
        int.from_bytes(t.a[:8], "little", signed=True),
        int.from_bytes(b"\xff\xff\xff" + t.b[:6], "big", signed=True),
        ord(t.a[:1] or b"\0"),
    ),
    "rpartition": lambda t: t.a.rpartition(t.b),
}

raw = (
    st.binary(max_size=20) | st.text(max_size=8).map(str.encode) | st.sampled_from([b"\xe2\x82", b"\xf0\x9f\x98x\xff"])
)
digits = st.text(st.sampled_from("0123456789abcdefxXoObBzZ_+- \x1c\u0661"), max_size=12)


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_str(compiled: Any, name: str) -> None:
    same_of_texts(compiled(METHODS[name], Pair, MAP))


@pytest.mark.parametrize("function", [cut_from_right, lines])
def test_what_gives_several_texts(compiled: Any, function: Any) -> None:
    runner = compiled(function, Pair, FLAT_MAP)
    ends = st.text(st.sampled_from("a,\u00e4 \n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029\u2003"), max_size=12)

    @quick
    @given(st.lists(st.tuples(ends | texts, ends, numbers, numbers), max_size=6))
    def check(items: Any) -> None:
        same(runner, items)

    check()


@pytest.mark.parametrize("name", BYTES)
def test_methods_of_bytes(compiled: Any, name: str) -> None:
    runner = compiled(BYTES[name], Raw, MAP)

    @quick
    @given(st.lists(st.tuples(raw, raw, numbers, numbers), max_size=6))
    def check(items: Any) -> None:
        same(runner, items)
        same(runner, [(a.encode(), b.encode(), i, j) for a, b, i, j in related([("aB c\t", "c", 1, 2)])])

    check()


@pytest.mark.parametrize("function", [cut_from_right, lines])
def test_several_bytes(compiled: Any, function: Any) -> None:
    bytes_of = {cut_from_right: cut_bytes_from_right, lines: lines_of_bytes}[function]
    runner = compiled(bytes_of, Raw, FLAT_MAP)

    @quick
    @given(st.lists(st.tuples(st.text(st.sampled_from("a, \n\r\x0b\x1c\x85")).map(str.encode), raw, numbers, numbers)))
    def check(items: Any) -> None:
        same(runner, items)

    check()


def cut_bytes_from_right(t):
    for w in t.a.rsplit(None, t.i):
        yield w
    for w in t.a.rsplit(b",", t.j):
        yield w


def lines_of_bytes(t):
    for line in t.a.splitlines(True):
        yield line


def test_decoding_strictly(compiled: Any) -> None:
    runner = compiled(decoded, Raw, FLAT_MAP)

    @quick
    @given(st.lists(st.tuples(raw, raw, numbers, numbers), max_size=6))
    def check(items: Any) -> None:
        same(runner, items)

    check()


def test_ints_in_any_base(compiled: Any) -> None:
    one, several = compiled(in_base, Pair, MAP), compiled(in_common_bases, Pair, FLAT_MAP)

    @quick
    @given(st.lists(st.tuples(digits, digits, st.integers(-2, 40), numbers), max_size=6))
    def check(items: Any) -> None:
        same(one, items)
        same(several, items)

    check()
    edges = ["7fffffffffffffff", "-8000000000000000", "0x_1f", "0b_", "00_0", "010", "0B1", "-0O7", "0x", "z_z", "\x1f"]
    for base in (0, 2, 8, 16):
        same(one, [(text, "", base, 0) for text in edges])
    assert one([("8000000000000000", "", 16, 0)]).failed == 0, "beyond 64 bits"


def test_characters_by_number(compiled: Any) -> None:
    runner = compiled(character, Pair, MAP)
    same(runner, [("", "", i, 0) for i in (-1, 0, 127, 128, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF)])
    same(runner, [("", "", i, 0) for i in (0x110000, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1)])
    assert runner([("", "", 0xD800, 0)]).failed == 0, "a surrogate is no text"


# The planes in which there are cases and classes; of others whole blocks are asked below.
SCRIPTS = (range(0x3400), range(0xA000, 0xA500), range(0xA600, 0xAC00), range(0xF900, 0x12000), range(0x16000, 0x17000))
SCRIPTS += (range(0x1D000, 0x1F200), range(0xE0000, 0xE0200))  # type: ignore[assignment]


def test_case_of_every_character(compiled: Any) -> None:
    """Each code point behind a space and behind a letter, and behind a sigma."""
    runner = compiled(lambda t: (t.a.title(), t.a.swapcase(), t.a.casefold(), t.a.capitalize()), Pair, MAP)
    every = [chr(c) for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    blocks = [every[at : at + 128] for at in range(0, len(every), 128)]
    changed = [
        block
        for block in blocks
        if "".join(block).swapcase() != "".join(block) or "".join(block).title() != "".join(block)
    ]
    assert len(changed) > 20
    for between in (" ", "a", "\u03a3"):
        same(runner, [(between.join(block), "", 0, 0) for block in changed])
    same(runner, [(c, "", 0, 0) for block in changed for c in block])
    same(runner, [("".join(block), "", 0, 0) for block in blocks])


def test_classes_of_every_character(compiled: Any) -> None:
    runner = compiled(
        lambda t: (
            t.a.isprintable(),
            t.a.isidentifier(),
            t.b.isidentifier(),
            t.a.isupper(),
            t.a.islower(),
            t.a.istitle(),
            t.b.istitle(),
            t.a.isalnum(),
        ),
        Pair,
        MAP,
    )
    every = [chr(c) for part in SCRIPTS for c in part]
    same(runner, [(c, "a" + c, 0, 0) for c in every])


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda t: t.a.replace(t.b, t.i), "str.replace(str, int)"),
        (lambda t: t.a.encode("cp1252"), "str.encode(str)"),
        (lambda t: t.a.ljust(t.b), "str.ljust(str)"),
        (lambda t: t.a.find(), "str.find()"),
        (lambda t: t.a.encode(1), "str.encode(int)"),
        (lambda t: chr(t.a), "chr(str)"),
    ],
)
def test_what_is_no_method_is_told_in_words(compiled: Any, function: Any, said: Any) -> None:
    with raises(LaneError, "not-compiled") as caught:
        compiled(function, Pair, MAP)
    check_reason(caught.value.details, "unsupported", said)
