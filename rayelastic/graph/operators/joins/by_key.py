"""Joins of two streams: by key, or of each tuple with all keys of the other stream.

They run natively; see native_sched/include/rayelastic/operators/time/join.hpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.operators.aligned import Aligned, Ticks, ticks_of
from rayelastic.graph.operators.joins.equality import are_comparable, check_keys, type_text
from rayelastic.graph.operators.joins.names import added_name
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import check_flag, conflict, invalid, shown
from rayelastic.graph.records.time_info import Lifetime, Seconds, TimeInfo, TimeToLive
from rayelastic.graph.spec.declaration import NewOperator
from rayelastic.graph.spec.operator_spec import OperatorBody, OperatorSpec, fields_form
from rayelastic.graph.spec.ports import LATE, OUT, InputPort, OutputPort
from rayelastic.graph.spec.upstream import Upstream

RIGHT = "right"  # the port of the second stream
SUFFIX = "_right"  # added to the names of its fields that the first stream has, too
ARRIVAL = "arrival"


class JoinKind(Enum):
    """Which right tuples match a left one: those of its key, or of any key."""

    LATEST = "latest"
    FIRST = "first"
    ALL = "all"
    INTERVAL = "interval"
    WINDOW = "window"
    PAIRS = "pairs"
    CROSS = "cross"

    @property
    def is_bounded(self) -> bool:
        """Whether the join can know that a right tuple has no further matches."""
        return self in (JoinKind.INTERVAL, JoinKind.WINDOW)


_KEPT = {JoinKind.LATEST: "the latest", JoinKind.FIRST: "the first", JoinKind.ALL: "all", JoinKind.CROSS: "the latest"}


class How(Enum):
    """Which tuples without a match are emitted, too."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"

    @property
    def of_left(self) -> bool:
        """Whether unmatched left tuples are emitted."""
        return self in (How.LEFT, How.FULL)

    @property
    def of_right(self) -> bool:
        """Whether unmatched right tuples are emitted."""
        return self in (How.RIGHT, How.FULL)


