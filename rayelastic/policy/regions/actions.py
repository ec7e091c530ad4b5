"""What organic adaptation can do to a plan, and what it decides: values that know how to apply and revert themselves.

Joker section 3.3 (J15). A decision is the plan that shall be in force, with the actions that lead there and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, ClassVar, Self

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_text import counted

__all__ = [
    "AdaptationAction",
    "AdaptationDecision",
    "MergePipelines",
    "NodeRequest",
    "RebalanceRegion",
    "ShareRegion",
    "SplitPipeline",
    "Verdict",
    "action_from_dict",
]


@dataclass(frozen=True, slots=True)
class SplitPipeline:
    """Cut a pipeline in two. Moves no keys.

    Args:
        region: name of the region.
        at: the operator that starts the new pipeline.
        pes: the processing element of each replica of it; None: where they are.
    """

    kind: ClassVar[str] = "split"
    region: str
    at: str
    pes: tuple[str, ...] | None = None

    def apply(self, plan: ExecPlan) -> ExecPlan:
        """Return the plan with it."""
        return plan.with_split(self.region, self.at, self.pes)

    def revert(self, plan: ExecPlan) -> ExecPlan:
        """Return the plan without it."""
        return plan.with_merge(self.region, self.at)

    def text(self) -> str:
        """Say it in words."""
        return f"split {self.region} before {self.at}"


@dataclass(frozen=True, slots=True)
class MergePipelines:
    """Join a pipeline to the one before it.

    Args:
        region: name of the region.
        at: the operator that starts the pipeline that vanishes.
        pes: where its replicas were, to take it back; None: where those of the one before are.
    """

    kind: ClassVar[str] = "merge"
    region: str
    at: str
    pes: tuple[str, ...] | None = None

    def apply(self, plan: ExecPlan) -> ExecPlan:
        """Return the plan with it."""
        return plan.with_merge(self.region, self.at)

    def revert(self, plan: ExecPlan) -> ExecPlan:
        """Return the plan without it."""
        return plan.with_split(self.region, self.at, self.pes)

    def text(self) -> str:
        """Say it in words."""
        return f"merge {self.region} at {self.at}"


@dataclass(frozen=True, slots=True)
class RebalanceRegion:
    """Give a region another number of replicas, or other places for them; their keys move.

    Args:
        region: name of the region.
        replicas: from now on.
        previous: before.
        pes: the processing element of each replica from now on; None: new ones go where the first is.
        previous_pes: before; None: where the first is.
        previous_shares: partitions of each replica before; empty: as many as every other.
    """

    kind: ClassVar[str] = "rebalance"
    region: str
    replicas: int
    previous: int
    pes: tuple[str, ...] | None = None
    previous_pes: tuple[str, ...] | None = None
    previous_shares: tuple[int, ...] = ()

    @classmethod
    def of(cls, plan: ExecPlan, region: str, replicas: int, pes: tuple[str, ...] | None = None) -> Self:
        """Return the action for a plan; it remembers what was, to take it back."""
        planned = plan.region(region)
        previous_pes = planned.pipelines[0].pes if planned.is_together else None
        return cls(region, replicas, planned.replicas, pes, previous_pes, planned.shares)

    def apply(self, plan: ExecPlan) -> ExecPlan:
        """Return the plan with it."""
        return plan.with_replicas(self.region, self.replicas, self.pes)

    def revert(self, plan: ExecPlan) -> ExecPlan:
        """Return the plan without it."""
        plan = plan.with_replicas(self.region, self.previous, self.previous_pes)
        return plan.with_shares(self.region, self.previous_shares) if self.previous_shares else plan

    def text(self) -> str:
        """Say it in words."""
        if self.replicas == self.previous:
            return f"move replicas of {self.region} to {', '.join(self.pes or ())}"
        return f"{self.region} from {counted(self.previous, 'replica')} to {self.replicas}"


@dataclass(frozen=True, slots=True)
class ShareRegion:
    """Have replicas of a region have other numbers of partitions of its keys; these move.

    Args:
        region: name of the region.
        shares: partitions of each replica from now on; empty: as many as every other.
        previous: before.
    """

    kind: ClassVar[str] = "share"
    region: str
    shares: tuple[int, ...]
    previous: tuple[int, ...] = ()

    def apply(self, plan: ExecPlan) -> ExecPlan:
        """Return the plan with it."""
        return plan.with_shares(self.region, self.shares)

    def revert(self, plan: ExecPlan) -> ExecPlan:
        """Return the plan without it."""
        return plan.with_shares(self.region, self.previous)

    def text(self) -> str:
        """Say it in words."""
        return f"partitions of {self.region} as {':'.join(map(str, self.shares)) or 'evenly as can be'}"


AdaptationAction = SplitPipeline | MergePipelines | RebalanceRegion | ShareRegion
_KINDS: Mapping[str, Callable[..., AdaptationAction]] = {
    c.kind: c for c in (SplitPipeline, MergePipelines, RebalanceRegion, ShareRegion)
}


def _action_dict(action: AdaptationAction) -> dict[str, Any]:
    values = {f.name: getattr(action, f.name) for f in fields(action)}
    return {"kind": action.kind} | {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}


def action_from_dict(values: Mapping[str, Any]) -> AdaptationAction:
    """Return the action that a decision's `as_dict` told.

    >>> action_from_dict({"kind": "split", "region": "r1", "at": "parse", "pes": None}).text()
    'split r1 before parse'
    """
    told = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items() if n != "kind"}
    return _KINDS[values["kind"]](**told)


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A wish for more machines, for whoever can start some.

    Args:
        cpus: CPUs that are missing.
        memory: bytes that are missing; 0: not known.
        reason: why, in words.
    """

    cpus: float
    memory: float = 0.0
    reason: str = ""


