"""Classes with timers of keys: tuples and timers in the order of their times, one call each, under the GIL.

In event time, the order of times is kept. A tuple waits until the watermark has reached its time, and a timer fires
after all tuples of its time. So the output of a key depends on the tuples alone. In processing time, tuples are
processed at once.

The state of a key, with its timers and waiting tuples, is one value of the state table, and migrates with it. The heap
of due times is rebuilt whenever keys have migrated. A key without any state is freed after the call. Entries of
cancelled timers are removed once they are most of the heap.
"""

from __future__ import annotations

import collections
import copy
import heapq
import itertools
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rayelastic.compile.code.state import state_factory
from rayelastic.compile.lanes.process_key import FOR_EVER, NEVER, Kept, Out
from rayelastic.compile.lanes.python_lane import about, marked
from rayelastic.graph.operators.processes import KeyedProcess

MOST_AFTER_END = 100_000  # timers that a key's timers set once the input has ended; more would never end
_AT_END, _AT_TIME, _POKED = -1, -2, -3  # the engine's reasons for a call, in place of a port
_TUPLE, _TIMER, _EXPIRY = 0, 1, 2  # the order of events at the same time
_FEW_STALE = 1_000  # entries of cancelled timers that may stay in the heap


class KeyTable(Protocol):
    """The values of all keys; _native.KeyedState."""

    @property
    def changes(self) -> int:
        """The number of times that values were added or removed by other than the operator's own runs."""
        ...

    def values(self) -> list[Any]:
        """Return the values of all keys."""
        ...

    def will_change(self, value: Any) -> None:
        """Announce a change of a value without a tuple in this run, so that a checkpoint copies it first."""
        ...

    def forget(self, values: list[Any]) -> None:
        """Free the keys of values."""
        ...


