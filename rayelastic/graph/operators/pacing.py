"""`throttle` and `delay`: operators that follow the clock; see native_sched/include/rayelastic/operators/delay.hpp.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass

from rayelastic.graph.records.shown import invalid
from rayelastic.graph.records.time_info import Seconds
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import OperatorBody, OperatorSpec, fields_form
from rayelastic.graph.spec.ports import OUT, OutputPort
from rayelastic.graph.spec.upstream import Upstream

LONGEST_DELAY = 1e6  # seconds: eleven days


@dataclass(frozen=True, slots=True)
class Throttle(OperatorBody):
    """Limits the rate of a stream.

    Args:
        per_second: The highest rate, in tuples.
    """

    per_second: float
    operator_kind = "throttle"
    paces = True

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"at most {self.per_second:g} tuples a second"

    @property
    def one_to_one(self) -> bool:
        """Return true."""
        return True

    def keeps_splits(self, spec: OperatorSpec) -> bool:  # noqa: ARG002
        """Forward announced splits."""
        return True

    def reads(self, spec: OperatorSpec, port: int) -> tuple[()]:  # noqa: ARG002
        """Return no field."""
        return ()

    def passes(self, spec: OperatorSpec) -> tuple[str]:  # noqa: ARG002
        """Return its output port."""
        return (OUT,)


@dataclass(frozen=True, slots=True)
class Delay(OperatorBody):
    """Emits each tuple after a delay.

    Args:
        seconds: The delay.
        most: The number of tuples that it buffers.
    """

    seconds: float
    most: int
    operator_kind = "delay"
    ends = True
    uses_clock = True

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        return f"{self.seconds:g} s later, at most {self.most} waiting"

    @property
    def one_to_one(self) -> bool:
        """Return true."""
        return True

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe its state."""
        return f"tuples of ({fields_form(spec.inputs[0].schema)}) that are delayed"


def throttle(up: Upstream, name: str, per_second: float) -> OperatorSpec:
    """See ``Stream.throttle``."""
    with NewOperator(name, up.operators) as location:
        rate: object = per_second
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < math.inf:
            raise invalid("per_second", rate, "Pass tuples a second, such as 1000")
        body = Throttle(per_second)
        outputs = (OutputPort(OUT, up.schema),)
        return up.operator(name, body, location, outputs)


def delay(up: Upstream, name: str, seconds: Seconds, most: int) -> OperatorSpec:
    """See ``Stream.delay``."""
    with NewOperator(name, up.operators) as location:
        delay: object = seconds.total_seconds() if isinstance(seconds, dt.timedelta) else seconds
        if isinstance(delay, bool) or not isinstance(delay, (int, float)) or not 0 <= delay <= LONGEST_DELAY:
            raise invalid("seconds", seconds, f"Pass seconds up to {LONGEST_DELAY:g}, or a timedelta")
        _check_most(most)
        body = Delay(delay, most)
        outputs = (OutputPort(OUT, up.schema),)
        return up.operator(name, body, location, outputs)


def _check_most(most: object) -> None:
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise invalid("most", most, "Pass a number of tuples, 1 or more")
