"""Regions of a graph: Joker section 3.2 (checklist J09, J10).

A region is the longest sequence of compatible operators. The rules, in the paper's order:

1. A source is a region of its own, excluded from optimisation.
2. Operators of a region have at most one predecessor and successor in the graph. A branch ends a region, and so does a
   union. Each consumer of a branching stream starts its own.
3. A data-parallel region holds only stateless and partitioned stateful operators, and at least one of the latter.
4. The key fields of its first partitioned operator are the region's keys. Those of later partitioned operators must
   contain them; input schemas of stateless operators must contain them (same name and same type).
5. What remains is combined by rule 2 into regions that can only be split into pipelines.

An operator with several partitioned input ports, such as a join by key, has several predecessors, and so is the first
of its region. Tuples of each port are distributed by that port's keys.

Beyond the paper, the operators of a loop are one region, which isn't parallelised. The operator that distributes tuples
to the channels of an elastic stage forms such a region, too, with the first operator of each channel.

Also beyond the paper, neighbouring stateless functions and classes outside the other regions are a region of their own,
anywhere in the graph. Any replica may take any of its tuples. They are distributed in one place (``ExecPlan.united``),
and the outputs of the replicas are merged in the order in which the tuples were distributed, unless one of the region
has ``ordered=False``. One with ``ordered='key'`` counts as partitioned, though it has no state. The first step of an
aggregate in two steps is such a function. It belongs to no region whose tuples are distributed by its keys.

A join of a stream without keys with rules (a cross join by arrival) begins such a region, too. The functions downstream
belong to it, and each replica has all rules.

An operator that is known to remember something outside its state, such as a global set, is in no region that has
replicas.

Within a chain the search goes downstream from the source, so early regions get as much as they can. Stateless operators
upstream of the first partitioned operator belong to its region if they and all between have its keys.

In the paper, tuples are distributed by their keys at the start of a region. It assumes that keys pass unchanged through
the functions up to the region's last partitioned operator. Here this has to be known (``OperatorBody.keeps_keys``). A
function that may emit another key than it received stays outside the region, upstream of its first partitioned
operator. After that operator, no further partitioned one follows such a function in the region.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

from rayelastic.graph.operators.channels import channel_heads, ordered_channels
from rayelastic.graph.spec.loops import loops
from rayelastic.graph.spec.operator_spec import OperatorSpec, Ordered, StateKind
from rayelastic.graph.spec.order import Graph, consumers, runs_anywhere, topological_order
from rayelastic.plan.one_replica import consumed_streams, why_by_key, why_in_turn, why_whole
from rayelastic.reasons import Code, Reason


class RegionKind(Enum):
    """How a region can be parallelised."""

    SOURCE = "source"  # not at all
    DATA_PARALLEL = "data-parallel"  # into pipelines and into replicas by key
    STATELESS = "stateless"  # into pipelines and into replicas that take turns
    PIPELINE = "pipeline"  # into pipelines only
    LOOP = "loop"  # not at all: what goes round stays in one PE
    STAGE = "elastic stage"  # it does that itself, in one PE

    @property
    def is_fixed(self) -> bool:
        """Whether it can't be parallelised at all."""
        return self in (RegionKind.SOURCE, RegionKind.LOOP, RegionKind.STAGE)

    @property
    def is_replicable(self) -> bool:
        """Whether it can have several replicas."""
        return self in (RegionKind.DATA_PARALLEL, RegionKind.STATELESS)

    @property
    def leaves_from_one_place(self) -> bool:
        """Whether its output leaves from one PE, however many replicas it has."""
        return self is not RegionKind.DATA_PARALLEL


