"""CPUs of one host for several elements of one job: fair shares, weighted by what each can use.

Nobody gets less than an equal part. What some don't use for long goes to those who use all that they have (max-min
fairness: D. Bertsekas, R. Gallager, Data Networks, 6.5.2). Decides for one host; must not know who measures, nor how
an element keeps to its part. As long as all of them together leave CPUs idle, nobody is bounded.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rayelastic.policy.element.observation import Observation

__all__ = ["BudgetThresholds", "CpuBudget", "CpuBudgets", "fair_levels", "within_budget"]


@dataclass(frozen=True, slots=True)
class BudgetThresholds:
    """Constants of the CPU budgets of the elements on a host.

    Args:
        full: share of the host's CPUs; if all elements together use or wait for more, each one gets a budget.
        confirm: passes in a row in which they have to use that much.
        content: share of an equal part; an element that uses no more has enough.
        patience: passes in a row in which it has to use no more; longer than any trial of its own takes.
        headroom: its budget then, as a multiple of the CPUs that it uses.
        change: CPUs by which a fair budget has to differ from the budget in force to replace it.
        change_share: the same as a share of the CPUs of the host, for large hosts.
    """

    full: float = 0.85
    confirm: int = 2
    content: float = 0.85
    patience: int = 12
    headroom: float = 1.25
    change: float = 0.75
    change_share: float = 0.1


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """What an element of several on one host may use of it.

    Args:
        cpus: that it may keep busy.
        of: CPUs of the host.
        siblings: CPUs that the other elements of its job there keep busy.
        one_process: whether any of these are in its own process.

    >>> CpuBudget(2, 8, 5.5).cpus
    2
    """

    cpus: int
    of: int
    siblings: float
    one_process: bool = False


def within_budget(seen: Observation, budget: CpuBudget) -> Observation:
    """Return an observation as if an element's budget were a host of its own.

    Sibling elements keep to their budgets, so their CPU use is left out. Of the CPUs that other processes use, the
    element bears a share in proportion to its budget.

    >>> seen = Observation(time=1, period=1, throughput=1.0, thread_count=4, maximum_threads=16, cpu_count=16,
    ...                    own_cpu=4.0, host_cpu=0.875)
    >>> part = within_budget(seen, CpuBudget(8, 16, siblings=6.0))
    >>> part.cpu_count, part.maximum_threads, part.host_cpu  # 4 of strangers, of which it bears 2
    (8, 8, 0.75)
    """
    strangers = max(0.0, seen.host_cpu * seen.cpu_count - seen.own_cpu - budget.siblings)
    cpus = max(1, seen.cpu_count - budget.of + budget.cpus)  # who sleeps has brought a CPU of its own
    return replace(
        seen,
        cpu_count=cpus,
        maximum_threads=min(seen.maximum_threads, max(seen.minimum_threads, cpus)),
        host_cpu=min(1.0, (seen.own_cpu + strangers * budget.cpus / budget.of) / cpus),
        budget=budget.cpus,
    )


def fair_levels(cpus: float, wanted: Mapping[str, float]) -> dict[str, float]:
    """Return max-min fair shares: all that is wanted, or an equal part of what those leave who want less.

    Args:
        cpus: to share.
        wanted: {element: CPUs that it can use}; infinite: as many as there are.

    >>> fair_levels(16, {"a": 2.0, "b": math.inf, "c": math.inf})
    {'a': 2.0, 'b': 7.0, 'c': 7.0}
    """
    levels: dict[str, float] = {}
    for name in sorted(wanted, key=lambda one: (wanted[one], one)):
        left = (cpus - math.fsum(levels.values())) / (len(wanted) - len(levels))
        levels[name] = min(wanted[name], left)
    return {name: levels[name] for name in wanted}


@dataclass(slots=True)
class CpuBudgets:
    """Shares out the CPUs of one host, pass by pass.

    Args:
        cpus: of the host.
        thresholds: its constants.
        given: what is in force already, as somebody else gave it.

    >>> budgets = CpuBudgets(8)
    >>> budgets.step({"a": 7.0, "b": 1.0}), budgets.step({"a": 7.0, "b": 1.0})
    ({}, {'a': 4, 'b': 4})
    """

    cpus: int
    thresholds: BudgetThresholds = field(default_factory=BudgetThresholds)
    given: dict[str, int] = field(default_factory=dict)
    _used: dict[str, deque[float]] = field(default_factory=dict)  # in the last passes
    _full: int = 0

    def step(self, used: Mapping[str, float], waiting: float = 0.0) -> dict[str, int]:
        """Take what each element kept busy in a pass and return what each may, in CPUs; empty: they aren't bounded.

        Args:
            used: {element: CPUs}, of those that there are.
            waiting: CPUs that threads of any of them were ready for, and others had.
        """
        self._take(used)
        if len(used) < 2:
            self.given, self._full = {}, 0
            return {}
        full = math.fsum(used.values()) + waiting >= self.thresholds.full * self.cpus
        self._full = self._full + 1 if full else 0
        if not self.given and self._full < self.thresholds.confirm:
            return {}
        part = self.cpus / len(used)
        levels = fair_levels(self.cpus, {name: self._wanted(name, part) for name in used})
        least = max(self.thresholds.change, self.thresholds.change_share * self.cpus)
        same = set(self.given) == set(used)
        for name, level in levels.items():
            fair = max(level, part)  # those who lend get it back as soon as they use it
            if not same or abs(fair - self.given[name]) >= least:
                self.given[name] = max(1, round(fair))
        self.given = {name: self.given[name] for name in used}
        return dict(self.given)

    def _take(self, used: Mapping[str, float]) -> None:
        for name in set(self._used) - set(used):
            del self._used[name]
        for name, cpus in used.items():
            self._used.setdefault(name, deque(maxlen=self.thresholds.patience)).append(cpus)

    def _wanted(self, name: str, part: float) -> float:
        """Return the CPUs that an element can use; as many as there are, while it isn't known."""
        most = max(self._used[name])
        if len(self._used[name]) < self.thresholds.patience or most >= self.thresholds.content * part:
            return math.inf
        return self.thresholds.headroom * most
