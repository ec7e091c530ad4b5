"""How many channels of a load-balanced operator are active: the ElasticLoadBalance operator ("How It Works").

Throughput and congestion are trusted level by level; growth needs evidence. One thread per channel, so the width is the
thread count. Must not know what the channels run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.policy.stage.shared_cpus import too_wide
from rayelastic.reasons import Code, Reason

__all__ = ["ChannelWidthElasticity", "ChannelWidthThresholds"]


@dataclass(frozen=True, slots=True)
class ChannelWidthThresholds:
    """Parameters of the operator, with its defaults (L04).

    Args:
        congestion_tolerance: mean fill of the buffers above which the channels are congested, 0..1.
        throughput_tolerance: relative difference of throughput that counts.
        noise_periods: suspicious periods in a row that are taken for noise (L06).
        rapid_scaling: steps of about the square root of 2 instead of 1.
    """

    congestion_tolerance: float = 0.5
    throughput_tolerance: float = 0.05
    noise_periods: int = 1
    rapid_scaling: bool = False


@dataclass(slots=True)
class _Width:
    first: float
    throughput: float
    congested: bool
    trusted: bool = True


class ChannelWidthElasticity:
    """Widens a congested operator while there is evidence that it helps, narrows one without congestion (L03-L06).

    Args:
        thresholds: its parameters.

    >>> from rayelastic.policy.element.observation import OperatorObservation
    >>> full = OperatorObservation("work", ThreadingModel.DYNAMIC, queue_fill=0.9)
    >>> seen = Observation(time=5, period=5, throughput=1e3, thread_count=1, maximum_threads=6, operators=(full,))
    >>> ChannelWidthElasticity().step(seen).thread_count
    2
    """

    def __init__(self, thresholds: ChannelWidthThresholds | None = None) -> None:
        self._thresholds = thresholds or ChannelWidthThresholds()
        self.reset()

    def reset(self) -> None:
        """Forget all widths."""
        self._widths: dict[int, _Width] = {}
        self._suspicious = 0

    def step(self, observation: Observation) -> Decision:
        """Return the next number of active channels."""
        if (bounded := too_wide(observation)) is not None:
            self.reset()  # rates were those of other shares
            return bounded
        width, throughput = observation.thread_count, observation.throughput
        congestion = _mean_fill(observation)
        congested = congestion > self._thresholds.congestion_tolerance
        seen = Code.MEASURED(rate=throughput, setting={"channels": width}), Code.BUFFERS(fill=congestion)
        if self._load_changed(width, throughput, congested):
            for other in self._widths.values():
                other.trusted = False  # L05
        elif self._suspicious:
            return Decision(width, {}, (*seen, Code.NOISE()), "ElasticLoadBalance, How It Works (L06)")
        self._record(width, throughput, congested)
        narrower = max(observation.minimum_threads, self._step_down(width))
        wider = min(observation.maximum_threads, self._step_up(width))
        target, why, rule = self._decide(width, narrower, wider, throughput, congested=congested)
        return Decision(target, {}, (*seen, *why), f"ElasticLoadBalance, How It Works ({rule})")

    def _decide(
        self, width: int, narrower: int, wider: int, throughput: float, *, congested: bool
    ) -> tuple[int, tuple[Reason, ...], str]:
        fewer, more = {"channels": narrower}, {"channels": wider}
        below = self._trusted(narrower) if narrower < width else None
        above = self._trusted(wider) if wider > width else None
        if not congested:  # L03: what lets the level drop is the lack of congestion
            if narrower < width and (below is None or not below.congested):
                return narrower, (Code.NO_CONGESTION(),), "L03"
            return width, (Code.NO_CONGESTION(), Code.FEWER_CONGESTED()), "L03"
        if narrower >= width:
            if wider > width and (above is None or self._more(above.throughput, throughput)):
                return wider, ((Code.UNKNOWN if above is None else Code.FASTER)(setting=more),), "L05"
            return width, (Code.NO_FASTER(setting=more),), "L05"
        if below is None:  # after a change of load: explore again
            return narrower, (Code.UNKNOWN(setting=fewer),), "L05"
        if self._more(throughput, below.throughput):
            if wider > width and (above is None or self._more(above.throughput, throughput)):
                return wider, (Code.SLOWER(setting=fewer),), "L05"
            return width, (Code.SLOWER(setting=fewer), Code.NO_FASTER(setting=more)), "L05"
        if above is not None and self._more(above.throughput, throughput):
            return wider, (Code.FASTER(setting=more),), "L05"
        return narrower, (Code.NO_SLOWER(setting=fewer),), "L05"

    def _load_changed(self, width: int, throughput: float, congested: bool) -> bool:
        known = self._trusted(width)
        if known is None:
            self._suspicious = 0
            return False
        low, high = sorted((known.first, throughput))
        changed = self._more(high, low) or known.congested != congested  # L06
        self._suspicious = self._suspicious + 1 if changed else 0
        if self._suspicious <= self._thresholds.noise_periods:
            return False
        self._suspicious = 0
        return True

    def _record(self, width: int, throughput: float, congested: bool) -> None:
        known = self._trusted(width)
        if known is None:
            self._widths[width] = _Width(throughput, throughput, congested)
        else:
            known.throughput = throughput

    def _trusted(self, width: int) -> _Width | None:
        known = self._widths.get(width)
        return known if known is not None and known.trusted else None

    def _more(self, high: float, low: float) -> bool:
        return high - low > self._thresholds.throughput_tolerance * low

    def _step_up(self, width: int) -> int:
        return max(width + 1, math.floor(width * math.sqrt(2))) if self._thresholds.rapid_scaling else width + 1

    def _step_down(self, width: int) -> int:
        if not self._thresholds.rapid_scaling:
            return width - 1
        step = min(width - 1, math.ceil(width / math.sqrt(2)))
        return max((known for known in range(step, width) if self._trusted(known) is not None), default=step)


def _mean_fill(observation: Observation) -> float:
    fills = [o.queue_fill for o in observation.operators if o.model is not ThreadingModel.MANUAL]
    return sum(fills) / len(fills) if fills else 0.0
