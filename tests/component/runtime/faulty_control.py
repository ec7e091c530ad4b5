"""A job whose control calls go wrong at random: for tests of what a coordinator makes of that.

A call is lost, or its answer is; the element that it goes to dies before it or behind it; so does the coordinator, and
another one takes over what its journal says. A coordinator that is dead does nothing any more: each of its threads
stands still at its next call until the test is over, and ends then, before the next test begins. What is real:
coordinators, elements, their links, files.
"""

from __future__ import annotations

import contextlib
import functools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import rayelastic as rel
from rayelastic.errors import PELostError, RayelasticError
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.runtime.element.host import InProcessHandle, InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.runtime.remote import Call, Remote, perform
from rayelastic.runtime.values.specs import PESpec
from tests.component.rescale.rescaling import Counted, Event, Events, Seen

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.element.processing_element import ProcessingElement

PATIENCE = 60.0  # seconds for whatever the job has to come to
BURST, PAUSE = 1024, 0.04  # events at a time, and seconds between two bursts
WORK = 10_000  # rounds of arithmetic for each: a burst is under way most of the time until the next one comes
WATCHING = ("wait",)  # where a call stays for long: what it waits for is the fault


class Fault(Enum):
    """What goes wrong with a call."""

    LOST = "the call is lost"
    ANSWER_LOST = "the answer is lost"
    ELEMENT_BEFORE = "the element dies before the call"
    ELEMENT_AFTER = "the element dies behind the call"
    COORDINATOR_BEFORE = "the coordinator dies before the call"
    COORDINATOR_AFTER = "the coordinator dies behind the call"


class World:
    """What outlives coordinators: elements, dice, and what has gone wrong so far.

    Args:
        seed: of the dice.
        rate: how many calls go wrong, of one.
    """

    def __init__(self, seed: int, rate: float) -> None:
        self.dice = random.Random(seed)
        self.rate = rate
        self.armed = False
        self.over = threading.Event()
        self.lines: list[str] = []  # of the journal
        self.elements: dict[str, ProcessingElement] = {}
        self.dead: set[int] = set()
        self.seen: Counter[tuple[Fault, str]] = Counter()
        self._lock = threading.Lock()

    def draw(self, method: str) -> Fault | None:
        """What goes wrong with a call now."""
        with self._lock:
            if not self.armed or method in WATCHING or self.dice.random() >= self.rate:
                return None
            fault = self.dice.choice(list(Fault))
            self.seen[fault, method] += 1
            return fault

    def kill(self, element: ProcessingElement) -> None:
        """An element is gone, as if its process were."""
        self.dead.add(id(element))
        element.close()


