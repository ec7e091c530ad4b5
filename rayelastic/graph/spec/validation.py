"""Checks of a whole graph: every stream has a consumer, and everything can be sent to other processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rayelastic.errors import ErrorCode, GraphError, NotShippableError
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.ports import stream_name

__all__ = ["check_shippable", "check_taken"]


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