class ProcessFunction:
    """A process in this process.

    Args:
        process: The description; the caller copies the instance.
        clock: Returns seconds since 1970.

    Attributes:
        keys: The table with the results of `new`; set before the first call.
        first: Makes the initial state of a key.
    """

    keys: KeyTable

    def __init__(self, process: KeyedProcess, clock: Callable[[], float]) -> None:
        self._instance = process.instance
        self._on_time = getattr(process.instance, "on_time", None)
        self._on_end = getattr(process.instance, "on_end", None)
        self._clock = clock
        self._times = process.times
        self._by_clock = process.time is None
        self._type = process.input_schema.tuple_type
        names = process.input_schema.names
        self._fields = tuple(names.index(key) for key in process.keys)
        self._field = 0 if process.time is None else names.index(process.time.field)
        self.first: Callable[[], Any] = state_factory(process.state) or dict
        self._due: list[tuple[int, int, int, Kept]] = []
        self._stale = 0  # entries of the heap with cancelled timers
        self._emptied: list[Kept] = []  # possibly, in this call
        self._ttl = process.ttl_ticks  # 0: none
        self._since_first = process.ttl is not None and process.ttl.since == "first"
        self._numbers = itertools.count()
        self._changes = 0
        self._set_after_end: collections.Counter[int] = collections.Counter()  # by timers, by the id of a key's state
        self._reached = NEVER  # the watermark
        self._out = Out(self, self._times)

    def new(self) -> Kept:
        """Make the state of a new key."""
        return Kept(self.first())

    def call(self, why: int, what: Any, kept: Sequence[Kept] = ()) -> list[Any]:
        """Run for the engine: for tuples and the states of their keys, a watermark, a poke, or the end."""
        if self.keys.changes != self._changes:
            self._changes = self.keys.changes
            self._recollect()
        given: list[Any] = []
        late: list[Any] = []
        self._out.given = given
        if why == _POKED:
            self._run(self._now())
        elif why == _AT_TIME:
            self._reached = what
            self._run(what)
        elif why == _AT_END:
            self._end()
        elif self._by_clock:
            self._take_now(what, kept)
        else:
            self._take(what, kept, late)
        self._free()
        return [given] if self._by_clock else [given, late]

    def note(self, ticks: int, kept: Kept) -> None:
        """Set a timer."""
        if self._on_time is None:
            raise TypeError(f"class {type(self._instance).__name__} has no method on_time(time, state, out)")
        kept.gone = False
        if ticks not in kept.timers:
            kept.timers.add(ticks)
            heapq.heappush(self._due, (ticks, _TIMER, next(self._numbers), kept))

    def cancel(self, ticks: int, kept: Kept) -> None:
        """Cancel a timer."""
        if ticks in kept.timers:
            kept.timers.discard(ticks)
            self._stale += 1

    def forget(self, kept: Kept) -> None:
        """Cancel all timers of a key, and reset its state."""
        self._stale += len(kept.timers) + (self._ttl > 0)
        kept.gone = True
        kept.timers.clear()
        kept.state = self.first()
        self._emptied.append(kept)

    def _free(self) -> None:
        """Free the keys without state or timers, and drop entries of cancelled timers from the heap."""
        if self._emptied:
            self.keys.forget([kept for kept in self._emptied if kept.is_empty])
            self._emptied.clear()
        if self._stale > max(_FEW_STALE, len(self._due) // 2):
            entries: dict[tuple[int, int, int], tuple[int, int, int, Kept]] = {}
            for entry in sorted(self._due):
                ticks, what, number, kept = entry
                expires = ticks == kept.expires and not kept.gone
                if what == _TUPLE or (ticks in kept.timers if what == _TIMER else expires):
                    entries.setdefault((ticks, number if what == _TUPLE else -what, id(kept)), entry)
            self._due = list(entries.values())  # sorted, which is also a heap
            self._stale = 0

    def _take(self, tuples: Sequence[Any], keys: Sequence[Kept], late: list[Any]) -> None:
        for index, (item, kept) in enumerate(zip(tuples, keys, strict=True)):
            try:
                ticks = self._times.ticks(item[self._field])
            except (TypeError, ValueError, OverflowError) as error:
                marked(error, index)
                raise
            if ticks <= self._reached:
                late.append(item)
                self._emptied.append(kept)
                continue
            kept.key = kept.key or self._key(item)
            number = next(self._numbers)
            kept.waiting[number] = (ticks, tuple(item))
            heapq.heappush(self._due, (ticks, _TUPLE, number, kept))

    def _take_now(self, tuples: Sequence[Any], keys: Sequence[Kept]) -> None:
        for index, (item, kept) in enumerate(zip(tuples, keys, strict=True)):
            now = self._now()
            self._run(now)
            kept.key = kept.key or self._key(item)
            self._touch(kept, now)
            self._out._at(kept, now, now)
            try:
                self._instance.on_tuple(item, kept.state, self._out)
            except Exception as error:
                marked(error, index)
                raise

    def _run(self, until: int) -> None:
        """Run all that is due up to a time."""
        due, out = self._due, self._out
        while due and due[0][0] <= until:
            ticks, what, number, kept = heapq.heappop(due)
            if what == _TUPLE:
                self.keys.will_change(kept)
                _, values = kept.waiting.pop(number)
                self._touch(kept, ticks)
                out._at(kept, ticks, ticks)
                item = self._type(*values)
                try:
                    self._instance.on_tuple(item, kept.state, out)
                except Exception as error:
                    about(error, item)
                    raise
            elif what == _EXPIRY:
                if ticks == kept.expires and not kept.gone:
                    self._expire(kept)
            elif ticks in kept.timers:
                self.keys.will_change(kept)
                kept.timers.discard(ticks)
                out._at(kept, ticks, ticks + 1)
                assert self._on_time is not None
                left = len(kept.timers)
                self._on_time(out.time, kept.state, out)
                if out.ended and len(kept.timers) > left:
                    self._look_for_an_end(kept, len(kept.timers) - left)

    def _touch(self, kept: Kept, now: int) -> None:
        """Restart the time to live of a key with a tuple."""
        fresh, kept.gone = kept.gone, False
        if fresh or not self._since_first:
            kept.touched = now
        if fresh and self._ttl:
            self._will_expire(kept)

    def _will_expire(self, kept: Kept) -> None:
        """Schedule the check of a key after all that is due at the last tick of its time to live."""
        kept.expires = kept.touched + self._ttl
        heapq.heappush(self._due, (kept.expires, _EXPIRY, next(self._numbers), kept))

    def _expire(self, kept: Kept) -> None:
        """Drop a key that wasn't touched for its time to live; at the end of the input, only its later timers."""
        self.keys.will_change(kept)
        if kept.touched + self._ttl > kept.expires:
            self._will_expire(kept)
        elif self._out.ended and not kept.waiting:
            kept.timers.clear()
        else:
            self.forget(kept)

    def _look_for_an_end(self, kept: Kept, added: int) -> None:
        self._set_after_end[id(kept)] += added
        if self._set_after_end[id(kept)] > MOST_AFTER_END:
            raise RuntimeError(
                f"timers of key {kept.key!r} set further ones for ever, and the input has ended: "
                "look at out.ended before you set one"
            )

    def _end(self) -> None:
        """End the input: in event time all timers fire, including those set meanwhile; then each key ends."""
        self._out.ended = True
        if not self._by_clock:
            while self._due:
                self._run(self._due[0][0])
        if self._on_end is None:
            return
        for kept in self.keys.values():
            if not kept.gone:
                self.keys.will_change(kept)
                self._out._at(kept, FOR_EVER, FOR_EVER)
                self._on_end(kept.state, self._out)

    def _recollect(self) -> None:
        """Rebuild the heap of due times from the current keys."""
        self._due, self._stale = [], 0
        for kept in self.keys.values():
            waiting = [kept.waiting[number] for number in sorted(kept.waiting)]
            kept.waiting = {next(self._numbers): item for item in waiting}
            self._due += [(ticks, _TUPLE, number, kept) for number, (ticks, _) in kept.waiting.items()]
            self._due += [(ticks, _TIMER, next(self._numbers), kept) for ticks in kept.timers]
            if self._ttl and not kept.gone:
                self._will_expire(kept)
        heapq.heapify(self._due)

    def _key(self, item: Any) -> tuple[Any, ...]:
        return tuple(item[field] for field in self._fields)

    def _now(self) -> int:
        return self._times.ticks(self._clock())


def why_tuple(process: KeyedProcess, record: tuple[Any, ...]) -> str:
    """Explain why a compiled on_tuple failed: run it in Python for the tuple and a new key."""
    item: Any = process.input_schema.tuple_type
    made = item._make(record)
    at = 0 if process.time is None else process.times.ticks(getattr(made, process.time.field))
    return f"{_why(process, process.instance.on_tuple, at, record, made)}; the tuple was {made!r}"


def why_moment(process: KeyedProcess, record: tuple[Any, ...]) -> str:
    """Explain why a compiled on_time, or on_end, failed, in the same way."""
    *key, time = record
    at = process.times.ticks(time)
    return (
        f"{_why(process, getattr(process.instance, 'on_time', None), at, key, time)}; at {time!r} of key {tuple(key)!r}"
    )


def _why(process: KeyedProcess, method: Callable[..., Any] | None, at: int, key: Sequence[Any], given: Any) -> str:
    function = ProcessFunction(process, lambda: 0.0)
    kept = function.new()
    names = process.input_schema.names
    kept.key = tuple(key[names.index(one)] for one in process.keys) if len(key) == len(names) else tuple(key)
    function._out._at(kept, at, at)
    try:
        if method is not None:
            copy.deepcopy(method)(given, kept.state, function._out)
    except Exception as error:
        return "".join(traceback.format_exception_only(error)).strip()
    return "it failed in a state that its key had then, or went beyond 64 bits; lane='python' shows more"
