"""An operator that asks a service gets replicas by its waiting, which costs no CPU time (J32; DS2); two that wait in
one PE wait at the same time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic.job import Job, start
from rayelastic.reasons import Code
from rayelastic.runtime.values.region_adaptation import RegionAdaptation
from tests.component.policy.test_regions_adapt import PATIENCE, PacedFeed, reaches
from tests.component.rescale.rescaling import Counted, Event, Seen, check
from tests.reasons import codes

PERIOD = 0.4  # seconds between two decisions: 40 looks of the profiler
ANSWER = 0.004  # seconds that the service takes
ONE = 1 / ANSWER  # tuples/s that one replica can't reach


class Number(NamedTuple):
    value: int


class Service:
    """Answers each byte after a time, any number of connections at once."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = self._listening.getsockname()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            asking, _ = self._listening.accept()
            if self._over.is_set():
                asking.close()
                return
            self._threads.append(threading.Thread(target=self._answer, args=(asking,)))
            self._threads[-1].start()

    def _answer(self, asking: socket.socket) -> None:
        with asking:
            while question := asking.recv(1):
                self._over.wait(ANSWER)
                asking.sendall(question)

    def close(self) -> None:
        self._over.set()
        with socket.create_connection(self.address):
            self._threads[0].join()
        self._listening.close()


@contextmanager
def service() -> Iterator[Service]:
    made = Service()
    try:
        yield made
    finally:
        made.close()


def questions(address: tuple[str, int]) -> Callable[[], None]:
    """Asks the service; each thread that does has a connection."""
    here = threading.local()

    def question() -> None:
        if not hasattr(here, "connection"):
            here.connection = socket.create_connection(address)
        here.connection.sendall(b"?")
        if here.connection.recv(1) != b"?":
            raise ConnectionError("no answer")

    return question


def asking(address: tuple[str, int]) -> Callable[[Event, Seen], Counted]:
    """The operator with state."""
    question = questions(address)

    def ask(t: Event, s: Seen) -> Counted:
        question()
        s.count += 1  # type: ignore[misc]
        s.digest = (s.digest * 31 + t.sequence + 1) % 1000000007  # type: ignore[misc]
        return Counted(t.key, t.sequence, s.count, s.digest)

    return ask


def up_and_down(topology: rel.Topology, feed: PacedFeed) -> tuple[Job, list[Any]]:
    """Run a job until it has followed a high load and a low one; return it and its rows."""
    elasticity = rel.Elasticity(algorithm="off", region_period=PERIOD)
    job = start(topology, rel.JobConfig(regions="elastic", elasticity=elasticity))
    try:
        feed.rate = 1.8 * ONE
        reaches(job, range(2, 17))
        feed.rate = 0.2 * ONE
        reaches(job, range(1, 2))
        feed.enough.set()
        return job, job.wait(timeout=PATIENCE)["out"]
    finally:
        feed.enough.set()
        job.close()


@pytest.mark.timeout(200)
def test_a_region_that_waits_follows_its_load_up_and_down() -> None:
    feed = PacedFeed(keys=300)
    with service() as remote:
        topology = rel.Topology("asking")
        keyed = topology.source(rel.callable(feed, Event), name="events").key_by("key")
        keyed.map(asking(remote.address), name="ask", state=Seen, schema=Counted, lane="python").sink(
            rel.list(), name="out"
        )
        job, rows = up_and_down(topology, feed)
    check(rows, feed)
    done = [one for one in job.adaptations() if isinstance(one, RegionAdaptation) and not one.problem]
    ask = job.metrics().operator("ask")
    assert any(Code.REPLICAS in codes(one.decision.reasons) for one in done), done
    assert ask.waited_seconds > 4 * ask.cpu_seconds  # it was no CPU that was short


@pytest.mark.timeout(200)
def test_one_without_state_gets_replicas_too_and_keeps_the_order() -> None:
    """The commonest job: a service is asked for each tuple, and nothing is kept."""
    feed = PacedFeed(keys=1)
    with service() as remote:
        question = questions(remote.address)

        def ask(t: Event) -> Event:
            question()
            return t

        topology = rel.Topology("asking")
        events = topology.source(rel.callable(feed, Event), name="events")
        events.map(ask, name="ask", lane="python").sink(rel.list(), name="out")
        _, rows = up_and_down(topology, feed)
    assert [t.sequence for t in rows] == list(range(feed.next[0]))


class Meeting:
    """A pause that ends early when two are in it at the same time."""

    def __init__(self) -> None:
        self.met = threading.Event()
        self._second = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._inside = 0
        self.times = 0

    def pause(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 2:
                self.times += 1
                if self.times >= 50:
                    self.met.set()
        self._second.acquire(timeout=ANSWER / 2)  # nobody releases it: a pause like that of a request
        with self._lock:
            self._inside -= 1


@pytest.mark.timeout(120)
def test_two_operators_that_wait_in_one_element_come_to_wait_at_the_same_time() -> None:
    meeting = Meeting()

    def one(t: Number) -> Number:
        meeting.pause()
        return t

    def two(t: Number) -> Number:
        meeting.pause()
        return t

    topology = rel.Topology("waiting")
    numbers = topology.source(rel.sequence(1_000_000), name="numbers")
    numbers.map(one, name="one", lane="python").map(two, name="two", lane="python").sink(rel.count(), name="out")
    job = start(topology)  # with default settings
    try:
        assert meeting.met.wait(PATIENCE)
        model = job.metrics().operator("two").model
    finally:
        job.cancel(drain=False)
        job.close()
    assert model == "dynamic"


@pytest.mark.timeout(120)
def test_the_first_result_of_a_slow_function_waits_for_no_other() -> None:
    """A first run had 256 calls: of three seconds each, nothing came out for 13 minutes."""
    begun: list[int] = []
    before_first: list[int] = []
    arrived = threading.Event()

    def slow(t: Number) -> Number:
        begun.append(t.value)
        arrived.wait(0.02)
        return t

    def behind(t: Number) -> Number:
        if not before_first:
            before_first.append(len(begun))
        arrived.set()
        return t

    topology = rel.Topology("slow")
    numbers = topology.source(rel.sequence(1_000_000), name="numbers")
    numbers.map(slow, name="slow", lane="python").map(behind, name="behind", lane="python").sink(
        rel.count(), name="out"
    )
    job = start(topology)  # with default settings
    try:
        assert arrived.wait(PATIENCE)
    finally:
        job.cancel(drain=False)
        job.close()
    assert before_first == [1]
