"""The control loop of elastic stages: sample, observe, step, set the number of channels, journal (alarm thread, S01).

It runs beside the loop that adapts threads and queues (`adaptation_loop`). Each stage has its own controller; each gets
a fair share of the CPUs of the process (S10). Must not know the controllers' algorithms, and decides nothing.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from rayelastic.graph.operators.channels import Channels, Governor, channel_heads, channel_operators
from rayelastic.plan.settings.elasticity import Algorithm
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Controller
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.policy.stage.channel_width import ChannelWidthElasticity
from rayelastic.policy.stage.peak_rate import PeakRateElasticity
from rayelastic.policy.stage.shared_cpus import SharedCpus
from rayelastic.runtime.loops.adaptation_loop import cpu_seconds
from rayelastic.runtime.loops.periodic_loop import PeriodicLoop
from rayelastic.runtime.values.adaptation import Adaptation
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from rayelastic import _native

log = logging.getLogger(__name__)

KEPT_PASSES = 1_000  # of a stage, in memory


class Width(Protocol):
    """The number of channels of a stage that receive tuples: the native ChannelWidth."""

    active: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage whose number of channels changes.

    Args:
        name: The operator that distributes tuples.
        number: Its number in the scheduler.
        most: The number of existing channels.
        channels: For each channel, {operator that receives from it: its number in the scheduler}.
        inside: The numbers of all operators in its channels.
        width: The number of channels in use.
        controller: Decides on that.
        passes: The last passes: observation, decision and effect.
    """

    name: str
    number: int
    most: int
    channels: Sequence[Mapping[str, int]]
    width: Width
    controller: Controller
    inside: Sequence[int] = ()
    passes: deque[Adaptation] = field(default_factory=lambda: deque(maxlen=KEPT_PASSES))


def observe_stage(
    stage: Stage, before: _native.Sample, after: _native.Sample, seconds: float, at: float
) -> Observation:
    """Make an observation of two native samples.

    Its threads are channels, its throughput is tuples that enter (S04), its operators those in the channels in use. A
    channel that waits for the GIL wants a CPU; whose wait it was isn't known, so it counts by the CPUs that each has.
    """
    seconds = max(seconds, 1e-9)
    active = stage.width.active

    def rate(number: int) -> float:
        return (after.operators[number].tuples_in - before.operators[number].tuples_in) / seconds

    operators = []
    for channel in stage.channels[:active]:
        for name, number in channel.items():
            now = after.operators[number]
            fill = min(1.0, now.queued / now.queue_capacity) if now.queue_capacity else 0.0
            operators.append(OperatorObservation(name, ThreadingModel(now.model), False, rate(number), 0, fill))

    inside = stage.inside

    def spent(counter: str) -> float:
        return float(sum(getattr(after.operators[n], counter) - getattr(before.operators[n], counter) for n in inside))

    used = spent("cpu_seconds")
    ready = max(0.0, spent("inside_seconds") - spent("waited_seconds") - used)
    everything = cpu_seconds(after) - cpu_seconds(before)
    for_gil = (after.gil_wait_seconds - before.gil_wait_seconds) * used / everything if everything > 0 else 0.0
    return Observation(
        time=at,
        period=seconds,
        throughput=rate(stage.number),
        thread_count=active,
        maximum_threads=stage.most,
        operators=tuple(operators),
        own_cpu=used / seconds,
        waiting_cpu=(ready + for_gil) / seconds,
    )


class ChannelLoop(PeriodicLoop):
    """Adapts the stages of one scheduler once per period, until it is stopped.

    Args:
        sample: Returns the scheduler's counters.
        stages: The stages.
        period: Seconds between two decisions.
        cpus: Returns the CPUs that they share.
        pe: The PE, for journals.
        job: Its job, for the log.
        clock: Returns seconds.
    """

    def __init__(
        self,
        sample: Callable[[], _native.Sample],
        stages: Sequence[Stage],
        period: float,
        *,
        cpus: Callable[[], int],
        pe: str,
        job: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(f"channels-{pe}")
        self.stages = tuple(stages)
        self._sample = sample
        self._period = period
        self._cpus = cpus
        self._shared = SharedCpus()
        self._pe = pe
        self._job = job
        self._clock = clock

    def run(self) -> None:
        """Adapt until stopped. A controller that raises ends the adaptation, not the job."""
        started = self._clock()
        before, since = self._sample(), started
        while not self._stopped.wait(self._period):
            after, now = self._sample(), self._clock()
            if self._still:
                before, since = after, now
                continue
            try:
                self.step(before, after, now - since, at=now - started)
            except Exception:
                log.exception("the stages of %s aren't adapted any more", self._pe)
                return
            before, since = after, now

    def step(self, before: _native.Sample, after: _native.Sample, seconds: float, *, at: float) -> None:
        """Make one pass over all stages on two samples."""
        running = {stage.name: stage for stage in self.stages if not after.operators[stage.number].final}
        alone = {name: observe_stage(stage, before, after, seconds, at) for name, stage in running.items()}
        for name, seen in self._shared.step(self._cpus(), alone).items():
            stage = running[name]
            decision = stage.controller.step(seen)
            stage.width.active = decision.thread_count
            number = stage.passes[-1].number + 1 if stage.passes else 0
            stage.passes.append(Adaptation(f"{self._pe}/{stage.name}", number, seen, decision, stage.width.active))
            if decision.changes(seen):
                tell(
                    "adapted",
                    job=self._job,
                    pe=self._pe,
                    stage=stage.name,
                    channels=stage.width.active,
                    reason=decision.reason,
                    reasons=[reason.as_dict() for reason in decision.reasons],
                    rule=decision.rule,
                )


def channel_loop(
    spec: PESpec,
    sample: Callable[[], _native.Sample],
    ids: Mapping[str, int],
    widths: Mapping[str, Width],
    cpus: Callable[[], int],
) -> ChannelLoop | None:
    """Return the loop of a PE's elastic stages; None if it has none, or elasticity is off.

    Args:
        spec: The PE.
        sample: Returns its scheduler's counters.
        ids: {operator: its number in the scheduler}.
        widths: The widths of its stages.
        cpus: Returns the CPUs that the PE may use.
    """
    if Algorithm(spec.config.elasticity.algorithm) is Algorithm.OFF:
        return None
    operators = {operator.name: operator for operator in spec.operators}
    stages = []
    for name, channels in channel_heads(operators).items():
        body = operators[name].body
        assert isinstance(body, Channels)
        numbers = [{head: ids[head] for head in heads} for heads in channels]
        inside = [ids[one] for one in channel_operators(operators, channels)]
        stages.append(Stage(name, ids[name], body.most, numbers, widths[name], _controller(body.governor), inside))
    if not stages:
        return None
    return ChannelLoop(sample, stages, spec.config.elasticity.thread_period, cpus=cpus, pe=spec.pe, job=spec.job)


def _controller(governor: Governor) -> Controller:
    return PeakRateElasticity() if governor is Governor.PEAK_RATE else ChannelWidthElasticity()
