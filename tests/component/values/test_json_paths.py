"""JSON read by path in compiled functions, beside plain Python over the same values and texts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic.errors import JobFailedError, LaneError
from tests.component.values.kinds import JSON, NUMBER, TEXT
from tests.raising import raises


class Event(NamedTuple):
    payload: rel.Json
    limit: int
    share: float
    word: str


class Read(NamedTuple):
    name: str
    n: int
    x: float
    ok: bool
    maybe: str | None
    rest: rel.Json


def fields(t: Event) -> Read:
    p = t.payload
    return Read(p["user"]["name"], p["n"], p["x"], p["ok"], p.get("maybe"), p["user"])


def numbers(t: Event) -> tuple[int, float, bool, bool, bool]:
    n = t.payload["n"]
    return int(n) * 2, float(t.payload["x"]) + 0.5, n > t.limit, t.payload["x"] <= t.share, t.limit < n


def texts(t: Event) -> tuple[str, bool, bool, str]:
    name = t.payload["user"]["name"]
    return str(name) + "!", name == t.word, name != "ada", f"<{name}>"


def parts(t: Event) -> tuple[int, int, bool, bool, bool]:
    user, tags = t.payload["user"], t.payload["tags"]
    return len(user), len(tags), "name" in user, t.word in tags, "nothing" in t.payload


def nulls(t: Event) -> tuple[bool, bool, bool, str]:
    maybe = t.payload.get("maybe")
    return maybe is None, t.payload.get("nothing") is None, not maybe, "none" if maybe is None else str(maybe)


def truths(t: Event) -> int:
    n = 0
    if t.payload["n"]:
        n += 1
    if t.payload["x"]:
        n += 2
    if t.payload["tags"]:
        n += 4
    if t.payload["ok"]:
        n += 8
    if not t.payload["user"]:
        n += 16
    return n


def elements(t: Event) -> tuple[str | None, str | None]:
    tags = t.payload["tags"]
    return (tags[0] if len(tags) > 0 else None), (tags[-1] if len(tags) > 0 else None)


EVENTS = st.lists(
    st.builds(
        Event,
        st.fixed_dictionaries(
            {
                "user": st.fixed_dictionaries({"name": TEXT | st.just("ada")}, optional={"more": JSON}),
                "n": st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5),
                "x": NUMBER.filter(math.isfinite),
                "ok": st.booleans(),
                "tags": st.lists(TEXT, max_size=3),
            },
            optional={"maybe": st.none() | TEXT},
        ),
        st.integers(-5, 5),
        NUMBER,
        TEXT | st.just("ada"),
    ),
    max_size=5,
)
SCHEMAS: dict[Callable[..., Any], Any] = {
    fields: Read,
    numbers: {"a": int, "b": float, "c": bool, "d": bool, "e": bool},
    texts: {"a": str, "b": bool, "c": bool, "d": str},
    parts: {"a": int, "b": int, "c": bool, "d": bool, "e": bool},
    nulls: {"a": bool, "b": bool, "c": bool, "d": str},
    truths: int,
    elements: {"a": str | None, "b": str | None},
}


def given_by(function: Callable[..., Any], source: Any, lane: Any = "compiled", **given: Any) -> list[Any]:
    topology = rel.Topology("json")
    stream = topology.source(source, name="in")
    stream.map(function, name="f", lane=lane, **given).sink(rel.list(), name="out")
    return [tuple(row) for row in rel.run(topology)["out"]]


@pytest.mark.parametrize("function", SCHEMAS)
@settings(max_examples=25)
@given(events=EVENTS)
def test_compiled_is_what_python_gives(function: Callable[..., Any], events: list[Event]) -> None:
    def of(t: Event) -> tuple[Any, ...]:
        made = function(t)
        return tuple(made) if isinstance(made, tuple) else (made,)

    if function is numbers:
        events = [t for t in events if abs(t.payload["n"]) < 2**62]
    assert given_by(function, rel.rows(events, schema=Event), schema=SCHEMAS[function]) == [of(t) for t in events]


def test_machine_code_answers_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python isn't asked, as it is where machine code gives up: nobody decodes the values."""
    asked: list[str] = []

    def decoded(text: str) -> Any:
        asked.append(text)
        return json.JSONDecoder().decode(text)

    monkeypatch.setattr("rayelastic.graph.records.forms.json.loads", decoded)
    events = [
        Event({"user": {"name": 'a "quoted" one'}, "n": n, "x": n / 2, "ok": True, "tags": []}, 0, 0.0, "")
        for n in range(5)
    ]
    for function in (numbers, texts, parts, nulls, truths):
        given_by(function, rel.rows(events, schema=Event), schema=SCHEMAS[function])
    assert not asked
    given_by(lambda t: t.payload["user"]["name"], rel.rows(events, schema=Event), "python", schema=str)
    assert len(asked) == len(events)


def texts_of(*texts: str | None) -> Any:
    table = pa.table({"payload": pa.array(texts, pa.string())})
    return rel.arrow(table, {"payload": rel.Json})


