"""How often two things are bought together: pairs of each basket, counted.

After apriori.py of Bytewax's examples. `python examples/ported/baskets.py`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import rayelastic as rel


class Basket(NamedTuple):
    """What was bought, with commas."""

    bought: str


class Pair(NamedTuple):
    """In the order of the alphabet."""

    one: str
    other: str


def pairs(t: Basket) -> Iterator[Pair]:
    """Those of a basket."""
    things = sorted(t.bought.split(","))
    for i in range(len(things)):
        for j in range(i + 1, len(things)):
            yield Pair(things[i], things[j])


def build(rows: Sequence[Basket]) -> rel.Topology:
    """Return the topology."""
    topology = rel.Topology("baskets")
    baskets = topology.source(rel.rows(list(rows), schema=Basket), name="baskets")
    counted = baskets.flat_map(pairs, name="pairs").key_by("one", "other").aggregate(name="counts", n=rel.count())
    counted.sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    for one in rel.run(build([Basket("tea,milk,rice"), Basket("milk,tea"), Basket("rice,beans")]))["out"]:
        print(one)
