"""Which fields of a source nobody reads, so that it doesn't decode them.

A record keeps its layout: such a field is null, zero or empty. Operators say which fields of their input they need, and
at which ports they emit the tuples of their input as they are. An operator that does not say so needs all of them.
Knows no threads, PEs or native code.
"""

from __future__ import annotations

import dis
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import FunctionType

from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import OperatorSpec, SourceDescription
from rayelastic.graph.spec.order import topological_order
from rayelastic.graph.spec.ports import stream_name

_REFLECTING = frozenset({"eval", "exec", "locals", "vars", "f_locals", "_getframe", "currentframe"})


class _Unread:
    """Shown in the place of a value that wasn't read."""

    def __repr__(self) -> str:
        return "..."


UNREAD = _Unread()

_NEVER_EMPTY = frozenset(
    {DataType.ENUM, DataType.LIST, DataType.STRUCT, DataType.MAP, DataType.JSON, DataType.OBJECT}
)  # zero bytes are no value of them


def fields_read(function: object, schema: Schema) -> frozenset[str] | None:
    """Return the fields that a function reads of its first argument; None: not known, perhaps all.

    It is known if the argument occurs in the function's code only as `t.field`, and is a NamedTuple or no class is
    declared. Fields whose types have no empty value count as read.

    Args:
        function: A user's function of a tuple.
        schema: The schema of the tuple.

    >>> trade = Schema.of({"symbol": str, "price": float, "volume": int})
    >>> sorted(fields_read(lambda t: t.price * t.volume, trade))
    ['price', 'volume']
    >>> fields_read(lambda t: print(t), trade) is None
    True
    """
    is_plain = schema.declared_type is None or schema.declared_type.__bases__ == (tuple,)  # or it may check its values
    if not isinstance(function, FunctionType) or not is_plain:
        return None
    read = _attributes(function, schema.names)
    if read is None:
        return None
    return read.union(f.name for f in schema.fields if not f.nullable and f.type in _NEVER_EMPTY)


def _attributes(function: FunctionType, names: Collection[str]) -> frozenset[str] | None:
    code = function.__code__
    if not code.co_argcount or _REFLECTING.intersection(code.co_names):
        return None
    argument = code.co_varnames[0]
    found: set[str] = set()
    steps = list(dis.get_instructions(code))
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if argument != step.argval and not (isinstance(step.argval, tuple) and argument in step.argval):
            continue
        if step.opname in ("LOAD_CONST", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD", "KW_NAMES"):
            continue  # another thing of the same name
        if following is None or following.opname != "LOAD_ATTR" or following.argval not in names:
            return None
        if not step.opname.startswith("LOAD_FAST") or isinstance(step.argval, tuple):
            return None
        found.add(following.argval)
    return frozenset(found)


def mark_unread(operators: Mapping[str, OperatorSpec]) -> dict[str, OperatorSpec]:
    """Return the operators, each with the fields without values in its first input, or in a source's output.

    A source that can leaves out what nobody reads, but never all of its fields.
    """
    if not any(isinstance(spec.body, SourceDescription) and spec.body.omits_unread for spec in operators.values()):
        return dict(operators)
    needs = _needs(operators)
    lacks: dict[str, tuple[str, ...]] = {}  # {stream: its fields without values}
    marked: dict[str, OperatorSpec] = {}
    for name in topological_order(operators):
        spec = operators[name]
        if spec.is_source:
            unread = _left_out(spec, needs[name])
            passing = [port.name for port in spec.outputs]
        else:
            streams = [stream for port in spec.inputs[:1] for stream in port.streams]
            unread = tuple(dict.fromkeys(field for stream in streams for field in lacks.get(stream, ())))
            passing = list(spec.body.passes(spec))
        lacks |= {stream_name(name, port): unread for port in passing}
        marked[name] = replace(spec, unread=unread) if unread else spec
    return {name: marked[name] for name in operators}


def _left_out(source: OperatorSpec, needed: frozenset[str] | None) -> tuple[str, ...]:
    names = source.output_schema.names if source.output_schema is not None else ()
    if needed is None or not isinstance(source.body, SourceDescription) or not source.body.omits_unread:
        return ()
    return tuple(name for name in names if name not in (needed or names[:1]))


def _needs(operators: Mapping[str, OperatorSpec]) -> dict[str, frozenset[str] | None]:
    """Return for each source the fields of its tuples that anybody reads; None: all."""
    consumers: dict[str, list[tuple[str, int]]] = defaultdict(list)  # {stream: its consumers and their ports}
    for spec in operators.values():
        for number, port in enumerate(spec.inputs):
            for stream in (*port.streams, *port.feedback):
                consumers[stream].append((spec.name, number))
    needs: dict[tuple[str, int], frozenset[str] | None] = {}

    def needed_at(spec: OperatorSpec, ports: Iterable[str]) -> frozenset[str] | None:
        sets = [needs.get(one) for port in ports for one in consumers[stream_name(spec.name, port)]]
        known = [one for one in sets if one is not None]
        return frozenset().union(*known) if len(known) == len(sets) else None

    of_sources: dict[str, frozenset[str] | None] = {}
    for name in reversed(topological_order(operators)):
        spec = operators[name]
        if spec.is_source:
            of_sources[name] = needed_at(spec, [port.name for port in spec.outputs])
            continue
        passed = needed_at(spec, spec.body.passes(spec))
        for number, port in enumerate(spec.inputs):
            own = None if spec.on_error is OnError.DIVERT or port.feedback else spec.body.reads(spec, number)
            time = () if spec.ttl is None or spec.ttl.time is None else (spec.ttl.time.field,)
            needs[name, number] = None if own is None or passed is None else passed.union(own, port.keys, time)
    return of_sources
