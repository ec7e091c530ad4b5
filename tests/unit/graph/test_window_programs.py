"""What windows, sessions and batches that Python gathers give of a key, and for when they ask to be called."""

from __future__ import annotations

from typing import Any

import pytest

from rayelastic.graph.operators.gathering.gathered import Bounds
from rayelastic.graph.operators.gathering.programs import Batches, Early, Sessions, TimeWindows
from rayelastic.graph.operators.windows import Window, WindowKind
from rayelastic.graph.records.time_info import TimeInfo
from rayelastic.graph.records.time_values import TimeValues

AT = TimeInfo("at", "s")
TIMES = TimeValues(AT, int)
FINAL = Early()


class Numbers:
    """Tuples are numbers, and what is given are their bounds, whether that is final, corrected, and the numbers."""

    def new(self) -> list[int]:
        return []

    def add(self, gathered: list[int], t: int) -> list[int]:
        return [*gathered, t]

    def asked(self, gathered: list[int], t: int) -> int:
        return sum(gathered)

    def given(self, key: Any, bounds: Bounds, gathered: list[int]) -> Any:
        yield (bounds.start, bounds.end, bounds.final, bounds.corrected, gathered)


class Out:
    """One key's: what was given, the timers that were asked for, whether it was forgotten."""

    key = ("a",)

    def __init__(self, state: dict[Any, Any]) -> None:
        self.state = state
        self.ticks = 0
        self.given: list[Any] = []
        self.timers: list[int] = []

    def give(self, item: Any) -> None:
        self.given.append(item)

    def wake(self, time: int) -> None:
        self.timers.append(time)

    def forget(self) -> None:
        self.state.clear()

    def at(self, time: int) -> Out:
        self.ticks = time
        self.given, self.timers = [], []
        return self


def windows(early: Early = FINAL, **options: Any) -> tuple[TimeWindows, dict[Any, Any], Out]:
    state: dict[Any, Any] = {}
    asked: dict[str, Any] = {"kind": WindowKind.TIME, "size": 10, "slide": 10, "time": AT} | options
    return TimeWindows(Window(**asked), TIMES, Numbers(), early), state, Out(state)


def test_a_window_is_given_when_it_is_complete() -> None:
    program, state, out = windows()
    program.on_tuple(1, state, out.at(3))
    program.on_tuple(2, state, out.at(9))
    assert (out.given, out.timers) == ([], [9])
    program.on_time(9, state, out.at(9))
    assert out.given == [(0, 10, True, False, [1, 2])]
    assert state == {}


def test_a_window_may_be_given_after_each_tuple() -> None:
    program, state, out = windows(Early(update=True))
    program.on_tuple(1, state, out.at(3))
    assert out.given == [(0, 10, False, False, [1])]
    program.on_tuple(2, state, out.at(4))
    assert out.given == [(0, 10, False, False, [1, 2])]


def test_a_window_may_be_given_every_so_many_ticks_of_its_own() -> None:
    program, state, out = windows(Early(every=3))
    program.on_tuple(1, state, out.at(24))
    assert sorted(out.timers) == [25, 29], "the next one after its start, and its end"
    program.on_time(25, state, out.at(25))
    assert out.given == [(20, 30, False, False, [1])]


def test_a_late_tuple_corrects_windows_for_as_long_as_they_are_open() -> None:
    program, state, out = windows(lateness=5)
    program.on_tuple(1, state, out.at(3))
    program.on_time(9, state, out.at(9))
    assert (out.given, out.timers) == ([(0, 10, True, False, [1])], [14])
    assert program.on_late(2, state, out.at(4), reached=13)
    assert (out.given, out.timers) == ([(0, 10, True, True, [1, 2])], [14])
    program.on_time(14, state, out.at(14))
    assert (out.given, state) == ([], {})
    assert not program.on_late(3, state, out.at(5), reached=14)
    assert (out.given, state) == ([], {})


def test_a_late_tuple_is_in_time_for_a_window_that_is_not_complete() -> None:
    program, state, out = windows(slide=5, lateness=5)
    assert program.on_late(1, state, out.at(7), reached=8)
    assert (out.given, sorted(out.timers), sorted(state)) == ([], [9, 14], [(0, 10), (5, 15)])
    assert program.on_late(2, state, out.at(7), reached=9)
    assert out.given == [(0, 10, True, True, [1, 2])]


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5), (0, 3)])
def test_a_window_that_a_function_tells_ends_behind_its_start_and_its_tuples(start: int, end: int) -> None:
    program, state, out = windows(kind=WindowKind.ASSIGNED, assign=lambda _: [(start, end)])
    with pytest.raises(ValueError, match="it must end after its start and after its tuples"):
        program.on_tuple(1, state, out.at(3))
    assert state == {}


def test_a_window_that_a_function_tells_takes_its_tuples() -> None:
    program, state, out = windows(kind=WindowKind.ASSIGNED, assign=lambda n: [(0, 4), (n, n + 20)])
    program.on_tuple(1, state, out.at(3))
    assert (sorted(state), out.timers) == ([(0, 4), (1, 21)], [3, 20])


@pytest.mark.parametrize(("by", "given"), [(None, [(0, 10, True, False, [1]), (10, 20, True, False, [2])]), (AT, [])])
def test_of_windows_by_the_clock_the_rest_is_given_at_the_end(by: TimeInfo | None, given: list[Any]) -> None:
    program, state, out = windows(time=by)
    program.on_tuple(1, state, out.at(3))
    program.on_tuple(2, state, out.at(11))
    program.on_end(state, out.at(12))
    assert out.given == given


def test_a_session_lasts_as_long_as_tuples_come_and_its_rest_is_given_at_the_end() -> None:
    state: dict[Any, Any] = {}
    out = Out(state)
    program = Sessions(Window(WindowKind.SESSION, 5, 5), TIMES, Numbers(), FINAL, lambda _: 5)
    program.on_tuple(1, state, out.at(3))
    program.on_tuple(2, state, out.at(7))
    assert out.timers == [12]
    program.on_time(8, state, out.at(8))
    assert out.given == []
    program.on_time(12, state, out.at(12))
    assert (out.given, state) == ([(3, 12, True, False, [1, 2])], {})
    program.on_end(state, out.at(12))
    assert out.given == []
    program.on_tuple(3, state, out.at(20))
    program.on_end(state, out.at(21))
    assert (out.given, state) == ([(20, 25, True, False, [3])], {})


def test_a_batch_is_full_or_its_time_is_over_and_its_rest_is_given_at_the_end() -> None:
    state: dict[Any, Any] = {}
    out = Out(state)
    program = Batches(Window(WindowKind.BATCH, 2, 2, within=5), TIMES, Numbers(), FINAL)
    program.on_tuple(1, state, out.at(3))
    assert (out.given, out.timers) == ([], [8])
    program.on_tuple(2, state, out.at(4))
    assert (out.given, state) == ([(3, 5, True, False, [1, 2])], {})
    program.on_tuple(3, state, out.at(6))
    program.on_time(11, state, out.at(11))
    assert (out.given, state) == ([(6, 7, True, False, [3])], {})
    program.on_tuple(4, state, out.at(12))
    program.on_end(state, out.at(13))
    assert (out.given, state) == ([(12, 13, True, False, [4])], {})
