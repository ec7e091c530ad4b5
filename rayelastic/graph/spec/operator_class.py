"""`@rel.operator`: a class becomes an operator with ports, a firing rule and a kind of state (Joker 3.1; J01-J05).

This is the design-time part: the checks of the class alone. `composition` checks how streams are connected to its
ports. Knows no threads, PEs or native code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, overload

from rayelastic.errors import DeclarationError, ErrorCode, GraphError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import conflict, shown
from rayelastic.graph.records.time_info import Lifetime
from rayelastic.graph.spec.declaration import LaneChoice, binds, check_state, lane_of
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import Lane, StateKind
from rayelastic.graph.spec.ports import IN, OUT, Demand, DemandKind, check_port
from rayelastic.graph.spec.user_objects import FLUSHED, LIFE, check_names

Class = TypeVar("Class", bound=type)
_MARK = "__rel_operator__"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requirements of an input port.

    Args:
        schema: Fields that its tuples must have; None: any.
        demand: How many of them each firing consumes; None: those that arrive.
    """

    schema: Schema | None
    demand: Demand | None = None


@dataclass(frozen=True, slots=True)
class OperatorDefinition:
    """An operator's design.

    Args:
        inputs: {input port: its requirements}, in order.
        outputs: {output port: schema, or the name of an input port with that schema}; None: `output_schemas` returns
            it.
        state_kind: The kind of its state.
        state: Makes the state of a key, if it is partitioned.
        lane: 'auto', or the requested execution mode.
        ttl: The time without a tuple after which a key is dropped.
    """

    inputs: Mapping[str, Wanted]
    outputs: Mapping[str, Schema | str] | None
    state_kind: StateKind
    state: Callable[[], Any] | None
    lane: Literal["auto"] | Lane
    ttl: Lifetime | None = None

    @property
    def is_conjunctive(self) -> bool:
        """Whether it fires when all its ports have the tuples that it demands, instead of for each tuple (J02)."""
        return next(iter(self.inputs.values())).demand is not None


def exactly(count: int, schema: object = None) -> Wanted:
    """Demand so many tuples of a port at each firing, no more and no fewer (J02: EXACT).

    Args:
        count: 1 or more.
        schema: Fields that the tuples must have, see Schema.of; None: any.

    >>> exactly(2, {"n": int}).demand.count
    2
    """
    return _wanted(count, DemandKind.EXACT, schema)


def at_least(count: int, schema: object = None) -> Wanted:
    """Demand at least so many tuples of a port, and receive all that are queued then (J02: AT_LEAST).

    Args:
        count: 1 or more.
        schema: Fields that the tuples must have, see Schema.of; None: any.

    >>> at_least(2, {"n": int}).demand.count
    2
    """
    return _wanted(count, DemandKind.AT_LEAST, schema)


@overload
def operator(cls: Class) -> Class: ...


@overload
def operator(
    *,
    inputs: object = ...,
    outputs: object = ...,
    state: Callable[[], Any] | None = ...,
    stateless: bool = ...,
    lane: LaneChoice = ...,
    ttl: Lifetime | None = ...,
) -> Callable[[Class], Class]: ...


