"""What things cost: machines and engines, each number with its unit; values and their sources are in constants.toml.

The engines are this project's, as it was measured, and those of the papers, whose constants are fitted to what the
papers say of their behaviour. There is no other source for them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Machine:
    """Processors and memory of one host.

    Args:
        name: for labels.
        cores: physical cores.
        smt: hardware threads per core.
        smt_gain: throughput of a core running 1, 2, ..., smt threads, in units of one thread.
        flop: ns of one dependent floating-point operation, the papers' unit of tuple cost.
        handover: ns that a lock's handover takes longer for each thread that waits for it; spinning waiters invalidate
            each other's cache lines (Boyd-Wickizer et al., Non-scalable locks are dangerous, OLS'12).
        growth: ns that a queue hop takes longer for each busy thread: the shared free list and cache lines in transit.
        cache: bytes of last-level cache, all sockets.
        bandwidth: bytes/ns of memory traffic that copies reach once queues no longer fit the cache.
    """

    name: str
    cores: int
    smt: int = 1
    smt_gain: tuple[float, ...] = (1.0,)
    flop: float = 0.77
    handover: float = 65.0
    growth: float = 1.0
    cache: float = 32e6
    bandwidth: float = 15.0

    def __post_init__(self) -> None:
        if len(self.smt_gain) != self.smt or self.smt_gain[0] != 1.0:
            raise ValueError(f"machine {self.name!r}: smt_gain has {self.smt} values and starts with 1.0")

    @property
    def cpus(self) -> int:
        """Logical processors."""
        return self.cores * self.smt

    def capacity(self, threads: float, others: float = 0.0) -> float:
        """Return how many full-speed cores `threads` busy threads get while other processes keep `others` CPUs busy.

        Up to one thread per core each has a core; more share cores, at the gain of the SMT table; more than all logical
        processors share time, fairly among all that run.

        >>> XEON.capacity(44), XEON.capacity(88), XEON.capacity(1000) == XEON.capacity(176)
        (44.0, 88.0, True)
        >>> LAPTOP.capacity(2, others=1)
        1.3333333333333333
        """
        running = min(threads + others, float(self.cpus))
        if running <= 0:
            return 0.0
        if running <= self.cores:
            total = running
        else:
            per_core = running / self.cores
            below = min(int(per_core), self.smt - 1)
            low, high = self.smt_gain[below - 1], self.smt_gain[min(below, self.smt - 1)]
            total = self.cores * (low + (high - low) * (per_core - below))
        return total * threads / (threads + others)


@dataclass(frozen=True, slots=True)
class PerformanceConstants:
    """What an engine's own actions cost.

    Args:
        name: for labels.
        call: ns of a manual hop per tuple: an indirect call, amortised over a run.
        hop: ns of CPU of a queue hop per tuple, push and pop together, same core.
        hop_per_byte: ns per byte of record of a hop.
        copy_per_byte: ns per byte of payload of a hop, under deep copies.
        copy_traffic: bytes of memory traffic per byte copied from memory to memory: read, allocate, write back.
        deep_copy: whether a hop copies payloads.
        transfer: ns per tuple of a hop whose two ends run on different cores, on top.
        visit: ns of finding a port in the free list, draining it and putting it back, without the tuples.
        drain: tuples of one such visit, saturated.
        wake: ns of waking a sleeping thread.
        lock: ns that a counting sink's lock, or a port's producer flag, is held per tuple at least.
        run: tuples per holding of that lock.
        dedicated_switch: ns per tuple of a dedicated thread's context switches.
        balance: share of the lesser of the two times per tuple, of all threads and of the dearest segment, that adds to
            the greater one; 1: Graham's bound for list scheduling (SIAM J. Appl. Math. 17/2, 1969), 0: perfect overlap.
        queue: tuples that a queue holds.
        warm_up: s after a change until the new throughput shows.
        switch: s that ports need to switch their model, draining; an observation before that says so (M15).
        spinning: share of its waiting time that a blocked thread keeps a CPU busy.
        token: ns of taking the Python token and giving it back, per run.
        token_run: tuples per run of a Python operator.
        profile_rate: profiler samples/s (M02).
    """

    name: str
    call: float
    hop: float
    hop_per_byte: float
    copy_per_byte: float
    copy_traffic: float
    deep_copy: bool
    transfer: float
    visit: float
    drain: float
    wake: float
    lock: float
    run: float
    dedicated_switch: float
    balance: float
    queue: int
    warm_up: float
    switch: float
    spinning: float
    token: float
    token_run: float
    profile_rate: float = 100.0


def _columns(table: dict[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """Return {name of a column: {field: its value}}."""
    return {
        name: {key: tuple(row[at]) if isinstance(row[at], list) else row[at] for key, row in table.items()}
        for at, name in enumerate(table.pop("names"))
    }


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
LAPTOP, XEON, POWER8, SERVER16, OPTERON, POWER5 = (Machine(**one) for one in _columns(_TABLES["machines"]).values())
ENGINE, PAPER_ENGINE, SPADE_ENGINE = (PerformanceConstants(**one) for one in _columns(_TABLES["engines"]).values())
