"""ElasticLoadBalance: congestion and evidence (L03-L06, C001-1, C001-2)."""

from typing import Any

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.observation import Observation, OperatorObservation
from rayelastic.policy.stage.channel_width import ChannelWidthElasticity, ChannelWidthThresholds


class Channels:
    """Throughput by width; buffers are full as long as more is offered."""

    def __init__(self, curve: Any, maximum: Any = 32, offered: Any = 1e9) -> None:
        self.curve, self.maximum, self.offered, self.width = curve, maximum, offered, 1

    def run(self, controller: Any, periods: Any) -> Any:
        widths = [self.width]
        for _ in range(periods):
            most = self.curve(self.width)
            work = OperatorObservation("work", ThreadingModel.DYNAMIC, queue_fill=0.9 if self.offered > most else 0.1)
            seen = Observation(
                time=1,
                period=5,
                throughput=min(most, self.offered),
                thread_count=self.width,
                maximum_threads=self.maximum,
                operators=(work,),
            )
            self.width = controller.step(seen).thread_count
            if self.width != widths[-1]:
                widths.append(self.width)
        return widths


def test_dear_tuples_use_the_cores() -> None:
    """C001-1: 16 CPUs, 32 ports."""
    channels = Channels(lambda n: 10.0 * min(n, 16) - 0.2 * max(0, n - 16))
    assert channels.run(ChannelWidthElasticity(), 40)[-1] in (15, 16, 17)


def test_cheap_tuples_never_get_far() -> None:
    channels = Channels(lambda n: 10.0 / n)
    widths = channels.run(ChannelWidthElasticity(), 40)
    assert max(widths) <= 3
    assert widths[-1] == 1


def test_bursty_rate_is_followed() -> None:
    """C001-2: what lets the level drop is the lack of congestion."""
    channels, controller = Channels(lambda n: 10.0 * min(n, 8)), ChannelWidthElasticity()
    channels.run(controller, 30)
    assert channels.width == 8
    channels.offered = 15.0
    channels.run(controller, 30)
    assert channels.width == 2
    channels.offered = 1e9
    channels.run(controller, 40)
    assert channels.width >= 7


def test_bursty_cost_is_followed() -> None:
    channels, controller = Channels(lambda n: 100.0 / n), ChannelWidthElasticity()
    channels.run(controller, 20)
    assert channels.width == 1
    channels.curve = lambda n: 1.0 * min(n, 16)
    channels.run(controller, 60)
    assert channels.width >= 15
    channels.curve = lambda n: 100.0 / n
    channels.run(controller, 60)
    assert channels.width <= 3


def test_rapid_scaling_takes_fewer_steps() -> None:
    def steps(rapid: Any) -> Any:
        thresholds = ChannelWidthThresholds(rapid_scaling=rapid)
        return len(Channels(lambda n: n, maximum=32).run(ChannelWidthElasticity(thresholds), 60))

    assert steps(True) < 0.7 * steps(False)


def test_one_odd_period_is_noise() -> None:
    """L06: the noise detector swallows one."""
    channels, controller = Channels(lambda n: 10.0 * min(n, 4), maximum=4), ChannelWidthElasticity()
    channels.run(controller, 20)
    assert channels.width == 4
    before, channels.curve = channels.curve, lambda n: 20.0
    assert channels.run(controller, 1) == [4]
    channels.curve = before
    assert channels.run(controller, 10) == [4]
