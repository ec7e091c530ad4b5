"""Which sources wait until one side of a join has ended: that side is built first, and only it has to be kept.

A join of all pairs emits the same tuples in any order of arrival, so waiting only saves memory. A source waits before
it starts: no tuple of it is in flight, so checkpoints and changes of the plan don't wait with it.

No source waits where that might never end. This is so if both sides come from one source or the built side is
unbounded. It is also so if the built side feeds an operator that waits for another stream, or if its source waits for
the other one. Sources that are fed from outside don't wait either: their client may need the room to feed the other
side. Then both sides are kept. A function, pipe or service that waits for the other side by itself can't be seen here.
So a source waits only while anything moves upstream of the built side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rayelastic.graph.operators.joins.by_key import Join, JoinKind
from rayelastic.graph.spec.operator_spec import OperatorSpec, SourceDescription
from rayelastic.graph.spec.order import topological_order
from rayelastic.graph.spec.ports import InputPort, operator_of


@dataclass(frozen=True, slots=True)
class Waiting:
    """A source that starts when an input port of a join has ended.

    Args:
        source: The source's name.
        join: The operator's name.
        port: The input port of the side that is built first.
    """

    source: str
    join: str
    port: str


def sources_that_wait(operators: Mapping[str, OperatorSpec]) -> tuple[Waiting, ...]:
    """Find the sources that wait.

    Args:
        operators: All operators of a topology, by name.
    """
    origins: dict[str, frozenset[str]] = {}  # by operator: the sources upstream
    for name in topological_order(operators):
        spec = operators[name]
        ports = [_origins(port, origins) for port in spec.inputs]
        origins[name] = frozenset((name,)) if spec.is_source else frozenset().union(*ports)
    demanding = [origins[spec.name] for spec in operators.values() if any(port.demand for port in spec.inputs)]
    unfit = frozenset().union(*demanding) | {name for name, spec in operators.items() if _is_endless(spec)}
    fed = {name for name, spec in operators.items() if isinstance(spec.body, SourceDescription) and spec.body.is_fed}
    behind: dict[str, set[str]] = {}  # by source: those that it waits for
    waiting: list[Waiting] = []
    for spec in operators.values():
        if not isinstance(spec.body, Join) or spec.body.kind is not JoinKind.PAIRS:
            continue
        left, right = spec.inputs
        for built, probing in ((right, left), (left, right)):
            first = _origins(built, origins)
            waits = _origins(probing, origins) - first
            if waits and not first & unfit and not waits & fed and not _reached(first, behind) & waits:
                waiting += [Waiting(source, spec.name, built.name) for source in sorted(waits)]
                for source in waits:
                    behind.setdefault(source, set()).update(first)
                break
    return tuple(waiting)


def _origins(port: InputPort, origins: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*(origins[operator_of(stream)] for stream in port.streams))


def _is_endless(spec: OperatorSpec) -> bool:
    return isinstance(spec.body, SourceDescription) and spec.body.is_endless


def _reached(sources: Iterable[str], behind: Mapping[str, set[str]]) -> set[str]:
    """Return the sources, all that they wait for, and so on."""
    reached: set[str] = set()
    rest = list(sources)
    while rest:
        source = rest.pop()
        if source not in reached:
            reached.add(source)
            rest += behind.get(source, ())
    return reached
