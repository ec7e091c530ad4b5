"""re's functions with constant patterns, and sub, findall, split and finditer of patterns, give what CPython gives."""

# ruff: noqa: B034, UP028 -- functions as users write them

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pytest
from harness import FLAT_MAP, MAP, python_result, request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Line(NamedTuple):
    text: str


PAIR = re.compile(r"(?P<key>\w+)=(\d*)")
WORDS = "[a-zß]+"


def searched(t: Any) -> Any:
    at_first = re.match("A", t.text, re.I) is not None, re.fullmatch(WORDS, t.text, flags=re.I | re.S) is None
    if found := re.search(r"(a)(b)?", t.text):
        return (*at_first, found.group(2), found.start(), found[0])
    return (*at_first, None, -1, "")


def replaced(t: Any) -> Any:
    spaced = re.sub(r"\s+", " ", t.text), re.sub("x*", "-", t.text), re.sub("a|", "<ß>", t.text, 2)
    paired = PAIR.sub(r"\2:\g<key>\g<0>", t.text), PAIR.sub("", t.text, count=1), re.sub("b", "\\n\0", t.text)
    return (*spaced, *paired, re.compile("a+b").sub("", t.text), re.sub(r"\bİ|(?<=a)b|$", "é", t.text, flags=re.M))


def counted(t: Any) -> Any:
    words = re.findall(r"\w", t.text)
    return (
        len(words), len(re.findall("x*", t.text)), len(PAIR.findall(t.text)), "a" in re.findall("a|b", t.text),
        bool(re.findall("q", t.text)), words[-1] if words else "", sum(1 for _ in re.finditer("a|", t.text)),
    )  # fmt: skip


def parts(t: Any) -> Any:
    found = re.split("[,;=]", t.text)
    return found[0], found[-1], len(found), found[1]


def walked(t: Any) -> Any:
    for word in re.findall(WORDS, t.text):
        yield word
    for key, value in PAIR.findall(t.text):
        yield key + "/" + value
    for one in re.findall("a(b)?", t.text):
        yield one + "."
    for found in re.finditer("(b)|x*", t.text):
        yield f"{found.start()}-{found.end()}"
    for part in re.split(r",\s*|x*", t.text):
        yield part
    for part in re.split("a", t.text, maxsplit=1):
        yield part


CASES = [(searched, MAP), (replaced, MAP), (counted, MAP), (parts, MAP), (walked, FLAT_MAP)]

lines = st.one_of(
    st.sampled_from(
        ["", "A", "ab", "aab xx  \x1c\u2028 k=12,, j=;z=3", "ßİ=3 é=é", "a\0b=1,", "\x85 \x1f", "xaxbx", "🙂=7"]
    ),
    st.text(st.sampled_from("abxAß=12,; \n\x1cİ\0"), max_size=20),
)


@pytest.mark.parametrize(("function", "kind"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_compiled_equals_python(compiled: Any, function: Any, kind: Any) -> None:
    runner = compiled(function, Line, kind)

    @settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(lines)
    def equal(text: str) -> None:
        wanted, ours = python_result(runner.code, [(text,)]), runner([(text,)])
        assert (ours.failed, repr(ours.items)) == (wanted.failed, repr(wanted.items)), repr(text)

    equal()


def variable(t: Any) -> Any:
    return re.sub(t.text, "x", t.text)


def called(t: Any) -> Any:
    return re.sub("a", lambda m: m[0] * 2, t.text)


def wrong(t: Any) -> Any:
    return PAIR.sub(r"\9", t.text)


def kept(t: Any) -> Any:
    found = re.finditer("a", t.text)
    for _ in found:
        return "".join(m[0] for m in found)
    return ""


REFUSED = [
    (variable, ("constant_only", "re.sub(..)", "pattern and flags")),
    (called, ("constant_only", "sub()", "replacement")),
    (wrong, ("invalid", "replacement '\\\\9'", "invalid group reference 9")),
    (kept, ("write_instead", "finditer()")),
]


@pytest.mark.parametrize(("function", "reason"), REFUSED, ids=[f.__name__ for f, _ in REFUSED])
def test_what_is_refused_names_line_and_words(compiler: Any, function: Any, reason: Any) -> None:
    code = compiler.compile(request(function, Line, output=Schema.of(str)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, *reason, "test_patterns_in_functions.py:")
