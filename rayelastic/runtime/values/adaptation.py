"""The history of an adaptation loop, pass by pass: values that are published live and that a test can replay.

Must not know how observations are made or what the controller's rules are.
"""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.plan.plan_text import counted, short
from rayelastic.plan.settings.elasticity import Algorithm
from rayelastic.plan.settings.paper import PaperElasticity
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.decision import Decision
from rayelastic.policy.element.guided.estimate import Configuration
from rayelastic.policy.element.observation import Observation

KEPT_OPERATORS = 500_000  # operator observations that a journal keeps in memory; about 100 MB
KEPT_PASSES = 10_000  # at most, however few operators there are


@dataclass(frozen=True, slots=True)
class Setting:
    """The common values of a loop's passes.

    Args:
        elasticity: The algorithm.
        upstream: {operator: those that feed it}.
        period: Seconds between two decisions.
        earlier: The best configuration of an earlier run; None: unknown.
        paper: Parameters of the papers' elasticity; None: their own.
    """

    elasticity: Algorithm
    upstream: Mapping[str, tuple[str, ...]]
    period: float
    earlier: Configuration | None = None
    paper: PaperElasticity | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        upstream = {name: list(feeding) for name, feeding in self.upstream.items()}
        values: dict[str, Any] = {"elasticity": self.elasticity.value, "upstream": upstream, "period": self.period}
        if self.earlier is not None:
            values["earlier"] = {"threads": self.earlier.threads, "queued": sorted(self.earlier.queued)}
        if self.paper is not None:
            values["paper"] = asdict(self.paper)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the setting of an `as_dict`."""
        upstream = {name: tuple(feeding) for name, feeding in values["upstream"].items()}
        told = values.get("earlier")
        earlier = Configuration(told["threads"], frozenset(told["queued"])) if told is not None else None
        paper = PaperElasticity(**values["paper"]) if "paper" in values else None
        return cls(Algorithm(values["elasticity"]), upstream, values["period"], earlier, paper)


@dataclass(frozen=True, slots=True)
class Adaptation:
    """One pass of an adaptation loop.

    Args:
        pe: The PE.
        number: The pass, from 0.
        observation: What was observed.
        decision: What was decided, and why.
        thread_count: Scheduler threads in force afterwards.
        models: {operator: model in force afterwards} of the operators that the decision named.
        fresh: Whether the controller had been reset.

    >>> from rayelastic.reasons import Code
    >>> seen = Observation(time=1.0, period=1.0, throughput=1e6, thread_count=1)
    >>> done = Adaptation("pe0", 0, seen, Decision(2, reasons=(Code.UNKNOWN_ABOVE(threads=1),), rule="growth"), 2)
    >>> done.changed, Adaptation.from_dict(done.as_dict()) == done
    (True, True)
    >>> print(done)
    pe0     1.0 s     1M/s  threads 1 -> 2: Nothing is known of more than 1 thread. [growth]
    """

    pe: str
    number: int
    observation: Observation
    decision: Decision
    thread_count: int
    models: Mapping[str, ThreadingModel] = field(default_factory=dict)
    fresh: bool = False

    @property
    def changed(self) -> bool:
        """Whether the decision differed from what was in force."""
        return self.decision.changes(self.observation)

    def __str__(self) -> str:
        seen, decision = self.observation, self.decision
        what = []
        if decision.thread_count != seen.thread_count:
            what.append(f"threads {seen.thread_count} -> {decision.thread_count}")
        on = sorted(name for name, model in decision.models.items() if model is not ThreadingModel.MANUAL)
        off = sorted(name for name, model in decision.models.items() if model is ThreadingModel.MANUAL)
        what += [
            f"{sign}{counted(len(names), 'queue')} ({_shortened(names)})"
            for sign, names in (("+", on), ("-", off))
            if names
        ]
        return (
            f"{self.pe} {seen.time:7.1f} s {short(seen.throughput):>6}/s  "
            f"{', '.join(what) or 'unchanged'}: {decision.reason} [{decision.rule}]"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return {
            "pe": self.pe,
            "number": self.number,
            "observation": self.observation.as_dict(),
            "decision": self.decision.as_dict(),
            "thread_count": self.thread_count,
            "models": {name: model.value for name, model in self.models.items()},
            "fresh": self.fresh,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the adaptation of an `as_dict`."""
        return cls(
            values["pe"],
            values["number"],
            Observation.from_dict(values["observation"]),
            Decision.from_dict(values["decision"]),
            values["thread_count"],
            {name: ThreadingModel(model) for name, model in values["models"].items()},
            values.get("fresh", False),
        )


def _shortened(names: list[str], shown: int = 3) -> str:
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def private(path: str, flags: int) -> int:
    """Open a file; a new one is readable by its owner only. An `opener` of Python's open."""
    return os.open(path, flags, 0o600)


class Journal:
    """The passes of one loop, the last ones in memory and, if requested, all of them in a file of JSON lines.

    Args:
        setting: What a replay has to know, the first line of the file.
        path: A file to write; None: none.
    """

    def __init__(self, setting: Setting, path: Path | None = None) -> None:
        kept = max(100, KEPT_OPERATORS // max(len(setting.upstream), 1))
        self._passes: deque[Adaptation] = deque(maxlen=min(KEPT_PASSES, kept))
        self._lock = threading.Lock()
        descriptor = None if path is None else private(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._file = None if descriptor is None else os.fdopen(descriptor, "w", encoding="utf-8")
        self._write(setting.as_dict())

    def add(self, adaptation: Adaptation) -> None:
        """Add a pass."""
        with self._lock:
            self._passes.append(adaptation)
            self._write(adaptation.as_dict())

    def since(self, number: int) -> tuple[Adaptation, ...]:
        """Return the kept passes from `number` on; all of them if it is of an earlier, longer loop."""
        with self._lock:
            passes = tuple(self._passes)
        first = number if passes and number <= passes[-1].number + 1 else 0
        return tuple(adaptation for adaptation in passes if adaptation.number >= first)

    def close(self) -> None:
        """Close the file; what is in memory can still be read."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _write(self, values: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(values) + "\n")
            self._file.flush()


def read_journal(path: Path) -> tuple[Setting, tuple[Adaptation, ...]]:
    """Return the passes that a loop has written to its file.

    Args:
        path: The file of `rel.Elasticity(journal=...)`.

    Raises:
        ConfigError: It isn't a journal.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            setting = Setting.from_dict(json.loads(next(lines)))
            return setting, tuple(Adaptation.from_dict(json.loads(line)) for line in lines)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise ConfigError(
            f"{path} isn't a journal of adaptations: {error}",
            hint="Pass a file that rel.Elasticity(journal=...) wrote",
            code=ErrorCode.NOT_A_JOURNAL,
        ) from error
