"""The interface of a job's coordinator for others, in any process. `Coordinator` implements it; a `Job` calls it.

Arguments are positional, because that is how calls are transported. Must not know the transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic.connectors.pushed.frames import Epoch
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.plan.explain import OperatorInfo
    from rayelastic.runtime.ingest.feed import Secured
    from rayelastic.runtime.state.descriptor import StateDescriptor
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.region_adaptation import RegionAdaptation
    from rayelastic.runtime.values.snapshot import Snapshot
    from rayelastic.runtime.values.specs import IngestAddress
    from rayelastic.runtime.values.status import JobMetrics, JobStatus, SinkResult


class CoordinatorApi(Protocol):
    """A coordinator. In another process, each of its methods may raise PELostError and TimeoutError."""

    # --- the life of the job --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start every PE."""
        ...

    def wait(self, timeout: float | None = None, /) -> JobStatus:
        """Wait until the job is final, or so many seconds."""
        ...

    def cancel(self, drain: bool = True, /) -> JobStatus:
        """Stop the job: its sources only (drain), or everything at once."""
        ...

    def stop(self, snapshot: Snapshot, /) -> JobStatus:
        """Stop the job where it is, with a savepoint."""
        ...

    def snapshot(self, snapshot: Snapshot, /) -> JobStatus:
        """Take a savepoint, and continue."""
        ...

    def close(self) -> None:
        """End all that still runs; safe to repeat."""
        ...

    # --- changes --------------------------------------------------------------------------------------------------

    def rescale(self, region: str, replicas: int, /) -> ExecPlan:
        """Change the number of a region's replicas while the job runs; return the plan in force then."""
        ...

    def change(self, wanted: ExecPlan, /) -> ExecPlan:
        """Change to another plan of the same regions; return the one in force then."""
        ...

    def leave(self, node: str, /) -> ExecPlan:
        """Move the job away from a node for good; return the plan in force then."""
        ...

    def renew_secret(self) -> None:
        """Give the job another secret, by a restart from a checkpoint that is taken now."""
        ...

    def pause_elasticity(self, paused: bool, /) -> None:
        """Pause all adaptation from now on, or resume it."""
        ...

    # --- its reports ----------------------------------------------------------------------------------------------

    def status(self) -> JobStatus:
        """Return the state of the job and of each PE."""
        ...

    def plan(self) -> ExecPlan:
        """Return the plan in force."""
        ...

    def describe(self) -> dict[str, OperatorInfo]:
        """Return the kind, execution mode, reason and location of each operator."""
        ...

    def metrics(self) -> JobMetrics:
        """Return the counters of each PE."""
        ...

    def adaptations(self, since: Mapping[str, int], /) -> tuple[Adaptation | RegionAdaptation, ...]:
        """Return the adaptations of each element from a pass on."""
        ...

    def results(self) -> dict[str, SinkResult]:
        """Return the results of the sinks of a finished job, by operator."""
        ...

    def read_state(
        self, operator: str, key: tuple[Any, ...] | None, most: int, /
    ) -> tuple[StateDescriptor, list[bytes]]:
        """Export a key of an operator, or (None) about so many keys, and return their descriptor."""
        ...

    # --- sources that are fed from outside --------------------------------------------------------------------------

    def ingest_address(self, source: str, /) -> IngestAddress | None:
        """Return the address to push the rows of a source to; None: none at the moment, because the job recovers."""
        ...

    def finish_source(self, source: str, rows: dict[int, int], /) -> None:
        """End a source, each of whose partitions had so many rows."""
        ...

    def fail_source(self, source: str, reason: str, pushed_to: IngestAddress | None = None, /) -> bool:
        """Report that a source failed, and why; True: the job recovers, push its rows again."""
        ...

    def secure_source(self, source: str, address: IngestAddress, epoch: Epoch, rows: dict[int, int], /) -> Secured:
        """Wait until a checkpoint has the rows of a micro-batch, a few seconds at most."""
        ...
