"""What the benchmarks have to reach: the lines under "Shows" of the issues, and the papers' figures (C..), by key."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from bench.harness import Row


class Of(enum.Enum):
    """The value of a row that a target bounds."""

    OURS = "value"
    RATIO = "ratio"
    DIFFERENCE = "difference"


@dataclass(frozen=True, slots=True)
class Target:
    """A bound from above, or from below."""

    of: Of
    most: float | None = None
    least: float | None = None

    def met_by(self, row: Row) -> bool | None:
        """Return whether the row keeps to it; nothing if that can't be said: no value, or a disturbed limit.

        A value of nothing at all isn't one, nor is one by such a limit: no tuple came through in time.
        """
        value: float | None = getattr(row, self.of.value)
        if not value or not math.isfinite(value) or (self.of is not Of.OURS and row.is_disturbed):
            return None
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)

    def __str__(self) -> str:
        sign, bound = ("<=", self.most) if self.most is not None else (">=", self.least)
        name = {Of.OURS: "", Of.RATIO: "x", Of.DIFFERENCE: " above"}[self.of]
        return f"{sign} {bound:,g}{name}"


TARGETS = {
    "hop.record.128.64": Target(Of.RATIO, most=2),
    "region.one.source": Target(Of.RATIO, most=1.03),
    "region.one.union": Target(Of.RATIO, most=1.03),
    "keyed.count": Target(Of.DIFFERENCE, most=8),
    "keyed.words": Target(Of.RATIO, least=1.6),
    "hop.payload.ratio": Target(Of.RATIO, most=1.5),
    "hop.manual.1": Target(Of.DIFFERENCE, most=5),
    "hop.manual.64": Target(Of.DIFFERENCE, most=15),
    "pipeline.1000.1.128.manual": Target(Of.OURS, least=0.5e9 / 1000),  # 0.5 G operator-tuples/s a core
    "pipeline.10.1.128.best": Target(Of.OURS, least=60e6),
    "pipeline.100.1.128.manual": Target(Of.OURS, least=10e6),
    "pipeline.100.1.128.dynamic.2": Target(Of.OURS, least=6e6),
    "pipeline.100.1.128.dynamic.1": Target(Of.OURS, least=6e6),
    "pipeline.1000.1.128.second": Target(Of.RATIO, least=1.3),
    "pipeline.1000.1.128.core": Target(Of.RATIO, least=1.3),
    "pipeline.100.10000.128.halves": Target(Of.RATIO, least=1.8),
    "pipeline.100.100.128.best": Target(Of.RATIO, least=1.8),
    "pipeline.100.100.16384.best": Target(Of.RATIO, least=1.8),
    "pipeline.collapse.1": Target(Of.RATIO, most=1 / 10),  # C000-3: up to 22 times, the same order
    "pipeline.collapse.100": Target(Of.RATIO, most=1),  # C000-6: below manual
    "pipeline.switches": Target(Of.RATIO, most=1),  # C002-3: fewer than with a thread an operator
    "wake.p99": Target(Of.OURS, most=200),
    "trickle.manual.p99": Target(Of.OURS, most=1000),
    "trickle.dynamic.p99": Target(Of.OURS, most=1000),
    "idle": Target(Of.OURS, most=1),
    "graph.2305.start.manual": Target(Of.OURS, most=1000),
    "graph.2305.start.dynamic": Target(Of.OURS, most=1000),
    "link.unix.64": Target(Of.OURS, least=1.5),
    "link.tcp.64": Target(Of.OURS, least=1.5),
    "link.cable.tls": Target(Of.RATIO, least=0.6),
    "link.cable.tls.p50": Target(Of.DIFFERENCE, most=10),
    "compiled.engine": Target(Of.OURS, most=1),
    "compiled.split": Target(Of.OURS, most=100),
    "log.filter": Target(Of.OURS, least=10),
    "timer": Target(Of.OURS, most=100),
    "timers_program": Target(Of.RATIO, most=1 / 20),
    "waiting": Target(Of.OURS, most=0.5),
    "waits.2": Target(Of.RATIO, least=1.9),
    "stage.elastic": Target(Of.RATIO, least=1.7),
}
