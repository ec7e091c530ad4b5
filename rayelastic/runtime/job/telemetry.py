"""The counters, adaptations and results of a job's elements: read from running ones, kept of ended ones."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rayelastic.errors import PELostError
from rayelastic.runtime.job.job_cluster import CALL_TIMEOUT, RESULT_TIMEOUT
from rayelastic.runtime.rounds import RepeatedQuestion, outcomes
from rayelastic.runtime.values.metrics import combined, counters_of
from rayelastic.runtime.values.status import JobMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rayelastic.runtime.element.host import PEHandle
    from rayelastic.runtime.job.job_cluster import JobCluster
    from rayelastic.runtime.job.life import JobLife
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_counters import RegionCounters
    from rayelastic.runtime.values.status import OperatorSample, PESample, SinkResult

PATIENCE = 1.0  # seconds for the elements to report; the last counters are shown of those that don't


@dataclass(frozen=True, slots=True)
class Legacy:
    """The reports of a PE that has finished.

    Args:
        sample: Its last counters.
        adaptations: Its adaptations.
        results: Its sinks' results, by operator.
    """

    sample: PESample
    adaptations: tuple[Adaptation, ...]
    results: Mapping[str, SinkResult]

    @staticmethod
    def of(handle: PEHandle, *, complete: bool) -> Legacy:
        """Read them from an element whose streams have ended; its sinks have results once they are completed."""
        element = handle.within(CALL_TIMEOUT)
        results = handle.within(RESULT_TIMEOUT).results() if complete else {}
        return Legacy(element.sample(), element.adaptations(), results)


class JobTelemetry:
    """The counters, adaptations and results of one job.

    Args:
        job: The job's name.
        cluster: Its elements.
        life: Their states.
    """

    def __init__(self, job: str, cluster: JobCluster, life: JobLife) -> None:
        self._job = job
        self._cluster = cluster
        self._life = life
        self._counters: RepeatedQuestion[PEHandle, PESample] = RepeatedQuestion(_sample)
        self._lock = threading.Lock()  # guards the four below
        self._samples: dict[str, PESample] = {}  # the last ones of existing elements
        self._shown: tuple[PESample, ...] = ()  # those of the last metrics
        self._silent: frozenset[str] = frozenset()  # elements that don't answer
        self._earlier: dict[str, OperatorSample] = {}  # {operator: the counters of elements that don't exist any more}
        self._ended: dict[str, tuple[Adaptation, ...]] = {}
        self._results: dict[str, SinkResult] = {}
        self.regions: dict[str, RegionCounters] = {}  # updated by changes of regions

    def keep(self, pe: str, legacy: Legacy) -> None:
        """Keep the reports of an ended element."""
        with self._lock:
            self._samples[pe] = legacy.sample
        self._ended[pe] = legacy.adaptations
        self._results.update(legacy.results)

    def forget(self) -> None:
        """Drop the reports of elements that are replaced, but for their counters."""
        self._ended.clear()
        self._results.clear()
        with self._lock:
            self._end(tuple(self._samples))
            self._shown = tuple(replace(sample, operators=()) for sample in self._shown)

    def metrics(self) -> JobMetrics:
        """Return the counters of each element: current ones if it answers within a second, otherwise the last ones."""
        elements = self._life.elements()
        if not self._life.is_recovering and elements:  # elements that don't run yet have no operators
            handles = {pe: one for pe, one in self._cluster.handles.items() if pe in elements}
            self._ask({pe: one for pe, one in handles.items() if not elements[pe].state.is_final}, PATIENCE)
            with self._lock:
                if elements.keys() == self._life.elements().keys() and not self._life.is_recovering:
                    self._end([pe for pe in self._samples if pe not in elements])
                    self._shown = tuple(self._samples[pe] for pe in elements if pe in self._samples)
        with self._lock:
            shown, earlier = self._shown, dict(self._earlier)
            silent = tuple(sample.pe for sample in shown if sample.pe in self._silent)
        regions, checkpoints = dict(self.regions), self._life.checkpoints
        return JobMetrics(self._job, self._life.seconds, shown, regions, checkpoints, earlier, silent)

    def read(self, handles: Mapping[str, PEHandle]) -> None:
        """Read the counters of elements, before they are replaced."""
        self._ask(handles, CALL_TIMEOUT)

    def _ask(self, handles: Mapping[str, PEHandle], patience: float) -> None:
        silent = self._counters.ask(handles, self._answered, patience if self._cluster.can_lose_one else None)
        with self._lock:
            self._silent = silent

    def _answered(self, pe: str, handle: PEHandle, sample: PESample) -> None:
        with self._lock:
            is_known = bool(sample.operators) or pe not in self._samples  # otherwise it has just been cleared
            if is_known and self._cluster.handles.get(pe) is handle:
                self._samples[pe] = sample

    def _end(self, pes: Sequence[str]) -> None:
        """Add the counters of elements that don't exist any more to the earlier ones, with the lock."""
        for pe in pes:
            for sample in map(counters_of, self._samples.pop(pe).operators):
                before = self._earlier.get(sample.name)
                self._earlier[sample.name] = sample if before is None else combined([before, sample])

    def adaptations(self, since: Mapping[str, int]) -> Iterator[Adaptation]:
        """Yield the adaptations of the elements' loops, from a pass of each on."""
        handles = self._cluster.handles
        with self._lock:
            silent = self._silent
        running = {pe: one for pe, one in handles.items() if pe not in self._ended and pe not in silent}
        answers, problems = outcomes(
            running, lambda handle: handle.within(PATIENCE).adaptations(since.get(handle.pe, 0))
        )
        for problem in problems.values():
            if not isinstance(problem, PELostError | TimeoutError):  # its watcher reports that
                raise problem
        for pe in handles:
            known = answers.get(pe) or self._ended.get(pe, ())
            yield from (adaptation for adaptation in known if adaptation.number >= since.get(pe, 0))

    def results(self) -> dict[str, SinkResult]:
        """Return the results of the sinks of finished elements, by operator."""
        return dict(self._results)


def _sample(handle: PEHandle) -> PESample:
    return handle.within(CALL_TIMEOUT).sample()
