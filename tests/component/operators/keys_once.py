"""Every operator that keeps something by key, in each mode: keys that come once, and when each of them ends.

Key i comes at time 2 * i, and nothing lives for longer than LIVES: so about LIVES / 2 keys are alive at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import rayelastic as rel
from rayelastic.fluent.stream import Stream

LIVES = 600  # seconds
ALIVE = 3 * (LIVES // 2)  # keys: twice as many where slots are swept as others come, and those of a run

Declare = Callable[[Any, str], Stream]


class Row(NamedTuple):
    key: int
    at: int
    text: str


class Count(NamedTuple):
    n: int = 0
    text: str = ""


SCHEMA = {"key": int, "n": int}


def row_of(number: int) -> Row:
    return Row(number, 2 * number, f"text {number} that isn't inline")


def counted(t: Any, s: Any) -> tuple[int, int]:
    s.n += 1
    s.text = t.text
    return t.key, s.n


def listed(t: Any, s: Any) -> tuple[int, int]:
    s.append(t.text)
    return t.key, len(s)


def is_first(t: Any, s: Any) -> bool:
    s.n += 1
    return s.n == 1


def each(t: Any, s: Any) -> Iterator[tuple[int, int]]:
    s.n += 1
    yield t.key, s.n


class Forgets:
    """Ends a key by a timer."""

    def on_tuple(self, t: Any, state: Any, out: rel.Out) -> None:
        state.n += 1
        state.text = t.text
        out.after(600)

    def on_time(self, time: int, state: Any, out: rel.Out) -> None:
        (key,) = out.key
        out.give((key, state.n))
        out.forget()


class ForgetsEarly:
    """Sets a timer for a year, and ends the key at once."""

    def on_tuple(self, t: Any, state: Any, out: rel.Out) -> None:
        state.n += 1
        out.after(31_000_000)
        out.give((t.key, state.n))
        out.forget()

    def on_time(self, time: int, state: Any, out: rel.Out) -> None:
        out.forget()


class Remembers:
    """Never ends a key."""

    def on_tuple(self, t: Any, state: Any, out: rel.Out) -> None:
        state.n += 1
        out.give((t.key, state.n))


class Total:
    init = Count

    def add(self, t: Any, state: Any) -> None:
        state.n += 1

    def merge(self, other: Any, state: Any) -> None:
        state.n += other.n

    def result(self, state: Any) -> int:
        return state.n


@rel.operator(outputs={"out": SCHEMA}, state=Count, ttl=LIVES)
class Counts:
    def invoke(self, t: Any, s: Any) -> Iterator[tuple[int, int]]:
        s.n += 1
        yield t.key, s.n


@rel.operator(inputs={"left": None, "right": None}, outputs={"out": SCHEMA}, state=Count, ttl=LIVES)
class Both:
    def invoke(self, port: str, t: Any, s: Any) -> Iterator[tuple[int, int]]:
        s.n += 1
        if port == "left":
            yield t.key, s.n


def counts(_key: Any, _window: Any, tuples: list[Any]) -> list[tuple[int, int]]:
    return [(tuples[0].key, len(tuples))]


def again(s: Any) -> Any:
    """The same stream once more, for joins."""
    return s


def process(program: Any, lane: str, **how: Any) -> Declare:
    return lambda s, name: s.process(program, name=name, schema=SCHEMA, state=Count, lane=lane, **how)


def mapped(fn: Any, state: Any, lane: str, **how: Any) -> Declare:
    return lambda s, name: s.map(fn, name=name, state=state, schema=SCHEMA, lane=lane, ttl=LIVES, **how)


def framed(frame: Callable[[Any], Any]) -> dict[str, Declare]:
    """All that a window, session or batch of a key can become in Python."""
    return {
        "fold": lambda s, name: frame(s).fold(lambda n, t: n + 1, 0, name=name),
        "reduce": lambda s, name: frame(s).reduce(lambda one, other: other, name=name),
        "top": lambda s, name: frame(s).top(2, "at", name=name),
        "collect": lambda s, name: frame(s).collect(name=name),
        "process": lambda s, name: frame(s).process(counts, name=name, schema=SCHEMA),
        "combine": lambda s, name: frame(s).combine(Total, name=name, schema=int, lane="python"),
    }


def _windows() -> dict[str, Declare]:
    frames: dict[str, Callable[[Any], Any]] = {
        "window": lambda s: s.window(seconds=LIVES),
        "session": lambda s: s.session(gap=LIVES),
        "batch": lambda s: s.window(count=5, within=LIVES),
        "assigned": lambda s: s.window(assign=lambda t: [(t.at, t.at + LIVES)]),
    }
    return {f"{frame} {what}": declare for frame, make in frames.items() for what, declare in framed(make).items()}


def _early() -> dict[str, Declare]:
    def window(s: Any) -> Any:
        return s.window(seconds=LIVES, slide=LIVES // 2)

    def add(n: int, t: Any) -> int:
        return n + 1

    return {
        "window fold, early": lambda s, name: window(s).fold(add, 0, name=name, every=100),
        "window fold, updates": lambda s, name: window(s).fold(add, 0, name=name, emit="update"),
        "window fold, until": lambda s, name: window(s).fold(add, 0, name=name, until=lambda n: n == 1),
        "window fold, lateness": lambda s, name: s.window(seconds=100, lateness=LIVES - 100).fold(add, 0, name=name),
        "session fold, gaps of tuples": lambda s, name: s.session(gap=lambda t: LIVES).fold(add, 0, name=name),
        "session fold, until": lambda s, name: s.session(gap=LIVES).fold(add, 0, name=name, until=lambda n: n == 1),
    }


SMALL = rel.Pattern("one", lambda t: t.at >= 0).then("two", lambda t: t.at > 0, within=LIVES)

OPERATORS: dict[str, Declare] = {
    "map compiled": mapped(counted, Count, "compiled"),
    "map python": mapped(counted, Count, "python"),
    "map values": mapped(listed, list, "python"),
    "map skips": mapped(counted, Count, "compiled", on_error="skip"),
    "map python skips": mapped(listed, list, "python", on_error="skip"),
    "filter compiled": lambda s, name: s.filter(is_first, name=name, state=Count, ttl=LIVES, lane="compiled"),
    "filter python": lambda s, name: s.filter(is_first, name=name, state=Count, ttl=LIVES, lane="python"),
    "flat_map compiled": lambda s, name: s.flat_map(
        each, name=name, state=Count, schema=SCHEMA, ttl=LIVES, lane="compiled"
    ),
    "flat_map python": lambda s, name: s.flat_map(
        each, name=name, state=Count, schema=SCHEMA, ttl=LIVES, lane="python"
    ),
    "deduplicate": lambda s, name: s.deduplicate(name=name, ttl=LIVES),
    "scan": lambda s, name: s.scan(lambda n, t: n + 1, 0, name=name, ttl=LIVES),
    "reduce": lambda s, name: s.reduce(lambda one, other: other, name=name, emit="update", ttl=LIVES),
    "aggregate": lambda s, name: s.aggregate(name=name, n=rel.count(), last=rel.last("text"), emit="update", ttl=LIVES),
    "combine compiled": lambda s, name: s.combine(Total, name=name, emit="update", ttl=LIVES, lane="compiled"),
    "combine python": lambda s, name: s.combine(Total, name=name, schema=int, emit="update", ttl=LIVES, lane="python"),
    "apply": lambda s, name: s.apply(Counts(), name=name),
    "apply, two inputs": lambda s, name: s.topology.apply(
        Both(), name=name, left=s, right=s.filter(lambda t: t.at % 2 == 0, name=f"{name}_half").key_by("key")
    ),
    "process forgets, compiled": process(Forgets, "compiled"),
    "process forgets, python": process(Forgets, "python"),
    "process forgets early, compiled": process(ForgetsEarly, "compiled"),
    "process forgets early, python": process(ForgetsEarly, "python"),
    "process ttl, compiled": process(Remembers, "compiled", ttl=LIVES),
    "process ttl, python": process(Remembers, "python", ttl=LIVES),
    "match": lambda s, name: s.match(SMALL, name=name),
    "match left": lambda s, name: s.match(SMALL, name=name, how="left"),
    "count window aggregate": lambda s, name: s.window(count=3, slide=1, ttl=LIVES).aggregate(name=name, n=rel.count()),
    "count window combine": lambda s, name: s.window(count=3, ttl=LIVES).combine(Total, name=name, lane="compiled"),
    "window aggregate": lambda s, name: s.window(seconds=LIVES).aggregate(name=name, n=rel.count()),
    "window aggregate, sliding": lambda s, name: s.window(seconds=LIVES, slide=100).aggregate(name=name, n=rel.count()),
    "window aggregate, lateness": lambda s, name: s.window(seconds=100, lateness=LIVES - 100).aggregate(
        name=name, n=rel.count()
    ),
    "window aggregate, assigned": lambda s, name: s.window(assign=lambda t: [(t.at, t.at + LIVES)]).aggregate(
        name=name, n=rel.count()
    ),
    "window combine, compiled": lambda s, name: s.window(seconds=LIVES).combine(Total, name=name, lane="compiled"),
    "session aggregate": lambda s, name: s.session(gap=LIVES).aggregate(name=name, n=rel.count()),
    "session aggregate, lateness": lambda s, name: s.session(gap=100, lateness=LIVES - 200).aggregate(
        name=name, n=rel.count()
    ),
    "session combine, compiled": lambda s, name: s.session(gap=LIVES).combine(Total, name=name, lane="compiled"),
    "join within": lambda s, name: s.join(s, name=name, within=(LIVES // 2, LIVES // 2)),
    "join as of a time": lambda s, name: s.join(s, name=name, ttl=LIVES),
    "join as of a time, first": lambda s, name: s.join(s, name=name, keep="first", ttl=LIVES),
    "join as of a time, all": lambda s, name: s.join(s, name=name, keep="all", how="left", ttl=LIVES),
    "join window": lambda s, name: s.join(s, name=name, window=LIVES, how="full"),
    **_windows(),
    **_early(),
}

# What keeps no key, or whose keys have no end but that of the input; docs/how_to/expire_state.md says so.
WITHOUT_END = {
    "enrich": "keeps the table",
    "fold": "emits when the input ends, as reduce, aggregate and combine with emit='final' do",
    "cross_join": "test_join_lives.py: its keys are those of the right",
}
