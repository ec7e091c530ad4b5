"""`match`: finds sequences of tuples of a key, in which each step follows the previous one within a time.

The matching is native; see native_sched/include/rayelastic/operators/time/pattern.hpp. The user's predicates become one
function of a tuple, which returns two bits for each step. Knows no threads, PEs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.schema import Schema, laid_out
from rayelastic.graph.records.shown import counted, invalid, shown
from rayelastic.graph.records.time_info import Seconds, TimeInfo
from rayelastic.graph.spec.declaration import LaneChoice, NewOperator, check_function, lane_of
from rayelastic.graph.spec.operator_spec import CompiledFunction, Lane, OperatorBody, OperatorSpec, fields_form
from rayelastic.graph.spec.ports import LATE, OUT, OutputPort, check_port
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import check_object

MISSING = "missing"  # the field that names the first step that didn't match
_MOST = 31  # steps: each takes two bits of the mask

Predicate = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pattern; see Pattern.then."""

    name: str
    holds: Predicate
    within: Seconds | None = None
    without: Predicate | None = None


@dataclass(frozen=True, slots=True, init=False)
class Pattern:
    """A sequence of tuples of a key, for ``KeyedStream.match``: a first step, then those added by `.then`.

    Args:
        name: The first step's name, which prefixes the fields of its tuple.
        holds: A predicate of a tuple: whether the sequence begins with it.

    >>> import rayelastic as rel
    >>> small = rel.Pattern("small", lambda t: t.sum < 1)
    >>> small.then("large", lambda t: t.sum > 500, within=60)
    Pattern(small, then large within 60)
    """

    steps: tuple[Step, ...]

    def __init__(self, name: str, holds: Predicate) -> None:
        object.__setattr__(self, "steps", (Step(name, holds),))

    def then(self, name: str, holds: Predicate, *, within: Seconds, without: Predicate | None = None) -> Pattern:
        """Return the pattern with a further step.

        Args:
            name: The step's name.
            holds: A predicate of a tuple. The first tuple for which it is true matches; those between are skipped.
            within: The longest time after the tuple of the step before, as seconds of event time or a timedelta.
            without: A predicate of a tuple. If it is true before the step matches, the sequence ends and nothing is
                emitted. A tuple for which `holds` is true as well also ends it.
        """
        longer = Pattern(self.steps[0].name, self.steps[0].holds)
        object.__setattr__(longer, "steps", (*self.steps, Step(name, holds, within, without)))
        return longer

    def __repr__(self) -> str:
        steps = [f"then {step.name} within {step.within}" for step in self.steps[1:]]
        return f"Pattern({', '.join([self.steps[0].name, *steps])})"


@dataclass(frozen=True, slots=True)
class Matching(OperatorBody):
    """What a match does.

    Args:
        marks: Returns the mask of a tuple: bit 2i says that step i holds, bit 2i + 1 that the tuple ends sequences
            that wait for it.
        steps: Name, ticks after the step before, and whether a predicate ends it, of each step.
        fields: The fields that each step's tuple emits.
        time: The event time.
        outer: Whether incomplete sequences are emitted, too.
    """

    marks: CompiledFunction
    steps: tuple[tuple[str, int, bool], ...]
    fields: tuple[str, ...]
    time: TimeInfo
    outer: bool
    operator_kind = "match"

    @property
    def lane(self) -> Lane:
        """The execution mode of the predicates; the sequences are native."""
        return self.marks.lane

    @property
    def reason(self) -> str:
        """Describe the operator for `explain()`."""
        named = [f"{name} within {within} {self.time.unit}" for name, within, _ in self.steps[1:]]
        return f"{', then '.join([self.steps[0][0], *named])}; predicates: {self.marks.reason}"

    @property
    def output_time(self) -> TimeInfo | None:
        """The event time of its output: that of the last step's tuple, unless incomplete sequences are emitted."""
        return None if self.outer else replace(self.time, field=_called(self.steps[-1][0], self.time.field))

    @property
    def user_function(self) -> CompiledFunction:
        """The predicates."""
        return self.marks

    def kept_form(self, spec: OperatorSpec) -> str:
        """Describe its state."""
        return f"{spec.key_form}, ({fields_form(spec.inputs[0].schema)}), {', then '.join(map(str, self.steps))}"


