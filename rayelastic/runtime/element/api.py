"""What others may ask of a processing element, wherever it lives. `ProcessingElement` does it; handles lead to one.

Arguments are given by position: that is how they travel. Must not know how they do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rayelastic._native import RouterAnswer
    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.policy.element.cpu_budgets import CpuBudget
    from rayelastic.runtime.element.state_transfer import Ranges
    from rayelastic.runtime.ingest.frames import Epoch
    from rayelastic.runtime.port.data_port import PortAddress
    from rayelastic.runtime.snapshot import Part, Snapshot
    from rayelastic.runtime.values.adaptation import Adaptation
    from rayelastic.runtime.values.host_use import HostUse
    from rayelastic.runtime.values.specs import IngestAddress
    from rayelastic.runtime.values.status import PESample, PEStatus, SinkResult

__all__ = ["ElementApi", "RoutingApi"]


class RoutingApi(Protocol):
    """The commands of a change to the routers of an element; `Routing` carries them out.

    Each tells how it went: done, late (not yet), refused (its epoch is old) or ended (the router has had all tuples).
    """

    def attach(self, edge: str, target: int, link: PlanLink, address: PortAddress, epoch: int, /) -> RouterAnswer:
        """Open a link to a replica that a router doesn't know yet."""
        ...

    def detach(self, edge: str, target: int, epoch: int, /) -> RouterAnswer:
        """Says goodbye to a replica to which nothing is routed any more."""
        ...

    def hold(self, edge: str, partitions: Sequence[int], owner: int, mark: int, epoch: int, /) -> RouterAnswer:
        """Keep back the records of partitions from now on; a mark follows the last one that went to their owner."""
        ...

    def route(self, edge: str, partitions: Sequence[int], target: int, epoch: int, /) -> RouterAnswer:
        """Send the records of partitions to a replica from now on, those that were kept back first."""
        ...

    def await_mark(self, point: str, mark: int, count: int, patience: float, /) -> bool:
        """Wait until a mark has passed a point so many times; return whether it has."""
        ...

    def end(self, edge: str, /) -> None:
        """End an edge that leads here once its links have ended: nobody opens another. Safe to repeat."""
        ...

    def await_end(self, region: str, edge: str, patience: float, /) -> bool:
        """Wait until the replica here has processed all of an edge whose routers have ended; return whether it has."""
        ...


