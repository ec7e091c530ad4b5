"""The throughput at which a PE runs steadily: a fixed point over the time that a tuple takes.

Time per source tuple is bounded from below by all threads together, by the dearest segment (one thread at a time), by
locks, memory, the Python token, and by what the sources are given. Where threads and segments are both scarce they add
up, as in Graham's bound for list scheduling. Must not know controllers, noise or time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from bench.plant.constants import Machine, PerformanceConstants
from bench.plant.contention import visits_per_ns
from bench.plant.graph import PlantGraph
from bench.plant.segments import Segments, SharedPort
from rayelastic.plan.settings.threads import ThreadingModel

Floats = NDArray[np.float64]

ROUNDS = 40  # of the fixed point; each halves the distance
CLOSE = 1e-5  # relative change of the busy threads at which it has been found
SILENT = 1e-3  # tuples/s that count as none
QUEUE_FILL = 0.5  # mean share of a saturated queue that is full: what copies have to keep in the cache


class Limit(Enum):
    """What holds the throughput where it is."""

    THREADS = "threads"
    SEGMENT = "the dearest segment"
    LOCK = "a lock"
    MEMORY = "memory"
    TOKEN = "the Python token"
    SOURCES = "the sources' rate"


@dataclass(frozen=True, slots=True)
class SteadyState:
    """What a configuration gives.

    Args:
        rate: tuples/s of all sources.
        limit: what holds it there.
        threads: threads that may find work: of sources, dedicated, and scheduler threads up to the number of queues.
        busy: of these, how many do useful work on average.
        cpus: CPUs kept busy, spinning included.
        overhead: share of the useful work that isn't operators': queues, copies, calls, locks.
        usage: of each segment, the share of time in which a thread runs it.
        bottleneck: number of the dearest segment.
        fill: of each segment, the share of its queue that is full.
        upstream: share of the segments that feed the dearest one; its threads wait for room, the others for work.
        token_wait: share of the threads' time spent waiting for the token.
    """

    rate: float
    limit: Limit
    threads: float
    busy: float
    cpus: float
    overhead: float
    usage: Floats
    bottleneck: int
    fill: Floats
    upstream: float
    token_wait: float


def steady_state(
    graph: PlantGraph,
    cut: Segments,
    machine: Machine,
    constants: PerformanceConstants,
    threads: int,
    others: float = 0.0,
    offered: float | None = None,
) -> SteadyState:
    """Return what `threads` scheduler threads reach.

    Args:
        graph: what runs.
        cut: its segments.
        machine: on what.
        constants: in which engine.
        threads: scheduler threads.
        others: CPUs that other processes keep busy.
        offered: tuples/s that the sources are given; None: as many as are taken.

    >>> from bench.plant.constants import ENGINE, LAPTOP
    >>> from bench.plant.graph import pipeline
    >>> from bench.plant.segments import segments
    >>> graph = pipeline([1000.0] * 10)
    >>> manual = segments(graph, (ThreadingModel.MANUAL,) * 12)
    >>> round(steady_state(graph, manual, LAPTOP, ENGINE, threads=1).rate, -3)
    100000.0
    """
    return _FixedPoint(graph, cut, machine, constants, threads, others, offered).solve()


class _FixedPoint:
    def __init__(
        self,
        graph: PlantGraph,
        cut: Segments,
        machine: Machine,
        constants: PerformanceConstants,
        threads: int,
        others: float,
        offered: float | None,
    ) -> None:
        self._cut = cut
        self._machine = machine
        self._constants = constants
        self._others = others
        self._offered = offered
        self._dynamic = np.array([model is ThreadingModel.DYNAMIC for model in cut.models])
        queues = int(self._dynamic.sum())
        self._working = cut.sources + cut.dedicated + min(threads, queues)
        self._balance = constants.balance if queues else 0.0
        calls = cut.work + cut.calls * constants.call + cut.token_calls * constants.token / constants.token_run
        payload = constants.copy_per_byte * cut.payload if constants.deep_copy else 0.0
        self._fixed = calls + constants.hop_per_byte * cut.copied + payload
        self._memory = self._memory_time()
        self._graph = graph

    def solve(self) -> SteadyState:
        busy = float(self._working)
        for _ in range(ROUNDS):
            spent = self._segment_times(busy)
            time, limit, speed = self._time(spent, busy)
            found = min(max(float(spent.sum()) / (time * speed), 1e-6), float(self._working))
            close = abs(found - busy) <= CLOSE * busy
            busy = (busy + found) / 2
            if close:
                break
        return self._state(spent, time, limit, speed, busy)

    def _segment_times(self, busy: float) -> Floats:
        """Return the ns that each segment takes per source tuple, on a core of its own."""
        constants, cut = self._constants, self._cut
        about = busy + constants.spinning * max(0.0, self._working - busy)
        end = constants.hop / 2 + constants.transfer * (1 - 1 / max(1.0, busy)) / 2
        shared = constants.visit / constants.drain + self._machine.growth * max(0.0, about - 1)
        found = np.where(self._dynamic, shared, constants.dedicated_switch)
        return self._fixed + cut.pushes * end + cut.pops * (end + found)

    def _time(self, spent: Floats, busy: float) -> tuple[float, Limit, float]:
        """Return ns per source tuple, what makes it so long, and the speed of a thread on a shared core."""
        machine, working = self._machine, self._working
        running = busy + self._constants.spinning * (working - busy)
        speed = machine.capacity(running, self._others) / running
        everybody = float(spent.sum()) / machine.capacity(working, self._others)
        dearest = float(spent.max()) / speed
        low, high = sorted((everybody, dearest))
        time = high + self._balance * (1 - 1 / working) * low
        limit = Limit.SEGMENT if dearest > everybody else Limit.THREADS
        for other, bound in (
            (self._memory, Limit.MEMORY),
            (self._token_time() / speed, Limit.TOKEN),
            (self._offered_time(), Limit.SOURCES),
        ):
            if other > time:
                time, limit = other, bound
        if limit is Limit.SOURCES:
            return time, limit, speed
        locked = max((self._lock_time(port, time, speed) for port in self._cut.shared), default=0.0)
        return (locked, Limit.LOCK, speed) if locked > 1.1 * time else (max(time, locked), limit, speed)

    def _lock_time(self, port: SharedPort, time: float, speed: float) -> float:
        """Return ns per source tuple when its threads have to pass one port after the other."""
        constants = self._constants
        held = (port.work + port.calls * constants.call + port.pushes * constants.hop / 2) / speed
        hold = constants.run * held + constants.lock
        threads = min(port.callers, self._working, self._machine.cpus)
        cycle = constants.run * threads * time / port.rate
        visits = visits_per_ns(threads, max(cycle - constants.run * held, 0.0), hold, self._machine.handover)
        return port.rate / (visits * constants.run)

    def _memory_time(self) -> float:
        """Return ns per source tuple that memory takes for deep copies; 0 as long as queues fit the cache."""
        constants, cut = self._constants, self._cut
        pushed = float(cut.pushes.sum())
        if not constants.deep_copy or pushed == 0:
            return 0.0
        payload = float(cut.payload.sum())
        kept = cut.queues * constants.queue * QUEUE_FILL * payload / pushed
        missed = max(0.0, 1 - self._machine.cache / kept) if kept > 0 else 0.0
        return constants.copy_traffic * missed * payload / self._machine.bandwidth

    def _offered_time(self) -> float:
        return 0.0 if self._offered is None else 1e9 / max(self._offered, SILENT)

    def _token_time(self) -> float:
        calls = float(self._cut.token_calls.sum())
        return float(self._cut.token.sum()) + calls * self._constants.token / self._constants.token_run

    def _state(self, spent: Floats, time: float, limit: Limit, speed: float, busy: float) -> SteadyState:
        cut, constants = self._cut, self._constants
        usage = np.minimum(spent / (time * speed), 1.0)
        bottleneck = int(spent.argmax())
        feeding = _feeding(cut, bottleneck)
        waiting = self._working - busy
        total = float(spent.sum())
        token = self._token_time() / (time * speed)
        return SteadyState(
            rate=1e9 / time,
            limit=limit,
            threads=float(self._working),
            busy=busy,
            cpus=busy + (0.0 if limit is Limit.SOURCES else constants.spinning * waiting),
            overhead=1 - float(cut.work.sum()) / total if total > 0 else 0.0,
            usage=usage,
            bottleneck=bottleneck,
            fill=_fill(cut, usage, bottleneck, feeding, limit),
            upstream=len(feeding) / len(cut.heads),
            token_wait=max(0.0, token - 1 / self._working) * waiting / self._working,
        )


def _feeding(cut: Segments, segment: int) -> set[int]:
    """Return the segments upstream of one."""
    found: set[int] = set()
    todo = list(cut.upstream[segment])
    while todo:
        at = todo.pop()
        if at not in found:
            found.add(at)
            todo.extend(cut.upstream[at])
    return found


def _fill(cut: Segments, usage: Floats, bottleneck: int, feeding: set[int], limit: Limit) -> Floats:
    """Return how full queues are.

    Upstream of a bottleneck they fill up, downstream of it they run empty; where threads are what is scarce they are
    full near the sources, which find room as soon as there is any, and emptier from segment to segment.
    """
    if limit is Limit.SOURCES:
        return np.where(cut.pops > 0, usage**2 / 2, 0.0)
    depths = np.zeros(len(cut.heads))
    for number, upstream in enumerate(cut.upstream):  # upstream segments come first
        depths[number] = 1 + max((depths[at] for at in upstream), default=-1.0)
    scarce = 1 - (depths - 1) / max(1.0, float(depths.max()))
    full = np.zeros(len(cut.heads))
    full[list(feeding | {bottleneck})] = 1.0
    bound = float(usage[bottleneck])
    return np.where(cut.pops > 0, bound * full + (1 - bound) * scarce, 0.0)
