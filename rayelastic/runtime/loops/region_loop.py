"""The coordinator's loop: sample all PEs, observe, step, change the plan, journal (architecture 1).

The policy decides, the performer changes the plan; this is only the clock between them. The policy requests only
changes that are possible on a live job (`Actuation`), and the next observation has what is in force.
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

SHORT = 0.5  # of a period: the length of each of the first ones
EARLY = 4  # short periods, so that a load at the start is answered soon
ADVICE = "advice: JobConfig(regions='advise') leaves it to job.change and job.rescale"

_log = logging.getLogger(__name__)


class Policy(Protocol):
    """Decides on the plan of the next period."""

    def step(self, seen: PlanObservation) -> AdaptationDecision:
        """Observe one period and return the plan for the next one, with the reason."""
        ...


class RegionLoop(PeriodicLoop):
    """Adapts the plan of one job to its load, once per period, until it is stopped.

    Args:
        policy: Decides.
        sample: Returns the counters of every PE.
        plan: Returns the plan in force.
        change: Changes to another plan and returns the one in force then.
        nodes: Returns the nodes that may be used.
        period: Seconds between two decisions.
        early: The number of first periods that are half as long; the very first, in which all starts, has no decision.
        request: Requests so many additional CPUs; 0: none any more.
        prepare: Prepares a process for a likely growth, on a node; empty: on any.
        journal: Records each pass.
        advises: Whether decisions are only reported.
        learned: Called after each decision: what paid off may be saved for later runs.
        clock: Returns seconds.
        bounds: Returns the bounds of replicas of regions whose bounds depend on the time; None: none do.
        age: Returns seconds since the start of the job, for reports; by default since that of the loop.
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
            None  # requested CPUs, of those that there were: requested again once some arrived
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
        """Return the length of the next period in seconds."""
        return self._period * (SHORT if self._number < self._early else 1.0)

    def run(self) -> None:
        """Adapt until stopped. A policy that raises ends the adaptation, not the job."""
        started = self._clock()
        age = self._age or (lambda: self._clock() - started)
        plan, before = self._plan(), self._sample()
        while not self._stopped.wait(self.due):
            after = self._sample()
            if self._still or self._plan() is not plan:  # the period spans two plans, or the loop is paused
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
        here = {node.name for node in nodes}  # the watcher handles an element on a lost node
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
                plan, problem = self._plan(), f"{error}"
            seconds = self._clock() - began
            rate, emitted = (carried - _made(before)) / max(seen.period, 1e-9), _made(self._sample())
            done = emitted - carried if emitted >= carried else emitted  # new elements count from 0
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
            here = self._plan().nodes  # where Ray placed it
            plan = self._change(step.with_nodes({**step.nodes, **{pe: here[pe] for pe in here.keys() & step.pes}}))
        return plan

    def _ask_for(self, decision: AdaptationDecision, nodes: tuple[Node, ...]) -> None:
        """Ask the autoscaler for the CPUs that the job lacks, once per request."""
        lacking = math.ceil(decision.request.cpus) if decision.request is not None else 0
        request = lacking, sum(node.cpus for node in nodes) if lacking else 0.0
        if request == self._requested:
            return
        try:
            self._request(lacking)
        except Exception:  # an error of Ray, whose store may be restarting: the next pass tries again
            _log.warning("%d CPUs more can't be asked for", lacking, exc_info=True)
        else:
            self._requested = request


def _made(samples: Mapping[str, PESample]) -> int:
    """Return the number of tuples that sources, the operators without input, have emitted."""
    return sum(o.tuples_out for sample in samples.values() for o in sample.operators if o.tuples_in == 0)
