"""The edges of a graph: consumers of each operator, a topological order, and checks of the whole graph."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Protocol

from rayelastic.errors import ErrorCode, GraphError, NotShippableError
from rayelastic.graph.spec.operator_spec import OperatorSpec, StateKind
from rayelastic.graph.spec.ports import OUT, operator_of, port_of, stream_name


class Graph(Protocol):
    """The part of a topology that a plan needs."""

    @property
    def name(self) -> str:
        """The topology's name."""
        ...

    @property
    def operators(self) -> Mapping[str, OperatorSpec]:
        """The operators by name, in declared order."""
        ...


def runs_anywhere(spec: OperatorSpec) -> bool:
    """Return whether any replica may run an operator on any tuple: a stateless function with one output."""
    free = spec.state_kind is StateKind.STATELESS and not spec.remembers
    return spec.body.takes_turns and free and not spec.replicas_share_keys and len(spec.outputs) == 1


def memory_of(spec: OperatorSpec) -> str:
    """Describe the known changes that an operator makes outside its state; empty: none."""
    names = ", ".join(f"`{name}`" for name in spec.remembers)
    return f"remembers {names} outside its state" if names else ""


def consumers(operators: Mapping[str, OperatorSpec]) -> dict[str, list[str]]:
    """List for each operator its consumers, one for each edge, in declared order, without feedback.

    Raises:
        GraphError: An operator's input comes from an operator or port that doesn't exist.
    """
    consumers_of: dict[str, list[str]] = {name: [] for name in operators}
    for spec in operators.values():
        streams = [stream for port in spec.inputs for stream in (*port.streams, *port.feedback)]
        for stream in streams:
            if not _exists(stream, operators):
                what = "stream" if operator_of(stream) in consumers_of else "operator"
                raise GraphError(
                    f"its input '{stream}' is no {what} of the topology",
                    operator=spec.name,
                    location=spec.location,
                    hint="Build the graph through the streams of one Topology",
                    code=ErrorCode.OTHER_TOPOLOGY,
                )
        for upstream in spec.upstream:
            consumers_of[upstream].append(spec.name)
    return consumers_of


def _exists(stream: str, operators: Mapping[str, OperatorSpec]) -> bool:
    spec = operators.get(operator_of(stream))
    return spec is not None and any(port.name == port_of(stream, OUT) for port in spec.outputs)


def topological_order(operators: Mapping[str, OperatorSpec]) -> list[str]:
    """Order the operators so that each follows its inputs; if several may come next, in declared order.

    Raises:
        GraphError: There is a cycle; the message names its operators.
    """
    downstream = consumers(operators)
    rank = {name: i for i, name in enumerate(operators)}
    names = list(operators)
    waiting = {name: len(spec.upstream) for name, spec in operators.items()}
    ready = [rank[name] for name, missing in waiting.items() if not missing]
    order: list[str] = []
    while ready:
        name = names[heapq.heappop(ready)]
        order.append(name)
        for consumer in downstream[name]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                heapq.heappush(ready, rank[consumer])
    if len(order) < len(names):
        cycle = _cycle(operators, {name for name, missing in waiting.items() if missing})
        spec = operators[cycle[0]]
        raise GraphError(
            f"its output returns to its own input: {' -> '.join([*cycle, cycle[0]])}",
            operator=spec.name,
            location=spec.location,
            hint="Cut the cycle: streams may branch and unite, and return through topology.feedback(...) only",
            code=ErrorCode.CYCLE,
        )
    return order


def _cycle(operators: Mapping[str, OperatorSpec], stuck: set[str]) -> list[str]:
    """Find one cycle among operators that each have an input among them; in flow order."""
    seen: dict[str, int] = {}
    path: list[str] = []
    name = next(n for n in operators if n in stuck)
    while name not in seen:
        seen[name] = len(path)
        path.append(name)
        name = next(i for i in operators[name].upstream if i in stuck)
    return path[seen[name] :][::-1]


def check_taken(operators: Mapping[str, OperatorSpec]) -> None:
    """Raise GraphError if a stream that needs a consumer has none."""
    taken = {s for spec in operators.values() for s, _ in (*spec.edges, *spec.loop_edges)}
    for spec in operators.values():
        for port in spec.outputs:
            if stream_name(spec.name, port.name) not in taken and not port.optional:
                what = "output" if len(spec.outputs) == 1 else f"output port '{port.name}'"
                raise GraphError(
                    f"its {what} has no sink",
                    operator=spec.name,
                    location=spec.location,
                    hint="End it with .sink(...), such as rel.count(), or leave the operator out",
                    code=ErrorCode.NO_SINK,
                )


def check_shippable(specs: Iterable[OperatorSpec]) -> None:
    """Raise NotShippableError if something can't be pickled; the message names operator and object."""
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
            hint="Create what its function needs inside the function, or pass plain values",
        ) from error
