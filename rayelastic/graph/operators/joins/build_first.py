"""Which sources wait until one side of a join has ended: that side is built first, and it alone has to be kept.

A join of all pairs emits the same tuples in any order of arrival, so waiting saves memory and decides nothing. A
source waits before it begins: no tuple of it is under way, so checkpoints and changes of the plan don't wait with it.

Nobody waits where that could be for ever: both sides come from one source; the side that is built has no end; it feeds
an operator that waits for tuples of another stream; its source waits itself for the one that would wait. Sources that
are fed from outside don't wait either: whoever feeds them may need the room to feed the other side. Then both sides
are kept. What nobody can see here is a function that waits for the other side by itself, a pipe, or a service: so a
source waits only as long as anything moves upstream of the side that is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rayelastic.graph.operators.joins.by_key import Join, JoinKind
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec
from rayelastic.graph.spec.order import topological_order
from rayelastic.graph.spec.ports import InputPort, operator_of

__all__ = ["Waiting", "sources_that_wait"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A source that begins when an input port of a join has ended.

    Args:
        source: its name.
        join: the operator.
        port: the input port of the side that is built first.
    """

    source: str
    join: str
    port: str


def sources_that_wait(operators: Mapping[str, OperatorSpec]) -> tuple[Waiting, ...]:
    """Find the sources that wait.

    Args:
        operators: all of a topology, by name.
    """
    origins: dict[str, frozenset[str]] = {}  # by operator: the sources that it gets tuples of
    for name in topological_order(operators):
        spec = operators[name]
        ports = [_origins(port, origins) for port in spec.inputs]
        origins[name] = frozenset((name,)) if spec.kind is OperatorKind.SOURCE else frozenset().union(*ports)
    demanding = [origins[spec.name] for spec in operators.values() if any(port.demand for port in spec.inputs)]
    unfit = frozenset().union(*demanding) | {name for name, spec in operators.items() if _is_endless(spec)}
    fed = {name for name, spec in operators.items() if getattr(spec.body, "is_fed", False)}
    behind: dict[str, set[str]] = {}  # by source: those that it waits for
    found: list[Waiting] = []
    for spec in operators.values():
        if not isinstance(spec.body, Join) or spec.body.kind is not JoinKind.PAIRS:
            continue
        left, right = spec.inputs
        for built, probing in ((right, left), (left, right)):
            first = _origins(built, origins)
            waits = _origins(probing, origins) - first
            if waits and not first & unfit and not waits & fed and not _reached(first, behind) & waits:
                found += [Waiting(source, spec.name, built.name) for source in sorted(waits)]
                for source in waits:
                    behind.setdefault(source, set()).update(first)
                break
    return tuple(found)


def _origins(port: InputPort, origins: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*(origins[operator_of(stream)] for stream in port.streams))


def _is_endless(spec: OperatorSpec) -> bool:
    return bool(getattr(spec.body, "is_endless", False))


def _reached(sources: Iterable[str], behind: Mapping[str, set[str]]) -> set[str]:
    """The sources, all that they wait for, and so on."""
    found: set[str] = set()
    rest = list(sources)
    while rest:
        source = rest.pop()
        if source not in found:
            found.add(source)
            rest += behind.get(source, ())
    return found
