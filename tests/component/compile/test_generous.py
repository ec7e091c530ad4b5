"""What users of other stream processors write compiles, and gives what CPython gives."""

# ruff: noqa: DTZ001, UP031, UP032 -- functions as users write them

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from harness import FLAT_MAP, MAP, request, same_as_python
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Event(NamedTuple):
    text: str
    x: float
    i: int
    at: dt.datetime
    since: dt.datetime
    span: dt.timedelta
    day: dt.date
    maybe: int | None


class Pair(NamedTuple):
    key: str
    value: int


RATES = {"IBM": 1.5, "a": 2.0, "longer than twelve bytes": -1.0, "": 0.25}
NAMES = {1: "one", -2: "two", 10**12: "many"}
LEVELS = [10, 20, 30]
STOP = {"the", "of", "ä"}
CUTOFF = dt.datetime(2020, 5, 17, 3, 4, 5, 6)
HOUR = dt.timedelta(hours=1)
PAIR = re.compile(r"(?P<key>\w+)=(?P<value>-?\d+)?(;|$)")
WORD = re.compile(r"\bERROR\b|^\s*warn", re.IGNORECASE)


def looked_up(t):
    return RATES.get(t.text, 0.0), t.text in RATES, NAMES.get(t.i, "other"), t.text in STOP, LEVELS[t.i % 3]


def missing_key(t):
    return RATES[t.text]


def formatted(t):
    return f"{t.x:.2f}|{t.i:05d}|{t.text:>6}|{t.x:e}|{t.i:,}|{t.i:x}|{t.x}|{t.x:8.3f}|{t.x:+.1f}|{t.text:*^9.3}|{t.x:g}"


def other_formats(t):
    return "%s-%d %5.1f%%" % (t.text, t.i, t.x) + "{}:{:>4}".format(t.text, t.i) + format(t.i, "b") + f"{t.x:.1%}"


def parts(t):
    return (t.at.year, t.at.month, t.at.day, t.at.hour, t.at.minute, t.at.second, t.at.microsecond, t.at.weekday())


def arithmetic(t):
    return (t.at - t.since).total_seconds(), t.at > CUTOFF, t.since + HOUR, t.span > HOUR, t.span.days, t.span.seconds


def moments(t):
    hour = t.at.replace(minute=0, second=0, microsecond=0)
    return hour, t.at.date(), t.at.isoformat(), t.day.isoformat(), dt.timedelta(seconds=t.i % 1000, days=1), t.day.year


def parsed(t):
    try:
        return int(t.text)
    except ValueError:
        return -1


def indexed(t):
    try:
        key, value = t.text.split("=")
        return key, float(value)
    except (ValueError, IndexError) as error:  # noqa: F841
        return "", 0.0


def delegated(t):
    yield from t.text.split()


def listed(t):
    if t.i > 2:
        return [Pair(w, len(w)) for w in t.text.split() if w not in STOP]
    if t.i < 0:
        return []
    return [Pair("one", t.i), Pair(t.text, 0)]


def reduced(t):
    total = sum(len(w) for w in t.text.split())
    return total, any(w == "a" for w in t.text.split()), all(len(w) < t.i for w in t.text.split())


def optional(t):
    return t.maybe or 7, t.maybe == 3, 1 if t.maybe else 0


def replaced(t):
    return t._replace(i=5, text=t.text.upper())


def replaced_by_a_module(t):
    return t._replace(x=math.fabs(t.x))


def assigned(t):
    if (at := t.text.find("=")) >= 0 and t.i >= 0:
        return at
    return -1


def found(t):
    if m := PAIR.search(t.text):
        return m["key"], m.group("value"), m.start(), m.end(1), m.group()
    return "", None, -1, -1, ""


def is_error(t):
    return WORD.search(t.text) is not None, bool(PAIR.fullmatch(t.text)), PAIR.match(t.text) is None


CASES = [
    (looked_up, MAP), (missing_key, MAP), (formatted, MAP), (other_formats, MAP), (parts, MAP), (arithmetic, MAP),
    (moments, MAP), (parsed, MAP), (indexed, MAP), (delegated, FLAT_MAP), (listed, FLAT_MAP), (reduced, MAP),
    (optional, MAP), (replaced, MAP), (replaced_by_a_module, MAP), (assigned, MAP), (found, MAP), (is_error, MAP),
]  # fmt: skip

texts = st.one_of(
    st.sampled_from(
        ["", "12", " -7 ", "k=5;", "a=b", "ä=-3", "an error here", "ERROR", " WARNed", "xERROR", "the a ä of", *RATES]
    ),
    st.text(st.sampled_from("ab=;1-ä ErRoOſK"), max_size=14),
)
days = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)).map(lambda d: d.replace(fold=0))
events = st.builds(
    Event,
    texts,
    st.one_of(
        st.floats(-1e9, 1e9),
        st.sampled_from([0.0, -0.0, 1e16, 1e-5, 123456789.125, float("inf"), float("nan"), 2.0**-44]),
    ),
    st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.sampled_from(list(NAMES))),
    days,
    days,
    st.timedeltas(dt.timedelta(days=-200_000), dt.timedelta(days=200_000)),
    st.dates(),
    st.one_of(st.none(), st.integers(-1, 4)),
)


@pytest.mark.parametrize(("function", "kind"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_compiled_equals_python(compiled: Any, function: Any, kind: Any) -> None:
    runner = compiled(function, Event, kind)

    @settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(events, min_size=1, max_size=4))
    def equal(rows: list[Any]) -> None:
        for row in rows:
            same_as_python(runner, tuple(row))

    equal()


def test_parts_of_a_zoned_datetime_are_refused(compiler: Any) -> None:
    schema = Schema.of(pa.schema([pa.field("at", pa.timestamp("us", "Europe/Berlin"), nullable=False)]))
    code = compiler.compile(request(lambda t: t.at.hour, schema, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, "unsupported", "datetime[us, Europe/Berlin].hour")
    equal = compiler.compile(request(lambda t: t.at == t.at, schema, output=Schema.of(bool)))
    assert equal.lane is Lane.PYTHON


def test_a_format_inside_a_format_is_refused(compiler: Any) -> None:
    code = compiler.compile(request(lambda t: "{:{}}".format(t.i, "5"), Schema.of({"i": int}), output=Schema.of(str)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, "unsupported", "str.format")
