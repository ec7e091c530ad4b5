"""Edges of the graph become connections between ports of a scheduler, and links those that leave or enter it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic import _native
from rayelastic.graph.ports import IN, OUT, operator_of, port_of
from rayelastic.runtime.native_schema import native_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rayelastic.graph.operator_spec import OperatorSpec
    from rayelastic.runtime.specs import PESpec


def connect_operators(
    scheduler: _native.Scheduler, operators: Sequence[OperatorSpec], numbers: Mapping[str, int]
) -> None:
    """Connects the operators of a scheduler with each other.

    Args:
        scheduler: which has them, and isn't started.
        operators: what they are.
        numbers: {operator: its number in the scheduler}.
    """
    by_name = {operator.name: operator for operator in operators}
    for operator in operators:
        for edges, feedback in ((operator.edges, False), (operator.loop_edges, True)):
            for stream, end in edges:
                origin = by_name.get(operator_of(stream))
                if origin is not None:
                    ports = _output(origin, port_of(stream, OUT)), _input(operator, port_of(end, IN))
                    scheduler.connect(numbers[origin.name], numbers[operator.name], *ports, feedback)


def connect_links(
    scheduler: _native.Scheduler, spec: PESpec, numbers: Mapping[str, int], links: Mapping[str, _native.Link]
) -> None:
    """Adds the ends of the links that enter and leave a processing element, and connects them.

    Args:
        scheduler: which has its operators, and isn't started.
        spec: of the processing element.
        numbers: {operator: its number in the scheduler}.
        links: by name.
    """
    by_name = {operator.name: operator for operator in spec.operators}
    for link in spec.links_in:
        port = _input(by_name[link.target], link.input)
        schema = native_schema(by_name[link.target].input_ports[port].schema)
        arriving = scheduler.add(_native.Operator.link_in(link.name, schema, links[link.name]))
        scheduler.connect(arriving, numbers[link.target], input_port=port)
    for link in spec.links_out:
        port = _output(by_name[link.source], link.output)
        schema = native_schema(by_name[link.source].output_ports[port].schema)
        leaving = scheduler.add(_native.Operator.link_out(link.name, schema, links[link.name]))
        scheduler.connect(numbers[link.source], leaving, output_port=port)


def _output(operator: OperatorSpec, port: str) -> int:
    return next(number for number, made in enumerate(operator.output_ports) if made.name == port)


def _input(operator: OperatorSpec, port: str) -> int:
    return next(number for number, taken in enumerate(operator.input_ports) if taken.name == port)
