"""What an observation says about the load: whether it fills the PE, and what others take of the CPUs.

Must not know configurations or history.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from rayelastic.policy.element.observation import Observation
from rayelastic.policy.element.pieces import OperatorGraph
from rayelastic.reasons import Code, Reason

__all__ = ["LoadThresholds", "Saturation", "cpus_of_others", "saturation_of"]


@dataclass(frozen=True, slots=True)
class LoadThresholds:
    """Constants that classify the load.

    Args:
        busy: CPUs of one piece from which on it is a bottleneck; share of the threads from which on all are busy.
        blocked: share of time spent waiting for room in queues that only a full element has. Also the CPUs that own
            threads wait for, as a share of those that they have: from there on others compete.
        full_queue: fill of a queue that only a full element has; above ElasticLoadBalance's half (L04).
        token_wait: share of time spent waiting for the Python token that only a full element has.
        source_wait: share of time that the busiest source waits for input, from which on a demand is met.
        source_busy: the same; a source that waits less emits all that downstream operators take.
        idle: share of time that scheduler threads sleep for want of work, from which on a demand may be met.
        asleep: the same, from which on it surely is, if the sources rest as much.
        slack: CPUs kept busy by the busiest piece, and share of the threads that are, below which it surely is.
        headroom: share of threads that may be busy when their number follows the demand.
        other_cpu: CPUs of others that are not worth giving way to.
        other_share: the same as a share of all CPUs, for large machines.
        yielded: share of the CPUs that is left to others, at most.
        full_host: share of the CPUs of the host that are busy, from which on threads compete for them.
        confirm: periods in a row in which a sign has to stand before it is believed.
        capacity: share of the CPUs by which those left by others have to change.
        costlier: factor of a tuple's cost in one configuration that means another load, no effect of caches or clocks.
        costlier_elsewhere: the same between configurations, of which one may have eight threads on a core.
        doubts: standard deviations of that cost, by the number of samples, that it has to be at least.
    """

    busy: float = 0.85
    blocked: float = 0.05
    full_queue: float = 0.7
    token_wait: float = 0.2
    source_wait: float = 0.3
    source_busy: float = 0.1
    idle: float = 0.2
    asleep: float = 0.9
    slack: float = 0.7
    headroom: float = 0.75
    other_cpu: float = 0.4
    other_share: float = 0.05
    yielded: float = 0.5
    full_host: float = 0.95
    confirm: int = 2
    capacity: float = 0.1
    costlier: float = 1.5
    costlier_elsewhere: float = 5.0
    doubts: float = 4.0


class Saturation(Enum):
    """Whether more throughput could be had of the sources."""

    FULL = "full"
    UNSURE = "unsure"
    SLACK = "slack"


def saturation_of(
    observation: Observation, graph: OperatorGraph, thresholds: LoadThresholds
) -> tuple[Saturation, tuple[Reason, ...]]:
    """Return whether something in the PE holds the sources back, and what.

    Without a profile it is taken to be full, as the papers do.

    >>> seen = Observation(time=1, period=1, throughput=0.0, thread_count=4)
    >>> state, (reason,) = saturation_of(seen, OperatorGraph([]), LoadThresholds())
    >>> state.value, reason.code.name
    ('slack', 'NO_TUPLES')
    """
    if observation.throughput <= 0:
        return Saturation.SLACK, (Code.NO_TUPLES(),)
    if observation.idle >= thresholds.asleep and observation.own_cpu <= 1 - thresholds.asleep:
        return Saturation.SLACK, (Code.THREADS_IDLE(idle=observation.idle),)
    if observation.source_wait is not None and observation.source_wait >= thresholds.source_wait:
        return Saturation.SLACK, (Code.SOURCES_WAIT(wait=observation.source_wait),)
    if observation.source_wait is not None and observation.source_wait <= thresholds.source_busy:
        return Saturation.FULL, (Code.SOURCE_BUSY(wait=observation.source_wait),)
    samples = {operator.name: float(operator.samples) for operator in observation.operators}
    inside = math.fsum(samples.values())
    total = inside + observation.system_samples
    if inside <= 0 or observation.own_cpu <= 0:
        return Saturation.FULL, (Code.NO_PROFILE(),)
    fill = max(operator.queue_fill for operator in observation.operators)
    pieces = graph.piece_costs(samples, observation.queued)
    threads = len(graph.sources) + min(observation.thread_count, len(observation.queued))
    system = observation.system_samples / threads  # of pieces, nobody knows which
    heaviest = observation.own_cpu * (max(pieces.values()) + system) / total
    running = min(threads, observation.cpu_count)
    if fill >= thresholds.full_queue:
        return Saturation.FULL, (Code.QUEUE_FULL(fill=fill),)
    if observation.blocked >= thresholds.blocked:
        return Saturation.FULL, (Code.THREADS_BLOCKED(blocked=observation.blocked),)
    if observation.token_wait >= thresholds.token_wait:
        return Saturation.FULL, (Code.THREADS_WAIT_FOR_GIL(wait=observation.token_wait),)
    if heaviest >= thresholds.busy:
        return Saturation.FULL, (Code.THREAD_FULL(busy=min(1.0, heaviest)),)
    if observation.own_cpu >= thresholds.busy * running:
        return Saturation.FULL, (Code.CPUS_BUSY(busy=observation.own_cpu, cpus=running),)
    why = Code.PARTLY_BUSY(busy=observation.own_cpu, cpus=running, idle=observation.idle)
    at_rest = observation.idle >= thresholds.idle or not observation.queued
    if at_rest and max(heaviest, observation.own_cpu / running) < thresholds.slack:
        return Saturation.SLACK, (Code.SOURCES_LIMIT(), why)
    return Saturation.UNSURE, (why,)


def cpus_of_others(observation: Observation, thresholds: LoadThresholds) -> int:
    """Return how many CPUs are left to other processes, a part of one counting as one where they compete.

    They get as many as they use, but at most half. A process that starts late on a full host would otherwise never get
    a share, as the first one has no reason to yield. If several insist on half, the kernel shares fairly among their
    threads.

    >>> seen = Observation(time=1, period=1, throughput=1.0, thread_count=4, cpu_count=4, own_cpu=2.0, host_cpu=0.9)
    >>> cpus_of_others(seen, LoadThresholds())
    2
    """
    used = observation.host_cpu * observation.cpu_count - observation.own_cpu
    ignored = max(thresholds.other_cpu, thresholds.other_share * observation.cpu_count)
    if used < ignored:
        return 0
    if observation.host_cpu >= thresholds.full_host and observation.own_cpu > 0:
        # competitors get less than their demand, in the proportion of this process, whose demand is known
        waiting = observation.waiting_cpu
        threads = min(observation.thread_count, observation.cpu_count)
        wanted = threads if waiting is None else min(observation.own_cpu + waiting, observation.cpu_count)
        used *= max(1.0, wanted / observation.own_cpu)
    return min(math.floor(thresholds.yielded * observation.cpu_count), math.floor(used + 1 - thresholds.other_cpu))
