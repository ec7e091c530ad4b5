"""A processing element (PE): hosts one native scheduler, its operators, and the links that enter and leave it (P01).

A plain object: `rel.run` keeps it in the calling process, `rel.submit` puts it into a Ray actor. It processes tuples
(in native threads) and makes no decisions about other PEs. Its life: `open` its data port, `connect` to the PEs
downstream, `start`, run until its streams are final, `close`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.errors import ErrorCode, SinkError, StateError, is_outage
from rayelastic.runtime.checkpoint.disk import NodeDisk
from rayelastic.runtime.checkpoint.element import ElementCheckpoint
from rayelastic.runtime.checkpoint.state_files import RestorePoint
from rayelastic.runtime.element.failures import completion_failure, explain_failure, sink_failure
from rayelastic.runtime.element.hosted import HostedOperators
from rayelastic.runtime.element.life import ElementLife
from rayelastic.runtime.element.reach.dialling import Dialler
from rayelastic.runtime.element.reach.entrance import Entrance
from rayelastic.runtime.element.reach.links import StandingLinks
from rayelastic.runtime.element.routing import Routing
from rayelastic.runtime.element.running import Running
from rayelastic.runtime.element.state_transfer import Ranges
from rayelastic.runtime.ingest.addressing import ingest_address
from rayelastic.runtime.port.secure_socket import encryption_of
from rayelastic.runtime.values.adaptation import Adaptation
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.values.status import PESample, PEStatus, SinkResult
from rayelastic.runtime.watch.machine_load import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rayelastic import _native
    from rayelastic.connectors.pushed.frames import Epoch
    from rayelastic.policy.element.cpu_budgets import CpuBudget
    from rayelastic.runtime.checkpoint.protocol import Flow
    from rayelastic.runtime.port.data_port import Hello, PortAddress
    from rayelastic.runtime.values.host_use import HostUse
    from rayelastic.runtime.values.specs import IngestAddress


class ProcessingElement:
    """The part of a job that runs in one process.

    Args:
        spec: Its operators, links and configuration.
        host: The address of this node that its data port binds to.
    """

    def __init__(self, spec: PESpec, *, host: str = "127.0.0.1") -> None:
        self.spec = spec
        self._life = ElementLife()
        self._hosted = HostedOperators(spec)
        self._restored = RestorePoint(spec)
        self._dialler = Dialler(spec)
        self._links = StandingLinks(spec, self._dialler.link)
        self.routing = Routing(spec, self._dialler.link)
        takers = self._hosted.arrives, self._state_arrives, self.routing.arrives, self._links.arrives
        self._entrance = Entrance(spec, host, takers)
        hosted = self._hosted
        self.checkpoint = ElementCheckpoint(spec, hosted.sources, hosted.sinks, hosted.natives, self._flow, self._fail)
        self.disk = NodeDisk(spec.job_id)
        self._running: Running | None = None  # once it has been started
        self._given_up = False  # whether it was closed

    def open(self) -> PortAddress | None:
        """Make sources and sinks, and open the data port if any PE connects to this one.

        Returns:
            Its address; `None` if no PE connects to it.

        Raises:
            StateError: The input of a source, or the output of a sink, has changed since the snapshot.
        """
        outputs = self._restored.read()
        self._hosted.open(outputs, self._restored.rows, takes_checkpoints=self.spec.takes_checkpoints)
        spec = self.spec
        if spec.links_in or spec.routing.taps or spec.routing.gathers or self._hosted.is_fed:
            self._entrance.open()
        return self.address()

    def connect(self, peers: Mapping[str, PortAddress | None]) -> None:
        """Open the outgoing links of this PE.

        Args:
            peers: The address of each PE of the job, by id.

        Raises:
            LinkError: A peer doesn't listen, or rejects the connection.
        """
        self._links.connect(peers)
        self.routing.connect(peers)

    def start(self) -> None:
        """Build the operators and run them.

        Raises:
            LinkError: An expected link didn't arrive.
            StateError: The restored snapshot is damaged or doesn't fit.
        """
        self._links.wait_arrived()
        parts = self._hosted, self._restored, self.routing, self._dialler
        running = self._running = Running(self.spec, *parts, self._links.by_name)
        self.checkpoint.begin(running.scheduler, running.ids, self.routing.gathers, running.skipped)
        self._life.begins()
        self._running.begin()

    def wait(self, timeout: float) -> PEStatus:
        """Wait until this PE is final, so many seconds at most, and return the status then."""
        if self._running is not None and not self._life.state.is_final and self._running.scheduler.wait(timeout):
            self._conclude(self._running.scheduler.failure())
        return self.status()

    def status(self) -> PEStatus:
        """Return the state of this PE, and its failure if it failed."""
        lost, secured = self.routing.lost_peers(), self._encryption()
        budget = self._running.budget if self._running is not None else None
        host, pid, life = socket.gethostname(), os.getpid(), self._life
        return PEStatus(self.spec.pe, life.state, life.failure, host, pid, lost, secured, budget)

    def sample(self) -> PESample:
        """Return the counters so far."""
        running = self._running
        links = {name: link.counters() for name, link in self._all_links().items()}
        port = self._entrance.counters
        if running is None:
            return PESample(self.spec.pe, self._life.age, 0, 0.0, (), links, port, rss_bytes=resident_bytes())
        failure = self._life.failure
        natives = self._hosted.natives
        sample = running.sampling.sample(
            running.scheduler.sample(),
            seconds=time.monotonic() - running.started_at,
            failed=failure.operator if failure is not None else None,
            links=links,
            port=port,
            latencies={name: tuple(marks) for name in self._hosted.sinks if (marks := natives[name].latency)},
            numbers=self._hosted.numbers(),
            bad_rows=self._hosted.bad_rows(),
            hot_keys=self.routing.hot_keys(),
        )
        return replace(sample, **running.adaptation_counters(sample.threads))

    def adaptations(self, number: int = 0) -> tuple[Adaptation, ...]:
        """Return the kept adaptations from pass `number` on; none if elasticity is off."""
        return self._running.adaptations(number) if self._running is not None else ()

    def results(self) -> dict[str, SinkResult]:
        """Complete the sinks of a PE whose streams have ended, and return their results, by operator.

        Raises:
            SinkError: A sink can't be completed; the message names it.
            JobFailedError: A user's object can't be shut down; the message names the operator.
        """
        taken = {operator.name: operator.tuples_in for operator in self.sample().operators}
        before = {name: sink.before for name, sink in self._hosted.sinks.items()}
        with self._life.ending:
            if self._given_up and self.spec.takes_checkpoints:  # another element shows this one's hidden output
                raise StateError(
                    f"{self.spec.pe} was abandoned before its sinks were complete", code=ErrorCode.CHECKPOINT_ABANDONED
                )
            left = self._hosted.complete()
        return {name: SinkResult(name, before[name] + taken[name], value) for name, value in left.items()}

    def ingest_address(self, source: str) -> IngestAddress:
        """Return the address to push the rows of a source to that is fed from outside."""
        address = self._entrance.address
        assert address is not None
        return ingest_address(self.spec, address, source, complete=self._hosted.ingest(source).finished)

    def finish_source(self, source: str, rows: dict[int, int]) -> None:
        """End a source that is fed from outside; see IngestServer.finish."""
        self._hosted.ingest(source).finish(rows)

    def end_epoch(self, source: str, epoch: Epoch, rows: dict[int, int]) -> int:
        """End a micro-batch of a source that is fed from outside; see IngestServer.end_epoch."""
        return self._hosted.ingest(source).end_epoch(epoch, rows, self._started().given(source))

    def has_open_epoch(self, source: str) -> bool:
        """Return whether a micro-batch of a source that is fed from outside has begun and isn't complete."""
        return self._hosted.ingest(source).has_open_epoch

    def address(self) -> PortAddress | None:
        """Return its address, as `open` does; `None` if no PE connects to it."""
        return self._entrance.address

    def hold_levels(self, held: bool) -> None:
        """Hold its adaptation loop while regions change, or restart it (architecture, section 1)."""
        if self._running is not None:
            self._running.hold_levels(held)

    def pause_levels(self, paused: bool) -> None:
        """Pause the decisions of its loops on threads, queues and channels, or resume them."""
        if self._running is not None:
            self._running.pause_levels(paused)

    def share_host(self, budget: CpuBudget | None, kin: tuple[int, ...] = ()) -> HostUse:
        """Limit it to its share of the host from now on. See ElementApi."""
        return self._started().share_host(budget, kin)

    def advance(self, epoch: int) -> None:
        """Reject links of older epochs from now on, because they come from elements that were replaced."""
        self._entrance.advance(epoch)

    def send_state(
        self, operators: Sequence[str], ranges: Ranges, to_pe: str, address: PortAddress, epoch: int
    ) -> tuple[int, int]:
        """Copy the state of some keys to another PE; it stays here too. See StateExchange.send."""
        return self._started().states.send(operators, ranges, to_pe, address, epoch)

    def drop_state(self, operators: Sequence[str], ranges: Ranges) -> int:
        """Drop the state of some keys; return how many there were."""
        stores = self._running.states.stores if self._running is not None else None
        return sum(stores.drop(operator, ranges) for operator in operators) if stores is not None else 0

    def state_size(self, operators: Sequence[str]) -> tuple[int, int]:
        """Return how many keys some operators have, and bytes."""
        return self._started().states.stores.size(operators)

    def read_state(self, operator: str, ranges: Ranges, most: int) -> list[bytes]:
        """Export about so many keys of an operator in some hash ranges, while it runs."""
        return self._running.states.stores.look(operator, ranges, most) if self._running is not None else []

    def stop(self, drain: bool) -> None:
        """Stop this PE.

        Args:
            drain: End its sources and return; their tuples still reach the sinks, and `wait` returns then. Otherwise
                drop the tuples in flight, and return when every thread that returns has ended.
        """
        if self._running is not None:
            self._running.stop(drain)

    @property
    def left_behind(self) -> tuple[str, ...]:
        """Operators whose functions didn't return when it was closed."""
        return self._running.left_behind if self._running is not None else ()

    def close(self) -> None:
        """End everything that this PE holds; safe to repeat."""
        with self._life.ending:
            self._given_up = True
            if self._running is not None:
                self._running.end_loops()
            self._entrance.close()
            if self._running is not None:
                self._running.stop(drain=False)
            self._hosted.close(self.left_behind)
            self._life.cancelled()
            self._links.close()
            self.routing.close()

    # -- implementation -------------------------------------------------------------------------------------------

    def _started(self) -> Running:
        if self._running is None:
            raise StateError(f"{self.spec.pe} hasn't started and has no state", code=ErrorCode.PE_NOT_STARTED)
        return self._running

    def _state_arrives(self, connection: socket.socket, hello: Hello) -> bool:
        return self._running is not None and self._running.states.arrives(connection, hello)

    def _all_links(self) -> dict[str, _native.Link]:
        return {**self._links.by_name, **self.routing.links}

    def _flow(self) -> Flow:
        return {name: link.flow for name, link in self._all_links().items()} | self.routing.flow()

    def _encryption(self) -> str:
        links = [link.encryption for link in self._all_links().values()]
        if not links and self._entrance.address is None:
            return ""
        return encryption_of(links, secure=self.spec.config.network.secure)

    def _conclude(self, failed: _native.OperatorFailure | None) -> None:
        """Make the state final once the scheduler has ended by itself, with a failure or without."""
        with self._life.ending:
            if self._life.state.is_final:
                return
            self._life.ends(self._completed() if failed is None else self._explained(failed))
        if self._life.failure is not None:
            with contextlib.suppress(Exception):
                self.close()

    def _explained(self, failed: _native.OperatorFailure) -> Failure:
        failure = explain_failure(failed, self._hosted.by_name)
        source = self._hosted.sources.get(failed.operator)
        if source is None:
            return failure
        problem = source.problem
        return replace(failure, code=problem.code or failure.code, outage=failure.outage or is_outage(problem.error))

    def _fail(self, error: SinkError) -> None:
        """End it at once, because a sink couldn't prepare."""
        with self._life.ending:
            if not self._life.state.is_final:
                self._life.ends(sink_failure(error))
        if self._life.failure is not None:
            with contextlib.suppress(Exception):
                self.close()

    def _completed(self) -> Failure | None:
        """Complete the output of its sinks; in a job with checkpoints, that happens once all elements have ended."""
        if self.spec.takes_checkpoints:
            return None
        try:
            self._hosted.complete()
        except Exception as error:
            return completion_failure(error)
        return None
