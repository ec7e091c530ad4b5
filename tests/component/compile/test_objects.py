"""Methods, partials and objects that are called, and objects, Enum members, NamedTuples and dataclasses that functions
use, give what CPython gives."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from harness import FILTER, FLAT_MAP, MAP, request, same_as_python
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from tests.raising import check_reason


class Event(NamedTuple):
    kind: str
    count: int  # type: ignore[assignment]
    price: float
    maybe: int | None

    @property
    def turnover(self) -> float:
        return self.count * self.price

    def is_known(self) -> bool:
        return self.kind in ("a", "İ") or self.at_least(3)

    def at_least(self, n: int) -> bool:
        return self.count >= n

    def inverse(self) -> float:
        return 1 / self.count

    def number(self) -> int:
        return int(self.kind)


class Point(NamedTuple):
    x: float
    n: int = 3

    @property
    def double(self) -> int:
        return 2 * self.n

    def moved(self, by: float = 1.0) -> float:
        return self.x + by * self.double


@dataclasses.dataclass(frozen=True)
class Limits:
    low: float
    high: float = 5.0

    @property
    def span(self) -> float:
        return self.high - self.low

    def holds(self, x: float) -> bool:
        return self.low <= x <= self.high


@dataclasses.dataclass
class Entry:
    name: str
    n: int = 2
    mark: str = dataclasses.field(default="é", kw_only=True)

    def label(self) -> str:
        return f"{self.name}:{self.n}{self.mark}"


@dataclasses.dataclass
class Counted:
    n: int

    def __post_init__(self) -> None:
        self.n += 1


class Color(enum.Enum):
    RED = "red"
    EMPTY = ""

    def shout(self) -> str:
        return self.value + "!"


class Level(enum.IntEnum):
    LOW = -1
    HIGH = 7


class Kind(enum.StrEnum):
    A = "a"
    DOTTED = "İ"


class Old(str, enum.Enum):  # noqa: UP042 -- as users wrote it before 3.11
    A = "a"


class Settings:
    RATE = 3
    NAMES = {"a": 1.5, "": -0.0}


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor: int) -> None:
        self.factor = factor


class Scorer:
    STEP = 2

    def __init__(self, by: float) -> None:
        self.by, self.limits, self.inner = by, Limits(-1.0), Slotted(11)
        self.table, self.words, self.count = {"a": 10, "b": 20}, ["x", "a"], 0
        self.point = Point(0.5)

    def score(self, t: Any) -> Any:
        return t.price * self.by + self.STEP + self.helped(t.count & 7), self.inner.factor, self.point.double

    def helped(self, n: int) -> float:
        return n + self.limits.low if n < 2 else self.helped(n - 1)

    def __call__(self, t: Any) -> Any:
        return self.table.get(t.kind, -1), t.kind in self.words, self.limits.span, self.limits.holds(t.price)

    def letters(self, t: Any) -> Any:
        for letter in t.kind:
            if letter in self.table:
                yield letter, self.table[letter] * self.by

    def changed(self, t: Any) -> Any:
        self.count += t.count
        return self.count

    def appended(self, t: Any) -> Any:
        self.words.append(t.kind)
        return len(self.words)

    def tallied(self, t: Any) -> Any:
        self.table[t.kind] = 1
        return 1

    @staticmethod
    def apart(t: Any) -> Any:
        return t.kind + "|"

    @classmethod
    def of_class(cls, t: Any) -> Any:
        return t.count & cls.STEP


class Doubler:
    def __call__(self, n: int) -> int:
        return 2 * n


LIMITS, SCORER, DOUBLER = Limits(1.0, 2.0), Scorer(2.5), Doubler()
POINT = Point(1.5, 4)
half = functools.partial(lambda by, x: x / by, 2)


def scaled(by: float, t: Any, low: float = 0.5) -> Any:
    return t.price * by + low


def reassigned(by: int, t: Any) -> Any:
    for _ in range(3):
        by = by & t.count
    return by


def with_default(t: Any, suffix: str = "é\0", n: int = 3) -> Any:
    return t.kind + suffix, t.count & n


def members(t: Any) -> Any:
    same = t.kind == Color.RED.value, t.count == Level.HIGH, t.kind == Kind.A, t.kind == Old.A, t.kind in (Old.A, "b")
    return (*same, f"{Level.LOW}{Kind.DOTTED}", Color.EMPTY.name, Level.HIGH.value, Old.A.value, Color.RED.shout())


def outside(t: Any) -> Any:
    read = LIMITS.low, LIMITS.span, LIMITS.holds(t.price), Settings.RATE, Settings.NAMES.get(t.kind, 0.5)
    return (*read, SCORER.table.get(t.kind, 0), DOUBLER(t.count & 63), half(t.price), POINT.n, POINT.moved(t.price))


def tuples(t: Any) -> Any:
    p, q = Point(t.price, n=t.count & 7), Point(t.price)
    return p.x, p.n, p.double, p.moved(), q.moved(by=0.5), q.n


def entries(t: Any) -> Any:
    one, other = Entry(t.kind, mark=t.kind), Entry(t.kind, t.count)
    return one.label(), other.label(), one == other, one != Entry(t.kind, 2, mark=t.kind), one.n


def of_the_tuple(t: Any) -> Any:
    return t.turnover, t.at_least(2), t.is_known(), helper(t)


def helper(t: Any) -> Any:
    return t.turnover + 1


def caught(t: Any) -> Any:
    try:
        return t.number() + t.inverse()
    except ValueError:
        return -1.0


def property_caught(t: Any) -> Any:
    try:
        return t.turnover if t.at_least(0) else float(t.number())
    except Exception:
        return -2.0


CASES = [
    (SCORER.score, MAP), (SCORER, MAP), (SCORER.letters, FLAT_MAP), (SCORER.apart, MAP), (Scorer.of_class, MAP),
    (functools.partial(scaled, 3), MAP), (functools.partial(scaled, -0.5, low=1e300), MAP), (members, MAP),
    (functools.partial(SCORER.score), MAP), (functools.partial(reassigned, -1), MAP), (with_default, MAP),
    (outside, MAP), (tuples, MAP), (entries, MAP), (of_the_tuple, MAP), (Event.is_known, FILTER),
    (caught, MAP),
    (property_caught, MAP),
]  # fmt: skip

events = st.builds(
    Event,
    st.one_of(
        st.sampled_from(["", "a", "b", "ab", "red", "x", "İ", "\0", "a\0", "12", "0", "ß", "🙂", "\x1c"]),
        st.text(st.sampled_from("abİ1 "), max_size=14),
    ),
    st.one_of(st.integers(-3, 8), st.integers(-(2**31), 2**31), st.sampled_from([2**63 - 1, -(2**63)])),
    st.one_of(st.floats(-10, 10), st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e308])),
    st.one_of(st.none(), st.integers(-1, 4)),
)


@pytest.mark.parametrize(("function", "kind"), CASES, ids=[str(at) for at in range(len(CASES))])
def test_compiled_equals_python(compiled: Any, function: Any, kind: Any) -> None:
    runner = compiled(function, Event, kind)

    @settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(events, min_size=1, max_size=4))
    def equal(rows: list[Any]) -> None:
        for row in rows:
            same_as_python(runner, tuple(row))

    equal()


def color(t: Any) -> Any:
    return t.kind == Color.RED


def old(t: Any) -> Any:
    return f"{Old.A}"


def level(t: Any) -> Any:
    return Level(t.count) == 7


def counted(t: Any) -> Any:
    return Counted(t.count).n


def returned(t: Any) -> Any:
    return Entry(t.kind)


def assigned(t: Any) -> Any:
    entry = Entry(t.kind)
    entry.n = 5
    return entry.n


def missing(t: Any) -> Any:
    return t.count + SCORER.nothing  # type: ignore[attr-defined]


REFUSED = [
    (SCORER.changed, ("changes_outside", "self.count"), "self.count += t.count"),
    (SCORER.appended, ("changes_outside", "self.words"), "self.words.append(t.kind)"),
    (SCORER.tallied, ("changes_outside", "self.table"), "self.table[t.kind] = 1"),
    (color, ("unsupported", "str == a member of the enum Color"), "return t.kind == Color.RED"),
    (old, ("write_instead", "'Old.A'", ".value or .name"), 'return f"{Old.A}"'),
    (level, ("unsupported", "'Level(..)'"), "return Level(t.count) == 7"),
    (counted, ("unsupported", "making a Counted"), "return Counted(t.count).n"),
    (returned, ("wrong_kind", "a dataclass Entry"), ""),
    (assigned, ("unsupported", "assigning 'n' of a Entry"), "entry.n = 5"),
    (missing, ("no_attribute", "SCORER nothing"), "return t.count + SCORER.nothing"),
]


@pytest.mark.parametrize(("function", "reason", "line"), REFUSED, ids=[" ".join(r[1]) for r in REFUSED])
def test_what_is_refused_names_line_and_words(compiler: Any, function: Any, reason: Any, line: Any) -> None:
    code = compiler.compile(request(function, Event, output=Schema.of(float)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, *reason, line)


class Answers:
    """Says itself what its attributes are."""

    factor = 2

    def __getattribute__(self, name: str) -> Any:
        return 3 if name == "factor" else object.__getattribute__(self, name)


class AnswersForClasses(type):
    factor: int

    def __getattribute__(cls, name: str) -> Any:
        return 3 if name == "factor" else type.__getattribute__(cls, name)


class Answered(metaclass=AnswersForClasses):
    factor = 2


ANSWERS = Answers()


@pytest.mark.parametrize("function", [lambda t: t.count * ANSWERS.factor, lambda t: t.count * Answered.factor])
def test_what_answers_for_its_attributes_itself_is_left_to_python(compiler: Any, function: Any) -> None:
    assert compiler.compile(request(function, Event, output=Schema.of(int))).lane is Lane.PYTHON


def test_functions_without_source_are_refused_where_they_need_it(compiler: Any) -> None:
    space: dict[str, Any] = {}
    exec("class A:\n    n = 3\n    def f(self, t): return t.count + self.n", space)
    code = compiler.compile(request(space["A"]().f, Event, output=Schema.of(int)))
    assert code.lane is Lane.PYTHON
    check_reason(code.refusal, "no_source", "A.f")


def test_reports_say_what_is_taken_as_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    report = rel.compile_report(SCORER, Event)
    assert report.lane == "compiled"
    assert "self" in report.as_declared


class Computed(NamedTuple):
    a: int

    @property
    def total(self) -> int:
        return self.a + 1


class Plain(NamedTuple):
    a: int
    total: int


def test_a_field_may_have_the_name_of_another_classs_property(compiled: Any) -> None:
    computed = compiled(lambda t: (Computed(t.a).total, t.total), Computed, MAP)
    plain = compiled(lambda t: (Plain(t.a, 5).total, t.total), Plain, MAP)
    assert computed([(7,)]).items == [(8, 8)]
    assert plain([(7, 9)]).items == [(5, 9)]
