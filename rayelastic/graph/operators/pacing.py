"""`throttle` and `delay`: tuples pass by the clock; see native_sched/include/rayelastic/operators/delay.hpp.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass

from rayelastic.errors import GraphError
from rayelastic.graph.records.shown import shown
from rayelastic.graph.records.time_info import Seconds
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.spec.ports import OUT, OutputPort
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["Delay", "Throttle", "delay", "throttle"]

LONGEST_DELAY = 1e6  # seconds: eleven days


@dataclass(frozen=True, slots=True)
class Throttle:
    """Passes tuples on.

    Args:
        per_second: the most.
        lane: how it runs.
    """

    per_second: float
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """What runs, in words."""
        return f"at most {self.per_second:g} tuples a second"


@dataclass(frozen=True, slots=True)
class Delay:
    """Passes tuples on later.

    Args:
        seconds: how much later.
        most: tuples that wait meanwhile.
        lane: how it runs.
        ends: it may give more at the end.
    """

    seconds: float
    most: int
    lane: Lane = Lane.BUILT_IN
    ends: bool = True

    @property
    def reason(self) -> str:
        """What runs, in words."""
        return f"{self.seconds:g} s later, at most {self.most} waiting"


def throttle(up: Upstream, name: str, per_second: float) -> OperatorSpec:
    """See ``Stream.throttle``."""
    with NewOperator(name, up.operators) as location:
        given: object = per_second
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < math.inf:
            raise GraphError(f"per_second={shown(given)}", hint="Give tuples a second, such as 1000")
        body = Throttle(per_second)
        outputs = (OutputPort(OUT, up.schema),)
        return up.operator(name, OperatorKind.THROTTLE, StateKind.STATEFUL, body, location, outputs)


def delay(up: Upstream, name: str, seconds: Seconds, most: int) -> OperatorSpec:
    """See ``Stream.delay``."""
    with NewOperator(name, up.operators) as location:
        given: object = seconds.total_seconds() if isinstance(seconds, dt.timedelta) else seconds
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= LONGEST_DELAY:
            raise GraphError(f"seconds={shown(seconds)}", hint=f"Give seconds up to {LONGEST_DELAY:g}, or a timedelta")
        _check_most(most)
        body = Delay(given, most)
        outputs = (OutputPort(OUT, up.schema),)
        return up.operator(name, OperatorKind.DELAY, StateKind.STATEFUL, body, location, outputs)


def _check_most(most: object) -> None:
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise GraphError(f"most={shown(most)}", hint="Give a number of tuples, 1 or more")