def operator(
    cls: type | None = None,
    *,
    inputs: object = None,
    outputs: object = None,
    state: Callable[[], Any] | None = None,
    stateless: bool = False,
    lane: LaneChoice = "auto",
    ttl: Lifetime | None = None,
) -> Any:
    """Make a class an operator: `stream.apply(TheClass(...))`, or `topology.apply` for several streams.

    The class has these methods; all but `invoke` are optional:

    `initialize(self)` is called in the process that runs it, before the first tuple: open files and connections here.

    `invoke(self, t)` is called with each tuple. With several input ports it is `invoke(self, port, t)`, with the port's
    name; with `state` it has a last argument `s`, the state of the tuple's key. It yields or returns tuples;
    `rel.to(port, t)` for another output port than the first. If all inputs are declared by `rel.exactly` or
    `rel.at_least`, it is called with a list of tuples for each port once all ports have them. When a port can't have
    enough tuples any more, the rest goes to `drain`, which is called likewise; without `drain` it is dropped. Annotated
    with numpy.ndarray, pyarrow.RecordBatch, pandas or polars frames, `invoke` receives runs and returns one, or {port:
    run} for several output ports.

    `shutdown(self)` is called after the last tuple, and what it yields is emitted. It is also called when the job is
    stopped, but then nothing is emitted any more.

    `snapshot(self)` returns the object's state, to be pickled into checkpoints and savepoints, and `restore(self,
    kept)` restores it, after `initialize`. Without the pair all its attributes are saved, except those that
    `initialize` sets and that can't be pickled (files, locks, connections). With `state` or `stateless` neither is
    called.

    `output_schemas(self, inputs)` returns, without `outputs`, {output port: schema} from {input port: Schema}.

    Args:
        cls: The class, if the decorator is used without arguments.
        inputs: A schema for the single input, or {input port: schema, rel.exactly(...) or rel.at_least(...)}. None,
            also as the schema of a port: any.
        outputs: A schema for the single output, or {output port: schema}; the name of an input port for the same
            schema; {} for none.
        state: Makes the state of a key (a NamedTuple class with defaults, or a callable). The operator is then
            partitioned, and all its streams must have a key_by.
        stateless: Promises that `invoke` doesn't change self. With one input, one output and no `shutdown` the operator
            may be replicated. Otherwise it is stateful.
        lane: 'auto', 'compiled', 'vectorised' or 'python'.
        ttl: With state: seconds, or a timedelta, without a tuple of a key, from any input, after which it is dropped,
            as for ``KeyedStream.map``. By event time if all inputs have one, of the same unit; else by the clock.

    Raises:
        GraphError: The class, a port or a firing rule is invalid.
        SchemaError: A schema can't be laid out.

    >>> import rayelastic as rel
    >>> @rel.operator(inputs={"n": rel.exactly(1), "word": rel.exactly(2)}, outputs={"out": {"line": str}})
    ... class Line:
    ...     def invoke(self, n, words):
    ...         yield (f"{n[0].value} {words[0].value} {words[1].value}",)
    >>> topology = rel.Topology("lines")
    >>> numbers = topology.source(rel.rows([(1,), (2,)], schema=int), name="numbers")
    >>> words = topology.source(rel.rows([("a",), ("b",), ("c",), ("d",)], schema=str), name="words")
    >>> topology.apply(Line(), name="line", n=numbers, word=words).sink(rel.list(), name="out")
    <sink out>
    >>> [t.line for t in rel.run(topology)["out"]]
    ['1 a b', '2 c d']
    """
    location = caller_location()

    def made(cls: Class) -> Class:
        try:
            setattr(cls, _MARK, replace(_definition(cls, inputs, outputs, state, stateless, lane), ttl=ttl))
        except DeclarationError as error:
            error.at(getattr(cls, "__name__", "?"), location)
            raise
        return cls

    return made if cls is None else made(cls)


def definition_of(instance: object) -> OperatorDefinition:
    """Return the design of an operator's instance.

    Raises:
        GraphError: It isn't an operator's instance.
    """
    definition = getattr(type(instance), _MARK, None)
    if isinstance(definition, OperatorDefinition):
        return definition
    if isinstance(instance, type) and hasattr(instance, _MARK):
        raise GraphError(
            f"apply needs an instance, not the class {instance.__name__}",
            hint=f"Write {instance.__name__}(...)",
            code=ErrorCode.NOT_AN_OPERATOR,
        )
    raise GraphError(
        f"{shown(instance)} isn't an operator",
        hint="Decorate its class with @rel.operator, or use map or flat_map",
        code=ErrorCode.NOT_AN_OPERATOR,
    )


def _wanted(count: object, kind: DemandKind, schema: object) -> Wanted:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        verb = "exactly" if kind is DemandKind.EXACT else "at_least"
        raise GraphError(
            f"rel.{verb}({shown(count)}) isn't a number of tuples",
            location=caller_location(),
            hint="Pass a whole number, 1 or more",
            code=ErrorCode.OUT_OF_RANGE,
        )
    return Wanted(None if schema is None else Schema.of(schema), Demand(count, kind))


def _definition(
    cls: object, inputs: object, outputs: object, state: Callable[[], Any] | None, stateless: object, lane: object
) -> OperatorDefinition:
    if not isinstance(cls, type):
        raise GraphError(
            f"@rel.operator decorates a class, not {shown(cls)}",
            hint="Use .map(function)",
            code=ErrorCode.NOT_AN_OPERATOR,
        )
    wanted = {port: _checked_input(wanted_input) for port, wanted_input in _named(inputs, IN, "input").items()}
    if not wanted:
        raise GraphError(
            "it has no input port", hint="Name one, or make a source with rel.generate", code=ErrorCode.MISSING_ARGUMENT
        )
    asking = [port for port, demand in wanted.items() if demand.demand is not None]
    if asking and len(asking) < len(wanted):
        free = next(port for port in wanted if port not in asking)
        raise conflict(
            f"it waits for input port '{asking[0]}' but not for '{free}'",
            "Pass all ports rel.exactly or rel.at_least, or none",
        )
    if state is not None:
        check_state(state)
        if stateless:
            raise conflict("it has state= and stateless=True", "Leave one of them out")
        if asking:
            raise conflict(
                "it has state of keys and waits for several ports, whose tuples have different keys",
                "Accept tuples one by one, and count them in the state",
            )
    _check_methods(cls, wanted, bool(asking), state is not None)
    gives = _checked_outputs(cls, outputs, wanted)
    kind = StateKind.STATELESS if stateless else StateKind.STATEFUL
    return OperatorDefinition(wanted, gives, StateKind.PARTITIONED if state is not None else kind, state, lane_of(lane))


