"""The loop that shares out hosts, over elements that are counters: who doesn't answer, begins anew, comes and goes."""

from __future__ import annotations

import os
from typing import cast

import pytest

from rayelastic.errors import PELostError
from rayelastic.policy.element.cpu_budgets import CpuBudget
from rayelastic.runtime.element.api import ElementApi
from rayelastic.runtime.job.levels.budget_loop import BudgetLoop
from rayelastic.runtime.job.levels.job_loops import JobLoops
from rayelastic.runtime.values.host_use import HostUse
from rayelastic.runtime.values.status import PEStatus, State

CPUS = 8
pytestmark = pytest.mark.usefixtures("threads_run_here")


class Element:
    """Uses as many CPUs as it is told to."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.used, self.waits = 0.0, 0.0
        self.seconds, self.waited = 0.0, 0.0
        self.problem: Exception | None = None
        self.budget: CpuBudget | None = None
        self.kin: tuple[int, ...] = ()

    def share_host(self, budget: CpuBudget | None, kin: tuple[int, ...] = ()) -> HostUse:
        if self.problem is not None:
            raise self.problem
        self.budget, self.kin = budget, kin
        return HostUse(self.seconds, self.waited, CPUS)


class Hosts:
    """Elements by node, a clock, and the loop over them."""

    def __init__(self, **nodes: str) -> None:
        self.nodes = nodes
        self.elements = {pe: Element(pid) for pid, pe in enumerate(nodes)}
        self.now = 0.0
        self.loop = BudgetLoop("job", self.statuses, self.element, 1.0, lambda: self.now)

    def statuses(self) -> dict[str, PEStatus]:
        return {
            pe: PEStatus(pe, State.RUNNING, node=node, pid=self.elements[pe].pid, budget=self.elements[pe].budget)
            for pe, node in self.nodes.items()
        }

    def element(self, pe: str, timeout: float) -> ElementApi:
        assert timeout > 0
        return cast("ElementApi", self.elements[pe])

    def passes(self, count: int, **used: float) -> dict[str, int | None]:
        for pe, cpus in used.items():
            self.elements[pe].used = cpus
        for _ in range(count):
            self.now += 1.0
            for element in self.elements.values():
                element.seconds += element.used
                element.waited += element.waits
            self.loop.step()
        return {pe: one.budget.cpus if one.budget else None for pe, one in self.elements.items()}


def test_hosts_are_shared_out_each_by_itself() -> None:
    hosts = Hosts(a="one", b="one", c="two", d="three", e="three")
    assert hosts.passes(5, a=7.0, b=1.0, c=8.0, d=2.0, e=2.0) == {"a": 4, "b": 4, "c": None, "d": None, "e": None}
    assert hosts.elements["a"].budget == CpuBudget(4, CPUS, siblings=1.0)


def test_elements_learn_which_processes_of_their_host_belong_to_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """They give way neither to the coordinator nor to elements without a budget, whose use no budget accounts for."""
    monkeypatch.setattr("socket.gethostname", lambda: "one")
    hosts = Hosts(a="one", b="one", c="two")
    for number, element in enumerate(hosts.elements.values()):
        element.pid = 100 + number
    hosts.passes(1, a=1.0, b=1.0, c=1.0)
    kin = [set(element.kin) for element in hosts.elements.values()]
    assert kin == [{os.getpid(), 101}, {os.getpid(), 100}, set()]
    hosts.passes(5, a=7.0, b=7.0)
    assert [element.kin for element in hosts.elements.values()] == [(os.getpid(),), (os.getpid(),), ()]


def test_elements_of_one_process_wait_together() -> None:
    hosts = Hosts(a="one", b="one")
    for element in hosts.elements.values():
        element.pid, element.waits = 7, 2.5
    assert hosts.passes(6, a=2.0, b=2.0) == {"a": None, "b": None}, "2.5 wait, and not 5"
    for element in hosts.elements.values():
        element.waits = 4.0
    assert hosts.passes(3) == {"a": 4, "b": 4}
    budget = hosts.elements["a"].budget
    assert budget is not None
    assert budget.one_process


def test_who_does_not_answer_keeps_its_part_and_so_do_the_others() -> None:
    hosts = Hosts(a="one", b="one")
    hosts.passes(4, a=4.0, b=4.0)
    for problem in (TimeoutError(), PELostError("gone")):
        hosts.elements["b"].problem = problem
        assert hosts.passes(3) == {"a": 4, "b": 4}
    hosts.elements["b"].problem = None
    assert hosts.passes(3) == {"a": 4, "b": 4}


def test_one_that_is_started_anew_counts_from_nothing() -> None:
    hosts = Hosts(a="one", b="one")
    hosts.passes(4, a=4.0, b=4.0)
    hosts.elements["b"] = Element(9)
    assert hosts.passes(2, b=1.0) == {"a": 4, "b": 4}


def test_who_is_left_alone_is_no_longer_bounded() -> None:
    hosts = Hosts(a="one", b="one")
    assert hosts.passes(4, a=6.0, b=2.0) == {"a": 4, "b": 4}
    del hosts.nodes["b"]
    assert hosts.passes(1)["a"] is None


def test_the_next_coordinator_takes_over_what_was_given() -> None:
    hosts = Hosts(a="one", b="one")
    hosts.passes(4, a=4.0, b=4.0)
    hosts.loop = BudgetLoop("job", hosts.statuses, hosts.element, 1.0, lambda: hosts.now)
    assert hosts.passes(1, a=0.0, b=0.0) == {"a": 4, "b": 4}


def test_loops_of_a_job_that_is_over_make_no_further_pass() -> None:
    passes = []

    def statuses() -> dict[str, PEStatus]:
        passes.append(1)
        raise RuntimeError("this ends the loop, too")

    loop = BudgetLoop("job", statuses, Hosts().element, 1e-3)
    JobLoops(None, loop).halt()
    loop.run()
    assert not passes
