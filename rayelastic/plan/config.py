"""Settings of a job that users fix or bound. The topology has none: it has no degree of parallelism (J07)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal, Self, cast, get_args

from rayelastic.errors import ConfigError
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.plan.settings.checks import check_whole, choices, member
from rayelastic.plan.settings.elasticity import Algorithm, AlgorithmName, Elasticity
from rayelastic.plan.settings.latency import Latency
from rayelastic.plan.settings.network import Network
from rayelastic.plan.settings.placement import checked_pes
from rayelastic.plan.settings.places import with_places
from rayelastic.plan.settings.replicas import ReplicaBounds, checked_bounds, span_of
from rayelastic.plan.settings.schedule import Schedule
from rayelastic.plan.settings.threads import Threads

HIGHEST_PORT = 65_535


class Regions(Enum):
    """Who changes the number of replicas while the job runs."""

    FIXED = "fixed"  # nobody: the default in this process
    MANUAL = "manual"  # Job.rescale, for data-parallel and stateless regions
    ADVISE = "advise"  # Job.rescale; organic adaptation reports what it would do
    PAPER = "paper"  # Joker's algorithms as published
    ELASTIC = "elastic"  # organic adaptation: the default on Ray


RegionsName = Literal["fixed", "manual", "advise", "paper", "elastic"]
LogLevel = Literal["debug", "info", "warning", "error"]


@dataclass(frozen=True, slots=True, init=False)
class JobConfig:
    """Fix or bound settings of a job. The job finds everything else while it runs.

    Args:
        pes: Number of processing elements (PEs) at the start, which cuts the topology at borders of regions, evenly by
            operators. Or {operator: number or name of its PE}. Operators downstream of it run there, too, up to the
            next one that is named. Those upstream run in number 0.
        threads: Scheduler threads of each PE, or a `rel.Threads`. None: elastic.
        regions: Who changes the number of replicas. 'fixed': nobody. 'manual': `Job.rescale`. 'advise': the same, and
            `job.adaptations()` reports what 'elastic' would do. 'elastic': the job itself. 'paper': Joker's Algorithms
            1 to 7. None: 'elastic' on Ray, 'fixed' in this process.
        replicas: {operator: (fewest, most)} replicas of its region, or one number for both. The job starts with the
            fewest. `rel.Schedule` sets them by the time of day.
        goal: A latency target such as rel.Latency(p99=0.2). The job adds replicas below `Elasticity(region_target=)` to
            reach it. None: `region_target` alone.
        elasticity: A `rel.Elasticity`: algorithm, periods, bounds and records of adaptation, or the algorithm alone.
        checkpoint: A `rel.Checkpoint`: how often and where the job saves its state, to recover from failures. True: its
            defaults. None: its defaults on Ray, no checkpoints in this process. False: no checkpoints.
        network: A `rel.Network`: encryption, certificates, and the timeout of a silent PE.
        web_port: Port of the job's web UI at 127.0.0.1, which this process serves until the job is closed. 0: a free
            port. None: no web UI. `Job.web_url` and a line on standard error show the address, with its token.
        log_level: The lowest level that the actors of a job on Ray log: 'debug', 'info', 'warning' or 'error'.

    Raises:
        ConfigError: a value is out of range, or there is no setting of this name.

    >>> JobConfig(pes=2, threads=4).threads.count
    4
    >>> JobConfig(pes=0)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: JobConfig(pes=0): too small. Give a whole number, 1 or more [invalid-setting]
    >>> JobConfig(region_period=2)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: JobConfig(region_period=2): no setting of this name. ... [invalid-setting]
    """

    pes: int | Mapping[str, int | str]
    threads: Threads
    regions: Regions | None
    replicas: Mapping[str, ReplicaBounds]
    goal: Latency | None
    elasticity: Elasticity
    checkpoint: Checkpoint | Literal[False] | None
    network: Network
    web_port: int | None
    log_level: LogLevel

    @with_places
    def __init__(
        self,
        *,
        pes: int | Mapping[str, int | str] = 1,
        threads: int | Threads | None = None,
        regions: Regions | RegionsName | None = None,
        replicas: Mapping[str, int | tuple[int, int] | Schedule] | None = None,
        goal: Latency | None = None,
        elasticity: Elasticity | Algorithm | AlgorithmName = Algorithm.MULTI_LEVEL,
        checkpoint: Checkpoint | bool | None = None,
        network: Network | None = None,
        web_port: int | None = None,
        log_level: LogLevel = "info",
    ) -> None:
        values = {
            "pes": checked_pes(pes),
            "threads": _checked_threads(threads),
            "regions": None if regions is None else member(Regions, regions, f"JobConfig(regions={regions!r})"),
            "replicas": checked_bounds({} if replicas is None else replicas),
            "goal": goal,
            "elasticity": _checked_elasticity(elasticity),
            "checkpoint": _checked_checkpoint(checkpoint),
            "network": Network() if network is None else network,
            "web_port": web_port,
            "log_level": log_level,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if not isinstance(self.network, Network):
            raise ConfigError(f"JobConfig(network={network!r})", hint="Give rel.Network(...)")
        if web_port is not None:
            _check_port(web_port)
        if log_level not in get_args(LogLevel):
            raise ConfigError(f"JobConfig(log_level={log_level!r})", hint=f"Choose {choices(get_args(LogLevel))}")
        self._check_bounds()
        self._check_followed()

    def or_regions(self, regions: Regions) -> Self:
        """Return a configuration with these `regions` where the user set none.

        >>> JobConfig().or_regions(Regions.ELASTIC).regions.value
        'elastic'
        """
        return self if self.regions is not None else replace(self, regions=regions)

    def _check_bounds(self) -> None:
        most, bounds = self.elasticity, self.replicas
        if most.max_processes is not None and isinstance(self.pes, int) and most.max_processes < self.pes:
            raise ConfigError(
                f"JobConfig(pes={self.pes}) is more than Elasticity(max_processes={most.max_processes})",
                hint="Give a larger max_processes, or fewer pes",
            )
        for operator, span in ((name, span_of(one)) for name, one in bounds.items()):
            if most.max_replicas is not None and span[1] > most.max_replicas:
                raise ConfigError(
                    f"JobConfig(replicas=...) is {span}, and Elasticity(max_replicas={most.max_replicas})",
                    operator=operator,
                    hint="Give fewer there, or a larger max_replicas",
                )
        goal: object = self.goal
        if goal is not None and not isinstance(goal, Latency):
            raise ConfigError(f"JobConfig(goal={goal!r})", hint="Give rel.Latency(p99=seconds)")

    def _check_followed(self) -> None:
        """Raise for settings of replicas where nothing changes their number."""
        elasticity, regions = self.elasticity, self.regions
        bounds = (elasticity.max_processes, elasticity.max_replicas, elasticity.cool_down, self.replicas or None)
        if any(bound is not None for bound in bounds) and regions is Regions.FIXED:
            raise ConfigError(
                "JobConfig(regions='fixed') with max_processes, max_replicas, replicas or cool_down: nothing changes",
                hint="Leave regions out, or set regions='elastic', which isn't the default in this process",
            )
        needing = {
            f"goal={self.goal}": self.goal is not None,
            f"cool_down={elasticity.cool_down}": elasticity.cool_down is not None,
            "replicas={...: rel.Schedule(...)}": any(isinstance(one, Schedule) for one in self.replicas.values()),
        }
        ignored = next((setting for setting, is_given in needing.items() if is_given), None)
        if ignored is not None and regions not in (None, Regions.ELASTIC, Regions.ADVISE):
            raise ConfigError(
                f"JobConfig(regions={regions.value!r}) ignores {ignored}",
                hint="Give regions='elastic', which isn't the default in this process",
            )
        journal = elasticity.journal
        if regions not in (None, Regions.FIXED) and journal is not None and "{pe}" not in journal:
            raise ConfigError(
                f"Elasticity(journal={journal!r}): replicas would overwrite each other's",
                hint="Have {pe} in it, such as '{pe}.jsonl', or set regions='fixed', which isn't the default on Ray",
            )


def _checked_threads(threads: object) -> Threads:
    if isinstance(threads, Threads):
        return threads
    if threads is not None:
        check_whole(f"JobConfig(threads={threads!r})", threads)
    return Threads(count=cast("int | None", threads))


def _checked_elasticity(elasticity: object) -> Elasticity:
    if isinstance(elasticity, Elasticity):
        return elasticity
    return Elasticity(member(Algorithm, elasticity, f"JobConfig(elasticity={elasticity!r})"))


def _checked_checkpoint(value: object) -> Checkpoint | Literal[False] | None:
    if value is None or value is False or isinstance(value, Checkpoint):
        return value
    if value is True:
        return Checkpoint()
    raise ConfigError(
        f"JobConfig(checkpoint={value!r})", hint="Give rel.Checkpoint(...), or False for a job without checkpoints"
    )


def _check_port(value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= HIGHEST_PORT:
        raise ConfigError(f"JobConfig(web_port={value!r})", hint="Give a port number, or 0 for a free one")