def _named(given: object, default: str, what: str) -> dict[str, Any]:
    """Distinguish ports from a single schema: ports are a mapping whose values aren't all types of fields."""
    is_ports = isinstance(given, Mapping) and not (given and all(_is_field(hint) for hint in given.values()))
    if not is_ports:
        return {default: given}
    assert isinstance(given, Mapping)
    ports = dict(given)
    for name in ports:
        check_port(name, what)
    return ports


def _is_field(given: object) -> bool:
    """Return whether it is the type of a field rather than the schema of a port."""
    if given is None or isinstance(given, str | Mapping | Schema | Wanted):
        return False
    return not (isinstance(given, type) and issubclass(given, tuple)) and not hasattr(given, "names")


def _checked_input(given: object) -> Wanted:
    if isinstance(given, Wanted):
        return given
    return Wanted(None if given is None else Schema.of(given))


def _checked_outputs(cls: type, outputs: object, wanted: Mapping[str, Wanted]) -> dict[str, Schema | str] | None:
    tells = callable(getattr(cls, "output_schemas", None))
    if outputs is None:
        if not tells:
            raise GraphError(
                "its output schema is unknown",
                hint="Pass outputs= a schema, {port: schema}, or {} for no output",
                code=ErrorCode.NO_SCHEMA,
            )
        return None
    if tells:
        raise conflict("it has outputs= and output_schemas", "Leave one of them out")
    schemas: dict[str, Schema | str] = {}
    for port, declared in _named(outputs, OUT, "output").items():
        if isinstance(declared, str):
            if declared not in wanted:
                raise GraphError(
                    f"output port '{port}' refers to '{declared}', which isn't one of its input ports",
                    hint=f"Name one of {', '.join(wanted)}, or return a schema",
                    code=ErrorCode.UNKNOWN_PORT,
                )
            schemas[port] = declared
        else:
            schemas[port] = Schema.of(declared)
    return schemas


def _check_methods(cls: type, wanted: Mapping[str, Wanted], conjunctive: bool, keyed: bool) -> None:
    if not callable(getattr(cls, "invoke", None)):
        raise GraphError(
            "it has no method invoke",
            hint="Write def invoke(self, t), which yields tuples",
            code=ErrorCode.MISSING_METHOD,
        )
    if conjunctive:
        takes = tuple(wanted)
    else:
        takes = (*(("port",) if len(wanted) > 1 else ()), "t", *(("s",) if keyed else ()))
    methods = {"invoke": takes, "drain": takes, "initialize": (), "shutdown": (), "output_schemas": ("inputs",)}
    methods |= {"snapshot": (), "restore": ("kept",)}
    for name, arguments in methods.items():
        method = getattr(cls, name, None)
        if method is None:
            continue
        if not callable(method):
            raise GraphError(
                f"{name} is {shown(method)}, no method", hint=f"Write def {name}(self)", code=ErrorCode.NOT_A_FUNCTION
            )
        if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
            raise GraphError(f"{name} is async", hint="Make it a plain method", code=ErrorCode.ASYNC_FUNCTION)
        bound = isinstance(inspect.getattr_static(cls, name), staticmethod | classmethod)
        if not binds(method, (None,) * (len(arguments) + (not bound))):
            shown_arguments = ", ".join((*(() if bound else ("self",)), *arguments))
            raise GraphError(
                f"{name} is called as {name}({shown_arguments}), but takes {inspect.signature(method)}",
                hint="Change its parameters",
                code=ErrorCode.WRONG_PARAMETERS,
            )
    check_names(cls, LIFE, others=FLUSHED)
    if hasattr(cls, "snapshot") != hasattr(cls, "restore"):
        defined, lacks = ("snapshot", "restore") if hasattr(cls, "snapshot") else ("restore", "snapshot")
        raise GraphError(
            f"it has {defined}, but no {lacks}",
            hint="Write both: one returns what the other accepts",
            code=ErrorCode.MISSING_METHOD,
        )
    if hasattr(cls, "drain") and not conjunctive:
        raise conflict(
            "it has drain, but accepts tuples one by one: none is ever left",
            "Write shutdown, or use rel.exactly or rel.at_least for all input ports",
        )
