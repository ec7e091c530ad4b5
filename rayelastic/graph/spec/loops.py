"""Loops of operators, and how a feedback is closed (J08, P34); see ``Topology.feedback``.

The head of a loop is the operator that receives the feedback; every tuple enters the loop there. A loop ends when the
head's other inputs have ended and no tuple is left in it. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.ports import InputPort, operator_of


def fed_back(spec: OperatorSpec, placeholder: str, streams: tuple[str, ...]) -> OperatorSpec:
    """Return the operator with the streams instead of the placeholder of a feedback."""
    return replace(spec, inputs=tuple(_closed(port, placeholder, streams) for port in spec.inputs))


def _closed(port: InputPort, placeholder: str, streams: tuple[str, ...]) -> InputPort:
    if placeholder not in port.streams:
        return port
    others = tuple(stream for stream in port.streams if stream != placeholder)
    return replace(port, streams=others, feedback=port.feedback + streams)


def loops(operators: Mapping[str, OperatorSpec]) -> dict[str, tuple[str, ...]]:
    """Find the loops: {head: its operators, including the head, in declared order}."""
    heads = [spec for spec in operators.values() if spec.loop_edges]
    if not heads:
        return {}
    downstream: dict[str, list[str]] = {name: [] for name in operators}
    for spec in operators.values():
        for upstream in spec.upstream:
            downstream[upstream].append(spec.name)
    loops_by_head = {}
    for head in heads:
        below = _reach([head.name], lambda name: downstream[name])
        back = _reach([operator_of(s) for s, _ in head.loop_edges], lambda name: operators[name].upstream)
        loops_by_head[head.name] = tuple(name for name in operators if name in below and name in back)
    return loops_by_head


def check_loops(operators: Mapping[str, OperatorSpec]) -> None:
    """Check that the loops can run.

    Raises:
        GraphError: A loop without a path back or with a second entry, or with an operator that can't be in a loop.
    """
    found = loops(operators)
    for head, members in found.items():
        spec = operators[head]
        for stream, _ in spec.loop_edges:
            if operator_of(stream) not in members:
                _refuse(spec, f"'{stream}' comes back to it, but it doesn't feed that", "Take feedback inside the loop")
        if not spec.upstream:
            _refuse(spec, "only feedback reaches it", "Unite the feedback with a stream that enters the loop")
        for name in members:
            member = operators[name]
            if name != head and name in found:
                _refuse(member, f"it is the head of a loop inside the loop of '{head}'", "Make it one loop")
            if member.inputs[0].demand is not None:
                _refuse(member, f"it waits for all its ports inside the loop of '{head}'", "Take tuples as they come")
            if member.body.ends:
                _refuse(
                    member, f"it emits at the end, but the loop of '{head}' has ended by then", "Put it behind the loop"
                )
            outside = [up for up in member.upstream if up not in members]
            if name != head and outside:
                _refuse(
                    member, f"'{outside[0]}' leads into the loop of '{head}' elsewhere than at its head", "Unite there"
                )


def _reach(start: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    reached = set(start)
    left = list(reached)
    while left:
        for name in following(left.pop()):
            if name not in reached:
                reached.add(name)
                left.append(name)
    return reached


def _refuse(spec: OperatorSpec, problem: str, hint: str) -> None:
    raise GraphError(problem, operator=spec.name, location=spec.location, hint=hint, code=ErrorCode.BAD_LOOP)
