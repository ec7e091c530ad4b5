"""`throttle` and `delay`: tuples pass by the clock; see native_sched/include/rayelastic/delay.hpp.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayelastic.errors import DeclarationError, GraphError
from rayelastic.graph.declaration import check_new
from rayelastic.graph.location import caller_location
from rayelastic.graph.operator_spec import Lane, OperatorKind, OperatorSpec, StateKind
from rayelastic.graph.shown import shown
from rayelastic.graph.stream import check_at

if TYPE_CHECKING:
    from rayelastic.graph.event_time import Seconds
    from rayelastic.graph.stream import Stream

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


def throttle(stream: Stream, name: str, per_second: float) -> Stream:
    """See ``Stream.throttle``."""
    location = caller_location()
    check_at(name, location)
    try:
        check_new(name, stream.topology.operators)
        given: object = per_second
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < math.inf:
            raise GraphError(f"per_second={shown(given)}", way_out="Give tuples a second, such as 1000")
    except DeclarationError as error:
        error.at(name, location)
        raise
    return _declared(stream, name, OperatorKind.THROTTLE, Throttle(per_second), location)


def delay(stream: Stream, name: str, seconds: Seconds, most: int) -> Stream:
    """See ``Stream.delay``."""
    location = caller_location()
    check_at(name, location)
    try:
        check_new(name, stream.topology.operators)
        given: object = seconds.total_seconds() if isinstance(seconds, dt.timedelta) else seconds
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= LONGEST_DELAY:
            raise GraphError(
                f"seconds={shown(seconds)}", way_out=f"Give seconds up to {LONGEST_DELAY:g}, or a timedelta"
            )
        _check_most(most)
    except DeclarationError as error:
        error.at(name, location)
        raise
    return _declared(stream, name, OperatorKind.DELAY, Delay(given, most), location)


def _check_most(most: object) -> None:
    if not isinstance(most, int) or isinstance(most, bool) or most < 1:
        raise GraphError(f"most={shown(most)}", way_out="Give a number of tuples, 1 or more")


def _declared(stream: Stream, name: str, kind: OperatorKind, body: Throttle | Delay, location: str) -> Stream:
    schema = stream.schema
    spec = OperatorSpec(name, kind, stream.inputs, schema, schema, (), StateKind.STATEFUL, body, location)
    return stream.topology._add(spec)