def a_of(t: Any) -> Any:
    return t.payload["a"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}', ' { "\\u0061" : [1, {"b": 2}] } ', '{"a": null}', '{"a": "\\ud83d\\ude00"}',
        '{"a": 123456789012345678901234567890}', '{"a": -0}', '{"a": 1e5, "b": NaN}', '{"a": "x\\ty"}',
    ],
)  # fmt: skip
def test_texts_that_others_wrote(text: str) -> None:
    assert given_by(a_of, texts_of(text), schema=rel.Json) == [(json.loads(text)["a"],)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "b": }', "function-raised Expecting"),
        ('{"b": 1}', "function-raised a"),
        ("[1]", "function-raised"),
        ("null", "function-raised NoneType"),
        (None, "function-raised NoneType"),
    ],
)
def test_what_fails_in_python_fails_so(text: str | None, says: str) -> None:
    for lane in ("compiled", "python"):
        with raises(JobFailedError, *says.split()):
            given_by(a_of, texts_of('{"a": 1}', text), lane, schema=rel.Json)


def test_null_is_none_wherever_it_stands() -> None:
    """Nothing else is asked of it, where machine code would give up and Python answer."""
    given = texts_of("null", None, " null ", '{"a": null}', '{"a": 0}')
    whole = given_by(lambda t: t.payload is None, given, schema=bool)
    assert whole == [(True,), (True,), (True,), (False,), (False,)]
    given = texts_of('{"a": null}', '{"a": 0}')
    assert given_by(lambda t: t.payload["a"] is None, given, schema=bool) == [(True,), (False,)]


def test_a_value_of_another_type_is_told() -> None:
    for lane in ("compiled", "python"):
        assert given_by(a_of, texts_of('{"a": 7}'), lane, schema=int) == [(7,)]
        with raises(JobFailedError, "function-raised", "f"):
            given_by(a_of, texts_of('{"a": 7}', '{"a": "seven"}'), lane, schema=int)


def test_a_filter_and_what_is_inferred() -> None:
    topology = rel.Topology("json")
    stream = topology.source(texts_of('{"a": {"b": 1}}', '{"a": {"b": 5}}', '{"a": {"b": null}}'), name="in")
    large = stream.filter(
        lambda t: t.payload["a"]["b"] is not None and t.payload["a"]["b"] > 2, name="large", lane="compiled"
    )
    large.map(lambda t: t.payload["a"], name="part", lane="compiled").sink(rel.list(), name="out")
    assert [tuple(row) for row in rel.run(topology)["out"]] == [({"b": 5},)]


def test_state_takes_what_is_read() -> None:
    class Total(NamedTuple):
        n: int = 0
        last: str = ""

    def add(t: Any, s: Any) -> tuple[int, str]:
        s.n += int(t.payload["n"])
        s.last = str(t.payload["name"])
        return s.n, s.last

    def loose(t: Any, s: Any) -> int:
        s.n = t.payload["n"]
        return int(s.n)

    rows = [("k", {"n": 1, "name": "a"}), ("k", {"n": 2, "name": "a name that is longer"})]
    topology = rel.Topology("json")
    keyed = topology.source(rel.rows(rows, schema={"key": str, "payload": rel.Json}), name="in").key_by("key")
    made = keyed.map(add, name="add", state=Total, schema={"n": int, "last": str}, lane="compiled")
    made.sink(rel.list(), name="out")
    with raises(LaneError, "not-compiled", "JSON"):
        keyed.map(loose, name="loose", state=Total, schema=int, lane="compiled")
    assert [tuple(row) for row in rel.run(topology)["out"]] == [(1, "a"), (3, "a name that is longer")]


def test_what_isnt_compiled_says_so() -> None:
    topology = rel.Topology("json")
    stream = topology.source(texts_of('{"a": [1, 2]}'), name="in")
    stream.map(lambda t: sum(t.payload["a"]), name="sum", schema=int).sink(rel.list(), name="out")
    assert "not compiled" in str(topology.explain())
    assert [tuple(row) for row in rel.run(topology)["out"]] == [(3,)]


@pytest.mark.parametrize("lane", ["compiled", "python"])
def test_an_int_that_a_float_does_not_hold_is_refused_and_converted_if_told(lane: Any) -> None:
    def read(function: Callable[[Any], Any], n: int) -> list[Any]:
        topology = rel.Topology("json")
        stream = topology.source(texts_of(json.dumps({"n": n})), name="in")
        stream.map(function, name="read", schema={"x": float}, lane=lane).sink(rel.list(), name="out")
        return [tuple(row) for row in rel.run(topology)["out"]]

    assert read(lambda t: t.payload["n"], 2**53) == [(2.0**53,)]
    assert read(lambda t: float(t.payload["n"]), 2**53 + 1) == [(2.0**53,)]
    with raises(JobFailedError, "function-raised"):
        read(lambda t: t.payload["n"], 2**53 + 1)
