"""How long the state of a key that isn't touched is kept, as Flink's StateTtlConfig says it.

Only says it: who looks keys up forgets them. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayelastic.errors import GraphError
from rayelastic.graph.aggregates import Emit
from rayelastic.graph.event_time import LONGEST_SPAN, TICKS_PER_SECOND, TimeInfo, event_time_of, seconds_of
from rayelastic.graph.shown import shown

if TYPE_CHECKING:
    from rayelastic.graph.stream import Stream

__all__ = ["TimeToLive", "check_updates", "time_to_live"]

_CLOCK_UNIT = "ns"  # of the native clock


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """After how long without a tuple a key is forgotten.

    Args:
        ticks: of the event time, or nanoseconds.
        time: the event time; None: by the clock of the element that has the key.
    """

    ticks: int
    time: TimeInfo | None

    @property
    def described(self) -> tuple[int, str, int]:
        """Ticks, field of the event time ('' if it goes by the clock), and ticks to be added to it."""
        return (self.ticks, "", 0) if self.time is None else (self.ticks, self.time.field, self.time.shift)

    @property
    def form(self) -> str:
        """What exported state has for it, in words; the same for every length."""
        return "touched by the clock" if self.time is None else f"touched at {self.time.field} in {self.time.unit}"


def check_updates(ttl: object, emit: Emit) -> None:
    """Raise GraphError if something that is given at the end has a time to live."""
    if ttl is not None and emit is Emit.FINAL:
        raise GraphError(
            f"ttl={shown(ttl)}: emit='final' gives every key when the input has ended, and some would be forgotten",
            way_out="Use emit='update', or a window",
        )


def time_to_live(ttl: object, stream: Stream, lacks: str | None) -> TimeToLive | None:
    """Check what an operator was given as ttl=; None if that is nothing.

    Args:
        ttl: seconds, or a timedelta.
        stream: that the operator takes.
        lacks: what it would need to have a time to live, in words; None: nothing.

    Raises:
        GraphError: it lacks something, or it is no time, or not above 0.
    """
    if ttl is None:
        return None
    if lacks is not None:
        raise GraphError(f"ttl={shown(ttl)} without {lacks}", way_out=f"Give {lacks} too, or leave ttl= out")
    time = event_time_of(stream.topology.operators, stream.inputs)
    if time is not None:
        return TimeToLive(time.ticks(ttl, "ttl"), time)
    ticks = round(seconds_of(ttl, "ttl") * TICKS_PER_SECOND[_CLOCK_UNIT])
    if not 1 <= ticks <= LONGEST_SPAN:
        longest = LONGEST_SPAN // TICKS_PER_SECOND[_CLOCK_UNIT]
        raise GraphError(
            f"ttl={shown(ttl)} is no time that a key could live",
            way_out=f"Give seconds, more than 0 and no more than {longest:,}, or a timedelta",
        )
    return TimeToLive(ticks, None)
