"""Changes of a job on a FakeCluster: what a coordinator does about them, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache

import rayelastic as rel
from rayelastic.errors import ChangeError, LinkError, PELostError
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.fusion import plan_topology
from rayelastic.plan.plan_change import PlanChange, plan_change
from rayelastic.runtime.journal import ChangeJournal
from rayelastic.runtime.rescale.performer import AdaptationPerformer
from rayelastic.runtime.values.region_counters import RegionCounters
from tests.unit.runtime.fake_cluster import FakeCluster

BATCH_BYTES = 200  # of the keys' 700: two batches or so for each replica
MOVE = ["hold", "flush", "copy", "commit", "forget", "route"]


class Died(BaseException):
    """A coordinator that is gone catches nothing."""


class MemoryStore:
    """Lines that outlive a coordinator."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.dies: Callable[[int, bool], bool] = lambda *_: False  # at a line, before and after it is written

    def lines(self) -> list[str]:
        return list(self.told)

    def append(self, line: str, *, alone: bool) -> None:
        number = len(self.told)
        if self.dies(number, False):
            raise Died
        self.told.append(line)
        if self.dies(number, True):
            raise Died

    def close(self) -> None: ...


@dataclass(frozen=True)
class Shape:
    """A change from so many replicas of a region to so many; the other region, if there is one, has some, too.

    With `also`, it gets so many in the same change.
    """

    region: str
    before: int
    after: int
    other: int = 0
    also: int = 0

    def __str__(self) -> str:
        beside = f", beside {self.other}" if self.other else ""
        also = f" to {self.also}" if self.also else ""
        return f"{self.region}: {self.before} to {self.after}{beside}{also}"


GROW, SHRINK = Shape("r1", 1, 2), Shape("r1", 2, 1)
SHAPES = [
    GROW,
    SHRINK,
    Shape("r1", 1, 3),
    Shape("r1", 3, 1),
    Shape("r1", 2, 3),
    Shape("r1", 1, 2, other=2),
    Shape("r1", 2, 1, other=2),
    Shape("r2", 1, 2, other=2),
    Shape("r2", 2, 1, other=2),
]


@cache
def declared(shape: Shape) -> tuple[PlanChange, Mapping[str, OperatorSpec]]:
    """The change, and the operators of the topology."""
    topology = rel.Topology("rescaled")
    rows = topology.source(rel.rows([(1, 1)], schema={"key": int, "group": int}), name="events")
    counted = rows.key_by("key").aggregate(name="count", n=rel.count())
    if shape.other:
        counted = counted.key_by("n").aggregate(name="watch", m=rel.count())
    counted.sink(rel.list(), name="out")
    plan = plan_topology(topology, rel.JobConfig(regions="manual"))
    other = "r2" if shape.region == "r1" else "r1"
    if shape.other:
        plan = plan.with_replicas(other, shape.other, ("pe0", *(f"pe1{n}" for n in range(1, shape.other))))
    plan = plan.with_replicas(shape.region, shape.before, [f"pe{n}" for n in range(shape.before)])
    wanted = plan.with_replicas(shape.region, shape.after, [f"pe{n}" for n in range(shape.after)])
    if shape.also:
        wanted = wanted.with_replicas(other, shape.also, ("pe0", *(f"pe1{n}" for n in range(1, shape.also))))
    return plan_change(plan, wanted), topology.operators


class Run:
    """A job whose region changes, and what a coordinator does about it."""

    def __init__(self, shape: Shape) -> None:
        self.change, operators = declared(shape)
        self.cluster = FakeCluster(self.change.old, operators)
        self.cluster.flow()
        self.cluster.settle()
        self.steps: list[str] = []
        self.store = MemoryStore()
        self.counters: dict[str, RegionCounters] = {}
        self.time = 0.0
        self.dies: Callable[[str], bool] = lambda _: False
        self.restart()
        self.journal.end(self.change.old)

    def restart(self) -> None:
        """Another coordinator takes over."""
        self.journal = ChangeJournal(self.store)
        self.performer = AdaptationPerformer(
            self.cluster,
            self.cluster.operators,
            self.journal,
            self.journal.started(),
            self._passing,
            counters=self.counters,
            clock=self._clock,
        )

    def perform(self) -> ExecPlan:
        """Does what a coordinator does: asks again where there was no answer, and knows the plan of what was undone."""
        try:
            return self.performer.perform(self.change)
        except TimeoutError:
            return self.performer.recover() or self.in_force
        except (ChangeError, LinkError):
            if self.journal.open_change is not None:  # it has neither been ended nor undone
                raise
            return self.in_force

    def recover(self) -> ExecPlan:
        """Goes on as another coordinator, which ends whatever isn't in the plan."""
        self.dies, self.store.dies = lambda _: False, lambda *_: False
        self.restart()
        plan = self.performer.recover() or self.in_force
        for pe in list(self.cluster.elements):
            if pe not in plan.pes:
                self.cluster.retire(pe)
        return plan

    @property
    def in_force(self) -> ExecPlan:
        assert self.journal.plan is not None
        return self.journal.plan

    def check(self, plan: ExecPlan) -> None:
        old, new = self.change.old, self.change.new
        assert plan in (old, replace(old, epoch=new.epoch), new)
        assert plan == self.in_force
        assert self.journal.open_change is None
        self.cluster.check(plan)

    def _passing(self, step: str) -> None:
        self.steps.append(step)
        self.cluster.flow()
        if self.dies(step):
            raise Died

    def _clock(self) -> float:
        self.time += 0.5
        return self.time


def nth(number: int) -> Callable[..., bool]:
    """True when it is called for the given time, from 0."""
    count = -1

    def is_now(*_: object) -> bool:
        nonlocal count
        count += 1
        return count == number

    return is_now


def length(shape: Shape) -> tuple[int, int, int]:
    """How many calls, steps and journal lines a change has."""
    run = Run(shape)
    lines = len(run.store.told)
    run.perform()
    return len(run.cluster.calls), len(run.steps), len(run.store.told) - lines


def at_line(number: int, written: bool) -> Callable[[int, bool], bool]:
    """A store dies there, before or after the line is written."""
    return lambda line, done: (line, done) == (number, written)


def refuses(run: Run, pe: str) -> None:
    raise LinkError(f"{pe} won't")


def is_silent(run: Run, pe: str) -> None:
    raise TimeoutError(f"{pe} doesn't answer")


def dies(run: Run, pe: str) -> None:
    run.cluster.lose(pe)
    raise PELostError(f"{pe} is gone")


def failing(
    shape: Shape, number: int, fails: Callable[[Run, str], None], *, done: bool, spared: Collection[str] = ()
) -> Run:
    """A change one of whose calls fails, from 0 and without those spared, whether it has been done then or not."""
    run = Run(shape)
    is_now = nth(number)

    def fault(pe: str, method: str) -> None:
        if method not in spared and is_now():
            fails(run, pe)

    setattr(run.cluster, "after" if done else "before", fault)
    return run


def doomed(shape: Shape) -> Run:
    """A change whose last copy but those of undoing is refused."""
    whole = Run(shape)
    whole.perform()
    run = Run(shape)
    is_now = nth(whole.steps.count("copy") - 1)

    def fault(pe: str, method: str) -> None:
        if method == "send_state" and is_now():
            refuses(run, pe)

    run.cluster.before = fault
    return run
