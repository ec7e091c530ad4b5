"""What a user may pin of a job. Never in the graph: a topology has no degree of parallelism (J07)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Self

from rayelastic.errors import ConfigError
from rayelastic.plan.checkpoint import Checkpoint
from rayelastic.plan.hash_ring import PARTITIONS
from rayelastic.plan.tls import TLS
from rayelastic.plan.wishes.latency import Latency
from rayelastic.plan.wishes.paper import PaperElasticity
from rayelastic.plan.wishes.schedule import Schedule
from rayelastic.plan.wishes.wish import checked_wishes, span_of

__all__ = ["Elasticity", "JobConfig", "Regions", "ThreadingModel"]

QUEUE_RECORDS = 1024  # PLDI'17 section 4: slots of a port's queue
QUEUE_BYTES = 16 << 20  # a queue of 16 KiB payloads holds 1,024 of them
RUN_RECORDS = 256
RUN_BYTES = 16384  # half of a first-level data cache
LOG_LEVELS = ("debug", "info", "warning", "error")
ADAPTATION_PERIOD = 1.0  # seconds; the papers take 5 and 10, whose tests need them
REGION_PERIOD = 2.0  # seconds: 200 looks of the profiler; Joker takes 30 (section 4.1), whose averages need them
PATIENCE = 30.0  # seconds; Flink's heartbeats take 50, and lose a moment of work where here all state goes
LEAST_PATIENCE = 2.0  # seconds: four heartbeats of a link
REGION_TARGET = 0.8  # of a CPU: Joker's bottleneck threshold (section 5.1)
HIGHEST_PORT = 65_535
SHORTEST_PERIOD = 0.1  # seconds; ten profiler snapshots of each thread


class Elasticity(Enum):
    """Who decides on threads and queues."""

    MULTI_LEVEL = "multi-level"  # threads and queues, guided by costs, decided by sequential tests: the default
    PAPER = "paper"  # Middleware'19 section 3, as published
    OFF = "off"  # nobody: what isn't set stays as it starts, one thread and no queues

    @classmethod
    def _missing_(cls, value: object) -> Elasticity | None:
        """Take the older name of the default, which journals of earlier days have, too."""
        return cls.MULTI_LEVEL if value == "guided" else None


class Regions(Enum):
    """Whether regions can get more and fewer replicas while the job runs."""

    FIXED = "fixed"  # no: the default in this process
    MANUAL = "manual"  # data-parallel and stateless ones do when Job.rescale says so
    ADVISE = "advise"  # they do when they are told so; organic adaptation says what it would do
    PAPER = "paper"  # Joker's algorithms as published do it
    ELASTIC = "elastic"  # organic adaptation does it too: the default on Ray


class ThreadingModel(Enum):
    """Who runs an operator (P02-P05)."""

    MANUAL = "manual"  # the thread that submits to it
    DYNAMIC = "dynamic"  # any scheduler thread, from a queue in front of it
    DEDICATED = "dedicated"  # a thread of its own, from a queue in front of it


@dataclass(frozen=True, slots=True)
class JobConfig:
    """Pin or bound settings of a job. Everything that isn't set is found while it runs.

    Args:
        pes: Number of processing elements (PEs) at the start. Cuts the topology at borders of regions, evenly by
            operators.
        pins: {operator: number or name of a PE}. The operator and what follows it run there, up to the next pin; the
            rest runs in number 0. Instead of `pes`.
        threads: Scheduler threads of each PE. None: elastic.
        threading: 'manual', 'dynamic' or 'dedicated' for all operators, or {operator: model}. None: elastic.
        max_threads: The most scheduler threads of each PE. None: the cores of its machine.
        pin_threads: Bind each scheduler thread to a CPU, NUMA node by NUMA node, so that neighbours in a pipeline share
            a cache. For machines that run nothing else.
        queue_records: Capacity of a queue, in tuples.
        queue_bytes: Capacity of a queue, in bytes of records and payloads.
        run_records: The most tuples of one call of an operator.
        run_bytes: The most bytes of records of one call of an operator.
        deep_copy: Copy payloads at each hop, as the engine of the papers did. For benchmarks.
        elasticity: Which algorithm finds threads and queues: 'multi-level', 'paper' (Middleware'19 as published) or
            'off'.
        paper: Parameters of elasticity='paper'. None: those of the paper.
        adaptation_period: Seconds between two decisions on threads and queues, 0.1 or more. In the first seconds, and
            during a search, they come sooner.
        remember: Start from the best configuration of an earlier run of the same operators on this machine, and save
            what this run finds. The files are in $XDG_STATE_HOME/rayelastic, or ~/.local/state/rayelastic.
        journal: A file that records each decision as a line of JSON, with what was measured. {pe} stands for the PE,
            and for 'regions' in decisions on replicas. None: the last ones stay in memory.
        log_level: The lowest level that the actors of a job on Ray log: 'debug', 'info', 'warning' or 'error'.
        regions: Who changes the number of replicas. 'fixed': nobody. 'manual': `Job.rescale`. 'advise': the same, and
            `job.adaptations()` reports what 'elastic' would do. 'elastic': the job itself. 'paper': Joker's Algorithms
            1 to 7. None: 'elastic' on Ray, 'fixed' in this process.
        max_processes: The most PEs of an elastic job. None: the CPUs of the cluster.
        max_replicas: The most replicas of a region that the job scales, at most 271, the partitions of keys. None: what
            `max_processes` allows; with regions='paper' 16.
        replicas: {operator: (fewest, most)} replicas of its region, or one number for both. The job starts with the
            fewest. `rel.Schedule` sets them by the time of day.
        goal: A latency target such as rel.Latency(p99=0.2). The job adds replicas below `region_target` to reach it.
            None: `region_target` alone.
        cool_down: Seconds for which fewer replicas have to be enough before the job scales in. None: 8 times
            `region_period`. It doubles for replicas that are needed again soon.
        region_period: Seconds between two decisions on replicas, 0.1 or more.
        region_target: Share of a CPU that a replica should use, above 0 and below 1. A smaller share leaves room for
            bursts.
        patience: Seconds after which a silent PE counts as lost, 2 or more. A PE whose process ends is missed at once.
        secure: Encrypt traffic between hosts by TLS 1.3: links, state that moves, rows from Spark and Ray Datasets.
            About half as fast where a link is the bottleneck. Certificates besides: `tls=rel.TLS(cert, key, ca,
            links=True)`.
        checkpoint: A `rel.Checkpoint`: how often and where the job saves its state, to recover from failures. None: its
            defaults on Ray, no checkpoints in this process. False: no checkpoints.
        web_port: Port of the job's web UI at 127.0.0.1, which this process serves until the job is closed. 0: a free
            port. None: no web UI. `Job.web_url` and a line on standard error show the address, with its token.
        tls: Certificates for the web UI and for the port of Prometheus, see `rel.TLS`. None: plain HTTP.
        cpus_per_pe: CPUs that Ray counts for each PE. It is a share, as threads come and go.

    Raises:
        ConfigError: a value is out of range.

    >>> JobConfig(pes=2).model_of("counts") is None
    True
    >>> JobConfig(threading={"counts": "dynamic"}).model_of("counts")
    <ThreadingModel.DYNAMIC: 'dynamic'>
    >>> JobConfig(pes=0)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: JobConfig(pes=0): too small. Give a whole number, 1 or more
    """

    pes: int = 1
    pins: Mapping[str, int | str] = field(default_factory=dict)
    threads: int | None = None
    threading: ThreadingModel | str | Mapping[str, ThreadingModel | str] | None = None
    max_threads: int | None = None
    pin_threads: bool = False
    queue_records: int = QUEUE_RECORDS
    queue_bytes: int = QUEUE_BYTES
    run_records: int = RUN_RECORDS
    run_bytes: int = RUN_BYTES
    deep_copy: bool = False
    elasticity: Elasticity | str = Elasticity.MULTI_LEVEL
    paper: PaperElasticity | None = None
    adaptation_period: float = ADAPTATION_PERIOD
    remember: bool = True
    journal: str | None = None
    cpus_per_pe: float = 0.25
    regions: Regions | str | None = None
    log_level: str = "info"
    region_period: float = REGION_PERIOD
    region_target: float = REGION_TARGET
    patience: float = PATIENCE
    checkpoint: Checkpoint | bool | None = None
    secure: bool = False
    web_port: int | None = None
    tls: TLS | None = None
    max_processes: int | None = None
    max_replicas: int | None = None
    replicas: Mapping[str, int | tuple[int, int] | Schedule] = field(default_factory=dict)
    goal: Latency | None = None
    cool_down: float | None = None

    def __post_init__(self) -> None:
        for name in ("pes", "queue_records", "queue_bytes", "run_records", "run_bytes"):
            _check_whole(name, getattr(self, name))
        for name in ("threads", "max_threads", "max_processes", "max_replicas"):
            if getattr(self, name) is not None:
                _check_whole(name, getattr(self, name))
        if self.threads is not None and self.max_threads is not None and self.threads > self.max_threads:
            raise ConfigError(
                f"JobConfig(threads={self.threads}) is more than max_threads={self.max_threads}",
                hint="Set one of them only",
            )
        self._check_bounds()
        if self.run_records > self.queue_records:
            raise ConfigError(
                f"JobConfig(run_records={self.run_records}) is more than queue_records={self.queue_records}",
                hint="A run has to fit a queue: make the queue longer or the run shorter",
            )
        _check_cpus(self.cpus_per_pe)
        for name in ("deep_copy", "pin_threads", "remember", "secure"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(f"JobConfig({name}={getattr(self, name)!r})", hint="Give True or False")
        journal: object = self.journal
        if journal is not None and not (isinstance(journal, str) and journal):
            raise ConfigError(f"JobConfig(journal={journal!r})", hint="Give the path of a file, such as '{pe}.jsonl'")
        _check_period("adaptation_period", self.adaptation_period)
        _check_period("region_period", self.region_period)
        _check_share("region_target", self.region_target)
        if self.cool_down is not None:
            _check_period("cool_down", self.cool_down)
        _check_period("patience", self.patience, LEAST_PATIENCE)
        object.__setattr__(self, "checkpoint", _checked_checkpoint(self.checkpoint))
        if self.web_port is not None:
            _check_port(self.web_port)
        if self.tls is not None and not isinstance(self.tls, TLS):
            raise ConfigError(f"JobConfig(tls={self.tls!r})", hint="Give rel.TLS(cert, key, ca)")
        if self.link_certificates is not None and not self.secure:
            raise ConfigError(
                "JobConfig(tls=rel.TLS(links=True)) without secure=True: links aren't encrypted",
                hint="Give secure=True, too, or leave links out",
            )
        object.__setattr__(self, "elasticity", _checked_elasticity(self.elasticity))
        _check_paper(self.paper, self.elasticity)
        _check_level(self.log_level)
        object.__setattr__(self, "regions", None if self.regions is None else _checked_regions(self.regions))
        if self.regions not in (None, Regions.FIXED) and self.journal is not None and "{pe}" not in self.journal:
            raise ConfigError(
                f"JobConfig(journal={self.journal!r}): replicas would overwrite each other's",
                hint="Have {pe} in it, such as '{pe}.jsonl', or set regions='fixed', which isn't the default on Ray",
            )
        object.__setattr__(self, "pins", _checked_pins(self.pins, self.pes))
        object.__setattr__(self, "threading", _checked_threading(self.threading))

    @property
    def link_certificates(self) -> TLS | None:
        """What both ends of a link show to each other; None: nothing, the key of the connection alone counts."""
        return self.tls if self.tls is not None and self.tls.links else None

    def or_regions(self, regions: Regions) -> Self:
        """Return the same with regions that are like this if nothing is said of them."""
        return self if self.regions is not None else replace(self, regions=regions)

    def _check_bounds(self) -> None:
        if self.max_processes is not None and self.max_processes < self.pes:
            raise ConfigError(
                f"JobConfig(pes={self.pes}, max_processes={self.max_processes}): it starts with more than it may have",
                hint="Give a larger max_processes, or fewer pes",
            )
        if self.max_replicas is not None and self.max_replicas > PARTITIONS:
            raise ConfigError(
                f"JobConfig(max_replicas={self.max_replicas}): there are {PARTITIONS} partitions of keys",
                hint=f"Give {PARTITIONS} or less",
            )
        object.__setattr__(self, "replicas", wishes := checked_wishes(self.replicas))
        for operator, bounds in ((name, span_of(wish)) for name, wish in wishes.items()):
            if self.max_replicas is not None and bounds[1] > self.max_replicas:
                raise ConfigError(
                    f"JobConfig(replicas=...) says {bounds}, and max_replicas={self.max_replicas}",
                    operator=operator,
                    hint="Give fewer there, or a larger max_replicas",
                )
        given: object = self.goal
        if given is not None and not isinstance(given, Latency):
            raise ConfigError(f"JobConfig(goal={given!r})", hint="Give rel.Latency(p99=seconds)")
        given_bounds = (self.max_processes, self.max_replicas, self.cool_down, self.replicas or None)
        if any(bound is not None for bound in given_bounds) and self.regions in (Regions.FIXED, Regions.FIXED.value):
            raise ConfigError(
                "JobConfig(regions='fixed') with max_processes, max_replicas, replicas or cool_down: nothing changes",
                hint="Leave regions out, or give 'elastic', which isn't the default in this process",
            )
        decided = (None, Regions.ELASTIC, Regions.ELASTIC.value, Regions.ADVISE, Regions.ADVISE.value)
        scheduled = any(isinstance(wish, Schedule) for wish in wishes.values())
        followed = {
            f"goal={self.goal}": self.goal is not None,
            f"cool_down={self.cool_down}": self.cool_down is not None,
            "replicas={...: rel.Schedule(...)}": scheduled,
        }
        unheard = next((setting for setting, is_given in followed.items() if is_given), None)
        if unheard is not None and self.regions not in decided:
            shown = Regions(self.regions).value if self.regions in list(Regions) else self.regions
            raise ConfigError(
                f"JobConfig(regions={shown!r}, {unheard}): nobody would follow it",
                hint="Give regions='elastic', which isn't the default in this process",
            )

    def model_of(self, operator: str) -> ThreadingModel | None:
        """Return the threading model that is pinned for an operator; None: elastic."""
        models: Any = self.threading
        return models.get(operator) if isinstance(models, Mapping) else models


def _checked_checkpoint(value: object) -> Checkpoint | bool | None:
    if value is None or value is False or isinstance(value, Checkpoint):
        return value
    if value is True:
        return Checkpoint()
    raise ConfigError(
        f"JobConfig(checkpoint={value!r})", hint="Give rel.Checkpoint(...), or False for a job without checkpoints"
    )


def _check_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"JobConfig({name}={value!r}): no whole number", hint="Give a whole number, 1 or more")
    if value < 1:
        raise ConfigError(f"JobConfig({name}={value!r}): too small", hint="Give a whole number, 1 or more")


def _check_cpus(value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise ConfigError(f"JobConfig(cpus_per_pe={value!r})", hint="Give a number of CPUs, such as 1 or 0.25")


def _check_port(value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= HIGHEST_PORT:
        raise ConfigError(f"JobConfig(web_port={value!r})", hint="Give a port number, or 0 for a free one")


def _check_period(name: str, value: object, least: float = SHORTEST_PERIOD) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < float("inf"):
        raise ConfigError(f"JobConfig({name}={value!r})", hint=f"Give seconds, {least:g} or more")


def _check_share(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1:
        raise ConfigError(f"JobConfig({name}={value!r})", hint="Give a share above 0 and below 1, such as 0.8")


def _checked_elasticity(value: object) -> Elasticity:
    try:
        return Elasticity(value)
    except ValueError:
        names = ", ".join(repr(one.value) for one in Elasticity)
        raise ConfigError(f"JobConfig(elasticity={value!r})", hint=f"Choose one of {names}") from None


def _check_paper(paper: object, elasticity: object) -> None:
    if paper is None:
        return
    if not isinstance(paper, PaperElasticity):
        raise ConfigError(f"JobConfig(paper={paper!r})", hint="Give rel.PaperElasticity(...)")
    if elasticity is not Elasticity.PAPER:
        raise ConfigError(
            f"JobConfig(elasticity={elasticity!r}, paper=...): nobody would use it",
            hint="Give elasticity='paper', too",
        )


def _check_level(level: object) -> None:
    if level not in LOG_LEVELS:
        raise ConfigError(f"JobConfig(log_level={level!r})", hint=f"Choose one of {', '.join(map(repr, LOG_LEVELS))}")


def _checked_regions(value: object) -> Regions:
    try:
        return Regions(value)
    except ValueError:
        raise ConfigError(
            f"JobConfig(regions={value!r})", hint="Choose 'fixed', 'manual', 'advise', 'elastic' or 'paper'"
        ) from None


def _checked_pins(pins: object, pes: int) -> dict[str, int | str]:
    if not isinstance(pins, Mapping):
        raise ConfigError(f"JobConfig(pins={pins!r})", hint="Give {operator: number or name of a PE}")
    for operator, pe in pins.items():
        number = isinstance(pe, int) and not isinstance(pe, bool) and pe >= 0
        named = isinstance(pe, str) and pe.isidentifier()
        if not isinstance(operator, str) or not (number or named):
            raise ConfigError(
                f"JobConfig(pins={{{operator!r}: {pe!r}}})",
                operator=operator if isinstance(operator, str) else None,
                hint="Pin an operator's name to a number from 0 on, or to a name such as 'front'",
            )
    if pins and pes > 1:
        raise ConfigError(f"JobConfig(pes={pes}, pins=...) says twice where to cut", hint="Give pes or pins")
    return dict(pins)


def _checked_threading(threading: object) -> ThreadingModel | dict[str, ThreadingModel] | None:
    if threading is None:
        return None
    if isinstance(threading, Mapping):
        return {operator: _model(model, operator) for operator, model in threading.items()}
    return _model(threading, None)


def _model(model: object, operator: str | None) -> ThreadingModel:
    try:
        return ThreadingModel(model)
    except ValueError:
        raise ConfigError(
            f"JobConfig(threading={model!r}) is no threading model",
            operator=operator,
            hint="Choose 'manual', 'dynamic' or 'dedicated'",
        ) from None
