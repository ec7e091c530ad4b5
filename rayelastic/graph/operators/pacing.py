"""`throttle` and `delay`: operators that follow the clock; see native_sched/include/rayelastic/operators/delay.hpp.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass

from rayelastic.errors import ErrorCode, GraphError
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
    """Limits the rate of a stream.

    Args:
        per_second: The highest rate, in tuples.
        lane: The execution mode.
    """

    per_second: float
    lane: Lane = Lane.BUILT_IN

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"at most {self.per_second:g} tuples a second"


@dataclass(frozen=True, slots=True)
class Delay:
    """Emits each tuple after a delay.

    Args:
        seconds: The delay.
        most: The number of tuples that it buffers.
        lane: The execution mode.
        ends: It may emit when the input ends.
    """

    seconds: float
    most: int
    lane: Lane = Lane.BUILT_IN
    ends: bool = True

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"{self.seconds:g} s later, at most {self.most} waiting"


def throttle(up: Upstream, name: str, per_second: float) -> OperatorSpec:
    """See ``Stream.throttle``."""
    with NewOperator(name, up.operators) as location:
        rate: object = per_second
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < math.inf:
            raise GraphError(
                f"per_second={shown(rate)} is invalid",
                hint="Pass tuples a second, such as 1000",
                code=ErrorCode.OUT_OF_RANGE,
            )
        body = Throttle(per_second)
        outputs = (OutputPort(OUT, up.schema),)
        return up.operator(name, OperatorKind.THROTTLE, StateKind.STATEFUL, body, location, outputs)


def delay(up: Upstream, name: str, seconds: Seconds, most: int) -> OperatorSpec:
    """See ``Stream.delay``."""
    with NewOperator(name, up.operators) as location:
        delay: object = seconds.total_seconds() if isinstance(seconds, dt.timedelta) else seconds
        if isinstance(delay, bool) or not isinstance(delay, (int, float)) or not 0 <= delay <= LONGEST_DELAY:
            raise GraphError(
                f"seconds={shown(seconds)} is invalid",
                hint=f"Pass seconds up to {LONGEST_DELAY:g}, or a timedelta",
                code=ErrorCode.OUT_OF_RANGE,
            )
        _check_most(most)
        body = Delay(delay, most)
        outputs = (OutputPort(OUT, up.schema),)
        return up.operator(name, OperatorKind.DELAY, StateKind.STATEFUL, body, location, outputs)


def _check_most(most: object) -> None:
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise GraphError(
            f"most={shown(most)} is invalid", hint="Pass a number of tuples, 1 or more", code=ErrorCode.OUT_OF_RANGE
        )