@dataclass(frozen=True, slots=True)
class Region:
    """Operators that are parallelised together.

    Args:
        name: 'r0', 'r1', ... in topological order.
        kind: how it can be parallelised.
        operators: names, in the order in which tuples pass them.
        keys: fields by which tuples go to replicas; empty unless data-parallel.
        token_bound: operators that need the Python token, so that replicas pay as processes only.
        further_keys: {further input port of its first operator: fields that are the keys there}.
        fixed: {operator: why it keeps the region at one replica}; empty: only the kind may.
        any_order: whether tuples may overtake each other in replicas that take turns.
    """

    name: str
    kind: RegionKind
    operators: tuple[str, ...]
    keys: tuple[str, ...] = ()
    token_bound: tuple[str, ...] = ()
    further_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    fixed: Mapping[str, Reason] = field(default_factory=dict, hash=False)
    any_order: bool = False

    def why_fixed(self, operator: str = "") -> Reason | None:
        """Return why the region keeps one replica, of one of its operators if that is a reason; None: it needn't."""
        if self.kind.is_fixed:
            return Code.KIND_HAS_ONE(kind=self.kind.value)
        return self.fixed.get(operator) or next(iter(self.fixed.values()), None)

    @property
    def shares_state(self) -> bool:
        """Whether a replica that gets tuples needs something of those that had them: their keys, or the rules."""
        return self.kind is RegionKind.DATA_PARALLEL or bool(self.further_keys)

    def keys_at(self, port: str) -> tuple[str, ...]:
        """Return the fields by which tuples of an input port of its first operator go to replicas."""
        return self.further_keys.get(port, self.keys)

    def is_in_turn_at(self, port: str) -> bool:
        """Tell whether its replicas take turns at tuples of an input port of its first operator."""
        return self.kind is RegionKind.STATELESS and port not in self.further_keys

    def to_dict(self) -> dict[str, Any]:
        """Return the region, without its operators, as plain dicts, lists and strings."""
        further = {port: list(keys) for port, keys in self.further_keys.items()}
        return (
            {
                "name": self.name,
                "kind": self.kind.value,
                "keys": list(self.keys),
                "token_bound": list(self.token_bound),
                "fixed": {name: why.as_dict() for name, why in self.fixed.items()},
            }
            | ({"further_keys": further} if further else {})
            | ({"any_order": True} if self.any_order else {})
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], operators: tuple[str, ...]) -> Self:
        """Return the region with these operators from the result of `to_dict`."""
        return cls(
            values["name"],
            RegionKind(values["kind"]),
            operators,
            tuple(values["keys"]),
            tuple(values["token_bound"]),
            {port: tuple(keys) for port, keys in values.get("further_keys", {}).items()},
            {name: Reason.from_dict(why) for name, why in values.get("fixed", {}).items()},
            values.get("any_order", False),
        )


def regions(graph: Graph) -> tuple[Region, ...]:
    """Form the regions of a graph, in topological order; the same graph always has the same regions.

    Args:
        graph: a topology.

    Raises:
        GraphError: the graph has a cycle, or an input that doesn't exist.
    """
    operators = graph.operators
    order = topological_order(operators)
    kept = {name: head for head, members in loops(operators).items() for name in members}
    kinds = dict.fromkeys(kept.values(), RegionKind.LOOP)
    for dealer, channels in channel_heads(operators).items():
        members = {dealer, *(name for channel in channels for name in channel)}
        if not members & kept.keys():
            kept.update(dict.fromkeys(members, dealer))
            kinds[dealer] = RegionKind.STAGE
    parts = [(kind, [operators[name] for name in order if kept.get(name) == head]) for head, kind in kinds.items()]
    for chain in _chains(operators, order, kept):
        if chain[0].is_source:
            cut = [(RegionKind.SOURCE, chain)]
        else:
            cut = _split(chain)
        parts += cut
    rank = {name: i for i, name in enumerate(order)}
    parts.sort(key=lambda part: rank[part[1][0].name])
    consumed, in_channels = consumed_streams(operators), ordered_channels(operators, order)
    return tuple(_region(f"r{i}", kind, members, in_channels, consumed) for i, (kind, members) in enumerate(parts))


