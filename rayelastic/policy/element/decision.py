"""What a controller decides, with its reasons, and what a controller is.

A decision is desired state, not a command: to apply it twice is to apply it once. It is published as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.policy.element.observation import Observation
from rayelastic.reasons import Reason, sentence

__all__ = ["Controller", "Decision"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The configuration that a controller wants from now on.

    Args:
        thread_count: scheduler threads.
        models: {operator: threading model} where it shall differ from what is in force; empty keeps everything.
        reasons: what was seen and what follows from it, in this order.
        rule: where the rule is written, such as "PLDI'17 Fig. 8 rule 3".
        soon: whether it is a step of a search: the next one needn't wait for a whole period.

    >>> from rayelastic.reasons import Code
    >>> Decision(4, {"parse": ThreadingModel.DYNAMIC}, (Code.UNKNOWN_ABOVE(threads=2),), "growth").as_dict()["reasons"]
    [{'code': 'unknown_above', 'threads': 2}]
    """

    thread_count: int
    models: Mapping[str, ThreadingModel] = field(default_factory=dict)
    reasons: tuple[Reason, ...] = ()
    rule: str = ""
    soon: bool = False

    @classmethod
    def keep(cls, observation: Observation, *reasons: Reason, rule: str) -> Self:
        """Return the decision to leave everything as it is."""
        return cls(observation.thread_count, {}, reasons, rule)

    @property
    def reason(self) -> str:
        """The reasons as people read them."""
        return sentence(self.reasons)

    def changes(self, observation: Observation) -> bool:
        """Return whether the decision differs from what the observation says is in force."""
        return bool(self.models) or self.thread_count != observation.thread_count

    def as_dict(self) -> dict[str, Any]:
        """Return the same as JSON values; models in the order in which they were named."""
        models = {operator: model.value for operator, model in self.models.items()}
        reasons = [reason.as_dict() for reason in self.reasons]
        values = {"thread_count": self.thread_count, "models": models, "reasons": reasons, "rule": self.rule}
        return values | ({"soon": True} if self.soon else {})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the decision that `as_dict` wrote."""
        models = {name: ThreadingModel(model) for name, model in values["models"].items()}
        reasons = tuple(map(Reason.from_dict, values["reasons"]))
        return cls(**{**values, "models": models, "reasons": reasons})


class Controller(Protocol):
    """A policy: pure, so that a recorded journal makes the same decisions byte for byte."""

    def step(self, observation: Observation) -> Decision:
        """Take what was seen in the last period and return what shall be in force in the next one."""

    def reset(self) -> None:
        """Forget what was learned, as after a change that an outer controller made."""
