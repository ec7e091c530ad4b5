"""The base of every stream: its topology, its inputs, its schema, and its side outputs.

The methods of a stream are mixins in files of their own. They return the parameter `StreamT`, because `Stream` itself
is a layer above them. Knows no operator.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.fluent.declarations import Declarations, declare
from rayelastic.fluent.streams import Streams
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.dead_letters import ERRORS
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.ports import operator_of, side_source, stream_name
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.words import STREAM, missing

StreamT = TypeVar("StreamT")

_NOTHING = Schema("Nothing", (), 8, 0)  # the output of a sink


_OF_KEYED = ("KeyedMethods", "JoinMethods")  # mixins of a stream after key_by


_ROWS = "Keep rows by .filter(lambda t: t.amount > 10). rel.run(topology) returns what sinks collect"


class StreamBase(ABC, Generic[StreamT]):
    """Tuples of one schema, in order, from one operator or a union of several.

    Attributes:
        topology: The stream's topology.
        inputs: Names of the streams that it unites: 'operator', or 'operator/port' (see ports.stream_name).
        schema: The schema of its tuples.
        keys: Names of the key fields; none unless it comes from key_by.
    """

    __slots__ = ("inputs", "schema", "topology")
    keys: tuple[str, ...] = ()

    if not TYPE_CHECKING:  # otherwise type checkers would accept every name

        def __getattr__(self, word: str) -> Any:
            if word.startswith("_"):
                raise AttributeError(f"a {type(self).__name__} has no {word!r}")
            if (here := re.sub("(?=[A-Z])", "_", word).lower()) != word and here in dir(type(self)):
                return self.__getattribute__(here)  # groupBy, withColumn: as PySpark writes them
            raise AttributeError(missing(f"a {type(self).__name__}", word, dir(type(self)), STREAM))

    def __getitem__(self: Any, fields: Any) -> Any:
        """Select fields, after key_by beside the keys: `stream["amount"]`, `stream[["user", "amount"]]`."""
        chosen = [fields] if isinstance(fields, str) else fields
        if not isinstance(chosen, list) or not all(isinstance(field, str) for field in chosen):
            raise TypeError(f"a stream has no subscripts as [{shown(fields)}]. {_ROWS}")
        selected = self.select(*(key for key in self.keys if key not in chosen), *chosen)
        return selected.key_by(*self.keys) if self.keys else selected

    def __gt__(self, other: object) -> NoReturn:
        """Reject `stream["amount"] > 10`."""
        raise TypeError(f"a stream has no single value, so it isn't compared. {_ROWS}")

    __ge__ = __lt__ = __le__ = __gt__

    def __init_subclass__(cls, **options: Any) -> None:
        """Make Python's messages name the methods by the class that users see."""
        super().__init_subclass__(**options)
        if not cls.__name__.endswith("Methods"):
            return
        public = "KeyedStream" if cls.__name__ in _OF_KEYED else "Stream"
        for method in vars(cls).values():
            if inspect.isfunction(method):
                inner: Any = inspect.unwrap(method)
                method.__qualname__ = inner.__qualname__ = f"{public}.{method.__name__}"

    def __init__(self, topology: Declarations, inputs: tuple[str, ...], schema: Schema) -> None:
        self.topology = topology
        self.inputs = inputs
        self.schema = schema

    @property
    def errors(self) -> StreamT:
        """The tuples on which the operator before failed, if it has on_error='divert'.

        Their fields are those of its input, then `error` (the raised exception) and `operator` (its name).
        `dead_letters` is another name of it.

        Raises:
            GraphError: The operator doesn't divert tuples.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("numbers")
        >>> texts = topology.source(rel.rows([("1",), ("two",)], schema={"text": str}), name="texts")
        >>> parsed = texts.map(lambda t: int(t.text), name="parse", schema=int, lane="python", on_error="divert")
        >>> parsed.sink(rel.list(), name="numbers"), parsed.errors.sink(rel.list(), name="bad")
        (<sink numbers>, <sink bad>)
        >>> [(t.text, t.error) for t in rel.run(topology)["bad"]]
        [('two', "ValueError: invalid literal for int() with base 10: 'two'")]
        """
        return self.side(ERRORS)

    dead_letters = errors

    def side(self, port: str) -> StreamT:
        """Return a side output of the operator before, by the name of its port.

        Raises:
            GraphError: It has no such port.

        >>> import rayelastic as rel
        >>> def digits(t):
        ...     return int(t.text) if t.text.isdigit() else rel.to("words", t.text)
        >>> topology = rel.Topology("digits")
        >>> texts = topology.source(rel.rows([("7",), ("seven",)], schema={"text": str}), name="texts")
        >>> numbers = texts.map(digits, schema={"n": int}, sides={"words": {"text": str}})
        >>> numbers.sink(rel.list(), name="out"), numbers.side("words").sink(rel.list(), name="rest")
        (<sink out>, <sink rest>)
        >>> result = rel.run(topology)
        >>> [tuple(t) for t in result["out"]], [tuple(t) for t in result["rest"]]
        ([(7,)], [('seven',)])
        """
        spec = self.topology.operators.get(operator_of(self.inputs[0]))
        further = spec.outputs[1:] if spec is not None else ()
        if spec is not None and port in getattr(spec.body, "side_sources", ()):
            beside = self.topology.operators[side_source(spec.name, port)]
            return self._at(self.topology, beside.streams, beside.output_schema or self.schema)
        output = next((port_of for port_of in further if port_of.name == port), None)
        if output is None or len(self.inputs) > 1:
            has = ", ".join(port_of.name for port_of in further)
            hint = "Declare it with on_error='divert'" if port == ERRORS else "Declare it with sides={port: schema}"
            raise GraphError(
                f"it has no side output {port!r}",
                operator=self._upstream.called,
                location=caller_location(),
                hint=f"It has {has}" if has else hint,
                code=ErrorCode.UNKNOWN_PORT,
            )
        return self._at(self.topology, (stream_name(operator_of(self.inputs[0]), port),), output.schema)

    @property
    def _upstream(self) -> Upstream:
        """Return what a downstream operator may know of it."""
        return Upstream(self.inputs, self.schema, self.keys, self.topology.operators, self.topology.compiler)

    def _declare(self, *specs: OperatorSpec) -> StreamT:
        """Add operators to the topology, and return the first stream of the last one."""
        declare(self.topology, *specs)
        return self._at(self.topology, specs[-1].streams[:1], specs[-1].output_schema or _NOTHING)

    def _declare_several(self, spec: OperatorSpec) -> Streams[StreamT]:
        """Add an operator to the topology, and return all its streams."""
        declare(self.topology, spec)
        return Streams(spec.name, {port: self._at(self.topology, *parts) for port, parts in streams_of(spec).items()})

    @abstractmethod
    def _declare_timely(self, spec: OperatorSpec) -> StreamT:
        """Add an operator to the topology, and return its stream, which also has the late tuples."""

    @abstractmethod
    def _at(
        self, topology: Declarations, inputs: tuple[str, ...], schema: Schema, keys: tuple[str, ...] = ()
    ) -> StreamT:
        """Make another stream."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._upstream.called}: {self.schema}>"


def streams_of(spec: OperatorSpec) -> dict[str, tuple[tuple[str, ...], Schema]]:
    """Return the stream of each output port: the names of its inputs, and its schema."""
    return {port.name: ((stream_name(spec.name, port.name),), port.schema) for port in spec.outputs}


def taken(topology: Declarations, port: str, stream: object) -> Upstream | None:
    """Check the stream that is connected to an input port; None if there isn't one.

    Raises:
        GraphError: It isn't a stream, or is one of another topology.
    """
    if stream is None:
        return None
    if not isinstance(stream, StreamBase):
        raise GraphError(
            f"{port}={shown(stream)} isn't a stream",
            hint="Pass what map, source or union return",
            code=ErrorCode.NOT_A_STREAM,
        )
    if stream.topology is not topology:
        raise GraphError(
            f"{port}= is a stream of another topology, '{stream.topology.name}'",
            hint=f"Declare both in '{topology.name}'",
            code=ErrorCode.OTHER_TOPOLOGY,
        )
    return stream._upstream
