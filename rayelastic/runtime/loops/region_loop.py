"""The coordinator's loop: sample all processing elements, observe, step, change the plan, journal (architecture 1).

The policy decides, the performer carries out; here is only the clock between them. The policy asks for nothing that
can't be carried out on a live job (`Actuation`), and the next observation tells what is in force.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from rayelastic.errors import RayelasticError
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_change import growth_steps
from rayelastic.policy.regions.actions import AdaptationDecision
from rayelastic.policy.regions.observation import PlanObservation
from rayelastic.runtime.loops.periodic_loop import PeriodicLoop
from rayelastic.runtime.loops.region_profile import observe_regions
from rayelastic.runtime.values.region_adaptation import RegionAdaptation, RegionJournal
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from rayelastic.plan.node_placement import Node
    from rayelastic.runtime.values.status import PESample

__all__ = ["EARLY", "RegionLoop"]

SHORT = 0.5  # of a period, that each of the first ones lasts
EARLY = 4  # periods that are short, so that a load that is there from the start is answered soon
ADVICE = "advice: JobConfig(regions='advise') leaves it to job.change and job.rescale"

_log = logging.getLogger(__name__)


class Policy(Protocol):
    """Decides on the plan of the next period."""

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        """Take one period and return the plan for the next one, with the reason."""
        ...


class RegionLoop(PeriodicLoop):
    """Adapts the plan of one job to its load, once a period, until it is stopped.

    Args:
        policy: who decides.
        sample: gives the counters of every processing element.
        plan: gives the plan in force.
        change: carries out another plan and gives the one in force then.
        nodes: gives what may be used.
        period: seconds between two decisions.
        early: how many of the first periods are half as long; no policy decides in the very first, as all begins then.
        request: asks for so many CPUs more than there are; 0: no longer.
        prepare: makes ready what a growth takes that may come soon, on a node; empty: on any.
        journal: where each pass is kept.
        advises: whether what is decided is told, and not done.
        learned: called after each decision: what paid may be kept for later runs.
        clock: seconds.
        bounds: gives the fewest and the most replicas of regions whose bounds depend on the time; None: none do.
        age: seconds since the start of the job, for what is told; since that of the loop if not given.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        sample: Callable[[], Mapping[str, PESample]],
        plan: Callable[[], ExecPlan],
        change: Callable[[ExecPlan], ExecPlan],
        nodes: Callable[[], tuple[Node, ...]],
        period: float,
        early: int = EARLY,
        request: Callable[[int], None] = lambda _: None,
        prepare: Callable[[str], None] = lambda _: None,
        journal: RegionJournal | None = None,
        advises: bool = False,
        learned: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        age: Callable[[], float] | None = None,
        bounds: Callable[[], Mapping[str, tuple[int, int]]] | None = None,
    ) -> None:
        super().__init__("adapt-regions")
        self._policy = policy
        self._sample = sample
        self._plan = plan
        self._change = change
        self._nodes = nodes
        self._period = period
        self._early = early
        self._request = request
        self._requested: tuple[int, float] | None = (
            None  # CPUs more, of those that there were: told anew once some came
        )
        self._prepare = prepare
        self.journal = journal or RegionJournal()
        self._advises = advises
        self._learned = learned
        self._clock = clock
        self._age = age
        self._bounds = bounds
        self._number = 0
        self._cost: float | None = None

    @property
    def due(self) -> float:
        """Seconds that the next period lasts."""
        return self._period * (SHORT if self._number < self._early else 1.0)

    def run(self) -> None:
        """Adapt until stopped. A policy that raises ends the adaptation, not the job."""
        started = self._clock()
        age = self._age or (lambda: self._clock() - started)
        plan, before = self._plan(), self._sample()
        while not self._stopped.wait(self.due):
            after = self._sample()
            if self._still or self._plan() is not plan:  # the period was of two plans, or isn't wanted
                plan, before = self._plan(), after
                continue
            try:
                self.step(before, after, at=age())
            except Exception:
                _log.exception("the adaptation of regions ends: its policy failed")
                return
            plan, before = self._plan(), self._sample()

    def step(self, before: Mapping[str, PESample], after: Mapping[str, PESample], *, at: float) -> RegionAdaptation:
        """Make one pass on two samples."""
        plan, nodes = self._plan(), self._nodes()
        here = {node.name for node in nodes}  # an element on a node that is gone is its watcher's affair
        shown = plan.with_nodes({pe: node for pe, node in plan.nodes.items() if node in here})
        seen = observe_regions(shown, before, after, at=at, nodes=nodes, cost=self._cost)
        if self._bounds is not None:
            seen = replace(seen, bounds=self._bounds())
        self._cost = None
        decision = self._policy.step(seen)
        self._learned()
        seconds, problem = 0.0, ""
        if self._advises:
            problem = ADVICE if decision.changes else ""
        else:
            self._ask_for(decision, nodes)
            if decision.grows_soon:
                self._prepare(decision.soon_on)
        if decision.changes and not self._advises:
            began, carried = self._clock(), _made(after)
            try:
                plan = self._carry_out(plan, decision.plan)
            except (RayelasticError, TimeoutError) as error:
                plan, problem = self._plan(), str(error)
            seconds = self._clock() - began
            rate, made = (carried - _made(before)) / max(seen.period, 1e-9), _made(self._sample())
            done = made - carried if made >= carried else made  # elements that are new count from 0
            missing = seconds - done / rate if rate > 0 else 0.0
            self._cost = max(0.0, missing)
        adaptation = RegionAdaptation(self._number, seen, decision, plan, seconds, problem)
        self.journal.add(adaptation)
        if adaptation.changed:
            tell("regions adapted", job=plan.topology, what=str(adaptation))
        self._number += 1
        return adaptation

    def _carry_out(self, plan: ExecPlan, wanted: ExecPlan) -> ExecPlan:
        """Change the plan, a growth by several elements in two steps; return the one in force then."""
        first, *rest = growth_steps(plan, wanted)
        plan = self._change(first)
        for step in rest:
            here = self._plan().nodes  # where Ray found a place for it
            plan = self._change(step.with_nodes({**step.nodes, **{pe: here[pe] for pe in here.keys() & step.pes}}))
        return plan

    def _ask_for(self, decision: AdaptationDecision, nodes: tuple[Node, ...]) -> None:
        """Tells whoever starts machines how many CPUs there should be, once per wish."""
        lacking = math.ceil(decision.request.cpus) if decision.request is not None else 0
        wish = lacking, sum(node.cpus for node in nodes) if lacking else 0.0
        if wish == self._requested:
            return
        try:
            self._request(lacking)
        except Exception:  # Ray's own, whose store may be starting again: the next pass asks once more
            _log.warning("%d CPUs more can't be asked for", lacking, exc_info=True)
        else:
            self._requested = wish


def _made(samples: Mapping[str, PESample]) -> int:
    """Return the tuples that sources have made: those that take nothing."""
    return sum(o.tuples_out for sample in samples.values() for o in sample.operators if o.tuples_in == 0)
