"""The fixtures that keep unit tests away from the world do so."""

from __future__ import annotations

import importlib
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("clock", ["time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"])
def test_clocks_raise(clock: str) -> None:
    with pytest.raises(AssertionError, match=rf"{clock}.*pass a clock in"):
        getattr(time, clock)()


def test_sleep_and_threads_raise() -> None:
    with pytest.raises(AssertionError, match="sleep"):
        getattr(time, "sleep")(0)  # noqa: B009 - a plain call would break the rule that this tests
    with pytest.raises(AssertionError, match="thread"):
        threading.Thread(target=print).start()


def test_ray_raises() -> None:
    with pytest.raises(ImportError, match="ray"):
        importlib.import_module("ray")


@given(st.integers())
def test_hypothesis_keeps_its_clock(number: int) -> None:
    assert number - number == 0
