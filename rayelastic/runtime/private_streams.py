"""Streams of Python objects that never leave their process: from one Python function to others in the same element.

Objects are pickled there, too, so that no two operators share one, but without the job's seal: its MAC protects bytes
from other processes. A stream is private if all its consumers are Python functions of the same element that are
connected directly. So no link, no router, no state and no checkpoint ever has its bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rayelastic.compile import OperatorCode
from rayelastic.graph.spec.dead_letters import OnError

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec


def private_streams(operators: Sequence[OperatorSpec], leaving: Collection[str] = ()) -> frozenset[str]:
    """Find the streams of objects that never leave their process.

    Args:
        operators: The operators of a PE.
        leaving: Streams that go, or may go, to another one as well.
    """
    takers: dict[str, list[OperatorSpec]] = {}
    for spec in operators:
        for stream, _ in (*spec.edges, *spec.loop_edges):
            takers.setdefault(stream, []).append(spec)
    streams = (spec.streams[0] for spec in operators if _gives(spec))
    return frozenset(
        stream for stream in streams if stream in takers and stream not in leaving and all(map(_takes, takers[stream]))
    )


def with_private_streams(operators: Sequence[OperatorSpec], private: frozenset[str]) -> tuple[OperatorSpec, ...]:
    """Return operators whose private streams carry objects without their seal.

    Args:
        operators: The operators of a PE.
        private: The streams.
    """
    return tuple(_with_private(spec, private) for spec in operators)


def _with_private(spec: OperatorSpec, private: frozenset[str]) -> OperatorSpec:
    takes = any(stream in private for stream, _ in spec.edges)
    gives = any(stream in private for stream in spec.streams)
    code = spec.body
    if isinstance(code, OperatorCode):
        source = code.input_schema.within_process() if takes else code.input_schema
        target = code.output_schema.within_process() if gives else code.output_schema
        return replace(spec, body=replace(code, input_schema=source, output_schema=target))
    if not gives:
        return spec
    return replace(spec, outputs=tuple(replace(port, schema=port.schema.within_process()) for port in spec.outputs))


def _gives(spec: OperatorSpec) -> bool:
    """Return whether an operator pickles Python's results, for one stream of objects."""
    if len(spec.outputs) != 1 or not spec.outputs[0].schema.holds_objects:
        return False
    return _passes(spec)


def _takes(spec: OperatorSpec) -> bool:
    """Return whether an operator unpickles the tuples of one stream for Python, and forwards no bytes."""
    return len(spec.edges) == 1 and not spec.loop_edges and _passes(spec)


def _passes(spec: OperatorSpec) -> bool:
    return spec.body.passes_objects and spec.on_error is OnError.FAIL
