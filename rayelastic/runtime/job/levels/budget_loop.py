"""The coordinator's loop over hosts: measures each element's CPU use, computes fair shares, and sets changed ones.

The policy decides (`CpuBudgets`); each element keeps its budget by itself (`AdaptationLoop.budget`). A host with one
element of the job has no budgets. Elements learn which processes of their host belong to the job: they leave
no CPUs to the coordinator, nor to elements that start.
"""

from __future__ import annotations

import logging
import os
import socket
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
from rayelastic.runtime.rounds import call_all
from rayelastic.runtime.values.status import PEStatus, State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi
    from rayelastic.runtime.values.host_use import HostUse

log = logging.getLogger(__name__)

ANSWER_TIMEOUT = 3.0  # seconds: the next pass asks again


@dataclass(slots=True)
class _Host:
    budgets: CpuBudgets
    used: dict[str, float] = field(default_factory=dict)  # CPUs, in the last pass


class BudgetLoop(PeriodicLoop):
    """Shares out the CPUs of hosts with several elements of a job, once per period, until it is stopped.

    Args:
        job: The job's name, for the log.
        elements: Returns the state of each element, by id.
        element: Returns an element, for calls of so many seconds at most.
        period: Seconds between two passes.
        clock: Returns seconds.
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
        self._counted: dict[str, tuple[HostUse, float]] = {}  # with the time of the report

    def start(self) -> None:
        """Start its thread, unless no element needs it yet, or it has been started; cheap to repeat.

        An element needs it that shares its host, has a budget, or has a process of its own, or one that isn't known.
        """
        elements = self._elements().values()
        if self._thread is None and (
            len(elements) > 1 or any(s.budget is not None or s.pid != os.getpid() for s in elements)
        ):
            super().start()

    def run(self) -> None:
        """Run until stopped. A policy that raises ends the loop, not the job."""
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
        for node, elements_there in by_host.items():
            if len(elements_there) > 1 or any(status.budget is not None for status in elements_there.values()):
                self._share(node, elements_there)
            elif any(status.pid != os.getpid() for status in elements_there.values()):
                for pe in elements_there:
                    self._tell(node, pe, elements_there)

    def _share(self, node: str, there: Mapping[str, PEStatus]) -> None:
        budgets = {pe: status.budget for pe, status in there.items() if status.budget is not None}
        if budgets and node not in self._hosts:  # set by the previous coordinator
            cpus = min(budget.of for budget in budgets.values())
            self._hosts[node] = _Host(CpuBudgets(cpus, given={pe: budget.cpus for pe, budget in budgets.items()}))
        uses = call_all({pe: pe for pe in there}, lambda pe: self._tell(node, pe, there))
        answers = {pe: answer for pe, answer in uses.items() if answer is not None}
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
        call_all({pe: pe for pe in answers}, lambda pe: self._tell(node, pe, there))

    def _tell(self, node: str, pe: str, there: Mapping[str, PEStatus]) -> HostUse | None:
        """Send an element its budget and return what it has used so far; None: it doesn't answer."""
        if self._stopped.is_set():
            return None
        try:
            return self._element(pe, ANSWER_TIMEOUT).share_host(self._budget(node, pe, there), self._kin(node, pe))
        except (PELostError, StateError, TimeoutError):  # its watcher reports a loss
            return None

    def _since_last(self, pe: str, use: HostUse) -> tuple[float, float]:
        """Return the CPUs that an element used since the last pass, and those that its process waited for."""
        now = self._clock()
        before, then = self._counted.get(pe, (use, now - self._period))
        self._counted[pe] = use, now
        if use.cpu_seconds < before.cpu_seconds:  # it has been restarted
            return 0.0, 0.0
        seconds = max(now - then, 1e-9)
        waited = max(0.0, use.waited_seconds - before.waited_seconds)  # the time of ended threads is lost
        return (use.cpu_seconds - before.cpu_seconds) / seconds, waited / seconds

    def _kin(self, node: str, pe: str) -> tuple[int, ...]:
        """Return the other processes of the job on an element's host whose use its budget doesn't account for."""
        elements, host = self._elements(), self._hosts.get(node)
        budgeted = host.budgets.given if host is not None else {}
        siblings = budgeted if pe in budgeted else {}
        found = {s.pid for name, s in elements.items() if s.node == node and s.pid and name not in siblings}
        if socket.gethostname() == node:
            found.add(os.getpid())
        own = {elements[pe].pid} if pe in elements else set()
        return tuple(sorted(found - own - {elements[name].pid for name in siblings if name in elements}))

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
    """Return the loop over the hosts of a job; None if its elements don't adapt their threads.

    Args:
        job: The job's name.
        config: Its configuration.
        elements: Returns the state of each element, by id.
        element: Returns an element, for calls of so many seconds at most.
    """
    if config.threads.count is not None or Algorithm(config.elasticity.algorithm) is not Algorithm.MULTI_LEVEL:
        return None
    return BudgetLoop(job, elements, element, config.elasticity.thread_period)
