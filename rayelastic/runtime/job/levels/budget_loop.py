"""The loop of a coordinator over hosts: what each element there uses, what is fair, and a word to those who get another
part.

The policy decides (`CpuBudgets`), each element keeps to its part by itself (`AdaptationLoop.budget`). Hosts with one
element of the job are left alone.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rayelastic.errors import PELostError, StateError
from rayelastic.plan.config import JobConfig
from rayelastic.plan.settings.elasticity import Algorithm
from rayelastic.policy.element.cpu_budgets import CpuBudget, CpuBudgets
from rayelastic.runtime.loops.periodic_loop import PeriodicLoop
from rayelastic.runtime.values.status import PEStatus, State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.values.host_use import HostUse

__all__ = ["BudgetLoop", "budget_loop"]

log = logging.getLogger(__name__)

ANSWER_TIMEOUT = 3.0  # seconds: the next pass asks again


@dataclass(slots=True)
class _Host:
    budgets: CpuBudgets
    used: dict[str, float] = field(default_factory=dict)  # CPUs, in the last pass


class BudgetLoop(PeriodicLoop):
    """Shares out the CPUs of hosts with several elements of a job, once a period, until it is stopped.

    Args:
        job: its name, for the log.
        elements: gives the state of each element, by id.
        element: gives an element, for calls of so many seconds at most.
        period: seconds between two passes.
        clock: seconds.
    """

    def __init__(
        self,
        job: str,
        elements: Callable[[], Mapping[str, PEStatus]],
        element: Callable[[str, float], ElementApi],
        period: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("share-hosts")
        self._job = job
        self._elements = elements
        self._element = element
        self._period = period
        self._clock = clock
        self._hosts: dict[str, _Host] = {}
        self._counted: dict[str, tuple[HostUse, float]] = {}  # and when it was told

    def start(self) -> None:
        """Start its thread, unless there is nothing to share out yet or it has been started; cheap to repeat."""
        elements = self._elements()
        if self._thread is None and (len(elements) > 1 or any(one.budget is not None for one in elements.values())):
            super().start()

    def run(self) -> None:
        """Share out until stopped. A policy that raises ends that, not the job."""
        while not self._stopped.wait(self._period):
            if self._still:
                continue
            try:
                self.step()
            except Exception:
                log.exception("CPUs of %s are no longer shared out: the policy failed", self._job)
                return

    def step(self) -> None:
        """Make one pass over all hosts."""
        by_host: dict[str, dict[str, PEStatus]] = {}
        for pe, status in self._elements().items():
            if status.state is State.RUNNING and status.node:
                by_host.setdefault(status.node, {})[pe] = status
        for node in set(self._hosts) - set(by_host):
            del self._hosts[node]
        for node, there in by_host.items():
            if len(there) > 1 or any(status.budget is not None for status in there.values()):
                self._share(node, there)

    def _share(self, node: str, there: Mapping[str, PEStatus]) -> None:
        given = {pe: status.budget for pe, status in there.items() if status.budget is not None}
        if given and node not in self._hosts:  # by the coordinator before this one
            cpus = min(budget.of for budget in given.values())
            self._hosts[node] = _Host(CpuBudgets(cpus, given={pe: budget.cpus for pe, budget in given.items()}))
        told = {pe: self._tell(node, pe, there) for pe in there}
        answers = {pe: answer for pe, answer in told.items() if answer is not None}
        if not answers:
            return
        cpus = min(answer.cpus for answer in answers.values())
        host = self._hosts.setdefault(node, _Host(CpuBudgets(cpus)))
        waited: dict[int, float] = {}  # by process
        for pe in there:
            if pe in answers:
                host.used[pe], waited[there[pe].pid] = self._since_last(pe, answers[pe])
        host.used = {pe: host.used.get(pe, 0.0) for pe in there}
        before = dict(host.budgets.given)
        now = host.budgets.step(host.used, sum(waited.values()))
        if now == before:
            return
        tell("CPUs shared out", job=self._job, node=node, of=cpus, cpus=now)
        for pe in answers:
            self._tell(node, pe, there)

    def _tell(self, node: str, pe: str, there: Mapping[str, PEStatus]) -> HostUse | None:
        """Tell an element its part and return what it has used so far; None: it doesn't answer."""
        if self._stopped.is_set():
            return None
        try:
            return self._element(pe, ANSWER_TIMEOUT).share_host(self._budget(node, pe, there))
        except (PELostError, StateError, TimeoutError):  # its watcher reports a loss
            return None

    def _since_last(self, pe: str, use: HostUse) -> tuple[float, float]:
        """CPUs that an element used since it was asked last, and those that its process waited for."""
        now = self._clock()
        before, then = self._counted.get(pe, (use, now - self._period))
        self._counted[pe] = use, now
        if use.cpu_seconds < before.cpu_seconds:  # it has been started anew
            return 0.0, 0.0
        seconds = max(now - then, 1e-9)
        waited = max(0.0, use.waited_seconds - before.waited_seconds)  # threads that have ended take theirs along
        return (use.cpu_seconds - before.cpu_seconds) / seconds, waited / seconds

    def _budget(self, node: str, pe: str, there: Mapping[str, PEStatus]) -> CpuBudget | None:
        host = self._hosts.get(node)
        if host is None:
            return None
        budgets = host.budgets
        if pe not in budgets.given:
            return None
        siblings = sum(cpus for other, cpus in host.used.items() if other != pe)
        processes = Counter(status.pid for status in there.values())
        return CpuBudget(budgets.given[pe], budgets.cpus, siblings, processes[there[pe].pid] > 1)


def budget_loop(
    job: str,
    config: JobConfig,
    elements: Callable[[], Mapping[str, PEStatus]],
    element: Callable[[str, float], ElementApi],
) -> BudgetLoop | None:
    """Return the loop over the hosts of a job; None if its elements don't choose their threads by what they see.

    Args:
        job: its name.
        config: of the job.
        elements: gives the state of each element, by id.
        element: gives an element, for calls of so many seconds at most.
    """
    if config.threads.count is not None or Algorithm(config.elasticity.algorithm) is not Algorithm.MULTI_LEVEL:
        return None
    return BudgetLoop(job, elements, element, config.elasticity.thread_period)
