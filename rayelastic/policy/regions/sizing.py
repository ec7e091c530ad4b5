"""Which shape each region needs for what the sources offer: from true rates to wanted shapes (J32; DS2).

Pure: what is known comes in, wanted shapes come out. Whether and when to change is not decided here, nor where replicas
run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rayelastic.plan.exec_plan import ExecPlan, RegionPlan
from rayelastic.plan.hash_ring import MAX_REPLICAS
from rayelastic.plan.node_placement import Node
from rayelastic.policy.regions.actions import NodeRequest
from rayelastic.policy.regions.actuation import Actuation
from rayelastic.policy.regions.learning import Known
from rayelastic.policy.regions.model import RegionModel, Shape, affordable, demands, shape_of, shapes, widest
from rayelastic.policy.regions.thresholds import OrganicThresholds
from rayelastic.reasons import Code, Reason

__all__ = ["Sizing", "threads"]

TRIES = 2  # rejected shapes after which a region counts as one that doesn't get better
SURPLUS = 0.12  # of what can't be divided, that the busiest replica has besides: all that more replicas can take away
MUCH = 0.3  # of a region's load: from this share on its key is a reason
NEGLIGIBLE = 1e-3  # relative, and CPUs


@dataclass(frozen=True, slots=True)
class Sizing:
    """What the load asks for, worked out once per period.

    Args:
        plan: in force.
        models: of the regions of which something is known.
        offered: tuples/s of all sources.
        carried: tuples/s that they make.
        possible: of what is offered, tuples/s that can be carried by any plan on these nodes.
        need: tuples/s of each region for that.
        missing: CPUs that the nodes lack for more.
        replica_cpus: CPUs that each replica of each region was seen to use.
        replica_use: share of its time that each replica of each region had something to do, as it was seen.
        full_nodes: CPUs of the nodes whose replicas were seen to use more of them than may be: stragglers, or crowded.
        rejected: shapes that were tried in vain.
        thresholds: of the policy.
        can: what of the plan can be changed.
        guessed: whether what sources are offered is a guess.
        at_least: whether it is a lower bound, a few times what they make: nobody needs room on top of that.
    """

    plan: ExecPlan
    models: Mapping[str, RegionModel]
    offered: float
    carried: float
    possible: float
    need: Mapping[str, float]
    missing: float
    replica_cpus: Mapping[str, tuple[float, ...]]
    replica_use: Mapping[str, tuple[float, ...]]
    full_nodes: Mapping[str, float]
    rejected: Mapping[str, set[Shape]]
    thresholds: OrganicThresholds
    can: Actuation = Actuation()  # noqa: RUF009  (it is frozen)
    guessed: bool = False
    at_least: bool = False

    @classmethod
    def of(
        cls,
        plan: ExecPlan,
        known: Known,
        nodes: Sequence[Node],
        rejected: Mapping[str, set[Shape]],
        thresholds: OrganicThresholds,
        can: Actuation,
    ) -> Sizing:
        """Work it out.

        Args:
            plan: in force.
            known: averages of regions and sources.
            nodes: empty: one host without bounds.
            rejected: shapes that were tried in vain.
            thresholds: of the policy.
            can: what of the plan can be changed.
        """
        models, offered, replica_cpus = known.models(), known.offered, known.replica_cpus()
        most = {}
        for planned in plan.regions:
            model = models.get(planned.region.name)
            if model is not None:
                most[planned.region.name] = _most(model, planned, rejected, thresholds, can, guessed=known.guesses)
        cpus = sum(node.cpus for node in nodes) * thresholds.busy if nodes else float("inf")
        rates = affordable(plan, models, known.sized_for, most)
        need = demands(plan, models, rates)
        busy = sum(need[name] * model.cpu(shape_of(plan.region(name))) for name, model in models.items())
        share = min(1.0, cpus / busy) if busy > 0 else 1.0
        return cls(
            plan,
            models,
            sum(offered.values()),
            known.carried,
            sum(rates.values()) * share,
            {name: rate * share for name, rate in need.items()},
            max(0.0, busy - cpus),
            replica_cpus,
            known.replica_use(),
            _full_nodes(plan, known.pe_cpus(), nodes, thresholds.grow_above),
            rejected,
            thresholds,
            can,
            known.guesses,
            known.at_least,
        )

    def allowed(self, region: str, *, guessed: bool) -> int:
        """Return how many replicas a region may have, for a load that is a guess or not."""
        planned, model = self.plan.region(region), self.models[region]
        return replicas_allowed(planned, model, self.thresholds, self.can, guessed=guessed)

    @property
    def sized(self) -> list[RegionPlan]:
        """The regions that can be parallelised and of which something is known."""
        return [p for p in self.plan.regions if not p.region.kind.is_fixed and p.region.name in self.models]

    @property
    def held_back(self) -> bool:
        """Whether sources make less than they are offered."""
        return self.carried < self.thresholds.carried * self.offered

    @property
    def hot(self) -> list[Reason]:
        """What keeps short regions from gaining by more replicas."""
        return [
            reason
            for name in (planned.region.name for planned in self.short())
            if _useful(self.models[name].hot) < self.thresholds.max_replicas
            for reason in self._limits(name)
        ]

    @property
    def named(self) -> list[Reason]:
        """The keys that have much of the load of short regions."""
        models = [(planned.region.name, self.models[planned.region.name]) for planned in self.short()]
        return [_hot_key(name, model) for name, model in models if model.key and model.hot >= MUCH]

    def _limits(self, region: str) -> Iterator[Reason]:
        model, aggregate = self.models[region], self.can.in_steps.get(region)
        yield _hot_key(region, model) if model.key else Code.INDIVISIBLE(region=region, share=model.hot)
        yield Code.REPLICAS_LIMIT(replicas=_useful(model.hot))
        if aggregate:
            yield Code.TWO_STEPS(aggregate=aggregate)

    @property
    def request(self) -> NodeRequest | None:
        """The machines that are missing."""
        if self.missing <= NEGLIGIBLE:
            return None
        return NodeRequest(Code.CPUS_MISSING(cpus=self.missing), self.missing)

    def use(self, region: str) -> float:
        """Return the utilisation that a region would have in its present shape."""
        capacity = self.models[region].capacity(shape_of(self.plan.region(region)))
        return self.need[region] / capacity if capacity > 0 else 0.0

    def short(self, *, stable: bool = False) -> list[RegionPlan]:
        """Return the regions that would be used more than may be; a stable job is left alone for longer."""
        most = self.thresholds.grow_stable_above if stable and not self.held_back else self.thresholds.grow_above
        return [p for p in self.sized if self.use(p.region.name) > most]

    @property
    def lacks_tokens_alone(self) -> bool:
        """Whether all regions that fall short run under the Python token: no thread or queue inside can help them."""
        short = self.short()
        return bool(short) and all(planned.region.token_bound for planned in short)

    def larger(self, *, stable: bool = False) -> dict[str, Shape]:
        """Return larger shapes for the regions that fall short, and for those near it: rather now than one by one."""
        t = self.thresholds
        found = {p.region.name: shape for p in self.short(stable=stable) if (shape := self._larger(p)) is not None}
        if not found:
            return found
        near = [p for p in self.sized if (t.aim + t.grow_above) / 2 <= self.use(p.region.name) <= t.grow_above]
        return found | {p.region.name: shape for p in near if (shape := self._larger(p)) is not None}

    def smaller(self) -> dict[str, Shape]:
        """Return smaller shapes for the regions that would have plenty of room even in them."""
        found: dict[str, Shape] = {}
        for planned in self.sized:
            name, now = planned.region.name, shape_of(planned)
            if planned.threads == 1 or (planned.replicas > 1 and not self.can.replicates(planned)):
                continue
            roomy = self.need[name] / self.thresholds.shrink_below
            enough = next(shapes(self.models[name], now, roomy, planned.replicas, cut=self.thresholds.cuts), None)
            if enough is None or threads(enough) >= planned.threads:
                continue
            aimed = self.need[name] / self.thresholds.aim
            fewest, _ = self.can.bounds_of(name, self.thresholds.max_replicas)
            for cuts, replicas in shapes(self.models[name], now, aimed, planned.replicas, cut=self.thresholds.cuts):
                shape = cuts, max(replicas, fewest)
                if threads(shape) < planned.threads and shape not in self.rejected.get(name, ()):
                    found[name] = shape
                    break
        return found

    def out_of_bounds(self) -> dict[str, Shape]:
        """Return the shapes at their bounds of the regions that have fewer or more replicas than users want."""
        found: dict[str, Shape] = {}
        for planned in self.sized:
            name, (cuts, replicas) = planned.region.name, shape_of(planned)
            fewest, most = (min(bound, planned.partitions) for bound in self.can.bounds_of(name, replicas))
            if self.can.replicates(planned) and not fewest <= replicas <= most:
                found[name] = cuts, min(max(replicas, fewest), most)
        return found

    def gain(self, plan: ExecPlan) -> float:
        """Return what another plan promises: more throughput, or at least room for it."""
        room = 1.0
        for planned in self.sized:
            name = planned.region.name
            if self.need[name] > 0:
                room = min(room, self.models[name].capacity(shape_of(plan.region(name))) / self.need[name])
        promised = room * self.possible / self.carried - 1.0 if self.carried > 0 else 1.0
        return max(promised, self.thresholds.grow_above - self.thresholds.aim)

    def cpu_each(self, wanted: Mapping[str, Shape]) -> dict[str, float]:
        """Return the CPUs of one replica of each region, with the wanted shapes."""
        found = {}
        for name, model in self.models.items():
            shape = wanted.get(name) or shape_of(self.plan.region(name))
            found[name] = self.need[name] * model.cpu(shape) / shape[1]
        return found

    def token_use(self, plan: ExecPlan) -> dict[str, float]:
        """Return how much of a process's Python token would be used, of those that several replicas share."""
        use: dict[str, list[float]] = {}
        for planned in plan.regions:
            model = self.models.get(planned.region.name)
            if model is not None and planned.region.token_bound:
                for pe in planned.pipelines[0].pes:
                    use.setdefault(pe, []).append(self.need[planned.region.name] * model.token_time / planned.replicas)
        return {pe: sum(shares) for pe, shares in use.items() if len(shares) > 1}

    def crowded(self) -> bool:
        """Return whether replicas that could run elsewhere compete for an overloaded GIL."""
        crowded = {pe for pe, use in self.token_use(self.plan).items() if use > self.thresholds.grow_above}
        return any(p.region.token_bound and crowded & set(p.pipelines[0].pes) for p in self.sized)

    def _larger(self, planned: RegionPlan) -> Shape | None:
        """Return the best shape that carries the need at the utilisation to aim for and wasn't rejected."""
        name, now = planned.region.name, shape_of(planned)
        model, rejected = self.models[name], self.rejected.get(name, set())
        if len(rejected) >= TRIES:
            return None
        allowed = self.allowed(name, guessed=self.guessed)
        # A region that will be the limit can't be kept below full use.
        most = widest(model, now, allowed, cut=self.thresholds.cuts)
        aim = 1.0 if self.at_least else self.thresholds.aim
        if self.at_least and not self.missing and self.need[name] < (1.0 - NEGLIGIBLE) * most:
            aim += self.thresholds.throughput_gain  # a guess: no further replica by noise
        capacity = min(self.need[name] / aim, most) * (1.0 - NEGLIGIBLE)
        for shape in shapes(model, now, capacity, allowed, cut=self.thresholds.cuts):
            if shape not in rejected and model.capacity(shape) > model.capacity(now):
                return shape
        return None


