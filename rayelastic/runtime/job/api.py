"""What others may ask of the coordinator of a job, wherever it lives. `Coordinator` does it; a `Job` asks.

Arguments are given by position: that is how they travel. Must not know how it does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.explain import OperatorInfo
    from rayelastic.runtime.ingest.feed import Secured
    from rayelastic.runtime.ingest.frames import Epoch
    from rayelastic.runtime.saved.shapes import Shape
    from rayelastic.runtime.snapshot import Snapshot
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation
    from rayelastic.runtime.values.specs import IngestAddress
    from rayelastic.runtime.values.status import JobMetrics, JobStatus, SinkResult

__all__ = ["CoordinatorApi"]


class CoordinatorApi(Protocol):
    """A coordinator. One that is elsewhere may raise PELostError and TimeoutError from each of its methods."""

    # --- the life of the job --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start every processing element."""
        ...

    def wait(self, timeout: float | None = None, /) -> JobStatus:
        """Wait until the job is final, or so many seconds."""
        ...

    def cancel(self, drain: bool = True, /) -> JobStatus:
        """Stop the job: its sources alone (drain), or everything at once."""
        ...

    def stop(self, snapshot: Snapshot, /) -> JobStatus:
        """Stop the job where it is and saves what a later one needs to go on from there."""
        ...

    def snapshot(self, snapshot: Snapshot, /) -> JobStatus:
        """Save what a later job needs to go on from here, and goes on itself."""
        ...

    def close(self) -> None:
        """End whatever still runs; safe to repeat."""
        ...

    # --- changes --------------------------------------------------------------------------------------------------

    def rescale(self, region: str, replicas: int, /) -> ExecPlan:
        """Gives a region another number of replicas while the job runs; returns the plan in force then."""
        ...

    def change(self, wanted: ExecPlan, /) -> ExecPlan:
        """Carries out another plan of the same regions; returns the one in force then."""
        ...

    def leave(self, node: str, /) -> ExecPlan:
        """Has the job leave a node for good; returns the plan in force then."""
        ...

    def renew_secret(self) -> None:
        """Has the job go on with another secret, from a checkpoint of now."""
        ...

    def pause_elasticity(self, paused: bool, /) -> None:
        """Has nothing be adapted from now on, or be adapted again."""
        ...

    # --- what it tells --------------------------------------------------------------------------------------------

    def status(self) -> JobStatus:
        """Return the state of the job and of each processing element."""
        ...

    def plan(self) -> ExecPlan:
        """Return the plan in force."""
        ...

    def describe(self) -> dict[str, OperatorInfo]:
        """Return the kind, execution mode, reason and location of each operator."""
        ...

    def metrics(self) -> JobMetrics:
        """Counters of each processing element."""
        ...

    def adaptations(self, since: Mapping[str, int], /) -> tuple[Adaptation | RegionAdaptation, ...]:
        """What was adapted, by each element from a pass on."""
        ...

    def results(self) -> dict[str, SinkResult]:
        """What the sinks of a finished job left, by operator."""
        ...

    def read_state(self, operator: str, key: tuple[Any, ...] | None, most: int, /) -> tuple[Shape, list[bytes]]:
        """Export of a key of an operator, or (None) of about so many keys, and how they are laid out."""
        ...

    # --- sources that are fed from outside --------------------------------------------------------------------------

    def ingest_address(self, source: str, /) -> IngestAddress | None:
        """Where the rows of a source are to be pushed to; None: nowhere at the moment, the job goes back."""
        ...

    def finish_source(self, source: str, rows: dict[int, int], /) -> None:
        """End a source, each of whose partitions had so many rows."""
        ...

    def fail_source(self, source: str, reason: str, pushed_to: IngestAddress | None = None, /) -> bool:
        """Says that a source failed, and why; True: the job goes back, push it again."""
        ...

    def secure_source(self, source: str, address: IngestAddress, epoch: Epoch, rows: dict[int, int], /) -> Secured:
        """Wait until a checkpoint has the rows of a micro-batch, a few seconds at most."""
        ...
