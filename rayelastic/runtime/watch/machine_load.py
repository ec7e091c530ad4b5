"""CPU and memory use of this process and this host. The only module that asks the operating system."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

TASKS = Path("/proc/self/task")  # Linux: Documentation/scheduler/sched-stats.rst, /proc/<pid>/schedstat
GROUP = Path("/proc/self/cgroup")  # Linux: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst
GROUPS = Path("/sys/fs/cgroup")
MOST_COST = 0.05  # share of a CPU that reading the files of threads may take
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


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory in use of a control group or host.

    Args:
        used: Bytes in use, without the files that the kernel can drop.
        limit: Bytes that there are.
        where: "control group" or "host".
    """

    used: int
    limit: int
    where: str

    @property
    def share(self) -> float:
        """The share in use, 0 to 1."""
        return self.used / self.limit


def memory_in_use(groups: Path = GROUPS, group: Path = GROUP) -> Memory:
    """Return the use of the memory that ends first: that of a control group of this process, or of the host.

    Args:
        groups: The root of the kernel's control groups, of version 1 or 2.
        group: The file with the groups of this process.
    """
    host = psutil.virtual_memory()
    found = [Memory(host.total - host.available, host.total, "host")]
    for line in group.read_text(encoding="utf-8").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            found += _group_memory(groups, path, "memory.max", "memory.current", "inactive_file")
        elif controllers == "memory":
            found += _group_memory(
                groups / "memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            )
    return max(found, key=lambda one: one.share)


def _group_memory(root: Path, path: str, limit: str, usage: str, file_pages: str) -> Iterator[Memory]:
    """Yield the memory of a group and of those around it, which have limits too."""
    folder = root / path.lstrip("/")
    for level in (folder, *folder.parents):
        with contextlib.suppress(OSError, ValueError):  # ValueError: "max"
            most = int((level / limit).read_text(encoding="ascii"))
            stat = dict(line.split() for line in (level / "memory.stat").read_text(encoding="ascii").splitlines())
            used = int((level / usage).read_text(encoding="ascii")) - int(stat.get(file_pages, 0))
            yield Memory(max(0, used), most, "control group")
        if level == root:
            return


class WaitedReader:
    """Reads how long each thread of this process was ready to run while something else ran.

    The kernel has a file for each thread. The elements of a process share a reader, which reads the files of many
    threads less often.

    Args:
        tasks: The kernel's folder of this process's threads.
        clock: Returns seconds.
    """

    def __init__(self, tasks: Path = TASKS, clock: Callable[[], float] = time.monotonic) -> None:
        self._tasks = tasks
        self._clock = clock
        self._lock = threading.Lock()
        self._last: tuple[dict[str, int], float] = {}, -math.inf
        self._next = -math.inf  # the time of the next reading

    def read(self) -> tuple[dict[str, int], float]:
        """Return {thread: ns that it waited}, empty if the kernel can't say, and the time of that reading."""
        with self._lock:
            began = self._clock()
            if began >= self._next:
                self._last = self._waited(), began
                self._next = began + (self._clock() - began) / MOST_COST
            return self._last

    def _waited(self) -> dict[str, int]:
        waited = {}
        for path in self._tasks.glob("*/schedstat"):
            try:
                waited[path.parent.name] = int(path.read_text(encoding="ascii").split()[1])
            except (OSError, ValueError, IndexError):  # the thread has ended
                continue
        return waited


_WAITED = WaitedReader()


def waited_seconds() -> float:
    """Return for how long this process's current threads were ready to run, and something else ran."""
    return sum(_WAITED.read()[0].values()) / 1e9


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU use in a period.

    Args:
        own: CPUs that this process kept busy.
        host: Share of all CPUs of the host that were busy, without those of kin, 0..1.
        waiting: CPUs that threads of this process waited for, ready to run; None: the kernel doesn't report it.
    """

    own: float
    host: float
    waiting: float | None = None


class MachineLoad:
    """CPU use since the previous call.

    Args:
        waited: Reads how long this process's threads waited.
        clock: Returns seconds.
    """

    def __init__(self, waited: WaitedReader | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._process = psutil.Process()
        self._process.cpu_percent()
        psutil.cpu_percent()
        self._reader = waited or _WAITED
        self._waited, self._since = self._reader.read()
        self._waiting: float | None = None
        self._clock = clock
        self._kin: dict[int, tuple[float, float]] = {}  # the time, and CPU seconds until then, by process

    def use(self, kin: Collection[int] = ()) -> CpuUse:
        """Return the CPU use since the last call, or since this object was made.

        Args:
            kin: Processes of the same job on this host, which don't count as others.
        """
        now, at = self._reader.read()
        if at > self._since:  # otherwise another element has just read, and the last value holds
            waited = sum(ns - self._waited.get(task, 0) for task, ns in now.items())
            self._waiting = waited / 1e9 / (at - self._since) if now else None
            self._waited, self._since = now, at
        busy = psutil.cpu_percent() / 100 - self._cpus_of(kin) / (psutil.cpu_count() or 1)
        return CpuUse(self._process.cpu_percent() / 100, max(0.0, busy), self._waiting)

    def _cpus_of(self, kin: Collection[int]) -> float:
        """Return the CPUs that these processes kept busy since the last call; one that is new counts from now on."""
        before, self._kin, at = self._kin, {}, self._clock()
        for pid in kin:
            with contextlib.suppress(psutil.Error):  # it has ended
                times = psutil.Process(pid).cpu_times()
                self._kin[pid] = at, times.user + times.system
        return math.fsum(
            (seconds - before[pid][1]) / max(at - before[pid][0], 1e-9)
            for pid, (_, seconds) in self._kin.items()
            if pid in before
        )
