"""A processing element (PE): hosts one native scheduler, its operators, and the links that enter and leave it (P01).

A plain object: `rel.run` keeps it in the calling process, `rel.submit` puts it into a Ray actor. It touches tuples (in
native threads) and decides nothing about other PEs. Its life: `open` its data port, `connect` to the PEs downstream,
`start`, run until its streams are final, `close`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.compile import PortsCode, PortsFunction
from rayelastic.errors import LinkError, RayelasticError, StateError
from rayelastic.graph.operators.channels import Channels
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec
from rayelastic.runtime.element.alarm import Alarm, alarm_of
from rayelastic.runtime.element.failures import explain_failure
from rayelastic.runtime.element.live_state import check_exportable, restore, save
from rayelastic.runtime.element.routing import Routing, address_of
from rayelastic.runtime.element.sampling import pe_sample
from rayelastic.runtime.element.state_transfer import PAUSE_TIMEOUT, Ranges, StateStores, receive_state, send_state
from rayelastic.runtime.element.wiring import connect_links, connect_operators
from rayelastic.runtime.loops.channel_loop import ChannelLoop, channel_loop
from rayelastic.runtime.loops.elasticity import adaptation_loop
from rayelastic.runtime.operators.channels import channels_operator, in_turn_operator, pinned_models
from rayelastic.runtime.operators.classes import class_operator
from rayelastic.runtime.operators.functions import aggregate_operator, function_operator, split_operator
from rayelastic.runtime.operators.sinks import SinkOperator, sink_operator
from rayelastic.runtime.operators.sources import SourceOperator, source_operator
from rayelastic.runtime.operators.timed import TIMED_OPERATORS
from rayelastic.runtime.port.data_port import DataPort, Hello, PortAddress, derive_secret, dial
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder
from rayelastic.runtime.values.adaptation import Adaptation
from rayelastic.runtime.values.specs import IngestAddress, PESpec
from rayelastic.runtime.values.status import Failure, PESample, PEStatus, SinkResult, State
from rayelastic.runtime.watch.machine_load import cpus_by_node

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rayelastic.plan.exec_plan import PlanLink
    from rayelastic.runtime.loops.adaptation_loop import AdaptationLoop

_log = logging.getLogger(__name__)

LINK_TIMEOUT = 60.0  # seconds for the producers of the links to connect; they may still be compiling
STATE_CHANNEL = "state"
HOLD_TIMEOUT = 60.0  # seconds for what is under way to be processed, before a snapshot
HOLD_LOOK = 0.005  # seconds between two looks at what has arrived
MARK_PERIOD = 0.1  # seconds between two marks by which a source has its latency sampled
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
        self._sources: dict[str, SourceOperator] = {}
        self._sinks: dict[str, SinkOperator] = {}
        self._classes: dict[str, PortsFunction] = {}
        self._links: dict[str, _native.Link] = {}
        self._expected = {link.name: link for link in spec.links_in}
        self._arrived = threading.Condition()
        self._routing = Routing(spec, self._dial)
        self._stores: StateStores | None = None
        self._ids: dict[str, int] = {}
        self._link_ends: dict[str, int] = {}
        self._natives: dict[str, _native.Operator] = {}
        self._skipped: dict[str, int] = {}
        self._scheduler: _native.Scheduler | None = None
        self._loop: AdaptationLoop | None = None
        self._widths: dict[str, _native.ChannelWidth] = {}
        self._channel_loop: ChannelLoop | None = None
        self._alarm: Alarm | None = None
        self._stop_lock = threading.Lock()
        self._state = State.CREATED
        self._failure: Failure | None = None
        self._started_at = time.monotonic()

    def open(self) -> PortAddress | None:
        """Makes sources and sinks, and opens the data port if anybody has to reach this PE.

        Returns:
            Where it listens; `None` if nobody connects to it.
        """
        for operator in self.spec.operators:
            if operator.kind is OperatorKind.SOURCE:
                self._sources[operator.name] = source_operator(operator)
            elif operator.kind is OperatorKind.SINK:
                self._sinks[operator.name] = sink_operator(operator)
        if (
            self._expected
            or self.spec.routing.taps
            or self.spec.routing.gathers
            or any(source.ingest for source in self._sources.values())
        ):
            spec = self.spec
            self._port = DataPort(spec.job_id, spec.pe, spec.secret, self._host, self._on_connection, spec.epoch)
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
            self._links[link.name] = _native.Link(connection.detach(), name=link.name, peer=link.to_pe)
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
        config = self.spec.config
        scheduler = _native.Scheduler(
            queue_records=config.queue_records,
            queue_bytes=config.queue_bytes,
            run_records=config.run_records,
            run_bytes=config.run_bytes,
            deep_copy=config.deep_copy,
            cpus=cpus_by_node() if config.pin_threads else [],
        )
        natives = self._natives = {operator.name: self._native_operator(operator) for operator in self.spec.operators}
        self._restore()
        self._ids = {name: scheduler.add(native, skip=self._skipped.get(name, 0)) for name, native in natives.items()}
        self._stores = StateStores(
            {
                name: (native.state, scheduler.pause(self._ids[name], PAUSE_TIMEOUT))
                for name, native in natives.items()
                if native.state is not None
            }
        )
        connect_operators(scheduler, self.spec.operators, self._ids, self.spec.routing.routed)
        self._routing.wire(scheduler, self._ids)
        self._link_ends = connect_links(scheduler, self.spec, self._ids, self._links)
        pinned = pinned_models(self.spec.operators, config)
        models = {self._ids[name]: model.value for name, model in pinned.items()}
        scheduler.start(config.threads or 1, models)
        self._scheduler = scheduler
        self._started_at = time.monotonic()
        self._state = State.RUNNING
        for name, source in self._sources.items():
            source.start(name)
        self._loop = adaptation_loop(self.spec, scheduler, self._ids, frozenset(pinned))
        self._channel_loop = channel_loop(self.spec, scheduler.sample, self._ids, self._widths)
        self._alarm = alarm_of(self.spec, scheduler.poke, self._ids)
        for loop in (self._loop, self._channel_loop, self._alarm):
            if loop is not None:
                loop.start()

    def wait(self, timeout: float) -> PEStatus:
        """Waits until this PE is final.

        Args:
            timeout: seconds.

        Returns:
            The status then; not final if the time ran out.
        """
        if self._scheduler is not None and not self._state.is_final and self._scheduler.wait(timeout):
            self._conclude()
        return self.status()

    def status(self) -> PEStatus:
        """Where this PE is in its life, and why it failed if it did."""
        return PEStatus(
            self.spec.pe, self._state, self._failure, socket.gethostname(), os.getpid(), self._routing.lost_peers()
        )

    def sample(self) -> PESample:
        """Counters so far."""
        return pe_sample(
            self.spec,
            self._ids,
            self._scheduler.sample() if self._scheduler is not None else None,
            seconds=time.monotonic() - self._started_at,
            failed=self._failure.operator if self._failure is not None else None,
            links={name: link.counters() for name, link in {**self._links, **self._routing.links}.items()},
            port=self._port.counters if self._port is not None else {},
            latencies={name: tuple(native.latency) for name, native in self._natives.items() if native.latency},
            widths={name: width.active for name, width in self._widths.items()},
            bad_rows={name: source.left_out.count for name, source in self._sources.items()},
        )

    def adaptations(self, number: int = 0) -> tuple[Adaptation, ...]:
        """What was adapted, from pass `number` on, as far as it is kept; nothing if elasticity is off."""
        return self._loop.journal.since(number) if self._loop is not None else ()

    def results(self) -> dict[str, SinkResult]:
        """What the sinks of a finished PE left, by operator."""
        taken = {operator.name: operator.tuples_in for operator in self.sample().operators}
        return {name: SinkResult(name, taken[name], sink.close()) for name, sink in self._sinks.items()}

    def ingest_address(self, source: str) -> IngestAddress:
        """Where the rows of a source that is fed from outside are to be pushed to."""
        assert self._port is not None
        channel = f"ingest:{source}"
        return IngestAddress(
            address=self._port.address,
            job_id=self.spec.job_id,
            pe=self.spec.pe,
            channel=channel,
            secret=derive_secret(self.spec.secret, channel),
            epoch=self.spec.epoch,
        )

    def finish_source(self, source: str, rows: dict[int, int]) -> None:
        """Ends a source that is fed from outside.

        Args:
            source: the operator.
            rows: how many rows each partition had, by its number.

        Raises:
            SourceError: other rows arrived.
        """
        ingest = self._sources[source].ingest
        assert ingest is not None
        ingest.finish(rows)

    @property
    def routing(self) -> Routing:
        """Its routers, which take the commands of a change."""
        return self._routing

    def address(self) -> PortAddress | None:
        """Where it listens, as `open` told; `None` if nobody connects to it."""
        return self._port.address if self._port is not None else None

    def reset_levels(self) -> None:
        """Has its adaptation loop forget what it learned, as after a change of regions (architecture, section 1)."""
        if self._loop is not None:
            self._loop.reset()

    def advance(self, epoch: int) -> None:
        """Refuses links of older epochs from now on: they come from elements that were replaced."""
        if self._port is not None:
            self._port.advance(epoch)

    def send_state(
        self, operators: Sequence[str], ranges: Ranges, to_pe: str, address: PortAddress, epoch: int
    ) -> tuple[int, int]:
        """Copies the state of some keys to another processing element; it stays here too.

        Args:
            operators: whose state.
            ranges: of the hashes of the keys, both ends included.
            to_pe: who shall have it.
            address: where that listens.
            epoch: of the change.

        Returns:
            How many keys it took, and the bytes of their state.

        Raises:
            LinkError: it is lost, or refused.
        """
        assert self._stores is not None
        kept = [operator for operator in operators if operator in self._stores]
        connection = self._dial_channel(STATE_CHANNEL, to_pe, address, epoch)
        key = self._state_key(self.spec.pe, to_pe, epoch)
        return send_state(connection, key, self._stores, kept, ranges)

    def drop_state(self, operators: Sequence[str], ranges: Ranges) -> int:
        """Forgets the state of some keys; returns how many there were."""
        if self._stores is None:  # it couldn't be started
            return 0
        return sum(self._stores.drop(operator, ranges) for operator in operators if operator in self._stores)

    def state_size(self, operators: Sequence[str]) -> tuple[int, int]:
        """Returns how many keys some operators have, and bytes."""
        assert self._stores is not None
        return self._stores.size([operator for operator in operators if operator in self._stores])

    def stop(self, drain: bool) -> None:
        """Stops this PE.

        Args:
            drain: end its sources and return; what they sent still reaches the sinks, and `wait` tells when. Otherwise
                drop what is on its way, and return when every thread has ended.
        """
        if self._scheduler is None:
            return
        if not drain:
            self._scheduler.stop(False)
        else:
            for name in self._sources:  # links that arrive end by themselves, when their producers have
                self._scheduler.end_source(self._ids[name])

    def hold_sources(self) -> None:
        """Holds its sources at their positions, so that nothing new comes.

        Raises:
            StateError: an operator's state, or a source's position, can't be saved; names it.
        """
        check_exportable(self.spec.operators, self._sources, self._natives)
        self._hold([self._ids[name] for name in self._sources])

    def hold_all(self, arriving: Mapping[str, int]) -> dict[str, int]:
        """Holds all operators once everything that is under way has been processed.

        Args:
            arriving: {link: how many tuples its producer has sent}; the producers are held already.

        Returns:
            {link: how many tuples left by it}.

        Raises:
            StateError: that didn't happen in time, as the error says.
        """
        assert self._scheduler is not None
        deadline = time.monotonic() + HOLD_TIMEOUT
        for link in self.spec.links_in:
            while self._counter(self._link_ends[link.name], "tuples_out") < arriving[link.name]:
                if time.monotonic() > deadline or self._scheduler.wait(HOLD_LOOK):
                    raise StateError(f"{self.spec.pe} still waits for what was sent by link {link.name}")
        self._hold(list(range(len(self._ids) + len(self._link_ends))))
        return {link.name: self._counter(self._link_ends[link.name], "tuples_in") for link in self.spec.links_out}

    def save(self, snapshot: Snapshot) -> Part:
        """Writes the state of its operators, which are all held.

        Raises:
            StateError: it can't be saved; names the operator.
        """
        final = frozenset(name for name, number in self._ids.items() if self._counter(number, "final"))
        folder = SnapshotFolder(snapshot)
        files = save(self.spec.pe, folder, snapshot.key, self.spec.operators, self._natives, final)
        positions = {
            name: self._skipped.get(name, 0) + self._counter(self._ids[name], "tuples_out") for name in self._sources
        }
        return Part(positions, files)

    def release(self, go_on: bool) -> None:
        """Lets all operators go again.

        Args:
            go_on: as before. Otherwise the sources end where they were held, and the sinks complete what they have; the
                streams aren't at their end, so nobody else hears of one.
        """
        if self._scheduler is None:
            return
        if not go_on:
            for name in self._sources:
                self._scheduler.end_source(self._ids[name])
        self._scheduler.release(finish=go_on)

    def close(self) -> None:
        """Ends everything that this PE holds; safe to repeat."""
        with self._stop_lock:
            for loop in (self._loop, self._channel_loop, self._alarm):
                if loop is not None:
                    loop.stop()
            if self._port is not None:
                self._port.close()
            if self._scheduler is not None:
                self._scheduler.stop(False)
            for function in self._classes.values():
                function.close()
            for name, source in self._sources.items():
                source.close()
                source.tell_left_out(name, self.spec.job, self.spec.pe)
            if not self._state.is_final:
                self._state = State.CANCELLED
            for link in self._links.values():
                link.interrupt()
            self._routing.close()

    # -- how it is done -------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        if self.spec.restore is None:
            return
        manifest = SnapshotFolder(self.spec.restore).manifest()
        dropped = self.spec.restore.drop
        self._skipped = {
            name: at for name, at in manifest.positions.items() if name in self._sources and name not in dropped
        }
        restore(self.spec.restore, manifest, self.spec.operators, self._natives)

    def _hold(self, numbers: list[int]) -> None:
        assert self._scheduler is not None
        try:
            self._scheduler.hold(numbers, drain=True, timeout=HOLD_TIMEOUT)
        except TimeoutError as error:
            raise StateError(f"{self.spec.pe}: {error}", way_out="Try again when it is less busy") from None

    def _counter(self, number: int, name: str) -> int:
        assert self._scheduler is not None
        count: int = self._scheduler.sample()["operators"][number][name]
        return count

    def _native_operator(self, spec: OperatorSpec) -> _native.Operator:
        if spec.kind is OperatorKind.SOURCE:
            return self._sources[spec.name].native.with_time_marks(MARK_PERIOD)
        if spec.kind is OperatorKind.SINK:
            return self._sinks[spec.name].native.with_latency()
        if isinstance(spec.body, PortsCode):
            function = self._classes[spec.name] = PortsFunction(spec.body)
            return class_operator(spec, function, self.spec.job)
        if spec.kind is OperatorKind.SPLIT:
            return split_operator(spec)
        if isinstance(spec.body, Channels):
            width = self._widths[spec.name] = _native.ChannelWidth(spec.body.most, spec.body.start)
            return channels_operator(spec, width)
        if spec.kind is OperatorKind.IN_TURN:
            return in_turn_operator(spec)
        if spec.kind in TIMED_OPERATORS:
            return TIMED_OPERATORS[spec.kind](spec)
        return aggregate_operator(spec) if spec.kind is OperatorKind.AGGREGATE else function_operator(spec)

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

    def _state_key(self, sender: str, receiver: str, epoch: int) -> bytes:
        return derive_secret(self.spec.secret, f"{STATE_CHANNEL}:{sender}>{receiver}@{epoch}")

    def _receive_state(self, connection: socket.socket, hello: Hello) -> None:
        """Takes the state of keys that come here; the sender hears of any failure by the end of the connection."""
        assert self._stores is not None
        key = self._state_key(hello.sender, self.spec.pe, hello.epoch)
        try:
            receive_state(connection, key, self._stores)
        except (RayelasticError, ValueError, TimeoutError, KeyError) as error:
            _log.warning("'%s' couldn't take state from '%s': %s", self.spec.pe, hello.sender, error)

    def _on_connection(self, connection: socket.socket, hello: Hello) -> None:
        """Takes a connection whose handshake succeeded; raises if it has no place here, and the port closes it."""
        kind, _, name = hello.channel.partition(":")
        if kind == "ingest" and name in self._sources and (ingest := self._sources[name].ingest) is not None:
            ingest.serve(connection)
            return
        if kind == STATE_CHANNEL:
            receiving = threading.Thread(target=self._receive_state, args=(connection, hello), daemon=True)
            receiving.start()
            return
        if self._routing.arrives(connection, hello):
            return
        with self._arrived:
            link: PlanLink | None = self._expected.get(name) if kind == "link" else None
            if link is None or link.from_pe != hello.sender:
                raise LinkError(f"nobody waits for {hello.channel!r} from {hello.sender!r}")
            self._links[name] = _native.Link(connection.detach(), name=name, peer=hello.sender)
            del self._expected[name]
            self._arrived.notify_all()

    def _conclude(self) -> None:
        """Makes the state final once the scheduler has ended by itself."""
        assert self._scheduler is not None
        with self._stop_lock:
            if self._state.is_final:
                return
            failure = self._scheduler.failure()
            if failure is None:
                try:
                    for sink in self._sinks.values():
                        sink.close()
                except Exception as error:
                    self._failure = Failure(f"a sink could not be completed: {error}")
            else:
                self._failure = explain_failure(failure, {operator.name: operator for operator in self.spec.operators})
            self._state = State.FINISHED if self._failure is None else State.FAILED
        if self._failure is not None:
            with contextlib.suppress(Exception):
                self.close()
