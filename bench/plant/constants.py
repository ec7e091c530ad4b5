"""What things cost: machines and engines as frozen tables, each number with its unit and its source.

Two engines are committed: this project's, from the measurements of `findings` sections 1 and 2, and that of the papers,
whose constants are fitted to what the papers tell of its behaviour (there is no other source: labelled "fit").
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ENGINE",
    "LAPTOP",
    "OPTERON",
    "PAPER_ENGINE",
    "POWER5",
    "POWER8",
    "SERVER16",
    "SPADE_ENGINE",
    "XEON",
    "Machine",
    "PerformanceConstants",
]


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


# --- machines -------------------------------------------------------------------------------------------------------

# The developers' machines: two cores of a VM. Flop: findings 1, 1,000 dependent multiplies 770 ns; bandwidth: memcpy
# of a 256 MiB working set 15 GB/s; handover: a contended try-lock 22 ns against 6.5.
LAPTOP = Machine("2 cores", cores=2, flop=0.77, handover=15.5, growth=1.0, cache=32e6, bandwidth=15.0)

# PLDI'17 section 5 and Middleware'19 section 4: 4 x E7-8880 v4, 22 cores, 2-way SMT, 55 MB each. Fits: smt_gain and
# growth to C002-5 (80 of 176 threads best at cost 1000) and C002-6 (72-132 at cost 1); handover to C002-4 (8-10
# threads); bandwidth to C000-3 (22x at 16 KiB).
XEON = Machine(
    "Xeon, 176",
    cores=88,
    smt=2,
    smt_gain=(1.0, 1.05),
    flop=0.77,
    handover=310.0,
    growth=2.0,
    cache=220e6,
    bandwidth=80.0,
)

# The same sections: 2 x Power8, 23 cores in use, 8-way SMT, 96 MB each. Fits: smt_gain and growth to C002-5 (184
# best) and C002-6 (128-160 at cost 1), handover to C002-4 (16-24 threads).
POWER8 = Machine(
    "Power8, 184",
    cores=23,
    smt=8,
    smt_gain=(1.0, 1.45, 1.72, 1.95, 2.06, 2.16, 2.24, 2.3),
    flop=2.0,
    handover=200.0,
    growth=0.4,
    cache=192e6,
    bandwidth=80.0,
)

# ElasticLoadBalance's page: 16 logical processors. Handover fitted to C001-1 (8 threads at 1,000 multiplications).
SERVER16 = Machine("16 logical", cores=16, flop=1.0, handover=65.0, growth=1.0, cache=40e6, bandwidth=20.0)

# IPDPS'09 section 5: 2 x dual-core Opteron 2218 at 2.6 GHz; 16 cores of Power5+ at 1.9 GHz with 2-way SMT, which
# "does not help" floating point. Four cycles a dependent operation.
OPTERON = Machine("Opteron, 4", cores=4, flop=1.5, handover=120.0, growth=2.0, cache=4e6, bandwidth=6.0)
POWER5 = Machine(
    "Power5+, 32",
    cores=16,
    smt=2,
    smt_gain=(1.0, 0.97),
    flop=2.6,
    handover=150.0,
    growth=2.0,
    cache=60e6,
    bandwidth=12.0,
)

# --- engines --------------------------------------------------------------------------------------------------------

# findings 1: call per tuple in runs 0.39 ns, bulk hop 0.8 ns at 16 B and 4.4 at 128 B; contended CAS 17.9 ns; section
# 2: payloads by reference. balance: 1.7-1.9x on two cores with a bounded drain (section 4, single runs). To be
# recalibrated.
ENGINE = PerformanceConstants(
    name="rayelastic",
    call=0.39,
    hop=6.0,
    hop_per_byte=0.032,
    copy_per_byte=0.066,
    copy_traffic=3.0,
    deep_copy=False,
    transfer=4.0,
    visit=120.0,
    drain=256.0,
    wake=58_000.0,
    lock=22.0,
    run=64.0,
    dedicated_switch=20.0,
    balance=0.15,
    queue=1024,
    warm_up=0.2,
    switch=0.0,
    spinning=0.0,
    token=306.0,
    token_run=64.0,
)

# findings 2: 100 operators of cost 1 take 10 ns each by manual calls; hop: dynamic beside it. Fits: balance 1.0 to
# C000-12 (gains at 8 and 16 threads pass the satisfaction factor, that at 32 doesn't) and to C002-2 (25 % below
# dedicated at cost 1,000); switch to C000-12 (200 periods of 5 s). queue, drain, spinning (`reSchedule` spins):
# findings 3.
PAPER_ENGINE = PerformanceConstants(
    name="papers",
    call=15.0,
    hop=130.0,
    hop_per_byte=0.2,
    copy_per_byte=0.2,
    copy_traffic=3.0,
    deep_copy=True,
    transfer=40.0,
    visit=400.0,
    drain=250.0,
    wake=58_000.0,
    lock=50.0,
    run=1.0,
    dedicated_switch=10.0,
    balance=1.0,
    queue=1000,
    warm_up=0.2,
    switch=10.0,
    spinning=0.5,
    token=306.0,
    token_run=1.0,
)

# IPDPS'09: one global work queue behind a mutex, a copy and a condition variable for each tuple.
SPADE_ENGINE = PerformanceConstants(
    name="SPADE",
    call=20.0,
    hop=700.0,
    hop_per_byte=0.3,
    copy_per_byte=0.3,
    copy_traffic=3.0,
    deep_copy=True,
    transfer=100.0,
    visit=0.0,
    drain=1.0,
    wake=58_000.0,
    lock=250.0,
    run=1.0,
    dedicated_switch=50.0,
    balance=0.3,
    queue=1000,
    warm_up=0.2,
    switch=0.0,
    spinning=0.5,
    token=306.0,
    token_run=1.0,
)
