"""What the elements of a job have counted, adapted and left: asked for where they live, kept where they have ended."""

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
    from rayelastic.runtime.values.status import PESample, RegionCounters, SinkResult

__all__ = ["JobTelemetry", "Legacy"]


@dataclass(frozen=True, slots=True)
class Legacy:
    """What a processing element that has finished leaves behind.

    Args:
        sample: its last counters.
        adaptations: what it adapted.
        results: what its sinks left, by operator.
    """

    sample: PESample
    adaptations: tuple[Adaptation, ...]
    results: Mapping[str, SinkResult]

    @staticmethod
    def of(handle: PEHandle, *, complete: bool) -> Legacy:
        """Ask an element whose streams have ended for it; its sinks leave nothing until they are completed."""
        element = handle.within(CALL_TIMEOUT)
        results = handle.within(RESULT_TIMEOUT).results() if complete else {}
        return Legacy(element.sample(), element.adaptations(), results)


class JobTelemetry:
    """The counters, adaptations and results of one job.

    Args:
        job: its name.
        cluster: its elements.
        life: their states.
    """

    def __init__(self, job: str, cluster: JobCluster, life: JobLife) -> None:
        self._job = job
        self._cluster = cluster
        self._life = life
        self._samples: dict[str, PESample] = {}  # the last ones
        self._told: tuple[str, ...] = ()  # elements whose counters were told last
        self._ended: dict[str, tuple[Adaptation, ...]] = {}
        self._results: dict[str, SinkResult] = {}
        self.regions: dict[str, RegionCounters] = {}  # whoever changes regions writes here

    def keep(self, pe: str, legacy: Legacy) -> None:
        """Keep what an element has left."""
        self._samples[pe] = legacy.sample
        self._ended[pe] = legacy.adaptations
        self._results.update(legacy.results)

    def forget(self) -> None:
        """Forget what elements have left: others take their places."""
        self._ended.clear()
        self._results.clear()

    def metrics(self) -> JobMetrics:
        """Counters of each element: fresh where it answers, the last ones where it doesn't or others take over."""
        elements = self._life.elements()
        if self._told and (self._life.is_recovering or not elements):  # elements that don't run yet know no operators
            return self._of(self._told)
        for pe, handle in self._cluster.handles.items():
            if pe in elements and not elements[pe].state.is_final:
                try:
                    sample = handle.within(CALL_TIMEOUT).sample()
                except (PELostError, TimeoutError):
                    continue  # its watcher reports a loss
                if sample.operators or pe not in self._samples:  # else it took another one's place meanwhile
                    self._samples[pe] = sample
        self._told = tuple(pe for pe in elements if pe in self._samples)
        return self._of(self._told)

    def _of(self, pes: tuple[str, ...]) -> JobMetrics:
        samples = tuple(self._samples[pe] for pe in pes)
        return JobMetrics(self._job, self._life.seconds, samples, dict(self.regions), self._life.checkpoints)

    def adaptations(self, since: Mapping[str, int]) -> Iterator[Adaptation]:
        """Gives what the loops of the elements did, from a pass of each on."""
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
        """What the sinks of the elements that have finished left, by operator."""
        return dict(self._results)