def _chains(operators: Mapping[str, OperatorSpec], order: list[str], kept: Container[str]) -> list[list[OperatorSpec]]:
    """Cut the graph at sources, branches and unions: rules 1 and 2; without operators that are kept together."""
    downstream = consumers(operators)
    chain_of: dict[str, list[OperatorSpec]] = {}
    found: list[list[OperatorSpec]] = []
    for name in order:
        if name in kept:
            continue
        spec = operators[name]
        upstream = spec.upstream[0] if len(spec.upstream) == 1 else None
        joins = (
            upstream is not None
            and upstream not in kept
            and len(downstream[upstream]) == 1
            and not operators[upstream].is_source
        )
        if upstream is not None and joins:
            chain = chain_of[upstream]
        else:
            chain = []
            found.append(chain)
        chain.append(spec)
        chain_of[name] = chain
    return found


def _rest(chain: list[OperatorSpec]) -> list[tuple[RegionKind, list[OperatorSpec]]]:
    """Cut what has no keys: functions without state whose replicas take turns, and others."""
    parts: list[tuple[RegionKind, list[OperatorSpec]]] = []
    for spec in chain:
        free = runs_anywhere(spec) or (spec is chain[0] and _takes_rules(spec))
        kind = RegionKind.STATELESS if free else RegionKind.PIPELINE
        if parts and parts[-1][0] is kind:
            parts[-1][1].append(spec)
        else:
            parts.append((kind, [spec]))
    return parts


def _takes_rules(spec: OperatorSpec) -> bool:
    return spec.body.takes_rules and not (spec.keys or spec.remembers)


def _split(chain: list[OperatorSpec]) -> list[tuple[RegionKind, list[OperatorSpec]]]:
    """Cut a chain into data-parallel regions and the rest: rules 3 to 5."""
    found: list[tuple[RegionKind, list[OperatorSpec]]] = []
    rest_from = at = 0
    while at < len(chain):
        if not chain[at].replicas_share_keys or chain[at].remembers:
            at += 1
            continue
        first = chain[at]
        start, end = at, at + 1
        while (
            start > rest_from
            and len(first.inputs) == 1
            and _fits(chain[start - 1], first)
            and chain[start - 1].body.keeps_keys(first.keys)
        ):
            start -= 1
        known = True
        while end < len(chain) and _fits(chain[end], first):
            known = known and chain[end - 1].body.keeps_keys(first.keys)
            if not known and chain[end].replicas_share_keys:
                break
            end += 1
        if start > rest_from:
            found += _rest(chain[rest_from:start])
        found.append((RegionKind.DATA_PARALLEL, chain[start:end]))
        rest_from = at = end
    if rest_from < len(chain):
        found += _rest(chain[rest_from:])
    return found


def _fits(spec: OperatorSpec, first: OperatorSpec) -> bool:
    """Tell whether an operator can share a data-parallel region with its first partitioned one: rule 4."""
    if spec.state_kind is StateKind.STATEFUL or spec.input_schema is None or first.input_schema is None:
        return False
    if spec.remembers:  # a replica would have only a part of that
        return False
    if len(spec.inputs) > 1:  # what comes by another port wasn't dealt out with the rest
        return False
    if spec.replicas_share_keys and not set(first.keys) <= set(spec.keys):
        return False
    for key in first.keys:
        here, there = spec.input_schema.find(key), first.input_schema.find(key)
        if here is None or there is None or here.format != there.format:
            return False
    return True


def _region(
    name: str,
    kind: RegionKind,
    members: list[OperatorSpec],
    in_channels: frozenset[str],
    consumed: frozenset[str],
) -> Region:
    names = tuple(m.name for m in members)
    token_bound = tuple(m.name for m in members if m.lane.needs_python)
    if not kind.is_replicable:
        fixed = {} if kind.is_fixed else {m.name: why_whole(m) for m in members}
        return Region(name, kind, names, token_bound=token_bound, fixed=fixed)
    keys = next((m.keys for m in members if m.replicas_share_keys), ())
    if kind is RegionKind.STATELESS:
        fixed = why_in_turn(members, in_channels, consumed)
    else:
        fixed = why_by_key(members, in_channels, consumed, keys)
    further = {p.name: p.keys for p in members[0].inputs[1:]}
    any_order = kind is RegionKind.STATELESS and any(m.ordered is Ordered.ANY for m in members)
    return Region(name, kind, names, keys, token_bound, further, fixed, any_order)