class Verdict(Enum):
    """What a decision does with the plan."""

    HOLD = "hold"  # nothing changes
    TRY = "try"  # a change, to be evaluated
    KEEP = "keep"  # the last change was worth it
    REVERT = "revert"  # the last change was not; perhaps another one is tried at once
    PLACE = "place"  # processing elements go to other nodes
    BOUND = "bound"  # replicas go to the bounds that users have set for this time


@dataclass(frozen=True, slots=True)
class AdaptationDecision:
    """The plan that shall be in force, and why.

    Args:
        plan: desired; the one in force if nothing changes.
        verdict: what it does with the plan.
        reverted: actions that are taken back first, in this order.
        actions: what is then done to the plan, in this order.
        reason: what was seen and what follows from it, in plain words with numbers.
        rule: where the rule is written, such as "Joker Algorithm 6".
        reset: whether local levels are to forget what they learned (architecture, section 1).
        request: machines that are missing.
        grows_soon: whether replicas may be wanted next, so that processes for them can be made ready.
        soon_on: the node of the first of them; empty: any.

    >>> AdaptationDecision(ExecPlan("t", ()), reason="no bottleneck").as_dict()["verdict"]
    'hold'
    """

    plan: ExecPlan
    verdict: Verdict = Verdict.HOLD
    reverted: tuple[AdaptationAction, ...] = ()
    actions: tuple[AdaptationAction, ...] = ()
    reason: str = ""
    rule: str = ""
    reset: bool = False
    request: NodeRequest | None = None
    grows_soon: bool = False
    soon_on: str = ""

    @property
    def changes(self) -> bool:
        """Whether the plan is another one than before."""
        return self.verdict is Verdict.PLACE or bool(self.actions or self.reverted)

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values."""
        request = self.request
        return {
            "plan": self.plan.to_dict(),
            "verdict": self.verdict.value,
            "reverted": [_action_dict(action) for action in self.reverted],
            "actions": [_action_dict(action) for action in self.actions],
            "reason": self.reason,
            "rule": self.rule,
            "reset": self.reset,
            "grows_soon": self.grows_soon,
            "soon_on": self.soon_on,
            "request": request and {f.name: getattr(request, f.name) for f in fields(request)},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the decision that `as_dict` told."""
        request = values["request"]
        return cls(
            ExecPlan.from_dict(values["plan"]),
            Verdict(values["verdict"]),
            tuple(action_from_dict(action) for action in values["reverted"]),
            tuple(action_from_dict(action) for action in values["actions"]),
            values["reason"],
            values["rule"],
            values["reset"],
            request and NodeRequest(**request),
            values["grows_soon"],
            values.get("soon_on", ""),
        )
