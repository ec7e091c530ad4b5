"""Every str and bytes method that compiles, against CPython's own, over drawn texts."""

# ruff: noqa: UP028 -- functions as users write them

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from harness import FLAT_MAP, MAP, python_result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SPACES = " \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
NEAR_SPACES = "\x08\x0e\x1b!\u0084\u200b\u1681\u3001\u2010\u2060"
LETTERS = "aAbBzZ,;=x\u00e4\u00df\u0130\u03a3\u03c3\u1f88\ufb03\u4e2d\U0001d11e\U00010400'\u0301\u00ad"

texts = st.one_of(
    st.text(st.sampled_from(LETTERS + SPACES), max_size=40),
    st.text(st.sampled_from("ab ,"), max_size=60),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.text(st.sampled_from(SPACES + NEAR_SPACES + "ab"), max_size=30),
    st.sampled_from(
        ["", "a" * 12, "a" * 13, "abcdefgh", "abcdefg", "x" * 8 + " " + "y" * 8, "\u00e4" * 6, "\u00e4" * 7]
    ),
)
parts = st.one_of(st.text(st.sampled_from(LETTERS + " "), max_size=3), texts)
numbers = st.integers(-70, 70)


class Pair(NamedTuple):
    a: str
    b: str
    i: int
    j: int


class Raw(NamedTuple):
    a: bytes
    b: bytes
    i: int
    j: int


rows = st.lists(st.tuples(texts, parts, numbers, numbers), min_size=1, max_size=6)


