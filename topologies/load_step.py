"""A step of load: requests come slowly, then four times as fast as one thread answers them.

Each request waits for two services, one after the other, so one thread answers 500 a second. The runtime sees that
requests queue up and changes threads and queues by itself; nothing here says how many there should be.

    rayelastic demo load_step
    rayelastic demo load_step --web
"""

from __future__ import annotations

import time
from typing import NamedTuple

import rayelastic as rel

WAIT = 0.001  # seconds that each service takes
BATCH = 200  # requests that arrive at once, at most


class Request(NamedTuple):
    """A request."""

    number: int


class Arrivals:
    """The requests of one client: so many a second, and after a while more.

    Args:
        steps: seconds and requests a second, one step after the other.
        position: how many have arrived before.
    """

    def __init__(self, steps: list[tuple[float, int]], position: int) -> None:
        self._steps = steps
        self._started = time.monotonic()
        self.position = position

    def poll(self) -> list[Request] | None:
        """Return the requests that are due; None at the end."""
        left, due = time.monotonic() - self._started, 0
        for seconds, rate in self._steps:
            due += int(min(left, seconds) * rate)
            left = max(0.0, left - seconds)
        if self.position >= sum(int(seconds * rate) for seconds, rate in self._steps):
            return None
        first, self.position = self.position, min(due, self.position + BATCH)
        return [Request(number) for number in range(first, self.position)]


class Client:
    """A source of requests.

    Args:
        steps: as for Arrivals.
    """

    idle = 0.005  # seconds between two polls

    def __init__(self, steps: list[tuple[float, int]]) -> None:
        self._steps = steps

    def partitions(self) -> list[str]:
        """Name its only part."""
        return ["requests"]

    def open(self, _: str, position: int | None) -> Arrivals:
        """Begin to send."""
        return Arrivals(self._steps, position or 0)


def find_user(t: Request) -> Request:
    """Wait for a service."""
    time.sleep(WAIT)
    return t


def find_price(t: Request) -> Request:
    """Wait for another service."""
    time.sleep(WAIT)
    return t


def build(before: float = 5.0, rate: int = 200, after: float = 12.0, peak: int = 800) -> rel.Topology:
    """Declare the topology.

    Args:
        before: seconds of low load.
        rate: requests a second then.
        after: seconds of high load.
        peak: requests a second then.
    """
    topology = rel.Topology("load_step")
    requests = topology.source(rel.polled(Client([(before, rate), (after, peak)]), Request), name="requests")
    users = requests.map(find_user, name="find_user", lane="python")
    users.map(find_price, name="find_price", lane="python").sink(rel.count(), name="answered")
    return topology


def report(result: rel.JobResult) -> str:
    """How many requests were answered, and how fast.

    Args:
        result: what the job left.
    """
    return f"{result['answered']:,} requests answered in {result.seconds:.0f} s"
