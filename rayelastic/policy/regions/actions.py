"""What organic adaptation can do to a plan, and what it decides: values that know how to apply and revert themselves.

Joker section 3.3 (J15). A decision is the plan that shall be in force, with the actions that lead there, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any, ClassVar, Self

from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.reasons import Code, Reason, sentence

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
    "reasons_of",
]


@dataclass(frozen=True, slots=True)
class SplitPipeline:
    """Cut a pipeline in two. Moves no keys.

    Args:
        region: name of the region.
        at: the operator that starts the new pipeline.
        pes: the PE of each replica of it; None: where they are.
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

    @property
    def reason(self) -> Reason:
        """The action as a code and values."""
        return Code.SPLIT(region=self.region, at=self.at)


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

    @property
    def reason(self) -> Reason:
        """The action as a code and values."""
        return Code.MERGE(region=self.region, at=self.at)


@dataclass(frozen=True, slots=True)
class RebalanceRegion:
    """Give a region another number of replicas, or other places for them; their keys move.

    Args:
        region: name of the region.
        replicas: from now on.
        previous: before.
        pes: the PE of each replica from now on; None: new ones go where the first is.
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

    @property
    def reason(self) -> Reason:
        """The action as a code and values."""
        if self.replicas == self.previous:
            return Code.MOVE(region=self.region, pes=list(self.pes or ()))
        return Code.REPLICAS(region=self.region, before=self.previous, replicas=self.replicas)


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

    @property
    def reason(self) -> Reason:
        """The action as a code and values."""
        if not self.shares:
            return Code.SHARE_EVENLY(region=self.region)
        return Code.SHARE(region=self.region, shares=list(self.shares))


AdaptationAction = SplitPipeline | MergePipelines | RebalanceRegion | ShareRegion
_KINDS: Mapping[str, Callable[..., AdaptationAction]] = {
    c.kind: c for c in (SplitPipeline, MergePipelines, RebalanceRegion, ShareRegion)
}


def reasons_of(actions: Iterable[AdaptationAction]) -> list[Reason]:
    """Return what actions do to a plan, as codes and values."""
    return [action.reason for action in actions]


def _action_dict(action: AdaptationAction) -> dict[str, Any]:
    values = {f.name: getattr(action, f.name) for f in fields(action)}
    return {"kind": action.kind} | {n: list(v) if isinstance(v, tuple) else v for n, v in values.items()}


def action_from_dict(values: Mapping[str, Any]) -> AdaptationAction:
    """Return the action that a decision's `as_dict` wrote.

    >>> str(action_from_dict({"kind": "split", "region": "r1", "at": "parse", "pes": None}).reason)
    'split r1 before parse'
    """
    told = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items() if n != "kind"}
    return _KINDS[values["kind"]](**told)


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A request for more nodes, for an autoscaler.

    Args:
        reason: why.
        cpus: CPUs that are missing.
        memory: bytes that are missing; 0: unknown.
    """

    reason: Reason
    cpus: float
    memory: float = 0.0


class Verdict(Enum):
    """What a decision does with the plan."""

    HOLD = "hold"  # nothing changes
    TRY = "try"  # a change, to be evaluated
    KEEP = "keep"  # the last change was worth it
    REVERT = "revert"  # the last change was not; perhaps another one is tried at once
    PLACE = "place"  # PEs go to other nodes
    BOUND = "bound"  # replicas go to the bounds that users have set for this time


@dataclass(frozen=True, slots=True)
class AdaptationDecision:
    """The plan that shall be in force, and why.

    Args:
        plan: desired; the one in force if nothing changes.
        verdict: what it does with the plan.
        reverted: actions that are taken back first, in this order.
        actions: what is then done to the plan, in this order.
        reasons: what was seen and what follows from it, in this order.
        rule: where the rule is written, such as "Joker Algorithm 6".
        reset: whether local levels are to forget what they learned (architecture, section 1).
        request: machines that are missing.
        grows_soon: whether replicas may be wanted next, so that processes for them can be made ready.
        soon_on: the node of the first of them; empty: any.

    >>> AdaptationDecision(ExecPlan("t", ()), reasons=(Code.STABLE(),)).as_dict()["reasons"]
    [{'code': 'stable'}]
    """

    plan: ExecPlan
    verdict: Verdict = Verdict.HOLD
    reverted: tuple[AdaptationAction, ...] = ()
    actions: tuple[AdaptationAction, ...] = ()
    reasons: tuple[Reason, ...] = ()
    rule: str = ""
    reset: bool = False
    request: NodeRequest | None = None
    grows_soon: bool = False
    soon_on: str = ""

    @property
    def reason(self) -> str:
        """The reasons as people read them."""
        return sentence(self.reasons)

    @property
    def title(self) -> str:
        """What is done to the plan, as people read it; empty if nothing is."""
        return ", ".join(map(str, reasons_of((*self.reverted, *self.actions))))

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
            "reasons": [reason.as_dict() for reason in self.reasons],
            "rule": self.rule,
            "reset": self.reset,
            "grows_soon": self.grows_soon,
            "soon_on": self.soon_on,
            "request": request and asdict(request) | {"reason": request.reason.as_dict()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the decision that `as_dict` wrote."""
        request = values["request"]
        return cls(
            ExecPlan.from_dict(values["plan"]),
            Verdict(values["verdict"]),
            tuple(action_from_dict(action) for action in values["reverted"]),
            tuple(action_from_dict(action) for action in values["actions"]),
            tuple(map(Reason.from_dict, values["reasons"])),
            values["rule"],
            values["reset"],
            request and NodeRequest(**{**request, "reason": Reason.from_dict(request["reason"])}),
            values["grows_soon"],
            values.get("soon_on", ""),
        )
