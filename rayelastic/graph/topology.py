"""A topology: the operators that a user declared, by name. Knows no threads, plans or engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from rayelastic.errors import DeclarationError, GraphError, NotShippableError
from rayelastic.graph.declaration import check_name, check_new
from rayelastic.graph.location import caller_location
from rayelastic.graph.loops import Feedback, check_loops
from rayelastic.graph.operator_spec import FunctionCompiler, OperatorKind, OperatorSpec, SourceDescription, StateKind
from rayelastic.graph.order import topological_order
from rayelastic.graph.ports import side_source, stream_name
from rayelastic.graph.schema import Schema
from rayelastic.graph.shown import shown
from rayelastic.graph.stream import ErrorChoice, Stream, check_at

__all__ = ["Topology", "check_shippable"]


class Topology:
    """Streams and operators, with no degree of parallelism anywhere (J07).

    Args:
        name: of the topology, and of its jobs by default.
        compiler: makes operator functions of Python functions.

    >>> from rayelastic.graph import sinks, sources
    >>> topology = Topology("squares", compiler=None)  # no function in it, so nothing to compile
    >>> numbers = topology.source("numbers", sources.sequence(10))
    >>> numbers.sink("out", sinks.list())
    <sink out>
    >>> list(topology.operators)
    ['numbers', 'out']
    """

    def __init__(self, name: str, *, compiler: FunctionCompiler) -> None:
        try:
            check_name(name, "a topology")
        except GraphError as error:
            error.location = caller_location()
            raise
        self.name = name
        self.compiler = compiler
        self._operators: dict[str, OperatorSpec] = {}
        self._feedbacks: dict[str, Feedback] = {}

    @property
    def operators(self) -> Mapping[str, OperatorSpec]:
        """The operators by name, in declared order; read only."""
        return MappingProxyType(self._operators)

    def source(self, name: str, source: Any) -> Stream:
        """Declare where tuples come from.

        Args:
            name: of the operator.
            source: such as rel.text(paths), rel.csv(path), rel.parquet(path), rel.arrow(table), rel.rows(...).

        Raises:
            GraphError: no source, or the name is taken or bad.
            SourceError: it can't be read.
            SchemaError: it has a field that records can't hold.
        """
        location = caller_location()
        check_at(name, location)
        try:
            check_new(name, self._operators)
            body = _source_description(source, name)
            body.check(name)
            sides = {side_source(name, port): side for port, side in getattr(body, "side_sources", {}).items()}
            for side in sides:
                check_new(side, self._operators)
        except DeclarationError as error:
            error.at(name, location)
            raise
        for each, described in sides.items():
            self._add(_source(each, described, location))
        return self._add(_source(name, body, location))

    def feedback(self, name: str, like: Stream | object) -> Feedback:
        """Make a stream that comes back from further down, to be taken before it is made.

        Take it where the loop begins, with union or as an input port of its own, then say what comes back with its
        `close`. What enters the loop waits while the loop is full; it ends when nothing goes round any more.

        Args:
            name: of the feedback.
            like: a stream of the same schema, or a schema (see Schema.of).

        Raises:
            GraphError: the name is taken or bad.
            SchemaError: the schema can't be laid out.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("halves")
        >>> numbers = topology.source("numbers", rel.rows([(8,), (5,)], schema={"n": int}))
        >>> again = topology.feedback("again", like=numbers)
        >>> parts = numbers.union(again).split("one", more=lambda t: t.n > 1)
        >>> again.close(parts.more.map("half", lambda t: (t.n // 2,), schema={"n": int}))
        >>> parts.rest.sink("out", rel.list())
        <sink out>
        >>> rel.run(topology)["out"]
        [Record(n=1), Record(n=1)]
        """
        location = caller_location()
        check_at(name, location)
        try:
            check_new(name, self._operators)
            if name in self._feedbacks:
                raise GraphError("the name is taken by another feedback", way_out="Give it another name")
            schema = like.schema if isinstance(like, Stream) else Schema.of(like)
        except DeclarationError as error:
            error.at(name, location)
            raise
        made = self._feedbacks[name] = Feedback(self, name, schema, location)
        return made

    def apply(self, name: str, operator: Any, *, on_error: ErrorChoice = "fail", **streams: Stream) -> Any:
        """Declare an operator of a class that @rel.operator made.

        Args:
            name: of the operator.
            operator: an instance of the class; it is copied.
            on_error: as of Stream.map, for what `invoke` raises for a tuple.
            streams: input port = stream; partitioned stateful operators want a key_by on each.

        Returns:
            Its stream; streams by output port if there are several; of one without output nothing can follow.

        Raises:
            GraphError: ports, streams or keys don't fit.
            SchemaError: a stream lacks a field that the operator wants.
            LaneError: the lane can't be had.
        """
        from rayelastic.graph.composition import apply

        return apply(self, name, operator, streams, on_error)

    def _add(self, spec: OperatorSpec) -> Stream:
        self._operators[spec.name] = spec
        return Stream(self, spec.streams[:1], spec.output_schema or _NOTHING)

    def validate(self, *, shipped: bool = True) -> None:
        """Check the topology as a whole.

        Args:
            shipped: whether functions and descriptions will be sent to other processes, and so must pickle.

        Raises:
            GraphError: no source, a stream without a sink, a cycle.
            NotShippableError: a function can't be pickled; names the operator and what in it can't.
        """
        if not any(spec.kind is OperatorKind.SOURCE for spec in self._operators.values()):
            raise GraphError(f"topology '{self.name}' has no source", way_out="Start with topology.source(name, ...)")
        for feedback in self._feedbacks.values():
            if not feedback.closed:
                raise GraphError(
                    "this feedback isn't closed: nothing comes back",
                    operator=feedback.name,
                    location=feedback.location,
                    way_out="Call its close(stream) with the stream at the end of the loop",
                )
        topological_order(self._operators)
        check_loops(self._operators)
        taken = {s for spec in self._operators.values() for s, _ in (*spec.edges, *spec.loop_edges)}
        for spec in self._operators.values():
            for port in spec.output_ports:
                if stream_name(spec.name, port.name) not in taken and not port.optional:
                    what = "output" if len(spec.output_ports) == 1 else f"output port '{port.name}'"
                    raise GraphError(
                        f"nothing takes its {what}: a stream without a sink",
                        operator=spec.name,
                        location=spec.location,
                        way_out="End it with .sink(name, ...), such as rel.count(), or leave the operator out",
                    )
        if shipped:
            check_shippable(self._operators.values())

    def __repr__(self) -> str:
        return f"<Topology {self.name}: {len(self._operators)} operators>"


_NOTHING = Schema("Nothing", (), 8, 0)  # what a sink gives


def _source(name: str, body: SourceDescription, location: str) -> OperatorSpec:
    return OperatorSpec(name, OperatorKind.SOURCE, (), None, body.schema, (), StateKind.STATEFUL, body, location)


def _source_description(source: Any, operator: str) -> SourceDescription:
    if hasattr(source, "as_source"):
        made: SourceDescription = source.as_source(operator)
        return made
    if not hasattr(source, "check") or not hasattr(source, "schema"):
        raise GraphError(
            f"{shown(source)} is no source",
            way_out="Use rel.text, csv, parquet, arrow, rows, generate, callable or sequence",
        )
    described: SourceDescription = source
    return described


def check_shippable(specs: Iterable[OperatorSpec]) -> None:
    """Raise NotShippableError if something can't be pickled, naming the operator and what in it can't."""
    import cloudpickle

    specs = list(specs)
    try:
        cloudpickle.dumps([spec.body for spec in specs])
    except Exception as error:  # whatever a user's __reduce__ raises
        if len(specs) > 1:  # one by one, to find the culprit
            for spec in specs:
                check_shippable([spec])
        raise NotShippableError(
            f"it can't be sent to another process: {error}",
            operator=specs[0].name if len(specs) == 1 else None,
            location=specs[0].location if len(specs) == 1 else "",
            way_out="Make what its function needs inside the function, or pass plain values instead of open things",
        ) from error
