"""What the kernel tells of the time that threads waited for a CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from rayelastic.runtime.watch.machine_load import MachineLoad, WaitedReader


def tell(tasks: Path, **waited: int) -> None:
    """Has each thread have run for 5 s, and waited for so many ns."""
    for task, ns in waited.items():
        (tasks / task).mkdir(exist_ok=True)
        (tasks / task / "schedstat").write_text(f"5000000000 {ns} 17\n")


class Clock:
    """Seconds, which reading the files of threads takes some of."""

    def __init__(self, *, each: float = 0.0) -> None:
        self.now, self._each = 0.0, each

    def __call__(self) -> float:
        self.now += self._each
        return self.now


def test_threads_that_were_ready_and_did_not_run_are_told_in_cpus(tmp_path: Path) -> None:
    clock = Clock()
    tell(tmp_path, a=1_000_000_000, b=0)
    load = MachineLoad(WaitedReader(tmp_path, clock))
    clock.now += 2.0
    tell(tmp_path, a=2_000_000_000, b=500_000_000, c=250_000_000)  # c is new
    assert load.use().waiting == pytest.approx(0.875)
    clock.now += 2.0
    (tmp_path / "a" / "schedstat").unlink()  # it has ended
    tell(tmp_path, b=600_000_000)
    assert load.use().waiting == pytest.approx(0.05)


def test_the_elements_of_a_process_share_a_reading_that_takes_long(tmp_path: Path) -> None:
    clock = Clock(each=0.01)
    tell(tmp_path, a=0)
    reader = WaitedReader(tmp_path, clock)
    elements = [MachineLoad(reader) for _ in range(4)]
    clock.now += 1.0
    tell(tmp_path, a=500_000_000)
    first = elements[0].use().waiting
    tell(tmp_path, a=900_000_000)
    assert first == pytest.approx(0.5, rel=0.05)
    assert [element.use().waiting for element in elements] == [first] * 4
    clock.now += 1.0
    assert elements[0].use().waiting == pytest.approx(0.4, rel=0.1)


def test_nothing_is_said_where_the_kernel_keeps_no_such_figures(tmp_path: Path) -> None:
    assert MachineLoad(WaitedReader(tmp_path)).use().waiting is None


def test_this_kernel_tells() -> None:
    waiting = MachineLoad().use().waiting
    assert waiting is None or waiting >= 0


def test_processes_of_the_same_job_are_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job doesn't give way to its own coordinator, or to an element that starts (P32)."""
    monkeypatch.setattr(psutil, "cpu_percent", lambda: 100.0)  # of the host, whoever else is busy on it
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        kin = psutil.Process(burner.pid)
        clock = iter((1.0, 3.0, 4.0))
        load = MachineLoad(clock=lambda: next(clock))
        load.use((burner.pid,))
        began = kin.cpu_times().user
        while kin.cpu_times().user < began + 1.0:
            assert burner.poll() is None
        host = load.use((burner.pid,)).host
    finally:
        burner.kill()
        burner.wait()
    assert host == pytest.approx(1.0 - 0.5 / (psutil.cpu_count() or 1), abs=0.1)  # a second of two
    assert load.use((burner.pid,)).host == 1.0  # it has ended
