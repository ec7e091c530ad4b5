"""State of keys that is forgotten so long after a key's first tuple, or after the last change of its state."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError
from rayelastic.graph.fluent.stream import Stream
from tests.component.operators.visits import LATENESS, TTL, VISITS, Counted, Seen, Visit, visits


def since(rows: list[Visit], kind: str) -> list[Counted]:
    """What each key's count is after each row, where its life counts since the first row, or the last that counted."""
    kept: dict[str, tuple[int, int]] = {}
    watermark, given = -(10**9), []
    for who, at in rows:
        touched, count = kept.get(who, (at, 0))
        if max(at, watermark) - touched > TTL:
            touched, count = at, 0
        counts = at % 3 == 0
        kept[who] = max(at, touched) if kind == "change" and counts else touched, count + counts
        watermark = max(watermark, at - LATENESS - 1)
        given.append(Counted(who, count + counts))
    return given


def thirds(t: Any, s: Any) -> Counted:
    if t.at % 3 == 0:
        s.count += 1
        s.note = t.who
    return Counted(t.who, s.count)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(VISITS, st.sampled_from([("first", "compiled"), ("first", "python"), ("change", "compiled")]))
def test_a_life_since_the_first_tuple_or_the_last_change(
    steps: list[tuple[str, int, int]], how: tuple[Any, Any]
) -> None:
    def declare(s: Stream) -> Stream:
        timed = s.event_time("at", name="time", lateness=LATENESS).key_by("who")
        return timed.map(thirds, name="op", state=Seen, schema=Counted, lane=how[1], ttl=rel.Ttl(TTL, since=how[0]))

    rows = visits(steps)
    assert testing.collect(declare, rows, Visit) == since(rows, how[0])


def test_a_text_that_is_kept_again_is_a_change() -> None:
    """The same length, another content: the state's bytes may be the same."""

    def noted(t: Any, s: Any) -> Counted:
        if t.at < 8:
            s.note = f"a text of more than twelve bytes {t.at % 2}"
        return Counted(s.note, s.count)

    def declare(s: Stream) -> Stream:
        timed = s.event_time("at", name="time").key_by("who")
        return timed.map(
            noted, name="op", state=Seen, schema=Counted, lane="compiled", ttl=rel.Ttl(TTL, since="change")
        )

    notes = testing.collect(declare, [Visit("a", 0), Visit("a", 7), Visit("a", 8), Visit("a", 17)], Visit)
    assert [t[0][-1:] for t in notes] == ["0", "1", "1", "1"]


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda s: s.map(thirds, name="op", state=Seen, schema=Counted, ttl=rel.Ttl(5, since="ever")), "since='ever'"),  # type: ignore[arg-type]
        (
            lambda s: s.map(
                thirds, name="op", state=Seen, schema=Counted, lane="python", ttl=rel.Ttl(5, since="change")
            ),
            "needs the compiled lane",
        ),
        (
            lambda s: s.aggregate(name="op", n=rel.count(), emit="update", ttl=rel.Ttl(5, since="change")),
            "changes an aggregate",
        ),
        (lambda s: s.deduplicate(name="op", ttl=rel.Ttl(0, since="first")), "ttl=0"),
    ],
)
def test_lives_that_cant_be(declare: Any, said: str) -> None:
    topology = rel.Topology("refused")
    with pytest.raises(GraphError, match="op") as refused:
        declare(topology.source(rel.rows([Visit("a", 1)]), name="rows").key_by("who"))
    assert said in str(refused.value)
