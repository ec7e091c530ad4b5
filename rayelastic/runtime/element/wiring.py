"""Edges of the graph become connections between ports of a scheduler, and links those that leave or enter it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.graph.spec.ports import IN, OUT, operator_of, port_of
from rayelastic.plan.routing import Edge
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.values.specs import PESpec

STANDSTILL = 10.0  # seconds in which nothing comes of a side that is read first: it may wait for the other one


def connect_operators(
    scheduler: _native.Scheduler,
    operators: Sequence[OperatorSpec],
    numbers: Mapping[str, int],
    routed: Collection[Edge] = (),
) -> None:
    """Connect the operators of a scheduler with each other.

    Args:
        scheduler: which has them, and isn't started.
        operators: what they are.
        numbers: {operator: its number in the scheduler}.
        routed: edges that somebody else connects.
    """
    by_name = {operator.name: operator for operator in operators}
    for operator in operators:
        for edges, feedback in ((operator.edges, False), (operator.loop_edges, True)):
            for stream, end in edges:
                origin = by_name.get(operator_of(stream))
                if origin is not None and Edge(stream, end) not in routed:
                    ports = output_number(origin, port_of(stream, OUT)), input_number(operator, port_of(end, IN))
                    scheduler.connect(numbers[origin.name], numbers[operator.name], *ports, feedback)


def let_sources_wait(scheduler: _native.Scheduler, spec: PESpec, numbers: Mapping[str, int]) -> None:
    """Has sources begin when one side of a join has ended, or stands still (graph/operators/joins/build_first.py).

    Args:
        scheduler: which has its operators, and isn't started.
        spec: of the processing element.
        numbers: {operator: its number in the scheduler}.
    """
    by_name = {operator.name: operator for operator in spec.operators}
    for one in spec.waiting:
        port = input_number(by_name[one.join], one.port)
        scheduler.begin_after(numbers[one.source], numbers[one.join], port, STANDSTILL)


def shared_operators(
    operators: Sequence[OperatorSpec], natives: Mapping[str, _native.Operator], routed: Collection[Edge] = ()
) -> frozenset[str]:
    """Tells which operators whoever fills their queue runs, too, where it finds that full.

    Those that have a part of their own for that, and functions without state that alone give to one that has, and to
    nobody else (native_sched/src/engine/context/operator_parts.cpp).

    Args:
        operators: of a scheduler, upstream before downstream.
        natives: what they are there.
        routed: edges that lead elsewhere.
    """
    takers: dict[str, list[str]] = {operator.name: [] for operator in operators}
    for operator in operators:
        edges = [*operator.edges, *operator.loop_edges]
        for stream, end in edges:
            alone = len(edges) == 1 and Edge(stream, end) not in routed
            takers.setdefault(operator_of(stream), []).append(operator.name if alone else "")
    shared: set[str] = set()
    for operator in reversed(operators):
        native, taken = natives[operator.name], takers[operator.name]
        if native.has_part or (native.reentrant and len(taken) == 1 and taken[0] in shared):
            shared.add(operator.name)
    return frozenset(shared)


def connect_links(
    scheduler: _native.Scheduler, spec: PESpec, numbers: Mapping[str, int], links: Mapping[str, _native.Link]
) -> None:
    """Add the ends of the links that enter and leave a processing element, and connect them.

    Args:
        scheduler: which has its operators, and isn't started.
        spec: of the processing element.
        numbers: {operator: its number in the scheduler}.
        links: by name.
    """
    by_name = {operator.name: operator for operator in spec.operators}
    for link in spec.links_in:
        port = input_number(by_name[link.target], link.input)
        schema = native_schema(by_name[link.target].inputs[port].schema)
        arriving = scheduler.add(_native.Operator.link_in(link.name, schema, links[link.name]))
        scheduler.connect(arriving, numbers[link.target], input_port=port)
    for link in spec.links_out:
        port = output_number(by_name[link.source], link.output)
        schema = native_schema(by_name[link.source].outputs[port].schema)
        leaving = scheduler.add(_native.Operator.link_out(link.name, schema, links[link.name]))
        scheduler.connect(numbers[link.source], leaving, output_port=port)


def output_number(operator: OperatorSpec, port: str) -> int:
    """Return the number of an output port in the scheduler."""
    return next(number for number, made in enumerate(operator.outputs) if made.name == port)


def input_number(operator: OperatorSpec, port: str) -> int:
    """Return the number of an input port in the scheduler."""
    return next(number for number, taken in enumerate(operator.inputs) if taken.name == port)
