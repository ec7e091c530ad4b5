"""The CPU use of this process and this host. The only module that asks the operating system."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

__all__ = ["CpuUse", "MachineLoad", "available_cpus", "cpus_by_node", "resident_bytes", "waited_seconds"]

TASKS = Path("/proc/self/task")  # Linux: Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat
SYSTEM = Path("/sys/devices/system")  # Linux: Documentation/ABI/stable/sysfs-devices-node and sysfs-devices-system-cpu


def available_cpus() -> int:
    """Return how many CPUs this process may use: its affinity, or its control group's quota if that is less (P31)."""
    cpus = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return cpus
    return cpus if quota == "max" else max(1, min(cpus, round(int(quota) / int(period))))


def cpus_by_node(system: Path = SYSTEM) -> list[int]:
    """Return the CPUs that this process may use, by NUMA node, in each the first hyper-thread of every core first."""

    def place(cpu: int) -> tuple[int, int, int]:
        nodes = (int(found.name.removeprefix("node")) for found in (system / "cpu" / f"cpu{cpu}").glob("node[0-9]*"))
        return min(nodes, default=0), _sibling(system, cpu), cpu

    return sorted(os.sched_getaffinity(0), key=place)


def _sibling(system: Path, cpu: int) -> int:
    """Return which hyper-thread of its core a CPU is, from 0."""
    try:
        listed = (system / "cpu" / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return 0
    spans = [[int(end) for end in span.split("-")] for span in listed.split(",")]
    return [number for span in spans for number in range(span[0], span[-1] + 1)].index(cpu)


def resident_bytes() -> int:
    """Return the memory in use by this process."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def waited_seconds() -> float:
    """Return for how long this process's current threads were ready to run, and something else ran."""
    return sum(_waited(TASKS).values()) / 1e9


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU use in a period.

    Args:
        own: CPUs that this process kept busy.
        host: Share of all CPUs of the host that were busy, 0..1.
        waiting: CPUs that threads of this process waited for, ready to run; None: the kernel doesn't report it.
    """

    own: float
    host: float
    waiting: float | None = None


class MachineLoad:
    """CPU use since the previous call.

    Args:
        tasks: The kernel's folder of this process's threads.
        clock: Returns seconds.
    """

    def __init__(self, tasks: Path = TASKS, clock: Callable[[], float] = time.monotonic) -> None:
        self._process = psutil.Process()
        self._process.cpu_percent()
        psutil.cpu_percent()
        self._tasks = tasks
        self._clock = clock
        self._waited, self._since = _waited(tasks), clock()

    def use(self) -> CpuUse:
        """Return the CPU use since the last call, or since this object was made."""
        before, since = self._waited, self._since
        self._waited, self._since = _waited(self._tasks), self._clock()
        waited = sum(ns - before.get(task, 0) for task, ns in self._waited.items())
        waiting = waited / 1e9 / max(self._since - since, 1e-9) if self._waited else None
        return CpuUse(self._process.cpu_percent() / 100, psutil.cpu_percent() / 100, waiting)


def _waited(tasks: Path) -> dict[str, int]:
    """Return {thread: ns for which it was ready to run, and something else ran}; empty if the kernel can't."""
    waited = {}
    for path in tasks.glob("*/schedstat"):
        try:
            waited[path.parent.name] = int(path.read_text(encoding="ascii").split()[1])
        except (OSError, ValueError, IndexError):  # the thread has ended
            continue
    return waited