@dataclass(frozen=True, slots=True)
class Join(OperatorBody):
    """What a join does.

    Args:
        kind: Which right tuples match.
        right_keys: Key fields of the right, in the order of those of the left. In a cross join, the fields that
            identify the latest tuples.
        right_fields: Fields of the right in the output, in order.
        left_time: The event time of the left; None: by arrival.
        right_time: The event time of the right.
        before: Ticks before a left tuple, of an interval; the length of a window.
        after: Ticks after a left tuple, of an interval.
        how: Which tuples without a match are emitted, too.
        symmetric: Whether right tuples are joined with kept left ones, too; of joins by arrival.
        offset: Ticks from 1970 to the start of a window.
        zone: The zone in whose days a window and its offset are counted; '': ticks.
        ttl: The time without a tuple of a key, on either side, after which its state is dropped; None: never.
    """

    kind: JoinKind
    right_keys: tuple[str, ...]
    right_fields: tuple[str, ...]
    left_time: TimeInfo | None
    right_time: TimeInfo | None
    before: int = 0
    after: int = 0
    how: How = How.INNER
    symmetric: bool = False
    offset: int = 0
    zone: str = ""
    ttl: TimeToLive | None = None
    operator_kind = "join"
    routes_inputs = True

    @property
    def reason(self) -> str:
        """Describe the join for `explain()`."""
        order = "" if self.kind is JoinKind.PAIRS else "by arrival, " if self.left_time is None else "by event time, "
        by_clock = self.ttl is not None and self.ttl.time is None
        timing = ", which depends on timing" if order.startswith("by arrival") or by_clock else ""
        return f"{self.how.value} join {order}{self.matches}{self._ends}{timing}"

    @property
    def _ends(self) -> str:
        if self.ttl is None:
            return ""
        time, whose = self.ttl.time, "its tuples" if self.kind is not JoinKind.CROSS else "the right's tuples"
        after = f"{self.ttl.ticks} {time.unit} of event time" if time else f"{self.ttl.ticks / 1e9:g} s by the clock"
        return f", a key ends {after} after the {self.ttl.since} of {whose}"

    @property
    def matches(self) -> str:
        """Describe which tuples are joined; this decides what is kept."""
        if self.kind is JoinKind.PAIRS:
            return "of all pairs of a key, as in SQL"
        if self.symmetric:
            return f"each with {_KEPT[self.kind]} of the other stream that has arrived before"
        whose = " of each key" if self.kind is JoinKind.CROSS else ""
        if self.left_time is None:
            has = "have" if self.kind is JoinKind.ALL else "has"
            return f"with {_KEPT[self.kind]}{whose} that {has} arrived before"
        unit = self.left_time.unit
        match self.kind:
            case JoinKind.WINDOW:
                offset = f", {self.offset} {unit} after others" if self.offset else ""
                zone = f", by days of {self.zone}" if self.zone else ""
                return f"with those in the same window of {self.before} {unit}{offset}{zone}"
            case JoinKind.INTERVAL:
                return f"with those from {self.before} {unit} before to {self.after} {unit} after"
        return f"with {_KEPT[self.kind]}{whose} as of {self.left_time.field}"

    @property
    def output_time(self) -> TimeInfo | None:
        """The event time of what it emits: the left's, where each tuple has one."""
        return None if self.how.of_right else self.left_time

    @property
    def ends_time(self) -> bool:
        """Whether what it emits follows no event time of its inputs."""
        return self.kind is JoinKind.PAIRS

    @property
    def takes_rules(self) -> bool:
        """Whether any replica may run it on any tuple: by event time, results would leave their round-robin turn."""
        return self.kind is JoinKind.CROSS and self.left_time is None

    @property
    def orders_rules(self) -> bool:
        """Whether only the event times of tuples and rules keep it from having replicas."""
        return self.kind is JoinKind.CROSS and self.left_time is not None

    @property
    def uses_clock(self) -> bool:
        """Whether keys end by the clock."""
        return self.ttl is not None and self.ttl.time is None and self.kind is not JoinKind.CROSS

    def notes(self, side_first: str, sources: Sequence[str]) -> list[str]:
        """List what it keeps, if that may be for ever, or reads a source first."""
        if self.kind.is_bounded:
            return []
        if side_first:
            return [f"keeps its {side_first} side, which is read first: {', '.join(sources)} begins when it has ended"]
        what = "both sides" if self.kind is JoinKind.PAIRS or self.symmetric else "its right side"
        if self.ttl is not None:
            return [f"keeps {what}"] if self.kind is JoinKind.PAIRS else []
        return [f"keeps {what} as long as the job runs: ttl= ends keys that don't come any more"]

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe its state."""
        sides = " and ".join(f"({fields_form(port.schema)})" for port in spec.inputs)
        return f"{spec.key_form}, {sides} joined {self.matches}"


@dataclass(frozen=True, slots=True)
class Matching:
    """Which tuples of the right match: the arguments of `join`; None: not set.

    Args:
        keep: Which tuples of a key the right side keeps.
        within: Seconds before, or (before, after).
        window: Seconds of a tumbling window, or an alignment.
        how: Which tuples without a match are emitted, too.
        by: 'arrival'.
        symmetric: Whether both sides are kept; of joins by arrival.
        suffix: Added to fields of the right that the left has, too.
        ttl: The time without a tuple after which a key is dropped.
    """

    keep: str | None = None
    within: Seconds | tuple[Seconds, Seconds] | None = None
    window: Seconds | Aligned | None = None
    how: str | None = None
    by: str | None = None
    symmetric: object = False
    suffix: str = SUFFIX
    ttl: Lifetime | None = None


def join(left: Upstream, name: str, right: Upstream, asked: Matching) -> OperatorSpec:
    """See ``KeyedStream.join``; without fn."""
    with NewOperator(name, left.operators) as location:
        outer = _how(asked.how or How.INNER.value, How)
        check_flag("symmetric", asked.symmetric)
        right_keys = right.keys or left.keys
        check_keys(left, right, right_keys)
        times = _times(left, right)
        is_timed = times != (None, None)
        kind, before, after = _kind(asked, left.event_time)
        windows = Ticks(before, before, 0, "")
        if kind is JoinKind.WINDOW and is_timed:
            aligned = asked.window if isinstance(asked.window, Aligned) else Aligned(seconds=asked.window)
            windows = ticks_of(left, left.event_time, aligned, what="window")
        if kind.is_bounded and not is_timed:
            raise GraphError(
                f"a join by {kind.value} needs the event time of both streams",
                hint="Write .event_time(field) before, on both sides",
                code=ErrorCode.NO_EVENT_TIME,
            )
        _check_by(asked.by, is_timed=is_timed)
        if not is_timed and asked.by is None:
            kind = _of_pairs(asked, left, right)
        elif asked.symmetric and (is_timed or kind is JoinKind.ALL):
            raise conflict(
                "symmetric=True is of by='arrival', with keep='latest' or 'first'",
                "Pass within=(before, after) where both streams have an event time; else how= without by=",
            )
        elif outer.of_right and not (kind.is_bounded or asked.symmetric):
            raise GraphError(
                f"how='{asked.how}' with keep='{kind.value}': a tuple of the right would be kept forever",
                hint="Pass within= or window= with event times; without them how= alone, or symmetric=True",
                code=ErrorCode.UNBOUNDED_STATE,
            )
        if asked.ttl is not None and kind.is_bounded:
            what = "within" if kind is JoinKind.INTERVAL else "window"
            raise conflict(f"ttl={shown(asked.ttl)} with {what}=, which ends keys by itself", "Leave ttl= out")
        fields = tuple(f for f in right.schema.names if f not in right_keys)
        body = Join(
            kind, right_keys, fields, *times, windows.size, after, outer, bool(asked.symmetric),
            offset=windows.offset, zone=windows.zone, ttl=_lives(left, asked.ttl, is_timed=is_timed),
        )  # fmt: skip
        return _operator(left, name, right, body, location, asked.suffix)


def cross_join(left: Upstream, name: str, right: Upstream, asked: Matching) -> OperatorSpec:
    """See ``Stream.cross_join``; without fn."""
    with NewOperator(name, left.operators) as location:
        outer = _how(asked.how or How.INNER.value, (How.INNER, How.LEFT))
        times = _times(left, right)
        is_timed = times != (None, None)
        _check_by(asked.by, is_timed=is_timed)
        lives = _lives(left, asked.ttl, is_timed=is_timed)
        if lives is not None and lives.since != "last":
            problem = "a key of the right expires after its latest tuple"
            raise GraphError(problem, hint="Pass ttl= in seconds", code=ErrorCode.UNSUPPORTED_TTL)
        if not is_timed and asked.by is None:
            raise GraphError(
                f"{_untimed(left, right)} an event time, so what it joins would depend on which tuple arrives first",
                hint="Write .event_time(field) before on both sides, or say by='arrival'",
                code=ErrorCode.NO_EVENT_TIME,
            )
        body = Join(JoinKind.CROSS, right.keys, right.schema.names, *times, how=outer, ttl=lives)
        return _operator(left, name, right, body, location, asked.suffix)


def _lives(left: Upstream, ttl: Lifetime | None, *, is_timed: bool) -> TimeToLive | None:
    lives = left.time_to_live(ttl, None, clock=not is_timed)
    if lives is not None and lives.since == "change":
        hint = "Use since='last' or 'first'"
        raise GraphError("a join has no function that changes state", hint=hint, code=ErrorCode.UNSUPPORTED_TTL)
    return lives


def _check_by(by: object, *, is_timed: bool) -> None:
    if by not in (None, ARRIVAL):
        raise invalid("by", by, "Leave it out, or pass by='arrival'", ErrorCode.UNKNOWN_CHOICE)
    if by is not None and is_timed:
        raise conflict(
            "by='arrival', and both streams have an event time",
            "Leave by= out: the join goes by event time, and doesn't depend on the order of arrival",
        )


def _of_pairs(asked: Matching, left: Upstream, right: Upstream) -> JoinKind:
    """Return the kind of a join of all pairs, as in SQL, which how= alone selects."""
    if asked.how is None:
        raise GraphError(
            f"{_untimed(left, right)} an event time, so what it joins would depend on which tuple arrives first",
            hint="Pass how='inner', 'left', 'right' or 'full' for all pairs of a key, as in SQL; or by='arrival' "
            "for what has arrived before. Or write .event_time(field) on both sides",
            code=ErrorCode.NO_EVENT_TIME,
        )
    for is_given, what in ((asked.keep is not None, f"keep={shown(asked.keep)}"), (asked.symmetric, "symmetric=True")):
        if is_given:
            raise conflict(
                f"{what} with how='{asked.how}', which joins all pairs of a key where there are no event times",
                f"Leave {what.partition('=')[0]}= out, or add by='arrival'",
            )
    return JoinKind.PAIRS


def _untimed(left: Upstream, right: Upstream) -> str:
    if left.event_time is None and right.event_time is None:
        return "neither stream has"
    return "the right doesn't have" if right.event_time is None else "the left doesn't have"


def _operator(left: Upstream, name: str, right: Upstream, body: Join, location: str, suffix: str) -> OperatorSpec:
    gives = _schema(name, left, right, body, suffix)
    late = (OutputPort(LATE, left.schema, optional=True),) if body.left_time is not None else ()
    by_key = () if body.kind is JoinKind.CROSS else body.right_keys  # a cross join sends the right to every replica
    return left.operator(
        name,
        body,
        location,
        (OutputPort(OUT, gives), *late),
        keys=left.keys,
        others=(InputPort(RIGHT, right.schema, right.inputs, by_key),),
        ttl=body.ttl,
    )


def _how(how: str, allowed: Sequence[How] | type[How]) -> How:
    values = [choice.value for choice in allowed]
    if how not in values:
        raise invalid("how", how, f"Choose {', '.join(values[:-1])} or {values[-1]}", ErrorCode.UNKNOWN_CHOICE)
    return How(how)


def _times(left: Upstream, right: Upstream) -> tuple[TimeInfo | None, TimeInfo | None]:
    """Return the event times to join by; None: by arrival."""
    time, other = left.event_time, right.event_time
    if time is None or other is None:
        return None, None
    if time.unit != other.unit:
        raise GraphError(
            f"event times in {time.unit} and {other.unit}",
            hint="Map one to the other's unit",
            code=ErrorCode.EVENT_TIME_MISMATCH,
        )
    here, there = left.schema.field(time.field), right.schema.field(other.field)
    if here.type is there.type and not are_comparable(here, there):
        raise GraphError(
            f"the event time of the left is {type_text(here)}, that of the right {type_text(there)}",
            hint="Map one of them to the type of the other, so that both have a time zone or neither has one",
            code=ErrorCode.EVENT_TIME_MISMATCH,
        )
    return time, other


def _kind(asked: Matching, time: TimeInfo | None) -> tuple[JoinKind, int, int]:
    kept = {kind.value: kind for kind in (JoinKind.LATEST, JoinKind.FIRST, JoinKind.ALL)}
    keep, within, window = asked.keep or JoinKind.LATEST.value, asked.within, asked.window
    if keep not in kept:
        raise invalid("keep", keep, "Choose latest, first or all, or pass within= or window=", ErrorCode.UNKNOWN_CHOICE)
    if within is not None and window is not None:
        raise conflict("a join has within or window, not both", "Leave one of them out")
    if asked.keep is not None and not (within is None and window is None):
        raise conflict(
            f"keep='{keep}' with {'within' if window is None else 'window'}=, which matches all tuples",
            "Leave keep= out",
        )
    time = time or TimeInfo("time", "s")
    if window is not None:
        return JoinKind.WINDOW, 0, 0
    if within is None:
        return kept[keep], 0, 0
    before, after = within if isinstance(within, tuple) and len(within) == 2 else (within, 0)
    return JoinKind.INTERVAL, time.ticks(before, "within", least=0), time.ticks(after, "within", least=0)


def _schema(name: str, left: Upstream, right: Upstream, body: Join, suffix: str) -> Schema:
    columns = []
    for f in left.schema.fields:
        if f.name in left.keys:
            of_right = body.how.of_right and right.schema.field(body.right_keys[left.keys.index(f.name)]).nullable
            columns.append((f.name, f.format, f.nullable or of_right))
        else:
            columns.append((f.name, f.format, f.nullable or body.how.of_right))
    for f in map(right.schema.field, body.right_fields):
        columns.append((added_name(f.name, columns, suffix), f.format, f.nullable or body.how.of_left))
    return laid_out(name, columns)
