"""What a job and each of its processing elements are made from: values that are shipped once, before anything starts.

The secret of a job travels in them through Ray's authenticated channel and is never shown (reliability rule D2).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rayelastic.plan.routing import PERouting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rayelastic.graph.operators.joins.build_first import Waiting
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.plan.config import JobConfig
    from rayelastic.plan.exec_plan import ExecPlan, PlanLink
    from rayelastic.runtime.port.data_port import PortAddress
    from rayelastic.runtime.snapshot import Manifest, Snapshot

SECRET_BYTES = 32  # 256 bits, reliability rule D2


@dataclass(frozen=True, slots=True)
class PESpec:
    """Everything that a processing element needs.

    Args:
        pe: its id, unique in the job.
        job: the name of the job.
        job_id: an id that no other run of the job has.
        secret: the job's 32 bytes that its links prove to know.
        operators: what it hosts, in topological order.
        links_in: streams that arrive from other processing elements.
        links_out: streams that leave for other processing elements.
        config: the job's configuration.
        epoch: the routing epoch that its links are opened in.
        routing: what it hosts of elastic regions.
        restore: the snapshot that it goes on from.
        manifest: of that snapshot, if it is a checkpoint of this very job: its elements have files of their own in it.
        predecessors: {operator: the element whose files of it are this one's}; its own where none is named.
        by_epoch: whether the job takes checkpoints: what sinks write is hidden until one that counts on it is complete.
        node: the machine where it belongs; empty: any.
        waiting: which of its sources wait for which of its joins.
        time_units: {operator: unit of its event time, 's', 'ms', 'us' or 'ns'}, of those whose stream has one.
    """

    pe: str
    job: str
    job_id: str
    secret: bytes = field(repr=False)
    operators: tuple[OperatorSpec, ...]
    links_in: tuple[PlanLink, ...]
    links_out: tuple[PlanLink, ...]
    config: JobConfig
    epoch: int = 0
    routing: PERouting = field(default_factory=PERouting)
    restore: Snapshot | None = None
    manifest: Manifest | None = None
    predecessors: Mapping[str, str] = field(default_factory=dict)
    by_epoch: bool = False
    node: str = ""
    waiting: tuple[Waiting, ...] = ()
    time_units: Mapping[str, str] = field(default_factory=dict)

    @property
    def leaving(self) -> frozenset[str]:
        """The streams that go to another processing element, or may go there, by links and routers."""
        links = (*self.links_out, *self.routing.links_out)
        return frozenset((*(link.stream for link in links), *(edge.stream for edge in self.routing.routed)))


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job as the coordinator gets it.

    Args:
        name: the name of the job.
        operators: every operator by name, in topological order.
        plan: which operators go into which processing element.
        config: the job's configuration.
        job_id: an id that no other run of the job has.
        secret: 32 random bytes, new for each job.
        restore: the snapshot that it goes on from.
        epoch: of that one: those of its own checkpoints are higher.
    """

    name: str
    operators: Mapping[str, OperatorSpec]
    plan: ExecPlan
    config: JobConfig
    job_id: str = field(default_factory=lambda: secrets.token_hex(8))
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(SECRET_BYTES), repr=False)
    restore: Snapshot | None = None
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class IngestAddress:
    """Where a source that is fed from outside (Spark) is to be pushed to.

    Args:
        address: the data port of the processing element.
        job_id: the id of the job.
        pe: the processing element.
        channel: the channel to ask for in the handshake.
        secret: the secret of this channel alone, derived from the job's.
        epoch: in which that element has begun: changes of replicas don't raise it.
        complete: whether all rows are there already: nothing is to be pushed.
    """

    address: PortAddress
    job_id: str
    pe: str
    channel: str
    secret: bytes = field(repr=False)
    epoch: int = 0
    complete: bool = False

    def is_same(self, other: IngestAddress) -> bool:
        """Return whether both are of the same run of the source: it is elsewhere once the job has gone back."""
        return (self.address, self.epoch) == (other.address, other.epoch)
