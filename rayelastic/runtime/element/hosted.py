"""The operators of a processing element: what they read, write and run, and the native operators that are made of them.

Knows one operator at a time; how they are connected, and what runs them, is not known here.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.compile import OperatorCode, PortsCode, PortsFunction
from rayelastic.errors import SinkError, SourceError, StateError
from rayelastic.graph.operators.channels import Channels
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.loops.event_loop import EventLoop
from rayelastic.runtime.operators.channels import channels_operator, in_turn_operator
from rayelastic.runtime.operators.classes import class_operator
from rayelastic.runtime.operators.concurrent import Calls, concurrent_operator
from rayelastic.runtime.operators.functions import aggregate_operator, function_operator, split_operator
from rayelastic.runtime.operators.processes import process_operator
from rayelastic.runtime.operators.sink_operator import Past, SinkOperator
from rayelastic.runtime.operators.sinks import sink_operator
from rayelastic.runtime.operators.sources import SourceOperator, source_operator
from rayelastic.runtime.operators.timed import TIMED_OPERATORS
from rayelastic.runtime.operators.user_objects import UserObjects
from rayelastic.runtime.private_streams import private_streams, with_private_streams
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Iterator, Mapping

    from rayelastic.graph.spec.concurrency import Concurrency
    from rayelastic.runtime.files.inputs import Input
    from rayelastic.runtime.files.outputs import BlobStore, Output
    from rayelastic.runtime.ingest.receiver import IngestServer
    from rayelastic.runtime.port.data_port import Hello
    from rayelastic.runtime.values.specs import PESpec

MARK_PERIOD = 0.1  # seconds between two marks by which a source has its latency sampled


class HostedOperators:
    """The operators of one processing element.

    Args:
        spec: of the processing element.
    """

    def __init__(self, spec: PESpec) -> None:
        self._spec = spec
        self._operators = with_private_streams(spec.operators, private_streams(spec.operators, spec.leaving))
        self._classes: dict[str, PortsFunction] = {}
        self.sources: dict[str, SourceOperator] = {}
        self.sinks: dict[str, SinkOperator] = {}
        self.widths: dict[str, _native.ChannelWidth] = {}
        self.natives: dict[str, _native.Operator] = {}
        self._loop = EventLoop(f"event-loop-{spec.pe}")
        self._calls: dict[str, Calls] = {}
        self._objects = UserObjects(spec.job, spec.pe, self._loop)
        self._makers: Mapping[OperatorKind, Callable[[OperatorSpec], _native.Operator]] = {
            **TIMED_OPERATORS,
            OperatorKind.SOURCE: lambda operator: self.sources[operator.name].native.with_time_marks(MARK_PERIOD),
            OperatorKind.SINK: lambda operator: self.sinks[operator.name].native.with_latency(),
            OperatorKind.SPLIT: split_operator,
            OperatorKind.IN_TURN: in_turn_operator,
            OperatorKind.AGGREGATE: aggregate_operator,
            OperatorKind.PROCESS: process_operator,
        }

    @property
    def by_name(self) -> dict[str, OperatorSpec]:
        """What they are."""
        return {operator.name: operator for operator in self._spec.operators}

    def open(self, outputs: Mapping[str, Output], store: BlobStore | None, *, by_epoch: bool) -> None:
        """Make the sources and sinks.

        Args:
            outputs: what the sinks of the run that this one goes on from have written.
            store: reads the blobs of the checkpoint that has them.
            by_epoch: whether the job makes checkpoints: what sinks write stays hidden until one is complete.

        Raises:
            SinkError: something can't be written where a sink is to write.
            StateError: what is there isn't what the earlier run left; names the sink.
        """
        settings = self._spec.config.checkpoint
        keep = settings.keep if isinstance(settings, Checkpoint) else Checkpoint().keep
        recovers, run, job = self._spec.manifest is not None, self._spec.job_id, self._spec.job
        past = Past(outputs, store, by_epoch, keep, recovers, run, job)
        for number, operator in enumerate(self._operators):
            if operator.kind is OperatorKind.SOURCE:
                self.sources[operator.name] = source_operator(self._objects.initialized(operator))
            elif operator.kind is OperatorKind.SINK:
                described = self._objects.initialized(operator)
                self.sinks[operator.name] = sink_operator(described, past, f"{self._spec.pe}-{number:04}")

    def begin(self) -> None:
        """Has the sinks bring their outputs to where they were: all of the job have looked at them. Before they run.

        Raises:
            SinkError: an output can't be written; names the sink.
        """
        for name, sink in self.sinks.items():
            try:
                if taken_back := sink.begin():
                    tell("rows taken back", job=self._spec.job, pe=self._spec.pe, operator=name, what=taken_back)
            except (SinkError, StateError) as error:
                raise error.at(name, self.by_name[name].location) from error.__cause__

    @property
    def is_fed(self) -> bool:
        """Whether rows of a source come from outside, by connections."""
        return any(source.ingest is not None for source in self.sources.values())

    def arrives(self, connection: socket.socket, hello: Hello) -> bool:
        """Take a connection that brings rows of a source; return whether it is one."""
        kind, _, name = hello.channel.partition(":")
        source = self.sources.get(name) if kind == "ingest" else None
        if source is None or source.ingest is None:
            return False
        source.ingest.serve(connection)
        return True

    def ingest(self, source: str) -> IngestServer:
        """What takes the rows of a source that is fed from outside."""
        ingest = self.sources[source].ingest
        assert ingest is not None
        return ingest

    def build(self) -> None:
        """Make the native operators."""
        self.natives = {operator.name: self._made(operator) for operator in self._operators}

    def seek(self, positions: Mapping[str, int], inputs: Mapping[str, Input]) -> dict[str, int]:
        """Has the sources begin at their positions, or as near in front of them as they can. Before they start.

        Args:
            positions: {source: rows that it has given}.
            inputs: what they read, and where they were in it.

        Returns:
            {source: rows that it will give again}, to be skipped.

        Raises:
            SourceError: a file can't be looked at; names the source.
            StateError: what was saved is damaged; names the source.
        """
        again = {}
        for name, position in positions.items():
            try:
                again[name] = self.sources[name].seek(position, inputs.get(name))
            except (SourceError, StateError) as error:
                raise error.at(name, self.by_name[name].location) from error.__cause__
            if again[name]:
                tell("rows are read again", job=self._spec.job, pe=self._spec.pe, operator=name, rows=again[name])
        return again

    def prepare(self, epoch: int, store: BlobStore) -> dict[str, Output]:
        """Make all that the sinks have taken outlive the process. Every operator is held, and nothing is under way.

        Args:
            epoch: of the checkpoint, 1 and up; each is larger than the one before.
            store: takes what isn't written anywhere else.

        Returns:
            {sink: what it has written}, for the checkpoint. A sink that is made with that goes on there, and removes
            what was written behind it.

        Raises:
            SinkError: a sink can't write; names it. It refuses to go on.
            StateError: the checkpoint can't be written.
        """
        return {name: self.prepare_sink(name, epoch, store) for name in self.sinks}

    def prepare_sink(self, name: str, epoch: int, store: BlobStore) -> Output:
        """Return the same of one sink, which is held, or has ended."""
        with self._naming(name):
            return self.sinks[name].prepare(epoch, store)

    def stop(self, epoch: int, taken: Mapping[str, int], store: BlobStore) -> dict[str, Output]:
        """Do the same for a job that ends where its operators are held.

        Args:
            epoch: a number that no checkpoint has.
            taken: {sink: rows that it has taken in this run}.
            store: takes what isn't written anywhere else.

        Returns:
            {sink: what it will have written once it is completed}, where a later run meets that.
        """
        written = {}
        for name, sink in self.sinks.items():
            with self._naming(name):
                if (output := sink.stop(epoch, taken[name], store)) is not None:
                    written[name] = output
        return written

    def commit(self, epoch: int) -> None:
        """Show what was prepared for an epoch, whose checkpoint is complete, and those before.

        From any thread, while the operators run; safe to repeat. If it is left out, the next one does it, or whoever
        goes on from the checkpoint.

        Raises:
            SinkError: a sink can't show it, after the others have; names it.
        """
        failures: list[SinkError] = []
        for name, sink in self.sinks.items():
            try:
                sink.commit(epoch)
            except SinkError as error:
                failures.append(error.at(name, self.by_name[name].location))
        if failures:
            raise failures[0]

    def wakes(self, poke: Callable[[int], None], ids: Mapping[str, int]) -> None:
        """Has operators that wait for calls poked when one is done.

        Args:
            poke: the scheduler's.
            ids: {operator: its number in the scheduler}.
        """
        for name, calls in self._calls.items():
            calls.wakes(functools.partial(poke, ids[name]))

    def complete(self) -> dict[str, Any]:
        """Complete what the sinks have written, and shut the user's objects down; safe to repeat.

        Returns:
            {sink: what it leaves}.

        Raises:
            SinkError: a sink can't be completed; names it.
            JobFailedError: a user's object can't be shut down; names the operator.
        """
        left = {}
        for name, sink in self.sinks.items():
            with self._naming(name):
                left[name] = sink.close()
        self._objects.shut_down()
        return left

    def close(self, left_behind: Collection[str] = ()) -> None:
        """Free what sources, sinks and classes hold; safe to repeat. What sinks have hidden stays hidden.

        Args:
            left_behind: operators that a thread is still in.
        """
        for calls in self._calls.values():
            calls.close()
        for name, function in self._classes.items():
            if name not in left_behind:
                function.close()
        for sink in self.sinks.values():
            sink.abandon()
        for name, source in self.sources.items():
            source.close()
            source.tell_left_out(name, self._spec.job, self._spec.pe)
        self._objects.close(left_behind)
        self._loop.close()

    @contextlib.contextmanager
    def _naming(self, sink: str) -> Iterator[None]:
        try:
            yield
        except SinkError as error:
            raise error.at(sink, self.by_name[sink].location) from error.__cause__

    def _made(self, spec: OperatorSpec) -> _native.Operator:
        if isinstance(spec.body, PortsCode):
            return self._class(spec, spec.body)
        if isinstance(spec.body, Channels):
            return self._channels(spec, spec.body)
        if isinstance(spec.body, OperatorCode) and spec.body.concurrent is not None:
            return self._concurrent(self._objects.initialized(spec), spec.body.concurrent)
        if spec.kind not in (OperatorKind.SOURCE, OperatorKind.SINK):  # theirs are, since they were opened
            spec = self._objects.initialized(spec)
        return self._makers.get(spec.kind, function_operator)(spec)

    def _concurrent(self, spec: OperatorSpec, how: Concurrency) -> _native.Operator:
        native, self._calls[spec.name] = concurrent_operator(spec, how, self._loop)
        return native

    def _class(self, spec: OperatorSpec, code: PortsCode) -> _native.Operator:
        function = self._classes[spec.name] = PortsFunction(code)
        return class_operator(spec, function, self._spec.job)

    def _channels(self, spec: OperatorSpec, channels: Channels) -> _native.Operator:
        width = self.widths[spec.name] = _native.ChannelWidth(channels.most, channels.start)
        return channels_operator(spec, width)
