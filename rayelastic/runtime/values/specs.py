"""The specifications of a job and of each PE: values that are shipped once, before anything starts.

They contain the job's secret, which travels through Ray's authenticated channel and is never shown (reliability rule
D2).
"""

from __future__ import annotations

import os
import pwd
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
    from rayelastic.runtime.values.snapshot import Manifest, Snapshot

SECRET_BYTES = 32  # 256 bits, reliability rule D2


def user_name() -> str:
    """Return the name of this process's user; its number if the machine knows no name."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


@dataclass(frozen=True, slots=True)
class PESpec:
    """The specification of a PE.

    Args:
        pe: Its id, unique in the job.
        job: The name of the job.
        job_id: An id that no other run of the job has.
        secret: The job's 32 bytes, which its links prove to know.
        operators: Its operators, in topological order.
        links_in: Streams that arrive from other PEs.
        links_out: Streams that leave for other PEs.
        config: The job's configuration.
        epoch: The routing epoch in which its links are opened.
        routing: Its part of elastic regions.
        restore: The snapshot that it restores.
        manifest: That snapshot's manifest, if it is a checkpoint of this very job: its elements have files in it.
        predecessors: {operator: the element whose files it restores}; its own if none is named.
        foreign: Of the snapshot of another run, {operator: hash ranges of the keys that other replicas restore}.
        takes_checkpoints: Whether the job does: sinks hide their output until the checkpoint with it is complete.
        node: Its machine; empty: any.
        waiting: Which of its sources wait for which of its joins.
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
    foreign: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    takes_checkpoints: bool = False
    node: str = ""
    waiting: tuple[Waiting, ...] = ()
    time_units: Mapping[str, str] = field(default_factory=dict)

    def predecessor(self, operator: str) -> str:
        """Return the element whose files an operator restores."""
        return self.predecessors.get(operator, self.pe)

    @property
    def peers(self) -> frozenset[str]:
        """The PEs that its outgoing links lead to when it starts."""
        routed = [link for router in self.routing.routers for link in router.links.values()]
        return frozenset(link.to_pe for link in (*self.links_out, *self.routing.links_out, *routed))

    @property
    def leaving(self) -> frozenset[str]:
        """The streams that go to another PE, or may go there, over links and routers."""
        links = (*self.links_out, *self.routing.links_out)
        return frozenset((*(link.stream for link in links), *(edge.stream for edge in self.routing.routed)))


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The specification of a job, for the coordinator.

    Args:
        name: The name of the job.
        operators: Every operator by name, in topological order.
        plan: Assigns operators to PEs.
        config: The job's configuration.
        job_id: An id that no other run of the job has.
        secret: 32 random bytes, new for each job.
        restore: The snapshot that it restores.
        checkpoint: The id of that snapshot: those of the job's own checkpoints are higher.
        owner: The user who starts it.
    """

    name: str
    operators: Mapping[str, OperatorSpec]
    plan: ExecPlan
    config: JobConfig
    job_id: str = field(default_factory=lambda: secrets.token_hex(8))
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(SECRET_BYTES), repr=False)
    restore: Snapshot | None = None
    checkpoint: int = 0
    owner: str = field(default_factory=user_name)


@dataclass(frozen=True, slots=True)
class IngestAddress:
    """Where a client pushes the rows of a source that is fed from outside (Spark).

    Args:
        address: The data port of the PE.
        job_id: The id of the job.
        pe: The PE.
        channel: The channel to request in the handshake.
        secret: The secret of this channel alone, derived from the job's.
        epoch: The epoch in which that element started: changes of replicas don't raise it.
        complete: Whether all rows have arrived already, so that none are to be pushed.
    """

    address: PortAddress
    job_id: str
    pe: str
    channel: str
    secret: bytes = field(repr=False)
    epoch: int = 0
    complete: bool = False

    def is_same(self, other: IngestAddress) -> bool:
        """Return whether both are of the same run of the source, which ends when the job recovers."""
        return (self.address, self.epoch) == (other.address, other.epoch)
