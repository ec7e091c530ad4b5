"""What an execution plan consists of, as immutable values, and what its drawings read of it.

Joker sections 3.2 and 3.3 (J13-J15). Must not know the plan as a whole, nor how it is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.graph.spec.ports import IN, OUT, endpoint, stream_name
from rayelastic.plan.hash_ring import PARTITIONS, HashRing, key_ranges
from rayelastic.plan.regions import Region, RegionKind


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Operators of one region that run together, once for each replica of the region.

    Args:
        operators: in the order in which tuples pass them.
        pes: the PE of each replica.
    """

    operators: tuple[str, ...]
    pes: tuple[str, ...]

    @property
    def pe(self) -> str:
        """The PE of the first replica."""
        return self.pes[0]


@dataclass(frozen=True, slots=True)
class RegionPlan:
    """A region and its degree of parallelism: pipelines x replicas.

    Args:
        region: what is parallelised.
        pipelines: in the order in which tuples pass them; all have the same number of replicas.
        shares: partitions of the keys that each replica has; empty: as many as every other.
        partitions: of its keys, the same in all plans of a job.
    """

    region: Region
    pipelines: tuple[Pipeline, ...]
    shares: tuple[int, ...] = ()
    partitions: int = PARTITIONS

    @property
    def replicas(self) -> int:
        """How many replicas of the region there are."""
        return len(self.pipelines[0].pes)

    @property
    def threads(self) -> int:
        """How many pipeline replicas there are; each keeps one thread busy at most (J13)."""
        return len(self.pipelines) * self.replicas

    @property
    def is_together(self) -> bool:
        """Whether each replica is in one PE, with all its pipelines."""
        return all(pipeline.pes == self.pipelines[0].pes for pipeline in self.pipelines)

    @property
    def cuts(self) -> tuple[str, ...]:
        """The operators that start a pipeline, but for the first."""
        return tuple(pipeline.operators[0] for pipeline in self.pipelines[1:])

    @property
    def ring(self) -> HashRing:
        """Which replica has which partition of the keys."""
        even = HashRing.of(self.replicas, self.partitions)
        return even.sharing(self.shares) if self.shares else even

    def foreign_keys(self, pe: str) -> tuple[tuple[int, int], ...]:
        """Return the hash ranges of the keys whose state only replicas in other PEs have.

        Replicas that take turns leave all state to the first of them; of the rules that each tuple needs, each has all.

        >>> region = Region("r0", RegionKind.DATA_PARALLEL, ("count",), ("word",))
        >>> plan = RegionPlan(region, (Pipeline(("count",), ("pe0", "pe1")),))
        >>> plan.foreign_keys("pe0")[0][1] + 1 == plan.foreign_keys("pe1")[0][0]
        True
        """
        if self.replicas == 1 or (self.region.further_keys and self.region.kind is RegionKind.STATELESS):
            return ()
        if self.region.kind is RegionKind.STATELESS:
            return ((0, 2**64 - 1),) if all(pipeline.pes[0] != pe for pipeline in self.pipelines) else ()
        pes = [{pipeline.pes[replica] for pipeline in self.pipelines} for replica in range(self.replicas)]
        others = (partition for partition, owner in enumerate(self.ring.owners) if pe not in pes[owner])
        return tuple(key_ranges(others, self.partitions))


def shared(planned: RegionPlan, shares: Sequence[int]) -> RegionPlan:
    """Return a region whose replicas have other numbers of partitions; see ExecPlan.with_shares.

    Raises:
        ConfigError: it has no keys, or they aren't all partitions, or a replica has none.
    """
    if shares and planned.region.kind is not RegionKind.DATA_PARALLEL:
        raise ConfigError(
            f"its region {planned.region.name} is {planned.region.kind.value}: it has no keys that could be shared",
            operator=planned.region.operators[0],
            hint="Replicas without keys take turns: who is slow gets fewer",
            code=ErrorCode.FIXED_REGION,
        )
    made = replace(planned, shares=tuple(shares))
    try:
        return replace(made, shares=made.ring.shares)
    except ValueError as error:
        raise ConfigError(
            f"region {planned.region.name}: {error}",
            operator=planned.region.operators[0],
            hint=f"Give each replica at least one, {planned.partitions} in all",
            code=ErrorCode.OUT_OF_RANGE,
        ) from None


@dataclass(frozen=True, slots=True)
class PlanLink:
    """A stream that leaves a PE.

    Args:
        source: the operator that emits it.
        target: the operator that takes it.
        from_pe: where a replica of the source runs.
        to_pe: where a replica of the target runs.
        further: whether it is another link of the same stream than the one between the first replicas.
        output: the port by which the stream leaves its operator.
        input: the port by which it enters the other.
    """

    source: str
    target: str
    from_pe: str
    to_pe: str
    further: bool = False
    output: str = OUT
    input: str = IN

    @property
    def name(self) -> str:
        """The name of the link, unique in the plan: 'words->counts', of further replicas 'words->counts@pe0>pe2'."""
        ends = f"@{self.from_pe}>{self.to_pe}" if self.further else ""
        return f"{self.stream}->{self.end}{ends}"

    @property
    def stream(self) -> str:
        """The name of its stream: 'words', or 'split/odd'."""
        return stream_name(self.source, self.output)

    @property
    def end(self) -> str:
        """Where it leads to: 'counts', or 'join/right'."""
        return endpoint(self.target, self.input)


@dataclass(frozen=True, slots=True)
class Placement:
    """A hint for whoever places PEs on nodes.

    Args:
        cpus: CPUs to count for each.
        spread: whether they are to go to different nodes where there are several.
    """

    cpus: float
    spread: bool


class ShownPlan(Protocol):
    """What the text and the picture of a plan read; `ExecPlan` says what each is."""

    @property
    def topology(self) -> str: ...  # noqa: D102

    @property
    def regions(self) -> tuple[RegionPlan, ...]: ...  # noqa: D102

    @property
    def edges(self) -> tuple[tuple[str, str], ...]: ...  # noqa: D102

    @property
    def placement(self) -> Placement: ...  # noqa: D102

    @property
    def nodes(self) -> Mapping[str, str]: ...  # noqa: D102

    @property
    def epoch(self) -> int: ...  # noqa: D102

    @property
    def pes(self) -> Mapping[str, tuple[str, ...]]: ...  # noqa: D102

    @property
    def links(self) -> tuple[PlanLink, ...]: ...  # noqa: D102
