"""A processing element (PE): hosts one native scheduler, its operators, and the links that enter and leave it (P01).

A plain object: `rel.run` keeps it in the calling process, `rel.submit` puts it into a Ray actor. It touches tuples (in
native threads) and decides nothing about other PEs. Its life: `open` its data port, `connect` to the PEs downstream,
`start`, run until its streams are final, `close`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.errors import LinkError, StateError
from rayelastic.graph.records.limits import MOST_TEXT
from rayelastic.runtime.element.failures import explain_failure
from rayelastic.runtime.element.hosted import HostedOperators
from rayelastic.runtime.element.live_state import SavedState
from rayelastic.runtime.element.routing import Routing, address_of
from rayelastic.runtime.element.running import Running
from rayelastic.runtime.element.sampling import pe_sample
from rayelastic.runtime.element.state_exchange import STATE_CHANNEL, StateExchange
from rayelastic.runtime.element.state_transfer import Ranges
from rayelastic.runtime.files.local_checkpoints import discard_local, keep_local
from rayelastic.runtime.ingest.addressing import ingest_address
from rayelastic.runtime.port.data_port import DataPort, Hello, PortAddress, dial
from rayelastic.runtime.port.secure_socket import check_encryption, encryption_of, tls_of
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder
from rayelastic.runtime.values.adaptation import Adaptation
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.values.status import Failure, PESample, PEStatus, SinkResult, State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.runtime.element.holding import Holding
    from rayelastic.runtime.ingest.frames import Epoch
    from rayelastic.runtime.values.specs import IngestAddress

LINK_TIMEOUT = 60.0  # seconds for the producers of the links to connect; they may still be compiling
DIAL_TIMEOUT = 6.0  # seconds for one handshake on a busy machine; a change is undone within 10 (R11)


class ProcessingElement:
    """One process's share of a job.

    Args:
        spec: its operators, links and configuration.
        host: the address of this node that its data port binds to.
    """

    def __init__(self, spec: PESpec, *, host: str = "127.0.0.1") -> None:
        self.spec = spec
        self._host = host
        self._port: DataPort | None = None
        self._hosted = HostedOperators(spec)
        self._saved = SavedState(spec)
        self._links: dict[str, _native.Link] = {}
        self._expected = {link.name: link for link in spec.links_in}
        self._arrived = threading.Condition()
        self._routing = Routing(spec, self._dial)
        self._state_exchange = StateExchange(spec, self._dial_channel)
        self._running: Running | None = None  # once it has been started
        self._stop_lock = threading.Lock()
        self._state = State.CREATED
        self._failure: Failure | None = None
        self._made_at = time.monotonic()

    def open(self) -> PortAddress | None:
        """Makes sources and sinks, and opens the data port if anybody has to reach this PE.

        Returns:
            Where it listens; `None` if nobody connects to it.

        Raises:
            StateError: what its sources read, or its sinks have written, isn't what it was at the snapshot.
        """
        outputs = self._saved.read()
        self._hosted.open(outputs, self._saved.rows, by_epoch=self.spec.by_epoch)
        if (
            self._expected
            or self.spec.routing.taps
            or self.spec.routing.gathers
            or any(source.ingest for source in self._hosted.sources.values())
        ):
            spec = self.spec
            if spec.config.secure:
                check_encryption()
            names = spec.job_id, spec.pe, spec.secret, self._host
            self._port = DataPort(*names, self._on_connection, spec.epoch, secure=spec.config.secure)
        return self.address()

    def connect(self, peers: Mapping[str, PortAddress | None]) -> None:
        """Opens the links that leave this PE.

        Args:
            peers: where each PE of the job listens, by its id.

        Raises:
            LinkError: a peer doesn't listen, or refuses.
        """
        for link in self.spec.links_out:
            connection = self._dial(link, address_of(peers, link), self.spec.epoch)
            self._links[link.name] = self._link(link.name, connection, link.to_pe)
        self._routing.connect(peers)

    def start(self) -> None:
        """Builds the operators and runs them.

        Raises:
            LinkError: a link that should arrive didn't.
            StateError: the snapshot that it goes on from is damaged or doesn't fit.
        """
        with self._arrived:
            if not self._arrived.wait_for(lambda: not self._expected, LINK_TIMEOUT):
                missing = ", ".join(f"{link.name} from {link.from_pe}" for link in self._expected.values())
                raise LinkError(
                    f"{self.spec.pe} still waits for {missing}", way_out="Is there a firewall between the nodes?"
                )
        self._running = Running(self.spec, self._hosted, self._saved, self._routing, self._state_exchange, self._links)
        self._state = State.RUNNING
        self._running.begin()

    def wait(self, timeout: float) -> PEStatus:
        """Waits until this PE is final, so many seconds at most, and returns the status then."""
        if self._running is not None and not self._state.is_final and self._running.scheduler.wait(timeout):
            self._conclude(self._running.scheduler.failure())
        return self.status()

    def status(self) -> PEStatus:
        """Where this PE is in its life, and why it failed if it did."""
        return PEStatus(
            self.spec.pe,
            self._state,
            self._failure,
            socket.gethostname(),
            os.getpid(),
            self._routing.lost_peers(),
            self._encryption(),
        )

    def sample(self) -> PESample:
        """Counters so far."""
        running = self._running
        return pe_sample(
            self.spec,
            running.ids if running is not None else {},
            running.scheduler.sample() if running is not None else None,
            seconds=time.monotonic() - (running.started_at if running is not None else self._made_at),
            failed=self._failure.operator if self._failure is not None else None,
            links={name: link.counters() for name, link in {**self._links, **self._routing.links}.items()},
            port=self._port.counters if self._port is not None else {},
            latencies={name: tuple(native.latency) for name, native in self._hosted.natives.items() if native.latency},
            widths={name: width.active for name, width in self._hosted.widths.items()},
            bad_rows={name: source.left_out.count for name, source in self._hosted.sources.items()},
        )

    def adaptations(self, number: int = 0) -> tuple[Adaptation, ...]:
        """What was adapted, from pass `number` on, as far as it is kept; nothing if elasticity is off."""
        return self._running.adaptations(number) if self._running is not None else ()

    def results(self) -> dict[str, SinkResult]:
        """What the sinks of a finished PE left, by operator."""
        taken = {operator.name: operator.tuples_in for operator in self.sample().operators}
        sinks = self._hosted.sinks.items()
        return {name: SinkResult(name, sink.before + taken[name], sink.close()) for name, sink in sinks}

    def ingest_address(self, source: str) -> IngestAddress:
        """Where the rows of a source that is fed from outside are to be pushed to."""
        assert self._port is not None
        return ingest_address(self.spec, self._port.address, source, complete=self._hosted.ingest(source).finished)

    def finish_source(self, source: str, rows: dict[int, int]) -> None:
        """Ends a source that is fed from outside; see IngestServer.finish."""
        self._hosted.ingest(source).finish(rows)

    def end_epoch(self, source: str, epoch: Epoch, rows: dict[int, int]) -> int:
        """Ends a micro-batch of a source that is fed from outside; see IngestServer.end_epoch."""
        return self._hosted.ingest(source).end_epoch(epoch, rows, self._started().given(source))

    def has_open_epoch(self, source: str) -> bool:
        """Whether a micro-batch of a source that is fed from outside has begun and isn't complete."""
        return self._hosted.ingest(source).has_open_epoch

    @property
    def routing(self) -> Routing:
        """Its routers, which take the commands of a change."""
        return self._routing

    def address(self) -> PortAddress | None:
        """Where it listens, as `open` told; `None` if nobody connects to it."""
        return self._port.address if self._port is not None else None

    def reset_levels(self) -> None:
        """Has its adaptation loop forget what it learned, as after a change of regions (architecture, section 1)."""
        if self._running is not None:
            self._running.reset_levels()

    def pause_levels(self, paused: bool) -> None:
        """Has its loops decide nothing on threads, queues and channels, or decide again."""
        if self._running is not None:
            self._running.pause_levels(paused)

    def advance(self, epoch: int) -> None:
        """Refuses links of older epochs from now on: they come from elements that were replaced."""
        if self._port is not None:
            self._port.advance(epoch)

    def send_state(
        self, operators: Sequence[str], ranges: Ranges, to_pe: str, address: PortAddress, epoch: int
    ) -> tuple[int, int]:
        """Copies the state of some keys to another processing element; it stays here too. See StateExchange.send."""
        return self._state_exchange.send(operators, ranges, to_pe, address, epoch)

    def drop_state(self, operators: Sequence[str], ranges: Ranges) -> int:
        """Forgets the state of some keys; returns how many there were."""
        return self._state_exchange.drop(operators, ranges)

    def state_size(self, operators: Sequence[str]) -> tuple[int, int]:
        """Returns how many keys some operators have, and bytes."""
        return self._state_exchange.size(operators)

    def read_state(self, operator: str, ranges: Ranges, most: int) -> list[bytes]:
        """Exports of the keys of an operator in some hash ranges, about so many, read while it runs."""
        return self._state_exchange.look(operator, ranges, most)

    def stop(self, drain: bool) -> None:
        """Stops this PE.

        Args:
            drain: end its sources and return; what they sent still reaches the sinks, and `wait` tells when. Otherwise
                drop what is on its way, and return when every thread has ended that comes back.
        """
        if self._running is not None:
            self._running.stop(drain)

    def hold_sources(self) -> None:
        """Holds its sources at their positions, so that nothing new comes.

        Raises:
            StateError: an operator's state, or a source's position, can't be saved; names it.
        """
        self._held().hold_sources()

    def hold_all(self, patience: float) -> dict[str, tuple[int, int]]:
        """Holds all operators once everything that is here has been processed; returns the flow then."""
        self._held().hold_all(patience)
        return self.flow()

    def let_go_on(self) -> None:
        """Lets all operators go again but for the sources."""
        self._held().let_go_on()

    def flow(self) -> dict[str, tuple[int, int]]:
        """{link: (records and marks that were put into it here, those that were given on from it here)}."""
        links = {name: link.flow for name, link in {**self._links, **self._routing.links}.items()}
        return links | self._routing.flow()

    def save(self, snapshot: Snapshot, epoch: int = 0, alone: bool = False) -> Part:
        """Writes the state of its operators, which are all held. See Holding.save."""
        return self._held().save(snapshot, epoch, alone)

    def save_at_marks(self, snapshot: Snapshot, epoch: int, patience: float) -> tuple[Part, float]:
        """Saves its operators while they run, each at the mark of an epoch. See MarkedSaving.save."""
        return self._started().marked.save(snapshot, epoch, patience)

    def abandon_epochs(self, epoch: int) -> None:
        """Has marks of epochs up to one mean nothing any more: nobody is held at them, or waits for them."""
        if self._running is not None:
            self._running.marked.abandon(epoch)

    def commit(self, epoch: int, kept: Sequence[str] | None = None) -> None:
        """Shows what its sinks had prepared for a checkpoint, which is complete. Safe to repeat; see ElementApi."""
        if kept is not None:
            keep_local(self.spec.job_id, [place.rstrip("/").rpartition("/")[2] for place in kept])
        self._hosted.commit(epoch)

    @property
    def left_behind(self) -> tuple[str, ...]:
        """Operators whose functions didn't return when it was closed."""
        return self._running.left_behind if self._running is not None else ()

    def saved(self, snapshot: Snapshot, name: str, digest: str) -> bytes | None:
        """A file of a checkpoint, as this node has it; None if it hasn't, or another one."""
        try:
            return next(SnapshotFolder(snapshot).chunks([(name, digest)]))
        except StateError:
            return None

    def keep_saved(self, snapshot: Snapshot, name: str, data: bytes) -> None:
        """Writes a file of a checkpoint that another node has to the disk of this one."""
        folder = SnapshotFolder(snapshot)
        folder.make()  # not `prepare`: on the coordinator's disk it is complete
        folder.write(name, data)

    def discard_checkpoints(self) -> None:
        """Removes the job's checkpoints from the local disk of this node."""
        discard_local(self.spec.job_id)

    def release(self, go_on: bool) -> None:
        """Lets all operators go again; see ElementApi.release."""
        if self._running is not None:
            self._running.holding.release(go_on)

    def close(self) -> None:
        """Ends everything that this PE holds; safe to repeat."""
        with self._stop_lock:
            if self._running is not None:
                self._running.end_loops()
            if self._port is not None:
                self._port.close()
            if self._running is not None:
                self._running.stop(drain=False)
            self._hosted.close(self.left_behind)
            if not self._state.is_final:
                self._state = State.CANCELLED
            for link in self._links.values():
                link.interrupt()
            self._routing.close()

    def _encryption(self) -> str:
        links = [link.encryption for link in (*self._links.values(), *self._routing.links.values())]
        return encryption_of(links, secure=self.spec.config.secure) if links or self._port is not None else ""

    # -- how it is done -------------------------------------------------------------------------------------------

    def _started(self) -> Running:
        if self._running is None:
            raise StateError(f"{self.spec.pe} hasn't been started: there is nothing to save")
        return self._running

    def _held(self) -> Holding:
        return self._started().holding

    def _dial(self, link: PlanLink, address: PortAddress, epoch: int) -> socket.socket:
        return self._dial_channel(f"link:{link.name}", link.to_pe, address, epoch)

    def _dial_channel(self, channel: str, to_pe: str, address: PortAddress, epoch: int) -> socket.socket:
        return dial(
            address,
            job_id=self.spec.job_id,
            sender=self.spec.pe,
            receiver=to_pe,
            channel=channel,
            epoch=epoch,
            secret=self.spec.secret,
            timeout=DIAL_TIMEOUT,
        )

    def _link(self, name: str, connection: socket.socket, peer: str) -> _native.Link:
        patience = self.spec.config.patience
        tls, fd = tls_of(connection), connection.detach()
        return _native.Link(fd, name=name, peer=peer, most_text=MOST_TEXT, silence=patience, tls=tls)

    def _on_connection(self, connection: socket.socket, hello: Hello) -> None:
        """Takes a connection whose handshake succeeded; raises if it has no place here, and the port closes it."""
        kind, _, name = hello.channel.partition(":")
        sources = self._hosted.sources
        if kind == "ingest" and name in sources and (ingest := sources[name].ingest) is not None:
            ingest.serve(connection)
            return
        if kind == STATE_CHANNEL:
            receiving = threading.Thread(target=self._state_exchange.receive, args=(connection, hello), daemon=True)
            receiving.start()
            return
        if self._routing.arrives(connection, hello):
            return
        with self._arrived:
            link: PlanLink | None = self._expected.get(name) if kind == "link" else None
            if link is None or link.from_pe != hello.sender:
                raise LinkError(f"nobody waits for {hello.channel!r} from {hello.sender!r}")
            self._links[name] = self._link(name, connection, hello.sender)
            del self._expected[name]
            self._arrived.notify_all()

    def _conclude(self, failure: dict[str, Any] | None) -> None:
        """Makes the state final once the scheduler has ended by itself, with a failure or without."""
        with self._stop_lock:
            if self._state.is_final:
                return
            if failure is None:
                try:
                    self._hosted.complete()
                except Exception as error:
                    self._failure = Failure(f"a sink could not be completed: {error}")
            else:
                self._failure = explain_failure(failure, self._hosted.by_name)
            self._state = State.FINISHED if self._failure is None else State.FAILED
        if self._failure is not None:
            with contextlib.suppress(Exception):
                self.close()
