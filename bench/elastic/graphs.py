"""Random topologies by seed and number, of what jobs are made of; endless, for whoever measures them while they run.

Pipelines, fans, joins; costs that are even, skewed, or one operator's; filters and flat_maps, state by key, Python
operators, payloads, sources that are given so many tuples a second. Costs are dependent multiplications, of a few
numbers, so that most functions are compiled once for all graphs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import rayelastic as rel

SHAPES = ("pipeline", "fan", "join")
SPECIALS = ("plain", "skewed", "filter", "flat_map", "keyed", "counted", "python", "payload", "paced")
KINDS = tuple((shape, special) for shape in SHAPES for special in SPECIALS)
ENDLESS = 1 << 60  # tuples
COSTS = (10, 30, 100, 300, 1_000, 3_000, 10_000)  # multiplications a tuple
FACTOR = 1.0000001  # of each: ten thousand of them leave a number about as large as it was
KEYS = 1_000
PAYLOAD = 4_096  # bytes


class Value(NamedTuple):
    value: int


class Loaded(NamedTuple):
    value: int
    payload: bytes


class Keyed(NamedTuple):
    key: int
    value: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph that was drawn.

    Args:
        name: its shape, and what is special about it.
        build: makes its topology.
    """

    name: str
    build: Callable[[], rel.Topology]


def drawn(number: int, seed: int) -> Drawn:
    """Return one of the graphs of a seed: always the same one. Kinds come in an order of the seed, in turn.

    >>> drawn(3, 1).name == drawn(3, 1).name, drawn(0, 1).name != drawn(1, 1).name
    (True, True)
    """
    order = random.Random(seed).sample(KINDS, len(KINDS))
    shape, special = order[number % len(KINDS)]
    return Drawn(
        f"{shape} {special}", lambda: _Builder(shape, special, random.Random(seed * 1_000_003 + number)).topology
    )


def shaped(shape: Sequence[Sequence[int]], flops: int, payload: int) -> rel.Topology:
    """Return an endless topology of a shape of `topologies.shapes`, whose tuples go to all consumers.

    Args:
        shape: for each operator behind the source those that feed it; the last one is the sink.
        flops: multiplications of each operator for a tuple.
        payload: bytes of a tuple beside its number; 0: none.
    """
    topology = rel.Topology("shaped")
    streams: list[rel.Stream] = [topology.source(rel.sequence(ENDLESS, payload), name="source")]
    for number, (first, *others) in enumerate(shape, start=1):
        stream = streams[first].union(*(streams[tail] for tail in others)) if others else streams[first]
        if number == len(shape):
            stream.sink(rel.count(), name="sink")
        else:
            kind = Loaded if payload else Value
            streams.append(stream.map(multiplying(flops, bool(payload)), name=f"op{number}", schema=kind))
    return topology


def multiplying(count: int, loaded: bool) -> Callable[[Any], Any]:
    """Return a function of so many dependent multiplications."""

    def plain(t: Any) -> Any:
        value = float(t.value)
        for _ in range(count):
            value = value * FACTOR
        return Value(int(value))

    def with_payload(t: Any) -> Any:
        value = float(t.value)
        for _ in range(count):
            value = value * FACTOR
        return Loaded(int(value), t.payload)

    return with_payload if loaded else plain


def one_in(k: int) -> Callable[[Any], bool]:
    return lambda t: t.value % k == 0


def each_times(k: int) -> Callable[[Any], Iterator[Value]]:
    def give(t: Any) -> Iterator[Value]:
        for copy in range(k):
            yield Value(t.value + copy)

    return give


def with_key(t: Any) -> Keyed:
    return Keyed(t.value % KEYS, t.value)


def of_count(t: Any) -> Value:
    return Value(t.n)


def of_joined(t: Any) -> Value:
    return Value(t.value + t.value_right)


class _Builder:
    """Declares one topology."""

    def __init__(self, shape: str, special: str, draw: random.Random) -> None:
        self._draw = draw
        self._special = special
        self._loaded = special == "payload" and shape != "join"
        self._made = 0
        self._scale = draw.randrange(1, len(COSTS) - 1)
        self.topology = rel.Topology(f"{shape}_{special}")
        getattr(self, shape)()

    def pipeline(self) -> None:
        self._end(self._chain(self._source(), self._draw.randint(4, 16)))

    def fan(self) -> None:
        """Give each tuple to all branches, which meet again."""
        start = self._chain(self._source(), self._draw.randint(1, 3))
        branches = [self._chain(start, self._draw.randint(1, 4)) for _ in range(self._draw.randint(2, 6))]
        self._end(self._chain(branches[0].union(*branches[1:]), self._draw.randint(0, 2)))

    def join(self) -> None:
        """Let a stream meet the latest tuples of a slower one, by key."""
        left = self._chain(self._source(), self._draw.randint(1, 5)).map(with_key, name="left", schema=Keyed)
        other = self.topology.source(rel.sequence(ENDLESS), name="other").throttle(
            name="slow", per_second=self._rate() / 4
        )
        right = self._chain(other, self._draw.randint(1, 3)).map(with_key, name="right", schema=Keyed)
        met = (
            left.key_by("key")
            .join(right.key_by("key"), name="met", by="arrival")
            .map(of_joined, name="both", schema=Value)
        )
        self._end(self._chain(met, self._draw.randint(1, 6)))

    def _source(self) -> rel.Stream:
        made = self.topology.source(rel.sequence(ENDLESS, PAYLOAD if self._loaded else 0), name="source")
        return made.throttle(name="paced", per_second=self._rate()) if self._special == "paced" else made

    def _rate(self) -> float:
        return float(round(10 ** self._draw.uniform(3.5, 5.5)))

    def _chain(self, stream: rel.Stream, length: int) -> rel.Stream:
        for cost in self._costs(length):
            name = f"op{self._made}"
            self._made += 1
            schema = Loaded if self._loaded else Value
            stream = stream.map(multiplying(cost, self._loaded), name=name, schema=schema)
        return stream

    def _costs(self, length: int) -> Sequence[int]:
        """Even, or one much dearer, or all of them different."""
        even = [COSTS[self._scale]] * length
        if self._special == "skewed" and length:
            return [self._draw.choice(COSTS) for _ in even]
        if length and self._draw.random() < 0.4:
            even[self._draw.randrange(length)] = COSTS[self._scale + 1]
        return even

    def _end(self, stream: rel.Stream) -> None:
        """What is special comes in front of the last operators, then the sink."""
        draw = self._draw
        if self._special == "filter":
            stream = stream.filter(one_in(draw.choice((2, 10, 100))), name="some")
        elif self._special == "flat_map":
            stream = stream.flat_map(each_times(draw.choice((2, 5, 20))), name="many", schema=Value)
        elif self._special == "keyed":
            counts = (
                stream.map(with_key, name="keys", schema=Keyed)
                .key_by("key")
                .aggregate(name="n", emit="update", n=rel.count())
            )
            stream = counts.map(of_count, name="counted", schema=Value)
        elif self._special == "counted":
            keyed = stream.map(with_key, name="keys", schema=Keyed).key_by("key")
            keyed.aggregate(name="counts", n=rel.count(), most=rel.max("value")).sink(rel.list(), name="out")
            return
        elif self._special == "python":
            schema = Loaded if self._loaded else Value
            stream = stream.map(multiplying(10, self._loaded), name="python", schema=schema, lane="python")
        self._chain(stream, draw.randint(1, 4)).sink(rel.count(), name="out")
