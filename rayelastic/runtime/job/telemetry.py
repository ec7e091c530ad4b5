"""The counters, adaptations and results of a job's elements: read from running ones, kept of ended ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayelastic.errors import PELostError
from rayelastic.runtime.job.job_cluster import CALL_TIMEOUT, RESULT_TIMEOUT
from rayelastic.runtime.values.status import JobMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rayelastic.runtime.element.host import PEHandle
    from rayelastic.runtime.job.job_cluster import JobCluster
    from rayelastic.runtime.job.life import JobLife
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_counters import RegionCounters
    from rayelastic.runtime.values.status import PESample, SinkResult

__all__ = ["JobTelemetry", "Legacy"]


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
        self._samples: dict[str, PESample] = {}  # the last ones
        self._told: tuple[str, ...] = ()  # the elements of the last metrics
        self._ended: dict[str, tuple[Adaptation, ...]] = {}
        self._results: dict[str, SinkResult] = {}
        self.regions: dict[str, RegionCounters] = {}  # updated by changes of regions

    def keep(self, pe: str, legacy: Legacy) -> None:
        """Keep the reports of an ended element."""
        self._samples[pe] = legacy.sample
        self._ended[pe] = legacy.adaptations
        self._results.update(legacy.results)

    def forget(self) -> None:
        """Drop the reports of elements that are replaced."""
        self._ended.clear()
        self._results.clear()

    def metrics(self) -> JobMetrics:
        """Return the counters of each element: current ones if it answers, otherwise the last ones."""
        elements = self._life.elements()
        if self._told and (self._life.is_recovering or not elements):  # elements that don't run yet have no operators
            return self._of(self._told)
        for pe, handle in self._cluster.handles.items():
            if pe in elements and not elements[pe].state.is_final:
                try:
                    sample = handle.within(CALL_TIMEOUT).sample()
                except (PELostError, TimeoutError):
                    continue  # its watcher reports a loss
                if sample.operators or pe not in self._samples:  # otherwise it has just replaced another one
                    self._samples[pe] = sample
        self._told = tuple(pe for pe in elements if pe in self._samples)
        return self._of(self._told)

    def _of(self, pes: tuple[str, ...]) -> JobMetrics:
        samples = tuple(self._samples[pe] for pe in pes)
        return JobMetrics(self._job, self._life.seconds, samples, dict(self.regions), self._life.checkpoints)

    def adaptations(self, since: Mapping[str, int]) -> Iterator[Adaptation]:
        """Yield the adaptations of the elements' loops, from a pass of each on."""
        for pe, handle in self._cluster.handles.items():
            number = since.get(pe, 0)
            if pe not in self._ended:  # it still runs
                try:
                    yield from handle.within(CALL_TIMEOUT).adaptations(number)
                except (PELostError, TimeoutError):
                    continue  # its watcher reports a loss
            else:
                yield from (adaptation for adaptation in self._ended[pe] if adaptation.number >= number)

    def results(self) -> dict[str, SinkResult]:
        """Return the results of the sinks of finished elements, by operator."""
        return dict(self._results)