def related(items: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Half of the second texts come out of the first, so that searches find something."""
    return [(a, a[i % 7 : i % 7 + j % 5] if j > 0 else b, i, j) for a, b, i, j in items]


def split_all(t):
    for w in t.a.split():
        yield w


def split_by(t):
    for w in t.a.split(t.b):
        yield w


def split_at_most(t):
    for w in t.a.split(None, t.i):
        yield w
    for w in t.a.split(",", t.j):
        yield w


def characters(t):
    for c in t.a:
        yield (c, ord(c), c.isspace())


def pieces(t):
    words = t.a.split()
    yield str(len(words))
    yield words[t.i]


def two(t):
    left, right = t.a.split(",")
    return right, left


METHODS = {
    "len": lambda t: (len(t.a), len(t.a + t.b), bool(t.a), not t.b),
    "compare": lambda t: (t.a == t.b, t.a != t.b, t.a < t.b, t.a <= t.b, t.a > t.b, t.a >= t.b, t.a == "a"),
    "contains": lambda t: (t.b in t.a, t.b not in t.a, "ab" in t.a, "\u00e4" in t.a),
    "find": lambda t: (
        t.a.find(t.b),
        t.a.rfind(t.b),
        t.a.find(t.b, t.i),
        t.a.find(t.b, t.i, t.j),
        t.a.rfind(t.b, t.i, t.j),
    ),
    "index": lambda t: t.a.index(t.b),
    "count": lambda t: t.a.count(t.b),
    "starts": lambda t: (
        t.a.startswith(t.b),
        t.a.endswith(t.b),
        t.a.startswith(("a", "\u00e4")),
        t.a.endswith(("b", " ")),
    ),
    "remove": lambda t: (t.a.removeprefix(t.b), t.a.removesuffix(t.b)),
    "item": lambda t: t.a[t.i],
    "slice": lambda t: (t.a[t.i :], t.a[: t.i], t.a[t.i : t.j], t.a[:3], t.a[-3:], t.a[2:-2], t.a[:]),
    "strip": lambda t: (t.a.strip(), t.a.lstrip(), t.a.rstrip(), t.a.strip(t.b), t.a.lstrip(t.b), t.a.rstrip(t.b)),
    "replace": lambda t: (t.a.replace(t.b, "<>"), t.a.replace("a", t.b)),
    "partition": lambda t: t.a.partition(t.b),
    "case": lambda t: (t.a.lower(), t.a.upper(), t.b.lower()),
    "is": lambda t: (t.a.isalpha(), t.a.isdigit(), t.b.isalnum(), t.b.isspace(), t.b.isdecimal(), t.b.isnumeric()),
    "join": lambda t: (t.b.join(t.a.split(",")), "".join(t.a.split()), t.b * (t.i % 4)),
    "two": two,
}

GENERATORS = {
    "split": split_all,
    "split by": split_by,
    "split at most": split_at_most,
    "characters": characters,
    "pieces": pieces,
}

BYTES = {
    "len": lambda t: (len(t.a), t.a == t.b, t.a < t.b, t.b in t.a, 97 in t.a, b"ab" in t.a),
    "find": lambda t: (t.a.find(t.b), t.a.rfind(t.b), t.a.count(t.b), t.a.startswith(t.b), t.a.endswith(b" ")),
    "item": lambda t: t.a[t.i],
    "slice": lambda t: (t.a[t.i :], t.a[: t.i], t.a[t.i : t.j], t.a.strip(), t.a.strip(t.b), t.a + t.b, t.a.lower()),
}

quick = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def same(runner: Any, items: list[tuple[Any, ...]]) -> None:
    ours, theirs = runner(items), python_result(runner.code, items)
    assert (ours.failed, ours.items) == (theirs.failed, theirs.items)


def same_of_texts(runner: Any) -> None:
    """The same of drawn rows, and of rows whose texts are made of one another."""

    @quick
    @given(rows)
    def check(items: Any) -> None:
        same(runner, items)
        same(runner, related(items))

    check()


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_str(compiled: Any, name: str) -> None:
    same_of_texts(compiled(METHODS[name], Pair, MAP))


@pytest.mark.parametrize("name", GENERATORS)
def test_iteration_over_str(compiled: Any, name: str) -> None:
    same_of_texts(compiled(GENERATORS[name], Pair, FLAT_MAP))


@pytest.mark.parametrize("name", BYTES)
def test_methods_of_bytes(compiled: Any, name: str) -> None:
    runner = compiled(BYTES[name], Raw, MAP)

    @quick
    @given(rows)
    def check(items: Any) -> None:
        same(runner, [(a.encode(), b.encode(), i, j) for a, b, i, j in related(items)])

    check()


def words_of(line):
    for w in line.split():
        yield w + "."


def shouted(w):
    return w + "!"


ONE_WALK = {
    "generator": lambda t: t.b.join(words_of(t.a)),
    "map": lambda t: t.b.join(map(shouted, t.a.split(","))),
    "method": lambda t: t.b.join(map(str.strip, t.a.split(","))),
}


@pytest.mark.parametrize("name", ONE_WALK)
def test_join_of_what_is_walked_once(compiled: Any, name: str) -> None:
    runner = compiled(ONE_WALK[name], Pair, MAP)

    @quick
    @given(rows)
    def check(items: Any) -> None:
        same(runner, items)
        same(runner, [(a * 9, b, i, j) for a, b, i, j in items])

    check()


digits = st.text(st.sampled_from("0123456789_+-. eE\u0663\uff15\U0001d7ceinfatyNA\t"), max_size=24)
floats = (
    st.floats().map(repr)
    | st.decimals(allow_nan=False).map(str)
    | st.from_regex(r"[0-9]{1,30}\.[0-9]{0,40}(e-?[0-9]{1,3})?", fullmatch=True)
)


def test_int_of_text(compiled: Any) -> None:
    runner = compiled(lambda t: int(t.value), str, MAP)

    @quick
    @given(
        st.lists(
            digits | st.integers(-(2**63), 2**63 - 1).map(str) | st.integers(-9, 9).map(lambda n: f" {n}_0\n"),
            max_size=6,
        )
    )
    def check(items: Any) -> None:
        same(runner, [(item,) for item in items])

    check()
    assert runner([("9223372036854775808",)]).failed == 0
    assert runner([("-9223372036854775809",)]).failed == 0


def test_white_space_is_what_python_says(compiled: Any) -> None:
    every = [c for c in map(chr, range(0x110000)) if ord(c) < 0x3100 or c.isspace()]
    runner = compiled(lambda t: (t.value.strip(), t.value.isspace(), "|".join(t.value.split())), str, MAP)
    same(runner, [(f"{c}x{c}y{c}",) for c in every] + [(c,) for c in every])


def test_each_character_has_its_number(compiled: Any) -> None:
    every = [chr(n) for n in (*range(0x900), *range(0x900, 0xD800, 7), *range(0xE000, 0x110000, 61), 0x10FFFF)]
    same(compiled(lambda t: ord(t.value), str, MAP), [(c,) for c in every])


def int_or_none(t):
    try:
        return int(t.value)
    except Exception:
        return -1


def float_or_none(t):
    try:
        return float(t.value)
    except Exception:
        return -1.0


LATER_ZEROS = (0x10D40, 0x116D0, 0x116DA, 0x11BF0, 0x11DE0, 0x11F50, 0x1CCF0, 0x1E4F0, 0x1E5F1)  # since Unicode 15
LATER_DIGITS = {chr(zero + n) for zero in LATER_ZEROS for n in range(10)}


@pytest.mark.parametrize("function", [int_or_none, float_or_none])
def test_digits_that_not_every_python_knows_are_left_to_it(compiled: Any, function: Any) -> None:
    runner = compiled(function, str, MAP)
    assert {runner([(f"{c}7",)]).failed for c in LATER_DIGITS} == {0}


@pytest.mark.parametrize("function", [int_or_none, float_or_none])
def test_what_may_stand_around_a_number(compiled: Any, function: Any) -> None:
    """All but ideographs, alone and beside white space beyond ASCII: int() strips less than strip()."""
    every = [c for c in map(chr, range(0x110000)) if ord(c) < 0x3100 or c.isdecimal() or c.isspace()]
    every = [c for c in every if c not in LATER_DIGITS]
    runner = compiled(function, str, MAP)
    same(runner, [(f"{c}7",) for c in every] + [(f"7{c}",) for c in every])
    same(runner, [(f"\u2003{c}-7{c}\xa0",) for c in every])
    same(compiled(function, bytes, MAP), [(bytes([c]) + b"7",) for c in range(256)])


def test_float_of_text(compiled: Any) -> None:
    runner = compiled(lambda t: float(t.value), str, MAP)

    @settings(quick, max_examples=200)
    @given(st.lists(digits | floats, max_size=6))
    def check(items: Any) -> None:
        ours, theirs = runner([(i,) for i in items]), python_result(runner.code, [(i,) for i in items])
        assert ours.failed == theirs.failed
        assert [repr(i) for i in ours.items] == [repr(i) for i in theirs.items]

    check()
    hard = [
        "1" * 900,
        "0." + "0" * 400 + "1" * 900 + "e400",
        "9007199254740993",
        "2.2250738585072011e-308",
        "1e400",
        "-1e-400",
    ]
    hard += [
        "8.5" + "0" * 800 + "1",
        "0" * 2000 + "1.5",
        "1_000.5_5",
        "_1",
        "1__0",
        "1e5_0",
        ".",
        "5.",
        ".5",
        "1e",
        "+inf",
        "iNfInItY",
    ]
    for item in hard:
        ours, theirs = runner([(item,)]), python_result(runner.code, [(item,)])
        assert (ours.failed, repr(ours.items)) == (theirs.failed, repr(theirs.items)), item


def test_case_of_every_character(compiled: Any) -> None:
    """Each code point alone and in a word: the tables are the running Python's."""
    runner = compiled(lambda t: (t.value.lower(), t.value.upper(), t.value.isalpha(), t.value.isspace()), str, MAP)
    every = [
        c
        for c in map(chr, (*range(0x3100), *range(0xA640, 0xAC00), *range(0xFA00, 0x10600)))
        if not 0xD800 <= ord(c) < 0xE000
    ]
    items = [("".join(every[at : at + 7]) + "\u03a3",) for at in range(0, len(every), 7)]
    items += [(f"A{c}\u03a3{c}b",) for c in every] + [(f"{c}\u03a3{c}",) for c in every]
    same(runner, items)
