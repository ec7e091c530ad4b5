"""JobConfig(elasticity=...): which algorithms adapt a job, how often, within which bounds, and what they record."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from rayelastic.errors import ConfigError
from rayelastic.plan.hash_ring import PARTITIONS
from rayelastic.plan.settings.checks import check_flags, check_seconds, check_share, check_whole, member
from rayelastic.plan.settings.paper import PaperElasticity

THREAD_PERIOD = 1.0  # seconds; the papers take 5 and 10, whose tests need them
REGION_PERIOD = 2.0  # seconds: 200 samples of the profiler; Joker takes 30 (section 4.1), whose averages need them
REGION_TARGET = 0.8  # of a CPU: Joker's bottleneck threshold (section 5.1)
SHORTEST_PERIOD = 0.1  # seconds; ten profiler snapshots of each thread


class Algorithm(Enum):
    """Which algorithm decides on threads and queues."""

    MULTI_LEVEL = "multi-level"  # guided by costs, decided by sequential tests: the default
    PAPER = "paper"  # Middleware'19 section 3, as published
    OFF = "off"  # none: what isn't set stays as it starts, one thread and no queues


AlgorithmName = Literal["multi-level", "paper", "off"]


@dataclass(frozen=True, slots=True)
class Elasticity:
    """How a job adapts: the algorithm, its periods and targets, its bounds, and its records.

    Args:
        algorithm: Which algorithm finds threads and queues: 'multi-level', 'paper' (Middleware'19 as published) or
            'off'.
        paper: Parameters of algorithm='paper'. None: those of the paper.
        thread_period: Seconds between two decisions on threads and queues, 0.1 or more. In the first seconds, and
            during a search, they come sooner.
        region_period: Seconds between two decisions on replicas, 0.1 or more.
        region_target: Share of a CPU that a replica should use, above 0 and below 1. A smaller share leaves room for
            bursts.
        cool_down: Seconds for which fewer replicas have to be enough before the job scales in. None: 8 times
            `region_period`. It doubles for replicas that are needed again soon.
        max_processes: The most PEs of an elastic job. None: the CPUs of the cluster.
        max_replicas: The most replicas of a region that the job scales, at most 4096, the partitions of keys. None:
            what `max_processes` allows; with regions='paper' 16.
        remember: Start from the best configuration of an earlier run of the same operators on this machine, and save
            what this run finds. The files are in $XDG_STATE_HOME/rayelastic, or ~/.local/state/rayelastic.
        journal: A file that records each decision and its measurements, as a line of JSON. In the path, {pe} stands
            for the PE, or for 'regions' of decisions on replicas. None: the last ones stay in memory.

    Raises:
        ConfigError: a value is out of range.

    >>> Elasticity(max_processes=8).algorithm
    <Algorithm.MULTI_LEVEL: 'multi-level'>
    >>> Elasticity(region_target=2)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: Elasticity(region_target=2). ... [invalid-setting]
    """

    algorithm: Algorithm | AlgorithmName = Algorithm.MULTI_LEVEL
    paper: PaperElasticity | None = None
    thread_period: float = THREAD_PERIOD
    region_period: float = REGION_PERIOD
    region_target: float = REGION_TARGET
    cool_down: float | None = None
    max_processes: int | None = None
    max_replicas: int | None = None
    remember: bool = True
    journal: str | None = None

    def __post_init__(self) -> None:
        algorithm = member(Algorithm, self.algorithm, f"Elasticity(algorithm={self.algorithm!r})")
        object.__setattr__(self, "algorithm", algorithm)
        for name in ("max_processes", "max_replicas"):
            if (value := getattr(self, name)) is not None:
                check_whole(f"Elasticity({name}={value!r})", value)
        if self.max_replicas is not None and self.max_replicas > PARTITIONS:
            raise ConfigError(
                f"Elasticity(max_replicas={self.max_replicas}): there are {PARTITIONS} partitions of keys",
                hint=f"Give {PARTITIONS} or less",
            )
        for name in ("thread_period", "region_period", "cool_down"):
            if (value := getattr(self, name)) is not None or name != "cool_down":
                check_seconds(f"Elasticity({name}={value!r})", value, SHORTEST_PERIOD)
        check_share(f"Elasticity(region_target={self.region_target!r})", self.region_target)
        check_flags(self, ["remember"])
        journal: object = self.journal
        if journal is not None and not (isinstance(journal, str) and journal):
            raise ConfigError(f"Elasticity(journal={journal!r})", hint="Give the path of a file, such as '{pe}.jsonl'")
        paper: object = self.paper
        if paper is not None and not isinstance(paper, PaperElasticity):
            raise ConfigError(f"Elasticity(paper={paper!r})", hint="Give rel.PaperElasticity(...)")
        if paper is not None and algorithm is not Algorithm.PAPER:
            raise ConfigError(
                f"Elasticity(algorithm={algorithm.value!r}, paper=...): only algorithm='paper' has these parameters",
                hint="Give algorithm='paper', too",
            )