class Tower(InProcessHost):
    """The world, as one coordinator sees it until it dies.

    Args:
        world: what it sees.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.died = threading.Event()

    def start_pe(self, spec: PESpec) -> InProcessHandle:
        """Makes an element, unless this coordinator is dead."""
        self.stand_still_if_dead()
        made = super().start_pe(spec)
        self.world.elements[spec.pe] = made._element
        return FaultyHandle(self, made._element)

    def find_pes(self) -> Sequence[InProcessHandle]:
        """The elements that live."""
        living = (one for one in self.world.elements.values() if id(one) not in self.world.dead)
        return [FaultyHandle(self, one) for one in living]

    def stand_still_if_dead(self) -> None:
        if self.died.is_set():
            self.world.over.wait()
            raise SystemExit  # the test is over

    def meets(self, fault: Fault | None, *, after: bool) -> None:
        """Dies, if it is to; stands still from then on."""
        if fault is (Fault.COORDINATOR_AFTER if after else Fault.COORDINATOR_BEFORE):
            self.died.set()
        self.stand_still_if_dead()


class Lines:
    """The journal, as one coordinator has it until it dies.

    Args:
        tower: of that.
    """

    def __init__(self, tower: Tower) -> None:
        self._tower = tower

    def lines(self) -> list[str]:
        """What there is."""
        return list(self._tower.world.lines)

    def append(self, line: str, *, alone: bool) -> None:
        """Adds a line."""
        self._tower.meets(self._tower.world.draw("append"), after=False)
        lines = self._tower.world.lines
        lines[:] = [line] if alone else [*lines, line]
        self._tower.meets(self._tower.world.draw("append"), after=True)

    def close(self) -> None:
        """Nothing has to be."""


class FaultyHandle(InProcessHandle):
    """An element, whose calls go wrong now and then.

    Args:
        tower: of the coordinator that has it.
        element: the real one.
    """

    def __init__(self, tower: Tower, element: ProcessingElement) -> None:
        super().__init__(element)
        self._tower = tower

    def within(self, timeout: float) -> ElementApi:
        """The element."""
        return cast("ElementApi", Remote(self._answer))

    def is_alive(self) -> bool:
        """Whether it lives."""
        return id(self._element) not in self._tower.world.dead

    def kill(self, *, at_once: bool = False) -> None:
        """Ends it."""
        self._tower.stand_still_if_dead()
        self._tower.world.kill(self._element)

    def _answer(self, call: Call) -> Any:
        self._tower.stand_still_if_dead()
        world, fault = self._tower.world, self._tower.world.draw(call.method)
        self._tower.meets(fault, after=False)
        if fault is Fault.LOST:
            raise TimeoutError(f"{self.pe} didn't answer {call.method!r}: the call is lost")
        if fault is Fault.ELEMENT_BEFORE:
            world.kill(self._element)
        self._check(call)
        try:
            done = perform(self._element, call)
        finally:
            if fault is Fault.ELEMENT_AFTER:
                world.kill(self._element)
            self._tower.meets(fault, after=True)
            self._check(call)
        if fault is Fault.ANSWER_LOST:
            raise TimeoutError(f"{self.pe} didn't answer {call.method!r}: the answer is lost")
        return done

    def _check(self, call: Call) -> None:
        if not self.is_alive():
            raise PELostError(f"PE {self.pe} is gone, at {call.method!r}")


class Paced(Events):
    """Events that can be given again, which come in bursts where nobody has seen them yet, until they may come fast."""

    def __init__(self, keys: int, rows: int) -> None:
        self.fast = threading.Event()
        self.fast.set()
        self.given: list[Event] = []
        self._furthest = 0
        super().__init__(keys, rows)
        self.fast.clear()

    def __call__(self) -> Iterator[Event]:
        if not self.given:
            yield from super().__call__()
        for number in range(0, len(self.given), BURST):
            if number >= self._furthest:
                self._furthest = number
                self.fast.wait(PAUSE)
            yield from self.given[number : number + BURST]


def slowly(t: Event, s: Seen) -> Counted:
    """What `count` does, as something that takes its time."""
    x = 1.0
    for _ in range(WORK):
        x = x * 1.0000001 + 1e-9
    s.count += 1  # type: ignore[misc]
    s.digest = (s.digest * 31 + t.sequence + 1) % 1000000007 + (0 if x > 0.0 else 1)  # type: ignore[misc]
    return Counted(t.key, t.sequence, s.count, s.digest)


def counts_of(feed: Events) -> rel.Topology:
    topology = rel.Topology("faulty")
    events = topology.source(rel.callable(feed.__call__, Event), name="events")
    events.key_by("key").map(slowly, name="count", state=Seen, schema=Counted, lane="compiled").sink(
        rel.list(), name="out"
    )
    return topology


class FaultyJob:
    """A job with checkpoints, whatever dies in it.

    Args:
        world: what goes wrong.
        feed: its input.
        folder: for its checkpoints and the journal.
    """

    def __init__(self, world: World, feed: Paced, folder: Path) -> None:
        self._world = world
        self._others = set(threading.enumerate())  # threads that are nobody's here
        self._topology = counts_of(feed)
        saving = rel.Checkpoint(folder / "saved", every=0.2, restarts=100_000)
        config = rel.JobConfig(
            pes={"events": 0, "count": 1}, regions="manual", elasticity="off", checkpoint=saving, threads=1
        )
        self._spec = prepare(self._topology, config)
        self._controls: list[LocalControl] = []  # of one coordinator each
        self.tower = Tower(world)
        self._appoint()
        self.job._start()

    def does(self, act: Callable[[], object]) -> None:
        """Has somebody ask the coordinator for something, which may go wrong; another one follows if it dies."""

        def asked() -> None:
            with contextlib.suppress(RayelasticError, TimeoutError, SystemExit):
                act()

        asking = threading.Thread(target=asked, daemon=True)
        asking.start()
        self._until(lambda: not asking.is_alive())

    def rescales(self, replicas: int) -> None:
        """Has somebody ask for so many replicas."""
        self.does(lambda: self.job.rescale("r1", replicas))

    def rests(self) -> None:
        """Nothing goes wrong any more: it comes to run, if it must by another coordinator."""
        self._world.armed = False
        if self.tower.died.is_set():
            self._follow()

    def changes_still(self) -> None:
        """Replicas come and go as if nothing had gone wrong, once the job has gone back from what had; or it ends."""
        for replicas in (1, 3, 1):
            self._until(functools.partial(self._changed, replicas))

    def _changed(self, replicas: int) -> bool:
        with contextlib.suppress(RayelasticError):
            self.job.rescale("r1", replicas)
            return True
        return self.job.status.state.is_final

    def close(self) -> None:
        """Ends the job, and what dead coordinators had under way: no thread of theirs outlives it."""
        self._world.armed = False
        self._world.over.set()
        for close in (self.job.close, *(control.close for control in self._controls)):
            with contextlib.suppress(SystemExit):  # the dead halt their loops, and get no further
                close()
        deadline = time.monotonic() + PATIENCE
        while left := set(threading.enumerate()) - self._others:
            assert time.monotonic() < deadline, f"threads that outlive the job: {left}"
            for thread in left:
                with contextlib.suppress(RuntimeError):  # it is just being started
                    thread.join(max(0.0, deadline - time.monotonic()))

    def _until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            if self.tower.died.wait(0.02):
                self._follow()
                return
            assert time.monotonic() < deadline, "nothing comes of it"

    def _follow(self) -> None:
        self.tower = Tower(self._world)
        self.does(self._take_over)

    def _take_over(self) -> None:
        self._appoint()
        self.coordinator.resume()

    def _appoint(self) -> None:
        self.coordinator = Coordinator(self._spec, self.tower, journal=ChangeJournal(Lines(self.tower)))
        control = LocalControl(self.coordinator)
        self._controls.append(control)
        self.job = Job(self._topology.name, control, self._topology)
