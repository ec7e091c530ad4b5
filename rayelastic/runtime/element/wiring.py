"""Connects the ports of a scheduler for the edges of the graph, and links for those that leave or enter it."""

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

STANDSTILL = 10.0  # seconds without tuples from the side that is read first: it may wait for the other


def connect_operators(
    scheduler: _native.Scheduler,
    operators: Sequence[OperatorSpec],
    numbers: Mapping[str, int],
    routed: Collection[Edge] = (),
) -> None:
    """Connect the operators of a scheduler with each other.

    Args:
        scheduler: A scheduler with them that isn't started.
        operators: The operators.
        numbers: {operator: its number in the scheduler}.
        routed: Edges that routers connect.
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
    """Start sources when one side of a join has ended, or stands still (graph/operators/joins/build_first.py).

    Args:
        scheduler: A scheduler with its operators that isn't started.
        spec: The PE.
        numbers: {operator: its number in the scheduler}.
    """
    by_name = {operator.name: operator for operator in spec.operators}
    for waiting in spec.waiting:
        port = input_number(by_name[waiting.join], waiting.port)
        scheduler.begin_after(numbers[waiting.source], numbers[waiting.join], port, STANDSTILL)


def shared_operators(
    operators: Sequence[OperatorSpec], natives: Mapping[str, _native.Operator], routed: Collection[Edge] = ()
) -> frozenset[str]:
    """Find the operators that a producer runs, too, when it finds their queue full.

    These are operators with mergeable parts, and stateless functions whose only consumer is such an operator
    (native_sched/src/engine/context/operator_parts.cpp).

    Args:
        operators: A scheduler's operators, upstream before downstream.
        natives: Their native operators.
        routed: Edges that lead elsewhere.
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
    """Add the ends of the links that enter and leave a PE, and connect them.

    Args:
        scheduler: A scheduler with its operators that isn't started.
        spec: The PE.
        numbers: {operator: its number in the scheduler}.
        links: Links by name.
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
    return next(number for number, output in enumerate(operator.outputs) if output.name == port)


def input_number(operator: OperatorSpec, port: str) -> int:
    """Return the number of an input port in the scheduler."""
    return next(number for number, taken in enumerate(operator.inputs) if taken.name == port)
