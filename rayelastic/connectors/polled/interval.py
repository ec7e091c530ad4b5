"""A source that ticks by the clock: a polled source, whose position is the number of its ticks."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from rayelastic.connectors.polled.declaration import PolledSource
from rayelastic.errors import ErrorCode, SourceError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import Seconds

_LONGEST = 366 * 86_400.0  # seconds
_TICK = Schema.of({"n": int, "at": dt.datetime}, name="Tick")


@dataclass
class Ticks:
    """The one partition's ticks.

    Args:
        seconds: From one tick to the next.
        count: How many; None: without end.
    """

    seconds: float
    count: int | None = None
    due: float = field(default=0.0, init=False)

    @property
    def idle(self) -> float:
        """Seconds until the next tick."""
        return max(0.0, self.due - time.monotonic())

    def partitions(self) -> list[str]:
        """Name the one partition."""
        return ["ticks"]

    def open(self, _: str, position: int | None) -> _Ticking:
        """Continue with the tick of a number; the first one is due at once."""
        self.due = time.monotonic()
        return _Ticking(self, position or 0)


class _Ticking:
    def __init__(self, ticks: Ticks, position: int) -> None:
        self._ticks = ticks
        self.position = position

    def poll(self) -> list[tuple[int, dt.datetime]] | None:
        ticks, now = self._ticks, time.monotonic()
        if ticks.count is not None and self.position >= ticks.count:
            return None
        if now < ticks.due:
            return []
        ticks.due = max(ticks.due + ticks.seconds, now)  # missed ticks are left out
        self.position += 1
        return [(self.position - 1, dt.datetime.now(dt.UTC).replace(tzinfo=None))]


@dataclass(frozen=True, slots=True)
class IntervalSource(PolledSource[Any]):
    """The result of `interval`."""

    kind: ClassVar[str] = "IntervalSource"
    may_end: ClassVar[bool] = False

    source: Ticks
    object_field = ""  # no object of the user's

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"a tick every {self.source.seconds:g} s"

    @property
    def is_endless(self) -> bool:
        """Whether it is unbounded."""
        return self.source.count is None

    def at_most(self, count: int) -> IntervalSource:
        """Return a source of the first ticks only."""
        return replace(self, source=Ticks(self.source.seconds, count))

    def check(self, operator: str) -> None:
        """Raise SourceError if the interval is invalid."""
        seconds: object = self.source.seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _LONGEST:
            raise SourceError(
                f"rel.interval({shown(seconds)}) is invalid",
                operator=operator,
                hint="Pass seconds above 0, or a timedelta",
                code=ErrorCode.OUT_OF_RANGE,
            )


def interval(seconds: Seconds) -> IntervalSource:
    """Emit a tick every so many seconds, by the clock, without end.

    A tick has `n`, its number from 0, and `at`, when it was emitted, as a datetime in UTC. The first one is emitted at
    once. A tick that is due while the next one is due as well is left out, and numbers have no gaps. A restored job
    continues with the next number.

    Args:
        seconds: Seconds above 0, or a timedelta.

    Raises:
        SourceError: At the declaration, if there is no such interval.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("ticks")
    >>> topology.source(rel.interval(0.01)).take(3).sink(rel.list(), name="out")
    <sink out>
    >>> [t.n for t in rel.run(topology)["out"]]
    [0, 1, 2]
    """
    length: Any = seconds.total_seconds() if isinstance(seconds, dt.timedelta) else seconds
    return IntervalSource(Ticks(length), _TICK)
