"""Replicas and processes that paid in an earlier run of a job: where this one begins once it has too little.

They are put on trial like any other change, within today's bounds, so what doesn't pay any more is reverted and
forgotten. They say more than an estimate only while the rates that the sources could emit are unknown. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from rayelastic.policy.regions.model import Shape
from rayelastic.policy.regions.sizing import Sizing
from rayelastic.reasons import Code, Reason

__all__ = ["Earlier"]


@dataclass(frozen=True, slots=True)
class Earlier:
    """What was found to pay.

    Args:
        replicas: {region: how many}.
        apart: operators that went to a process of their own.

    >>> found = Earlier().kept({"r1": ((), 4)})
    >>> found.replicas, found.undone({"r1": ((), 4)}).replicas
    ({'r1': 4}, {})
    """

    replicas: Mapping[str, int] = field(default_factory=dict)
    apart: tuple[str, ...] = ()

    def kept(self, shapes: Mapping[str, Shape], apart: tuple[str, ...] = ()) -> Self:
        """Return the same with a growth that paid."""
        more = {region: replicas for region, (_, replicas) in shapes.items() if replicas > 1}
        return replace(self, replicas={**self.replicas, **more}, apart=apart or self.apart)

    def undone(self, shapes: Mapping[str, Shape], apart: tuple[str, ...] = ()) -> Self:
        """Return the same without a growth that didn't pay."""
        left = {r: n for r, n in self.replicas.items() if r not in shapes or shapes[r][1] != n}
        return replace(self, replicas=left, apart=() if apart and apart == self.apart else self.apart)

    def raised(self, wanted: Mapping[str, Shape], sizing: Sizing, *, guessed: bool) -> dict[str, Shape]:
        """Return larger shapes with as many replicas as paid, where more are wanted and nobody knows how many.

        Args:
            wanted: {region: shape} by what is known of this run.
            sizing: what is known, and the plan in force.
            guessed: whether what sources are offered is a guess.
        """
        found = dict(wanted)
        for region, (cuts, replicas) in wanted.items() if guessed and sizing.held_back else ():
            shape = cuts, max(replicas, min(self.replicas.get(region, 0), sizing.allowed(region, guessed=False)))
            if shape not in sizing.rejected.get(region, ()):
                found[region] = shape
        return found

    def reasons(self, shapes: Mapping[str, Shape], apart: tuple[str, ...] = ()) -> list[Reason]:
        """Return which parts of a change paid off in an earlier run."""
        same = [(region, n) for region, (_, n) in shapes.items() if self.replicas.get(region) == n]
        found = [Code.REPLICAS_EARLIER(replicas=n, region=region) for region, n in same]
        return [*found, Code.PROCESS_EARLIER(operators=list(apart))] if apart and apart == self.apart else found
