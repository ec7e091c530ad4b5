"""Orders that break one of the rules that hold at their time; the rules are a stream, and may be taken back.

After the broadcast state of Apache Flink's guide. `python examples/ported/dynamic_rules.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel


class Order(NamedTuple):
    """Of a customer."""

    customer: str
    at: int
    sum: int


class Rule(NamedTuple):
    """No order may be of more than `most`, as long as it holds."""

    name: str
    at: int
    most: int
    holds: bool = True


class Broken(NamedTuple):
    """A rule, and who has broken it."""

    customer: str
    at: int
    rule: str


def build(orders: Sequence[Order], rules: Sequence[Rule]) -> rel.Topology:
    """Return the topology, for rows in any order within 10 s."""
    topology = rel.Topology("dynamic_rules")
    changes = topology.source(rel.rows(list(rules), schema=Rule), name="rules").event_time(
        "at", name="rule_time", lateness=10
    )
    timed = topology.source(rel.rows(list(orders), schema=Order), name="orders").event_time(
        "at", name="time", lateness=10
    )
    each = timed.key_by("customer").cross_join(changes.key_by("name"), name="each")
    broken = each.filter(lambda t: t.holds and t.sum > t.most, name="broken")
    broken.map(lambda t: Broken(t.customer, t.at, t.name), name="told").sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    changed = [Rule("new customers", 0, 100), Rule("all", 0, 1000), Rule("new customers", 50, 100, holds=False)]
    for one in rel.run(build([Order("ann", 10, 200), Order("bob", 20, 2000), Order("ann", 60, 200)], changed))["out"]:
        print(one)
