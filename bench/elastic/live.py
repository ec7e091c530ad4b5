"""A job of this process, as it runs: elasticity of the defaults, stopped when it has settled, and settings by hand."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Self
from unittest.mock import patch

import rayelastic as rel
from rayelastic import _native
from rayelastic.job.control import LocalControl
from rayelastic.job.preparing import prepare
from rayelastic.plan.settings.threads import QUEUE_RECORDS
from rayelastic.policy.element.pieces import OperatorGraph
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.element.processing_element import ProcessingElement
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.values.adaptation import Adaptation

CHANGED = 0.15  # s after a change of setting that aren't measured
LOOK = 0.05  # s between two looks at how far a pass is


@dataclass(frozen=True, slots=True)
class Setting:
    """What elasticity decides on.

    Args:
        threads: of the scheduler.
        queued: operators with a queue.
    """

    threads: int
    queued: frozenset[str]

    def __str__(self) -> str:
        return f"{self.threads} threads, {len(self.queued)} queues"


class Live:
    """A topology that runs in this process; a context manager that cancels it.

    Args:
        topology: an endless one.
        period: seconds between two decisions.
        deep_copy: whether queues copy payloads, as the papers' engine does.
    """

    def __init__(self, topology: rel.Topology, period: float, *, deep_copy: bool = False) -> None:
        spec = prepare(topology, rel.JobConfig(elasticity=rel.Elasticity(thread_period=period, remember=False)))
        host = InProcessHost()
        self._job = rel.Job(spec.name, LocalControl(Coordinator(spec, host)), topology)
        with patch.object(_native, "Scheduler", partial(_native.Scheduler, deep_copy=deep_copy)):
            self._job._start()
        element = host.find_pes()[0].within(0.0)
        assert isinstance(element, ProcessingElement)
        assert element._running is not None
        self._element = element
        self._scheduler = element._running.scheduler
        self._ids = dict(element._running.ids)
        operators = topology.operators
        self.sources = frozenset(name for name in self._ids if not operators[name].upstream)
        self.graph = OperatorGraph(list(self._ids), {name: operators[name].upstream for name in self._ids})
        self._passes: list[Adaptation] = []

    @property
    def movable(self) -> list[str]:
        """Operators that may have a queue."""
        return [name for name in self._ids if name not in self.sources]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._job.cancel()
        self._job.close()

    def adapts(self, seconds: float) -> list[Adaptation]:
        """Let elasticity decide for so long; return all of its passes so far."""
        self._element.pause_levels(False)
        time.sleep(seconds)
        self._take_passes()
        return list(self._passes)

    def changes(self, periods: int) -> int:
        """Let it go on for so many periods; how many of them changed something."""
        self._take_passes()
        before = len(self._passes)
        while len(self._passes) < before + periods:
            time.sleep(LOOK)
            self._take_passes()
        return sum(one.changed for one in self._passes[before:])

    def settled_at(self) -> float:
        """Seconds from the start to the last change so far."""
        return max((one.observation.time for one in self._passes if one.changed), default=0.0)

    def stop_adapting(self) -> Setting:
        """Have elasticity decide nothing more; what it has found."""
        self._element.pause_levels(True)
        kept = self._scheduler.in_force()
        queued = frozenset(name for name, number in self._ids.items() if kept.models[number] == "dynamic")
        return Setting(kept.thread_count, queued)

    def costs(self, seconds: float) -> dict[str, float]:
        """CPU seconds of each operator, in so many seconds."""
        before = self._scheduler.sample()
        time.sleep(seconds)
        after = self._scheduler.sample()
        return {
            name: after.operators[number].cpu_seconds - before.operators[number].cpu_seconds
            for name, number in self._ids.items()
        }

    def counted(self, of: str | None = None) -> int:
        """Tuples so far, over all operators or of one."""
        operators = self._scheduler.sample().operators
        return sum(
            operators[number].tuples_out if name in self.sources else operators[number].tuples_in
            for name, number in self._ids.items()
            if of in (None, name)
        )

    def rate(self, setting: Setting | None, seconds: float, of: str | None = None, fill: float = 0.0) -> float:
        """Tuples/s over all operators, or of one, with a setting in force.

        Args:
            setting: that is put into force; None: the present one.
            seconds: that are measured.
            of: the operator.
            fill: seconds that queues may take to fill before that, at most.
        """
        if setting is not None:
            models = {self._ids[name]: "dynamic" if name in setting.queued else "manual" for name in self.movable}
            self._scheduler.apply(setting.threads, models)
            time.sleep(CHANGED)
            end, full = time.perf_counter() + fill, self.counted(of) + len(setting.queued) * QUEUE_RECORDS
            while self.counted(of) < full and time.perf_counter() < end:
                time.sleep(LOOK)
        before, started = self.counted(of), time.perf_counter()
        time.sleep(seconds)
        counted, took = self.counted(of) - before, time.perf_counter() - started
        if failure := self._scheduler.failure():
            raise RuntimeError(f"the graph failed while it was measured: {failure}")
        return counted / took

    def _take_passes(self) -> None:
        self._passes += self._element.adaptations(len(self._passes))
