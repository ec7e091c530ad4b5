"""Feedback streams: `Topology.feedback` returns one, to be consumed before it is produced (J08, P34)."""

from __future__ import annotations

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.fluent.declarations import Declarations, close_feedback
from rayelastic.graph.fluent.stream import Stream
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.declaration import declaring
from rayelastic.graph.spec.location import caller_location

__all__ = ["Feedback"]


class Feedback(Stream):
    """A stream that is consumed before it is produced: unite it or connect it to an operator's port, then close it.

    Attributes:
        name: The feedback's name, for messages.
        location: 'file.py:12' of its declaration.
        closed: Whether its input is connected.
    """

    __slots__ = ("closed", "location", "name")

    def __init__(self, topology: Declarations, name: str, schema: Schema, location: str) -> None:
        super().__init__(topology, (f"{name}/feedback",), schema)
        self.name = name
        self.location = location
        self.closed = False

    def close(self, stream: Stream) -> None:
        """Connect the stream that feeds it.

        Raises:
            GraphError: Another schema or topology, closed already, or no operator consumes it.
        """
        with declaring(self.name, caller_location()):
            self._check(stream)
        if not close_feedback(self.topology, self.name, self.inputs[0], stream.inputs):
            raise GraphError(
                "no operator reads this feedback",
                operator=self.name,
                location=caller_location(),
                hint="Unite it with the stream that enters the loop before closing it",
                code=ErrorCode.UNUSED_FEEDBACK,
            )
        self.closed = True

    def _check(self, stream: object) -> None:
        if self.closed:
            raise GraphError(
                "this feedback is closed already",
                hint="Unite the returning streams first",
                code=ErrorCode.CLOSED_FEEDBACK,
            )
        if not isinstance(stream, Stream) or isinstance(stream, Feedback):
            raise GraphError(
                f"{shown(stream)} isn't a stream that can return",
                hint="Pass the stream at the end of the loop",
                code=ErrorCode.NOT_A_STREAM,
            )
        if stream.topology is not self.topology:
            raise GraphError(
                "the returning stream is of another topology",
                hint=f"Declare it in '{self.topology.name}'",
                code=ErrorCode.OTHER_TOPOLOGY,
            )
        if not stream.schema.same_fields(self.schema):
            raise GraphError(
                f"the returning stream has {stream.schema} where {self.schema} is expected",
                hint="Map it to that schema",
                code=ErrorCode.SCHEMA_MISMATCH,
            )
