"""What the loop of elastic stages sees, and that it carries out and keeps what controllers decide."""

from typing import Any

from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.policy.stage.peak_rate import PeakRateElasticity
from rayelastic.reasons import Code
from rayelastic.runtime.loops.channel_loop import ChannelLoop, Stage
from tests.native_samples import native_sample


class FakeWidth:
    def __init__(self, active: int, most: int) -> None:
        self._active = active
        self._most = most

    @property
    def active(self) -> int:
        return self._active

    @active.setter
    def active(self, value: int) -> None:
        self._active = min(max(value, 1), self._most)  # as the native one


def sample(*taken: int, queued: int = 0, final: bool = False) -> Any:
    shared = {"queued": queued, "queue_capacity": 10, "model": "dedicated", "final": final}
    return native_sample(*({"tuples_in": count} | shared for count in taken))


def stage(controller: Any, active: int = 1, most: int = 3) -> Stage:
    channels = [{f"work.{number}.map": number + 1} for number in range(most)]
    return Stage("work", 0, most, channels, FakeWidth(active, most), controller)


def looped(one: Stage) -> ChannelLoop:
    return ChannelLoop(sample, [one], 1.0, cpus=lambda: 4, pe="pe0", job="test")


class Script:
    def __init__(self, *widths: int) -> None:
        self._widths = list(widths)
        self.seen: list[Observation] = []

    def step(self, observation: Observation) -> Decision:
        self.seen.append(observation)
        return Decision(self._widths.pop(0), reasons=(Code.PINNED(),))

    def reset(self) -> None:
        pass


def test_it_sees_what_enters_and_the_queues_of_the_channels_in_use() -> None:
    controller = Script(2)
    one = stage(controller, active=2)
    looped(one).step(sample(0, 0, 0, 0), sample(100, 60, 40, 0, queued=5), 2.0, at=7.0)
    seen = controller.seen[0]
    assert (seen.time, seen.period, seen.throughput, seen.thread_count, seen.maximum_threads) == (7.0, 2.0, 50.0, 2, 3)
    assert [(o.name, o.rate, o.queue_fill) for o in seen.operators] == [
        ("work.0.map", 30, 0.5),
        ("work.1.map", 20, 0.5),
    ]


def test_it_carries_decisions_out_within_bounds_and_keeps_them() -> None:
    one = stage(Script(3, 9, 0))
    loop = looped(one)
    for _ in range(3):
        loop.step(sample(0, 0, 0, 0), sample(1, 1, 0, 0), 1.0, at=1.0)
    assert [done.thread_count for done in one.passes] == [3, 3, 1]  # what is in force
    assert [done.number for done in one.passes] == [0, 1, 2]
    assert {done.pe for done in one.passes} == {"pe0/work"}


def test_a_stage_that_has_ended_is_left_alone() -> None:
    one = stage(Script())
    looped(one).step(sample(0, 0, 0, 0), sample(1, 1, 0, 0, final=True), 1.0, at=1.0)
    assert not one.passes


def test_a_journal_replays_to_the_same_decisions() -> None:
    one = stage(PeakRateElasticity(), most=3)
    loop, taken = looped(one), 0
    for _ in range(30):
        then, taken = taken, taken + 100 * min(one.width.active, 2)  # a third channel gives no more
        loop.step(sample(then, 0, 0, 0), sample(taken, 0, 0, 0), 1.0, at=1.0)
    fresh = PeakRateElasticity()
    assert [fresh.step(done.observation) for done in one.passes] == [done.decision for done in one.passes]
    assert {done.thread_count for done in list(one.passes)[-5:]} <= {2, 3}
