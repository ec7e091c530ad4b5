"""A change of plan on trial: the state before it, and the gain that it needs to be kept (Joker 4.3). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.policy.regions.actions import AdaptationAction
from rayelastic.policy.regions.model import Shape
from rayelastic.policy.regions.parting import Parting
from rayelastic.policy.regions.thresholds import OrganicThresholds

__all__ = ["Carried", "Fewer", "Trial"]

LEAST_OF_PARTING = 1 / 3  # of the gain that it promises, from which on a parting of operators is kept
FAR_LESS = 2 / 3  # of the gain that more replicas promise, below which fewer of them may well do as much


@dataclass(frozen=True, slots=True)
class Carried:
    """Rates that a job reaches.

    Args:
        sources: tuples/s that sources make; if they have just started, more than the operators downstream take.
        offered: tuples/s that they would make without back-pressure.
        passed: {region: tuples/s that its last operator takes}.
        stands: whether sources are blocked on output and make nothing, so that the offered rate is unknown.
    """

    sources: float
    offered: float
    passed: Mapping[str, float]
    stands: bool = False

    @property
    def share(self) -> float:
        """Of what is offered."""
        return self.sources / self.offered if self.offered > 0 else float(not self.stands)


@dataclass(frozen=True, slots=True)
class Fewer:
    """Fewer replicas that may carry as much: what more of them promised didn't come, as CPUs were waited for.

    Args:
        shapes: of the regions, half way between too few replicas and those that carry it.
        too_few: {region: replicas that carry less}.
        enough: tuples/s that they have to carry.
    """

    shapes: Mapping[str, Shape]
    too_few: Mapping[str, int]
    enough: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A change that is to be judged.

    Args:
        before: the plan that it changed.
        actions: that changed it.
        shapes: of the regions that change.
        carried: when it was decided.
        gain: expected, relative.
        grows: whether it takes more threads or processes.
        relieved: nodes that it takes work from.
        parting: it, if operators go to a process of their own or back.
        shared: regions whose partitions move.
        fewer: it, if it tries whether fewer replicas carry as much.
    """

    before: ExecPlan
    actions: tuple[AdaptationAction, ...]
    shapes: Mapping[str, Shape]
    carried: Carried
    gain: float
    grows: bool
    relieved: tuple[str, ...] = ()
    parting: Parting | None = None
    shared: tuple[str, ...] = ()
    fewer: Fewer | None = None

    def gained(self, now: Carried) -> float:
        """Return the relative gain. The load may have changed meanwhile: the better one of share and rate counts."""
        if self.carried.sources <= 0:
            return 0.0
        before = self.carried
        found = [now.share / before.share]
        if self.grows:
            found.append(now.sources / before.sources)
        names = {action.region for action in self.actions if before.passed.get(action.region, 0.0) > 0}
        passed = [now.passed.get(name, 0.0) / before.passed[name] for name in names]
        if self.grows and passed:  # soon after the start sources still fill queues: they made more than was passed on
            found.append(max(passed) if self.parting is not None else min(passed))
        return max(found) - 1.0

    def would_be_good(self, now: Carried, more: float, t: OrganicThresholds) -> bool:
        """Whether it is kept if so much more is carried, relative to what is now."""
        return (1.0 + self.gained(now)) * (1.0 + more) >= 1.0 + min(t.throughput_gain, self.gain / 2)

    def is_good(self, now: Carried, t: OrganicThresholds) -> bool:
        """Whether it is kept."""
        if self.fewer is not None:
            return now.sources >= self.fewer.enough or now.share >= t.carried  # the load may be less by now
        if not self.grows:
            return now.share >= t.carried * min(1.0, self.carried.share)
        enough = min(t.throughput_gain, self.gain / 2)
        if self.parting is not None:  # on a busy machine it may gain nothing, and it costs pauses
            enough = max(t.throughput_gain, self.gain * LEAST_OF_PARTING)
        return now.share >= t.carried or self.gained(now) >= enough

    def halved(self, now: Carried, t: OrganicThresholds, *, good: bool) -> Fewer | None:
        """Return replicas half way between too few and as many as carry it; None if nothing is to be tried.

        Args:
            now: what is carried; where that is all that is offered, a gain that didn't come is room.
            t: of the policy.
            good: whether it is kept.
        """
        if now.share >= t.carried:
            return None
        if self.fewer is None and (not good or not self.grows or self.gained(now) >= FAR_LESS * self.gain):
            return None
        too_few, shapes = dict(self.fewer.too_few) if self.fewer is not None else {}, {}
        for name, (cuts, replicas) in self.shapes.items():
            before = self.before.region(name).replicas
            few = too_few.setdefault(name, before) if good else replicas
            many = replicas if good else before
            if few < (half := (few + many) // 2) < many:
                shapes[name], too_few[name] = (cuts, half), few
        enough = self.fewer.enough if self.fewer is not None else now.sources
        return Fewer(shapes, too_few, enough) if shapes else None
