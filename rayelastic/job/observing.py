"""What users see of a running job: its state, counters, plan, keyed state, decisions and addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, PELostError, StateError
from rayelastic.job.changing import Changing
from rayelastic.job.control import CONTROL_TIMEOUT
from rayelastic.job.state import OperatorState
from rayelastic.runtime.values.status import JobMetrics, JobStatus
from rayelastic.runtime.watch.bottleneck import Bottleneck, find_bottleneck
from rayelastic.watching import Reading, Watch, in_notebook, job_html

if TYPE_CHECKING:
    from rayelastic.job.control import Control
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.explain import OperatorInfo
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation
    from rayelastic.runtime.watch.metrics_port import MetricsPort
    from rayelastic.web.page import Page

STATE_TIMEOUT = 120.0  # seconds for keys to be read, behind a checkpoint perhaps
FOLLOW_PERIOD = 0.5  # seconds between two questions for what was adapted


class Observing(Changing):
    """The part of a `Job` that shows it. What a job that is over had last is kept."""

    name: str
    _control: Control
    _closed = False
    _final: JobStatus | None = None
    _metrics: JobMetrics | None = None
    _plan: ExecPlan | None = None
    _adapted: tuple[Adaptation | RegionAdaptation, ...] | None = None  # all, of a job that is over
    _metrics_port: MetricsPort | None = None
    _infos: dict[str, OperatorInfo] | None = None
    _page: Page | None = None

    @property
    def status(self) -> JobStatus:
        """The state of the job and of its PEs."""
        return self._final or self._control.within(CONTROL_TIMEOUT).status()

    def metrics(self) -> JobMetrics:
        """Counters of every operator, link and PE."""
        if self._final is None or self._metrics is None:
            self._metrics = self._control.within(CONTROL_TIMEOUT).metrics()
        return self._metrics

    def plan(self) -> ExecPlan:
        """Return the plan in force: regions, and which operators run in which PE."""
        if self._plan is None or self._final is None:
            self._plan = self._control.within(CONTROL_TIMEOUT).plan()
        return self._plan

    def describe(self) -> dict[str, OperatorInfo]:
        """Return what `topology.explain()` shows of each operator: kind, execution mode, reason, location."""
        return self._infos or self._control.within(CONTROL_TIMEOUT).describe()

    def state(self, operator: str) -> OperatorState:
        """Return the keyed state of an operator while the job runs: `job.state("totals").get("key")`.

        Args:
            operator: its name; one that keeps state of keys, aggregates or timers.

        Returns:
            What reads it, whose methods raise StateError where there is nothing to read.

        >>> job.state("totals").get("key")  # doctest: +SKIP
        (3,)
        """
        return OperatorState(
            operator, lambda *asked: self._running(StateError, STATE_TIMEOUT).read_state(operator, *asked)
        )

    def adaptations(
        self, follow: bool = False, every_pass: bool = False, since: Mapping[str, int] | None = None
    ) -> Iterator[Adaptation | RegionAdaptation]:
        """Yield the adaptations: what was measured and decided, why, and what is in force; also after the job's end.

        Args:
            follow: go on as it happens, until the job ends.
            every_pass: also the passes that left everything as it was.
            since: {PE, or 'regions': number of the first pass wanted}; all if not given.

        Raises:
            PELostError: the coordinator is gone, as after a `close` that didn't wait for the end of the job.
        """
        since = dict(since or {})
        while True:
            over = self._closed or self._final is not None or self.status.state.is_final
            for adaptation in self._adaptations(since):
                since[adaptation.pe] = adaptation.number + 1
                if adaptation.changed or every_pass:
                    yield adaptation
            if over or not follow:
                return
            self._control.within(CONTROL_TIMEOUT).wait(FOLLOW_PERIOD)

    def _adaptations(self, since: Mapping[str, int]) -> tuple[Adaptation | RegionAdaptation, ...]:
        """Ask the coordinator; of a job whose end was waited for, returns what it had then."""
        if self._adapted is not None:
            return tuple(one for one in self._adapted if one.number >= since.get(one.pe, 0))
        try:
            return self._control.within(CONTROL_TIMEOUT).adaptations(since)
        except PELostError as error:
            if not self._closed:
                raise
            raise PELostError(
                f"job {self.name!r} was closed before its end: its adaptation history is gone",
                hint="Read it before close(), or wait() for the end first",
            ) from error

    def bottleneck(self, seconds: float = 1.0) -> Bottleneck:
        """Name the operator that limits the job, why, and why the runtime isn't scaling it.

        Args:
            seconds: how long to measure.

        Raises:
            StateError: the job has ended.

        >>> print(job.bottleneck())  # doctest: +SKIP
        out on pe0 (waiting): its function waits 99% of the time and computes 0%; back-pressure: operators upstream ...
        """
        if (state := self.status.state).is_final:
            problem = f"job {self.name!r} is {state.value}: nothing limits it any more"
            raise StateError(problem, code=ErrorCode.JOB_NOT_RUNNING)
        before = self.metrics()
        self.pause(seconds)
        return find_bottleneck(before, self.metrics(), self.plan(), tuple(self.adaptations(every_pass=True)))

    def watch(self, period: float = 1.0) -> Watch:
        """Show the job in a notebook, updated in place until it ends; return at once.

        Args:
            period: seconds between two pictures, more than 0.

        Returns:
            The watch, whose `stop` ends it earlier.

        Raises:
            SetupError: this isn't a notebook. `rayelastic top` and the web UI show a job elsewhere.

        >>> job.watch(period=0.5)  # doctest: +SKIP
        """
        return Watch(self._read, in_notebook, period)

    def _read(self) -> Reading:
        return Reading(self.name, self.status, self.metrics(), self.plan())

    def _repr_html_(self) -> str:
        return job_html(self._read())

    def pause(self, seconds: float) -> None:
        """Return after so many seconds, or when the job ends, whichever is first.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("numbers")
        >>> topology.source(rel.sequence(3)).sink(rel.count(), name="n")
        <sink n>
        >>> job = rel.start(topology)
        >>> job.pause(60)  # the job ends before
        >>> job.wait()["n"]
        3
        """
        if self._final is None:
            self._control.within(seconds + CONTROL_TIMEOUT).wait(seconds)

    @property
    def metrics_port(self) -> int | None:
        """Where Prometheus finds the metrics on this machine, as `metrics_port=` asked; `None`: it didn't."""
        return self._metrics_port.port if self._metrics_port is not None else None

    @property
    def web_url(self) -> str | None:
        """The address of the web UI with its token, if JobConfig(web_port=) asked for one; else `None`."""
        return self._page.url if self._page is not None else None
