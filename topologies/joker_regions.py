"""The flows of Joker's micro-benchmarks: regions of multiplying operators with state by key (Figs 4, 7, 10, 16, 21).

`flow`: one data-parallel region; `tree` and `reverse_tree`: three; `chain_2` and `chain_4`: two, keyed otherwise, of
one and two operators each; `selectivity`: multiplications of 1024, 256, 1024 and 2048, with 4, 0.25 and 0.5 tuples out
between them; `comparison`: seven operators of different kinds of state, whose selectivities are times a factor.

    rayelastic run rayelastic.topologies.joker_regions --flow chain_4 --multiplications 1024
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import rayelastic as rel
from rayelastic.topologies.multiplications import FACTOR, report

__all__ = ["build", "report"]

SPREAD = 997  # a prime: numbers are spread over so many parts
FLOWS = ("flow", "tree", "reverse_tree", "chain_2", "chain_4", "selectivity", "comparison")
SELECTIVITY = ((1024, 4.0), (256, 0.25), (1024, 0.5), (2048, 1.0))  # Fig. 10: multiplications, tuples out by in
# Fig. 21 has one stateful region in the middle; its numbers aren't in the text, but for 20 multiplications at 0.9.
COMPARISON = ((2000, 1.0), (20, 0.9), (1000, 0.9)), ((600, 1.0),), ((3000, 0.8), (1000, 0.9), (500, 1.0))


class Item(NamedTuple):
    """A tuple with two keys."""

    number: int
    key: int
    other: int
    value: float


class Seen(NamedTuple):
    """What an operator remembers of a key."""

    tuples: int = 0


def multiplying(count: int) -> Callable[[Any, Any], Item]:
    """Return the function that multiplies so often, and counts the tuples of its key."""

    def multiplied(t: Any, s: Any) -> Item:
        s.tuples += 1
        value = t.value
        for _ in range(count):
            value = value * FACTOR
        return Item(t.number, t.key, t.other, value)

    return multiplied


def selective(share: float, number: int) -> Callable[[Any], Iterator[Item]]:
    """Return the function that emits so many tuples for one: below 1 it keeps some, spread evenly by their numbers.

    The paper draws at random; this emits the same tuples in every run.

    Args:
        share: tuples out by tuples in.
        number: of the operator, so that each keeps others.
    """
    copies, parts = int(share), round((share - int(share)) * SPREAD)

    def kept(t: Any) -> Iterator[Item]:
        for _ in range(copies):
            yield Item(t.number, t.key, t.other, t.value)
        if (t.number * t.number % SPREAD * (number + 1) + t.number * 7919) % SPREAD < parts:
            yield Item(t.number, t.key, t.other, t.value)

    return kept


def build(
    flow: str = "flow",
    multiplications: int = 1024,
    keys: int = 10_000,
    tuples: int = 1_000_000,
    factor: float = 1.0,
) -> rel.Topology:
    """Declare the topology.

    Args:
        flow: 'flow', 'tree', 'reverse_tree', 'chain_2', 'chain_4', 'selectivity' or 'comparison'.
        multiplications: of each operator for a tuple, where the flow doesn't say.
        keys: different ones.
        tuples: that the source makes.
        factor: of the selectivities of 'comparison': 0.1, 0.2, 0.4, 0.8 and 1.0 in the paper.
    """
    if flow not in FLOWS:
        raise rel.errors.ConfigError(f"no flow {flow!r}", hint=f"Choose one of {', '.join(FLOWS)}")
    topology = rel.Topology(flow)
    numbers = topology.source(rel.sequence(tuples), name="source")
    items = numbers.map(lambda t: Item(t.value, t.value % keys, t.value // 3 % keys, 1.0), name="start")
    end = _FLOWS[flow](items, multiplications, factor)
    end.sink(rel.count(), name="out")
    return topology


def _region(stream: rel.Stream, key: str, name: str, *counts: int) -> rel.Stream:
    """Operators with state by one key: a data-parallel region."""
    for number, count in enumerate(counts):
        stream = stream.key_by(key).map(multiplying(count), name=f"{name}{number}", state=Seen)
    return stream


def _stateful(stream: rel.Stream, name: str, count: int) -> rel.Stream:
    """Multiplications, and a state that isn't by key: it can't be replicated."""

    def multiplied(t: Any) -> Item:
        value = t.value
        for _ in range(count):
            value = value * FACTOR
        return Item(t.number, t.key, t.other, value)

    last: dict[str, Any] = {field: rel.last(field) for field in Item._fields}
    return stream.map(multiplied, name=f"{name}multiply").aggregate(name=f"{name}last", emit="update", **last)


def _tree(items: rel.Stream, count: int, _: float) -> rel.Stream:
    root = _region(items, "key", "root", count)
    return _region(root, "key", "left", count).union(_region(root, "other", "right", count))


def _reverse_tree(items: rel.Stream, count: int, _: float) -> rel.Stream:
    both = _region(items, "key", "left", count).union(_region(items, "other", "right", count))
    return _region(both, "key", "root", count)


def _selectivity(items: rel.Stream, _count: int, _: float) -> rel.Stream:
    stream = items
    for number, (count, share) in enumerate(SELECTIVITY):
        stream = _region(stream, "key", f"multiply{number}_", count)
        if share != 1.0:
            stream = stream.flat_map(selective(share, number), name=f"select{number}")
    return stream


def _comparison(items: rel.Stream, _count: int, factor: float) -> rel.Stream:
    stream = items
    for region, operators in enumerate(COMPARISON):
        for number, (count, share) in enumerate(operators):
            name = f"r{region}_{number}_"
            if region == 1:
                stream = _stateful(stream, name, count)
            else:
                stream = _region(stream, "key" if region == 0 else "other", f"{name}multiply", count)
            if share * factor != 1.0:
                stream = stream.flat_map(selective(share * factor, 10 * region + number), name=f"{name}select")
    return stream


_FLOWS: dict[str, Callable[[rel.Stream, int, float], rel.Stream]] = {
    "flow": lambda items, count, _: _region(items, "key", "multiply", *[count] * 4),
    "tree": _tree,
    "reverse_tree": _reverse_tree,
    "chain_2": lambda items, count, _: _region(_region(items, "key", "first", count), "other", "second", count),
    "chain_4": lambda items, count, _: _region(
        _region(items, "key", "first", count, count), "other", "second", count, count
    ),
    "selectivity": _selectivity,
    "comparison": _comparison,
}
