"""Why operators keep their region at one replica: the rules that the runtime adds to those of regions.py.

`explain()` shows the reasons before the start, `bottleneck()` and rejected changes while the job runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rayelastic.graph.spec.operator_spec import OperatorSpec, StateKind
from rayelastic.reasons import Code, Reason


def consumed_streams(operators: Mapping[str, OperatorSpec]) -> frozenset[str]:
    """Return the streams that have a consumer; side outputs need none."""
    return frozenset([stream for spec in operators.values() for port in spec.inputs for stream in port.streams])


def why_whole(spec: OperatorSpec) -> Reason:
    """Return why an operator without keys isn't replicated."""
    if spec.remembers:
        return Code.REMEMBERS(operator=spec.name, names=list(spec.remembers))
    if spec.body.orders_rules and not spec.keys:
        return Code.IN_ORDER_OF_TIMES(operator=spec.name)
    if not spec.outputs:
        return Code.ONE_SINK(operator=spec.name)
    if spec.state_kind is not StateKind.STATELESS:
        return (Code.OBJECT_MAY_CHANGE if spec.body.keeps_object else Code.WHOLE_STREAM)(operator=spec.name)
    if len(spec.inputs) > 1:
        return Code.SEVERAL_INPUTS(operators=[spec.name])
    if len(spec.outputs) > 1:
        return Code.SEVERAL_OUTPUTS(operators=[spec.name])
    return (Code.ACTS_AT_END if spec.body.ends else Code.WHOLE_STREAM)(operator=spec.name)


def why_in_turn(
    members: Sequence[OperatorSpec], in_channels: frozenset[str], consumed: frozenset[str]
) -> dict[str, Reason]:
    """Return {operator: why} of a region whose replicas would take turns; empty: it can have several."""
    if consumed.isdisjoint(members[-1].streams):
        return {members[-1].name: Code.NO_OUTPUT_USED()}
    return _why_routed(members, in_channels, consumed)


def why_by_key(
    members: Sequence[OperatorSpec],
    in_channels: frozenset[str],
    consumed: frozenset[str],
    keys: tuple[str, ...],
) -> dict[str, Reason]:
    """Return {operator: why} of a region whose replicas would share keys; empty: it can have several."""
    keyed = [m for m in members if m.replicas_share_keys]
    if not keys:
        return _named(keyed, Code.ONE_GROUP())
    others = [m for m in keyed if m.keys != keys]
    return _why_routed(members, in_channels, consumed) or _named(
        others, Code.OTHER_KEYS(operators=[m.name for m in others])
    )


def _why_routed(
    members: Sequence[OperatorSpec], in_channels: frozenset[str], consumed: frozenset[str]
) -> dict[str, Reason]:
    several = [m for m in members if len(m.inputs) != 1]
    if several not in ([], members[:1]) or not all(m.body.routes_inputs for m in several):
        return _named(several, Code.SEVERAL_INPUTS(operators=[m.name for m in several]))
    branching = [m for m in members if (len(m.outputs) > 1 and consumed & {*m.streams[1:]}) or m.loop_edges]
    if branching:
        return _named(branching, Code.SEVERAL_OUTPUTS(operators=[m.name for m in branching]))
    return _named(members, Code.IN_A_CHANNEL()) if members[0].name in in_channels else {}


def _named(members: Iterable[OperatorSpec], why: Reason) -> dict[str, Reason]:
    return {member.name: why for member in members}
