"""JobConfig(threads=...): the scheduler threads of each PE, who runs an operator, and the queues between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, cast

from rayelastic.errors import ConfigError
from rayelastic.plan.settings.checks import check_flags, check_whole, member

QUEUE_RECORDS = 1024  # PLDI'17 section 4: slots of a port's queue
QUEUE_BYTES = 16 << 20  # a queue of 16 KiB payloads holds 1,024 of them
RUN_RECORDS = 256
RUN_BYTES = 16384  # half of a first-level data cache


class ThreadingModel(Enum):
    """Who runs an operator (P02-P05)."""

    MANUAL = "manual"  # the thread that submits to it
    DYNAMIC = "dynamic"  # any scheduler thread, from the operator's input queue
    DEDICATED = "dedicated"  # a thread of its own, from the operator's input queue


ModelName = Literal["manual", "dynamic", "dedicated"]


@dataclass(frozen=True, slots=True)
class Threads:
    """Scheduler threads of each processing element (PE), and the queues between them.

    Args:
        count: Scheduler threads of each PE. None: elastic.
        max: The most scheduler threads of each PE. None: the cores of its machine.
        model: Who runs operators, or {operator: model}. None: elastic. With 'manual' the thread that submits the tuple.
            With 'dynamic' any scheduler thread, from a queue. With 'dedicated' a thread of its own, from a queue.
        pin: Bind each scheduler thread to a CPU, NUMA node by NUMA node, so that neighbours in a pipeline share a
            cache. For machines that run nothing else.
        ray_cpus: CPUs that Ray reserves for each PE. It is a share, as the number of threads changes.
        queue_records: Capacity of a queue, in tuples.
        queue_bytes: Capacity of a queue, in bytes of records and payloads.
        run_records: The most tuples of one call of an operator.
        run_bytes: The most bytes of records of one call of an operator.

    Raises:
        ConfigError: a value is out of range.

    >>> Threads(model={"counts": "dynamic"}).model_of("counts")
    <ThreadingModel.DYNAMIC: 'dynamic'>
    >>> Threads(model="dynamicc")
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: Threads(model='dynamicc'). ... [invalid-setting]
    """

    count: int | None = None
    max: int | None = None
    model: ThreadingModel | ModelName | Mapping[str, ThreadingModel | ModelName] | None = None
    pin: bool = False
    ray_cpus: float = 0.25
    queue_records: int = QUEUE_RECORDS
    queue_bytes: int = QUEUE_BYTES
    run_records: int = RUN_RECORDS
    run_bytes: int = RUN_BYTES

    def __post_init__(self) -> None:
        for name in ("count", "max", "queue_records", "queue_bytes", "run_records", "run_bytes"):
            if (value := getattr(self, name)) is not None or name not in ("count", "max"):
                check_whole(f"Threads({name}={value!r})", value)
        if self.count is not None and self.max is not None and self.count > self.max:
            raise ConfigError(f"Threads(count={self.count}) is more than max={self.max}", hint="Set one of them only")
        if self.run_records > self.queue_records:
            raise ConfigError(
                f"Threads(run_records={self.run_records}) is more than queue_records={self.queue_records}",
                hint="A queue has to hold a run: make the queue longer or the run shorter",
            )
        check_flags(self, ["pin"])
        cpus: object = self.ray_cpus
        if not isinstance(cpus, int | float) or isinstance(cpus, bool) or not 0 <= cpus < float("inf"):
            raise ConfigError(f"Threads(ray_cpus={cpus!r})", hint="Give a number of CPUs, such as 1 or 0.25")
        object.__setattr__(self, "model", _checked_model(self.model))

    def model_of(self, operator: str) -> ThreadingModel | None:
        """Return the threading model that is fixed for an operator; None: elastic."""
        models = cast("ThreadingModel | Mapping[str, ThreadingModel] | None", self.model)
        return models.get(operator) if isinstance(models, Mapping) else models


def _checked_model(model: object) -> ThreadingModel | dict[str, ThreadingModel] | None:
    if model is None:
        return None
    if isinstance(model, Mapping):
        return {operator: _member(one, operator) for operator, one in model.items()}
    return _member(model, None)


def _member(model: object, operator: str | None) -> ThreadingModel:
    return member(ThreadingModel, model, f"Threads(model={model!r})", operator)