class ElementApi(Protocol):
    """A processing element. Whoever is elsewhere may raise PELostError and TimeoutError from each of its methods."""

    @property
    def routing(self) -> RoutingApi:
        """Its routers."""
        ...

    # --- its life -----------------------------------------------------------------------------------------------

    def open(self) -> PortAddress | None:
        """Open its data port, if anybody has to reach it; return where it listens."""
        ...

    def connect(self, peers: Mapping[str, PortAddress | None], /) -> None:
        """Open the links that leave it, to where its peers listen."""
        ...

    def start(self) -> None:
        """Build its operators and runs them."""
        ...

    def wait(self, timeout: float, /) -> PEStatus:
        """Wait until it is final, or so many seconds."""
        ...

    def stop(self, drain: bool, /) -> None:
        """End its sources alone (drain), or everything at once."""
        ...

    def close(self) -> None:
        """End everything that it holds; safe to repeat."""
        ...

    # --- what it tells ------------------------------------------------------------------------------------------

    def status(self) -> PEStatus:
        """Where it is in its life, and why it failed if it did."""
        ...

    def address(self) -> PortAddress | None:
        """Where it listens; None if nobody connects to it."""
        ...

    def sample(self) -> PESample:
        """Return its counters so far."""
        ...

    def adaptations(self, number: int = 0, /) -> tuple[Adaptation, ...]:
        """What was adapted, from a pass on."""
        ...

    def results(self) -> dict[str, SinkResult]:
        """Complete its sinks, once it has finished, and return what they leave, by operator; safe to repeat."""
        ...

    # --- sources that are fed from outside ------------------------------------------------------------------------

    def ingest_address(self, source: str, /) -> IngestAddress:
        """Where the rows of a source are to be pushed to."""
        ...

    def finish_source(self, source: str, rows: dict[int, int], /) -> None:
        """End a source, each of whose partitions had so many rows."""
        ...

    def end_epoch(self, source: str, epoch: Epoch, rows: dict[int, int], /) -> int:
        """End a micro-batch, each of whose partitions had so many rows; return how many aren't given on yet."""
        ...

    def has_open_epoch(self, source: str, /) -> bool:
        """Return whether a micro-batch of a source has begun and isn't complete."""
        ...

    # --- changes of regions ---------------------------------------------------------------------------------------

    def advance(self, epoch: int, /) -> None:
        """Reject links of older epochs from now on."""
        ...

    def hold_levels(self, held: bool, /) -> None:
        """Has its adaptation loop hold still while regions change, or begin anew, with nothing learned."""
        ...

    def pause_levels(self, paused: bool, /) -> None:
        """Has its loops decide nothing, or decide again."""
        ...

    def share_host(self, budget: CpuBudget | None, /) -> HostUse:
        """Has it keep to its part of the host from now on (None: it has that alone); returns what it used so far."""
        ...

    def send_state(
        self, operators: Sequence[str], ranges: Ranges, to_pe: str, address: PortAddress, epoch: int, /
    ) -> tuple[int, int]:
        """Copy the state of keys to another element; return how many keys, and bytes."""
        ...

    def drop_state(self, operators: Sequence[str], ranges: Ranges, /) -> int:
        """Forget the state of keys; return how many there were."""
        ...

    def state_size(self, operators: Sequence[str], /) -> tuple[int, int]:
        """How many keys operators have, and bytes."""
        ...

    def read_state(self, operator: str, ranges: Ranges, most: int, /) -> list[bytes]:
        """Export of the keys of an operator in some hash ranges, about so many, read while it runs."""
        ...

    # --- snapshots --------------------------------------------------------------------------------------------------

    def hold_sources(self) -> None:
        """Holds its sources at their positions."""
        ...

    def hold_all(self, patience: float, /) -> tuple[dict[str, tuple[int, int]], str]:
        """Holds everything once what is there has been processed.

        Returns the flow then, and what wasn't processed in time: all goes on there in that case.
        """
        ...

    def let_go_on(self) -> None:
        """Lets its operators go again but for the sources."""
        ...

    def flow(self) -> dict[str, tuple[int, int]]:
        """{link: (records and marks that were put into it here, those that were given on from it here)}."""
        ...

    def save(self, snapshot: Snapshot, epoch: int, alone: bool = False, stops: bool = False, /) -> Part:
        """Write the state of its operators, which are all held, for a checkpoint.

        With `alone` nothing of it counts on other checkpoints; with `stops` the job ends there.
        """
        ...

    def save_at_marks(self, snapshot: Snapshot, epoch: int, patience: float, /) -> tuple[Part, float]:
        """Write the state of its operators while they run, each where the mark of an epoch has come to it.

        Its sources send that; all elements are asked at once. Returns also the seconds for which sources were held.
        """
        ...

    def abandon_epochs(self, epoch: int, /) -> None:
        """Has marks up to that of an epoch mean nothing any more; who is held at one goes on."""
        ...

    def commit(self, epoch: int, kept: Sequence[str] | None = None, /) -> None:
        """Show what its sinks had prepared when a checkpoint was taken, which is complete now.

        Checkpoints on the disk of its node that aren't at one of the places in `kept` are removed.
        """
        ...

    def saved(self, snapshot: Snapshot, name: str, digest: str, /) -> bytes | None:
        """Return a file of a checkpoint, as its node has it; None if it hasn't, or another one."""
        ...

    def keep_saved(self, snapshot: Snapshot, name: str, data: bytes, /) -> None:
        """Write a file of a checkpoint that another node has to its own disk."""
        ...

    def discard_checkpoints(self) -> None:
        """Remove the job's checkpoints from the local disk of its node."""
        ...

    def release(self, go_on: bool, /) -> None:
        """Lets its operators go again, or ends its sources where they are.

        Ended like this, sinks complete what they have; the streams aren't at their end, so nobody else hears of one.
        """
        ...
