"""The interfaces of a job and of a catalogue of jobs for the web UI. `Job` is a `Watched`. Must not know the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.explain import OperatorInfo
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation
    from rayelastic.runtime.values.status import JobMetrics, JobStatus
    from rayelastic.web.ray_tab import Dashboard


class Watched(Protocol):
    """A job, running or over; `rayelastic.job.Job` says what each method does."""

    name: str

    @property
    def status(self) -> JobStatus: ...  # noqa: D102

    def metrics(self) -> JobMetrics: ...  # noqa: D102

    def plan(self) -> ExecPlan: ...  # noqa: D102

    def describe(self) -> dict[str, OperatorInfo]: ...  # noqa: D102

    def adaptations(  # noqa: D102
        self, follow: bool = False, every_pass: bool = False, since: Mapping[str, int] | None = None
    ) -> Iterator[Adaptation | RegionAdaptation]: ...

    def rescale(self, region: str, replicas: int) -> ExecPlan: ...  # noqa: D102

    def cancel(self, drain: bool = True) -> None: ...  # noqa: D102

    def stop(self, snapshot: str) -> object: ...  # noqa: D102

    def snapshot(self, snapshot: str) -> object: ...  # noqa: D102

    def leave(self, node: str) -> ExecPlan: ...  # noqa: D102

    def pause_elasticity(self) -> None: ...  # noqa: D102

    def resume_elasticity(self) -> None: ...  # noqa: D102


class Catalogue(Protocol):
    """A catalogue of jobs."""

    def listed(self) -> list[JobStatus]:
        """Return the jobs, in the order of their names."""
        ...

    def dashboard(self) -> Dashboard | None:
        """Where the cluster's own dashboard is; None: it has none."""
        ...

    def opened(self, name: str) -> Watched:
        """Return a job by its name; JobNotFoundError if there is none."""
        ...
