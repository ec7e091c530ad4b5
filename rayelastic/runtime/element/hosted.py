"""The operators of a PE: their readers, writers and functions, and the native operators made of them.

Knows one operator at a time, neither their connections nor the scheduler.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.connectors.pushed.reader import PushedOperator
from rayelastic.connectors.registry import sink_operator, source_operator
from rayelastic.connectors.sink import Past, SinkOperator
from rayelastic.connectors.source import SourceOperator
from rayelastic.errors import SinkError, SourceError, StateError
from rayelastic.graph.spec.operator_spec import OperatorSpec, SinkDescription, SourceDescription
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.checkpoint.element import naming
from rayelastic.runtime.loops.event_loop import EventLoop
from rayelastic.runtime.operators.functions import Resources
from rayelastic.runtime.operators.native_schema import native_schema
from rayelastic.runtime.operators.natives import native_operator
from rayelastic.runtime.operators.user_objects import UserObjects
from rayelastic.runtime.private_streams import private_streams, with_private_streams
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Mapping

    from rayelastic.connectors.files.bad_rows import Dropped
    from rayelastic.connectors.inputs import Input
    from rayelastic.connectors.output.record import BlobStore, Output
    from rayelastic.connectors.pushed.receiver import IngestServer
    from rayelastic.runtime.port.data_port import Hello
    from rayelastic.runtime.values.specs import PESpec

MARK_PERIOD = 0.1  # seconds between two marks that sample the latency of a source


class HostedOperators:
    """The operators of one PE.

    Args:
        spec: The PE.
    """

    def __init__(self, spec: PESpec) -> None:
        self._spec = spec
        self._operators = with_private_streams(spec.operators, private_streams(spec.operators, spec.leaving))
        self.sources: dict[str, SourceOperator] = {}
        self.sinks: dict[str, SinkOperator] = {}
        self.natives: dict[str, _native.Operator] = {}
        self._loop = EventLoop(f"event-loop-{spec.pe}")
        self._logged: set[str] = set()  # sources whose bad rows are logged
        self._resources = Resources(spec.job, self._loop)
        self.widths = self._resources.widths
        self._objects = UserObjects(spec.job, spec.pe, self._loop)

    @property
    def by_name(self) -> dict[str, OperatorSpec]:
        """The operators by name."""
        return {operator.name: operator for operator in self._spec.operators}

    def open(self, outputs: Mapping[str, Output], store: BlobStore | None, *, takes_checkpoints: bool) -> None:
        """Make the sources and sinks.

        Args:
            outputs: The outputs that sinks had written at the restored checkpoint.
            store: Reads the blobs of that checkpoint.
            takes_checkpoints: Whether the job takes checkpoints: sinks hide their output until one is complete.

        Raises:
            SinkError: A sink's output can't be written.
            StateError: An output isn't what the earlier run left; the message names the sink.
        """
        keep = (self._spec.config.checkpoint or Checkpoint()).keep
        recovers, run, job = self._spec.manifest is not None, self._spec.job_id, self._spec.job
        past = Past(outputs, store, takes_checkpoints, keep, recovers, run, job)
        for number, operator in enumerate(self._operators):
            if isinstance(operator.body, SourceDescription):
                described, schema = self._objects.initialized(operator), native_schema(operator.outputs[0].schema)
                self.sources[operator.name] = source = source_operator(described, schema)
                if takes_checkpoints:
                    source.complete(None)
            elif isinstance(operator.body, SinkDescription):
                described, schema = self._objects.initialized(operator), native_schema(operator.inputs[0].schema)
                self.sinks[operator.name] = sink_operator(described, schema, past, f"{self._spec.pe}-{number:04}")

    def begin(self) -> None:
        """Make the sinks roll back their outputs, once all of the job's have checked theirs, before the operators run.

        Raises:
            SinkError: An output can't be written; the message names the sink.
        """
        for name, sink in self.sinks.items():
            with naming(self.by_name[name], SinkError, StateError):
                if taken_back := sink.begin():
                    tell("rows taken back", job=self._spec.job, pe=self._spec.pe, operator=name, what=taken_back)

    @property
    def is_fed(self) -> bool:
        """Whether clients push the rows of a source over connections."""
        return any(isinstance(source, PushedOperator) for source in self.sources.values())

    def arrives(self, connection: socket.socket, hello: Hello) -> bool:
        """Take a connection that brings rows of a source; return whether it is one."""
        kind, _, name = hello.channel.partition(":")
        source = self.sources.get(name) if kind == "ingest" else None
        if not isinstance(source, PushedOperator):
            return False
        source.ingest.serve(connection)
        return True

    def ingest(self, source: str) -> IngestServer:
        """Return the server of a source that is fed from outside."""
        pushed = self.sources[source]
        assert isinstance(pushed, PushedOperator)
        return pushed.ingest

    def build(self) -> None:
        """Make the native operators."""
        self.natives.update({operator.name: self._make(operator) for operator in self._operators})

    def seek(self, positions: Mapping[str, int], inputs: Mapping[str, Input]) -> dict[str, int]:
        """Make the sources begin at their positions, or as close before them as possible. Call it before they start.

        Args:
            positions: {source: rows that it has emitted}.
            inputs: What they read, and their position in it.

        Returns:
            {source: rows that it will emit again}, which are to be skipped.

        Raises:
            SourceError: A file can't be accessed; the message names the source.
            StateError: The saved position is damaged; the message names the source.
        """
        again = {}
        for name, position in positions.items():
            with naming(self.by_name[name], SourceError, StateError):
                again[name] = self.sources[name].seek(position, inputs.get(name))
            if again[name]:
                tell("rows are read again", job=self._spec.job, pe=self._spec.pe, operator=name, rows=again[name])
        return again

    def wakes(self, poke: Callable[[int], None], ids: Mapping[str, int]) -> None:
        """Poke operators that wait for calls when one is done.

        Args:
            poke: The scheduler's function.
            ids: {operator: its number in the scheduler}.
        """
        for name, calls in self._resources.calls.items():
            calls.wakes(functools.partial(poke, ids[name]))

    def complete(self) -> dict[str, Any]:
        """Complete the output of the sinks, and shut the users' objects down; safe to repeat.

        Returns:
            {sink: its result}.

        Raises:
            SinkError: A sink can't be completed; the message names it.
            JobFailedError: A user's object can't be shut down; the message names the operator.
        """
        left = {}
        for name, sink in self.sinks.items():
            with naming(self.by_name[name], SinkError):
                left[name] = sink.close()
        self._objects.shut_down()
        return left

    def close(self, left_behind: Collection[str] = ()) -> None:
        """Free what sources, sinks and classes hold; safe to repeat. Hidden output of sinks stays hidden.

        Args:
            left_behind: Operators that a thread is still in.
        """
        for calls in self._resources.calls.values():
            calls.close()
        for name, function in self._resources.classes.items():
            if name not in left_behind:
                function.close()
        for name, sink in self.sinks.items():
            sink.abandon()
            self._log_bad_rows(name, sink.left_out)
        for name, source in self.sources.items():
            source.close()
            self._log_bad_rows(name, source.left_out)
        self._objects.close(left_behind)
        self._loop.close()

    def numbers(self) -> dict[str, dict[str, float]]:
        """Return what the scheduler doesn't count: {field of a sample: {operator: value}}."""
        lags = {name: lag for name, source in self.sources.items() if (lag := source.lag()) is not None}
        return {
            "channels": {name: width.active for name, width in self.widths.items()},
            "lag": {name: rows for name, (rows, _) in lags.items()},
            "behind_seconds": {name: seconds for name, (_, seconds) in lags.items()},
        }

    def bad_rows(self) -> dict[str, int]:
        """Return the number of rows that each source and sink has dropped because it can't read or write them."""
        ends: dict[str, SourceOperator | SinkOperator] = {**self.sources, **self.sinks}
        return {name: end.left_out.count for name, end in ends.items()}

    def _log_bad_rows(self, end: str, rows: Dropped) -> None:
        """Log how many rows a source or sink has dropped, once, if there are any."""
        if rows.count and end not in self._logged:
            self._logged.add(end)
            at = {"job": self._spec.job, "pe": self._spec.pe, "operator": end}
            tell("bad rows left out", level=logging.WARNING, count=rows.count, first=rows.first, **at)

    def _make(self, spec: OperatorSpec) -> _native.Operator:
        if spec.name in self.sources:  # those and the sinks were made in `open`
            return self.sources[spec.name].native.with_time_marks(MARK_PERIOD)
        if spec.name in self.sinks:
            return self.sinks[spec.name].native.with_latency()
        return native_operator(self._objects.initialized(spec), self._resources)
