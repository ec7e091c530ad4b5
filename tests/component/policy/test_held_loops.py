"""A loop that holds still for two reasons goes on when neither is left, with nothing learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rayelastic import _native
from rayelastic.plan.settings.elasticity import Algorithm
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.observation import Observation
from rayelastic.runtime.loops.adaptation_loop import AdaptationLoop, LoopSettings
from rayelastic.runtime.loops.periodic_loop import Still
from rayelastic.runtime.values.adaptation import Journal, Setting
from tests.native_samples import native_sample

SETTINGS = LoopSettings("pe0", {"in": 0}, frozenset({"in"}), frozenset(), 1e-4, 1, 2, 2)


class Script:
    """A scheduler that does something at each period, and a controller that notes when it was asked."""

    def __init__(self, *actions: Callable[[AdaptationLoop], None]) -> None:
        self._actions = list(actions)
        self.periods = -1  # the first sample is of the start
        self.asked: list[int] = []
        self.forgot: list[int] = []
        self.loop = AdaptationLoop(self, self, SETTINGS, Journal(Setting(Algorithm.MULTI_LEVEL, {}, 1.0)))

    def sample(self) -> Any:
        if self.periods >= 0:
            self._actions[self.periods](self.loop)
        self.periods += 1
        return native_sample({})

    def apply(self, thread_count: int, models: object = None) -> _native.InForce:
        raise AssertionError((thread_count, models))

    def step(self, observation: Observation) -> Decision:
        self.asked.append(self.periods)
        return Decision.keep(observation, rule="none")

    def reset(self) -> None:
        self.forgot.append(self.periods)


def nothing(_: AdaptationLoop) -> None:
    pass


def holds(held: bool, *why: Still) -> Callable[[AdaptationLoop], None]:
    return lambda loop: loop.hold(held, *why)


def played(*actions: Callable[[AdaptationLoop], None]) -> tuple[Sequence[int], Sequence[int]]:
    script = Script(*actions, AdaptationLoop.halt)
    script.loop.run()
    return script.asked, script.forgot


def test_it_is_asked_each_period_and_forgets_nothing() -> None:
    assert played(nothing, nothing) == ([1, 2, 3], [])


def test_who_holds_it_for_one_reason_does_not_let_it_go_for_another() -> None:
    for one, other in ((Still.PAUSED, Still.CHANGE), (Still.CHANGE, Still.PAUSED)):
        asked, forgot = played(holds(True, one), holds(True, other), holds(False, one), nothing, holds(False, other))
        assert (asked, forgot) == ([5, 6], [5])


def test_a_pause_is_one_however_often_it_is_asked_for() -> None:
    assert played(holds(True), holds(True), holds(False), nothing) == ([3, 4, 5], [3])
