"""What the kernel tells of the time that threads waited for a CPU."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from rayelastic.runtime.watch.machine_load import MachineLoad


def tell(tasks: Path, **waited: int) -> None:
    """Has each thread have run for 5 s, and waited for so many ns."""
    for task, ns in waited.items():
        (tasks / task).mkdir(exist_ok=True)
        (tasks / task / "schedstat").write_text(f"5000000000 {ns} 17\n")


def seconds(step: float) -> Iterator[float]:
    return (step * n for n in count())


def test_threads_that_were_ready_and_did_not_run_are_told_in_cpus(tmp_path: Path) -> None:
    clock = seconds(2.0)
    tell(tmp_path, a=1_000_000_000, b=0)
    load = MachineLoad(tmp_path, lambda: next(clock))
    tell(tmp_path, a=2_000_000_000, b=500_000_000, c=250_000_000)  # c is new
    assert load.use().waiting == pytest.approx(0.875)
    (tmp_path / "a" / "schedstat").unlink()  # it has ended
    tell(tmp_path, b=600_000_000)
    assert load.use().waiting == pytest.approx(0.05)


def test_nothing_is_said_where_the_kernel_keeps_no_such_figures(tmp_path: Path) -> None:
    assert MachineLoad(tmp_path).use().waiting is None


def test_this_kernel_tells() -> None:
    waiting = MachineLoad().use().waiting
    assert waiting is None or waiting >= 0