def _hot_key(region: str, model: RegionModel) -> Reason:
    return Code.HOT_KEY(key=model.key, share=model.hot, region=region)


def _full_nodes(plan: ExecPlan, pe_cpus: Mapping[str, float], nodes: Sequence[Node], above: float) -> dict[str, float]:
    used: dict[str, float] = {}
    for pe, cpus in pe_cpus.items():
        node = plan.nodes.get(pe, "")
        used[node] = used.get(node, 0.0) + cpus
    return {node.name: node.cpus for node in nodes if used.get(node.name, 0.0) > above * node.cpus}


def threads(shape: Shape) -> int:
    """Return how many pipeline replicas a shape has."""
    return (len(shape[0]) + 1) * shape[1]


def replicas_allowed(
    planned: RegionPlan, model: RegionModel, thresholds: OrganicThresholds, can: Actuation, *, guessed: bool
) -> int:
    """Return how many replicas a region may have: what one key has of the load no further one takes from its owner.

    Nor is a guess of the load reason enough for very many at once: beyond Joker's most, twice as many as there are.
    """
    if not can.replicates(planned):
        return planned.replicas
    _, most = can.bounds_of(planned.region.name, thresholds.max_replicas)
    most = min(most, planned.partitions)
    if guessed:
        most = min(most, max(MAX_REPLICAS, 2 * planned.replicas))
    return int(max(min(most, _useful(model.hot)), planned.replicas))


def _useful(hot: float) -> float:
    """Return the replicas from which on the busiest one has little more than what can't be divided."""
    return math.ceil((1.0 - hot) / (SURPLUS * hot)) if hot > 0 else math.inf


def _most(
    model: RegionModel,
    planned: RegionPlan,
    rejected: Mapping[str, set[Shape]],
    thresholds: OrganicThresholds,
    can: Actuation,
    *,
    guessed: bool,
) -> float:
    if planned.region.kind.is_fixed or len(rejected.get(planned.region.name, ())) >= TRIES:
        return model.capacity(shape_of(planned))
    most = replicas_allowed(planned, model, thresholds, can, guessed=guessed)
    return widest(model, shape_of(planned), most, cut=thresholds.cuts)
