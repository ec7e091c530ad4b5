"""The history of the loop over regions, pass by pass: values that are published live, written to a file, and drawn.

Must not know how observations are made or what the policy's rules are.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.policy.regions.actions import AdaptationDecision
from rayelastic.policy.regions.observation import PlanObservation
from rayelastic.runtime.values.adaptation import private

REGIONS = "regions"  # the name of this loop's passes, next to the names of PEs
KEPT_PASSES = 2_000  # about 100 MB for a job of a thousand replicas
KIND = "passes"  # the key in a file's first line


@dataclass(frozen=True, slots=True)
class RegionAdaptation:
    """One pass of the coordinator's loop.

    Args:
        number: The pass, from 0.
        observation: What was observed.
        decision: What was decided, and why.
        in_force: The plan afterwards.
        seconds: The duration of the change; 0 if there was none.
        problem: Why the change failed; empty if it didn't.

    >>> from rayelastic.reasons import Code
    >>> plan = ExecPlan("empty", ())
    >>> seen = PlanObservation(time=5.0, period=5.0, plan=plan, regions=())
    >>> done = RegionAdaptation(0, seen, AdaptationDecision(plan, reasons=(Code.STABLE(),), rule="none"), plan)
    >>> RegionAdaptation.from_dict(done.as_dict()) == done
    True
    >>> print(done)
    regions     5.0 s  unchanged: The region level is stable. [none]
    """

    number: int
    observation: PlanObservation
    decision: AdaptationDecision
    in_force: ExecPlan
    seconds: float = 0.0
    problem: str = ""

    @property
    def pe(self) -> str:
        """The name of the loop, where passes of PEs have theirs."""
        return REGIONS

    @property
    def changed(self) -> bool:
        """Whether the decision differed from the plan in force."""
        return self.decision.changes

    @property
    def throughput(self) -> float:
        """Tuples/s that the sources emitted."""
        plan = self.observation.plan
        sources = [planned.region.name for planned in plan.regions if not plan.upstream(planned.region.name)]
        return sum(self.observation.of(source).throughput for source in sources)

    def __str__(self) -> str:
        seen, decision = self.observation, self.decision
        what = decision.title or "unchanged"
        took = f" ({self.seconds:.2f} s)" if self.seconds else ""
        problem = f" Not done: {self.problem}." if self.problem else ""
        rule = f" [{decision.rule}]" if decision.rule else ""
        return f"{REGIONS} {seen.time:7.1f} s  {what}{took}: {decision.reason}{rule}{problem}"

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        return {
            "number": self.number,
            "observation": self.observation.as_dict(),
            "decision": self.decision.as_dict(),
            "in_force": self.in_force.to_dict(),
            "seconds": self.seconds,
            "problem": self.problem,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the adaptation of an `as_dict`."""
        return cls(
            values["number"],
            PlanObservation.from_dict(values["observation"]),
            AdaptationDecision.from_dict(values["decision"]),
            ExecPlan.from_dict(values["in_force"]),
            values["seconds"],
            values["problem"],
        )


class RegionJournal:
    """The passes of the loop, the last ones in memory and, if requested, all of them in a file of JSON lines.

    Args:
        path: The file; None: none.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._passes: deque[RegionAdaptation] = deque(maxlen=KEPT_PASSES)
        self._path = path
        if path is not None:
            with open(path, "w", encoding="utf-8", opener=private) as file:
                file.write(json.dumps({KIND: REGIONS}) + "\n")

    def add(self, adaptation: RegionAdaptation) -> None:
        """Add a pass."""
        self._passes.append(adaptation)
        if self._path is not None:
            with open(self._path, "a", encoding="utf-8", opener=private) as file:
                file.write(json.dumps(adaptation.as_dict()) + "\n")

    def since(self, number: int) -> tuple[RegionAdaptation, ...]:
        """Return the kept passes from `number` on; all of them if it is of an earlier, longer loop."""
        passes = list(self._passes)
        first = number if passes and number <= passes[-1].number + 1 else 0
        return tuple(adaptation for adaptation in passes if adaptation.number >= first)


def is_region_journal(path: Path) -> bool:
    """Return whether a file has passes of the loop over regions, rather than those of a PE."""
    try:
        with path.open(encoding="utf-8") as lines:
            return bool(json.loads(next(lines)) == {KIND: REGIONS})
    except (OSError, ValueError, StopIteration):
        return False


def read_region_journal(path: Path) -> tuple[RegionAdaptation, ...]:
    """Return the passes that a loop has written to its file.

    Args:
        path: The file of `rel.Elasticity(journal=...)`, with 'regions' in the place of {pe}.

    Raises:
        ConfigError: It isn't such a journal.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            next(lines)
            return tuple(RegionAdaptation.from_dict(json.loads(line)) for line in lines)
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise ConfigError(
            f"{path} isn't a journal of regions: {error}",
            hint="Pass a file that rel.Elasticity(journal=...) wrote",
            code=ErrorCode.NOT_A_JOURNAL,
        ) from error
