"""Two functions in a chain that wait for each tuple: what elasticity finds, beside the two in one thread.

    python -m bench.micro.two_waits [milliseconds=2] [cold=30] [look=4] [rounds=3]

A source without end feeds them. After `cold` seconds elasticity decides nothing more, and what it has found and one
thread without queues take turns in that job, `look` seconds each. What comes to the sink counts: a queue that fills is
no rate.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import rayelastic as rel
from bench.elastic.graphs import ENDLESS, Value
from bench.elastic.live import Live, Setting
from bench.harness import compared, settings
from rayelastic.plan.settings.elasticity import THREAD_PERIOD


def main() -> None:
    given = settings(milliseconds=2.0, cold=30.0, look=4.0, rounds=3)
    seconds = given["milliseconds"] / 1000

    def wait(t: Any) -> Value:
        time.sleep(seconds)
        return Value(t.value)

    topology = rel.Topology("two_waits")
    stream = topology.source(rel.sequence(ENDLESS), name="numbers")
    for name in ("one", "two"):
        stream = stream.map(wait, name=name, schema=Value)
    stream.sink(rel.count(), name="out")

    with Live(topology, THREAD_PERIOD) as live:
        live.adapts(given["cold"])
        settled, found = live.settled_at(), live.stop_adapting()
        row = compared(
            f"waits.{given['milliseconds']:g}",
            f"two functions that wait {given['milliseconds']:g} ms, in a chain",
            "tuples/s",
            given["rounds"],
            lambda: live.rate(found, given["look"], "out"),
            lambda: live.rate(Setting(1, frozenset()), given["look"], "out"),
            "one thread",
        )
    replace(row, note=f"found {found} after {settled:.1f} s").print()


if __name__ == "__main__":
    main()