def match(up: Upstream, name: str, pattern: object, how: str, lane: LaneChoice) -> OperatorSpec:
    """See ``KeyedStream.match``."""
    with NewOperator(name, up.operators) as location:
        if how not in ("inner", "left"):
            raise invalid("how", how, "Choose 'inner' or 'left'", ErrorCode.UNKNOWN_CHOICE)
        if not isinstance(pattern, Pattern):
            raise GraphError(
                f"{shown(pattern)} isn't a pattern",
                hint="Pass rel.Pattern(name, fn).then(name, fn, within=seconds)",
                code=ErrorCode.WRONG_TYPE,
            )
        time = up.event_time
        if time is None:
            raise GraphError(
                "a pattern goes by event time",
                hint="Write .event_time(field) before .key_by",
                code=ErrorCode.NO_EVENT_TIME,
            )
        _check_steps(pattern.steps)
        steps = tuple(
            (
                step.name,
                0 if step.within is None else time.ticks(step.within, "within", least=0),
                step.without is not None,
            )
            for step in pattern.steps
        )
        request = FunctionRequest(
            name,
            FunctionKind.MAP,
            _marks(pattern.steps),
            up.schema,
            Schema.of(int),
            lane=lane_of(lane),
            location=location,
        )
        marks = up.compiler.compile(request)
        fields = tuple(field for field in up.schema.names if field not in up.keys)
        return up.operator(
            name,
            Matching(marks, steps, fields, time, how == "left"),
            location,
            (
                OutputPort(OUT, _schema(name, up, fields, pattern.steps, outer=how == "left")),
                OutputPort(LATE, up.schema, optional=True),
            ),
            keys=up.keys,
        )


def _check_steps(steps: tuple[Step, ...]) -> None:
    if not 2 <= len(steps) <= _MOST:
        raise GraphError(
            f"a pattern of {counted(len(steps), 'step')}",
            hint=f"Add .then(name, fn, within=seconds); it may have {_MOST} steps, .filter is for one",
            code=ErrorCode.OUT_OF_RANGE,
        )
    for step in steps:
        check_port(step.name, "step of a pattern, which")
        check_function(step.holds, FunctionKind.FILTER, None)
        check_object(step.holds)
        if step.without is not None:
            check_function(step.without, FunctionKind.FILTER, None)
            check_object(step.without)
    names = [step.name for step in steps]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise GraphError(f"two steps are named '{twice}'", hint="Rename one of them", code=ErrorCode.DUPLICATE_NAME)


def _schema(name: str, up: Upstream, fields: tuple[str, ...], steps: tuple[Step, ...], *, outer: bool) -> Schema:
    columns = [(key, up.schema.field(key).format, up.schema.field(key).nullable) for key in up.keys]
    for number, step in enumerate(steps):
        lacks = outer and number > 0
        of_step = [up.schema.field(field) for field in fields]
        columns += [(_called(step.name, field.name), field.format, field.nullable or lacks) for field in of_step]
    if outer:
        columns.append((MISSING, "u", True))
    names = [column for column, _, _ in columns]
    twice = next((column for column in names if names.count(column) > 1), None)
    if twice is not None:
        raise GraphError(
            f"two output fields are named '{twice}'",
            hint="Rename a step",
            code=ErrorCode.DUPLICATE_FIELD,
        )
    return laid_out(name, columns)


def _called(step: str, field: str) -> str:
    return f"{step}_{field}"


def _marks(steps: tuple[Step, ...]) -> Callable[[Any], int]:
    """Combine the predicates into one function, so that they compile to one."""
    marks = _first(steps[0].holds)
    for number, step in enumerate(steps[1:], start=1):
        if step.without is not None:
            marks = _with(step.without, 1 << (2 * number + 1), marks)
        marks = _with(step.holds, 1 << (2 * number), marks)
    return marks


def _first(holds: Predicate) -> Callable[[Any], int]:
    def marks(t: Any) -> int:
        if holds(t):
            return 1
        return 0

    return marks


def _with(holds: Predicate, bit: int, others: Callable[[Any], int]) -> Callable[[Any], int]:
    def marks(t: Any) -> int:
        if holds(t):
            return bit + others(t)
        return others(t)

    return marks
