"""The interface of a PE for others, in any process. `ProcessingElement` implements it, handles call it.

Arguments are positional, because that is how calls are transported. Must not know the transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rayelastic._native import RouterAnswer
    from rayelastic.connectors.pushed.frames import Epoch
    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.plan.hash_ring import Runs
    from rayelastic.policy.element.cpu_budgets import CpuBudget
    from rayelastic.runtime.checkpoint.disk import NodeDisk
    from rayelastic.runtime.checkpoint.element import ElementCheckpoint
    from rayelastic.runtime.element.state_transfer import Ranges
    from rayelastic.runtime.port.data_port import PortAddress
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.host_use import HostUse
    from rayelastic.runtime.values.specs import IngestAddress
    from rayelastic.runtime.values.status import PESample, PEStatus, SinkResult


class RoutingApi(Protocol):
    """The commands of a plan change to the routers of an element; `Routing` implements them.

    Each returns its outcome: done, late (not yet), `refused` (its epoch is old) or ended (no tuples are left).
    """

    def attach(self, edge: str, target: int, link: PlanLink, address: PortAddress, epoch: int, /) -> RouterAnswer:
        """Open a link to a replica that a router doesn't know yet."""
        ...

    def detach(self, edge: str, target: int, epoch: int, /) -> RouterAnswer:
        """Close the link to a replica that receives no tuples any more."""
        ...

    def hold(self, edge: str, runs: Runs, owner: int, mark: int, epoch: int, /) -> RouterAnswer:
        """Buffer the records of partitions from now on; a mark follows the last one that went to their owner."""
        ...

    def route(self, edge: str, runs: Runs, target: int, epoch: int, /) -> RouterAnswer:
        """Send the records of partitions to a replica from now on, the buffered ones first."""
        ...

    def await_mark(self, point: str, mark: int, count: int, patience: float, /) -> bool:
        """Wait until a mark has passed a point so many times; return whether it has."""
        ...

    def end(self, edge: str, /) -> None:
        """End an edge into this element once its links have ended; no new link opens. Safe to repeat."""
        ...

    def await_end(self, region: str, edge: str, patience: float, /) -> bool:
        """Wait until the replica here has processed all of an edge whose routers have ended; return whether it has."""
        ...


class ElementApi(Protocol):
    """A PE. In another process, each of its methods may raise PELostError and TimeoutError."""

    @property
    def routing(self) -> RoutingApi:
        """Its routers."""
        ...

    @property
    def checkpoint(self) -> ElementCheckpoint:
        """Its part of checkpoints."""
        ...

    @property
    def disk(self) -> NodeDisk:
        """The disk of its node."""
        ...

    # --- its life -----------------------------------------------------------------------------------------------

    def open(self) -> PortAddress | None:
        """Open its data port, if any element connects to it; return the address."""
        ...

    def connect(self, peers: Mapping[str, PortAddress | None], /) -> None:
        """Open its outgoing links, to the addresses of its peers."""
        ...

    def start(self) -> None:
        """Build its operators and run them."""
        ...

    def wait(self, timeout: float, /) -> PEStatus:
        """Wait until it is final, or so many seconds."""
        ...

    def stop(self, drain: bool, /) -> None:
        """End its sources only (drain), or everything at once."""
        ...

    def close(self) -> None:
        """End everything that it holds; safe to repeat."""
        ...

    # --- its reports --------------------------------------------------------------------------------------------

    def status(self) -> PEStatus:
        """Return its state, and its failure if it failed."""
        ...

    def address(self) -> PortAddress | None:
        """Return its address; None if no element connects to it."""
        ...

    def sample(self) -> PESample:
        """Return its counters so far."""
        ...

    def adaptations(self, number: int = 0, /) -> tuple[Adaptation, ...]:
        """Return the adaptations from a pass on."""
        ...

    def results(self) -> dict[str, SinkResult]:
        """Complete its sinks, once it has finished, and return their results, by operator; safe to repeat."""
        ...

    # --- sources that are fed from outside ------------------------------------------------------------------------

    def ingest_address(self, source: str, /) -> IngestAddress:
        """Return the address to push the rows of a source to."""
        ...

    def finish_source(self, source: str, rows: dict[int, int], /) -> None:
        """End a source, each of whose partitions had so many rows."""
        ...

    def end_epoch(self, source: str, epoch: Epoch, rows: dict[int, int], /) -> int:
        """End a micro-batch with so many rows in each partition; return how many rows the source hasn't emitted."""
        ...

    def has_open_epoch(self, source: str, /) -> bool:
        """Return whether a micro-batch of a source has begun and isn't complete."""
        ...

    # --- changes of regions ---------------------------------------------------------------------------------------

    def advance(self, epoch: int, /) -> None:
        """Reject links of older epochs from now on."""
        ...

    def hold_levels(self, held: bool, /) -> None:
        """Hold its adaptation loop while regions change, or restart it, with nothing learned."""
        ...

    def pause_levels(self, paused: bool, /) -> None:
        """Pause the decisions of its loops, or resume them."""
        ...

    def share_host(self, budget: CpuBudget | None, kin: tuple[int, ...] = (), /) -> HostUse:
        """Limit it to its share of the host from now on; return what it has used so far.

        Args:
            budget: Its share; None: the whole host.
            kin: Processes of the job on its host whose use no budget accounts for. It leaves them no CPUs.
        """
        ...

    def send_state(
        self, operators: Sequence[str], ranges: Ranges, to_pe: str, address: PortAddress, epoch: int, /
    ) -> tuple[int, int]:
        """Copy the state of keys to another element; return how many keys, and bytes."""
        ...

    def drop_state(self, operators: Sequence[str], ranges: Ranges, /) -> int:
        """Drop the state of keys; return how many there were."""
        ...

    def state_size(self, operators: Sequence[str], /) -> tuple[int, int]:
        """Return the number of keys of operators, and their bytes."""
        ...

    def read_state(self, operator: str, ranges: Ranges, most: int, /) -> list[bytes]:
        """Export about so many keys of an operator in some hash ranges, while it runs."""
        ...
