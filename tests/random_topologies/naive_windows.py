"""Aggregates and windows by event time, as the guide says them, over lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.random_topologies.flow import Flow, Row, fields_of, grouped, integer
from tests.random_topologies.program import Node
from tests.random_topologies.values import Field, Schema

Wanted = Mapping[str, tuple[str, str | None]]  # {output: (function, field)}
Made = dict[str, Flow]
Span = tuple[int, int]  # start and end of a window


def _mean(values: Sequence[Any]) -> float:
    return sum(values) / len(values)


FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "sum": sum, "min": min, "max": max, "mean": _mean, "first": lambda v: v[0], "last": lambda v: v[-1],
}  # fmt: skip


def aggregated(flow: Flow, chosen: Sequence[int], wanted: Wanted, times: Sequence[int] = ()) -> Row:
    """What aggregates make of some rows, in their order; first and last in that of their times, if there are any."""
    row: list[Any] = []
    for function, field in wanted.values():
        by_time = times and function in ("first", "last")
        order = sorted(chosen, key=lambda i: times[i]) if by_time else chosen
        values = [flow.rows[i][flow.at(field)] for i in order] if field is not None else list(order)
        values = [value for value in values if value is not None]
        if function == "count":
            row.append(len(values))
        elif function == "distinct":
            row.append(len(set(values)))
        else:
            row.append(FUNCTIONS[function](values) if values else None)
    return tuple(row)


def aggregates_schema(flow: Flow, wanted: Wanted) -> Schema:
    made = []
    for name, (function, field) in wanted.items():
        of = next((f for f in flow.schema if f.name == field), integer("", nullable=False))
        kind = "int" if function in ("count", "distinct") else "float" if function == "mean" else of.kind
        made.append(Field(name, kind, of.nullable and function not in ("count", "distinct")))
    return tuple(made)


class Windows:
    """Windows of keys, given as time goes on.

    Args:
        node: that declares them.
        flow: what comes.
        names: functions, of which one may assign windows.
    """

    def __init__(self, node: Node, flow: Flow, names: Mapping[str, Any]) -> None:
        self.node, self.flow = node, flow
        self.assign = names.get(node.options.get("assign", ""))
        self.lateness = node.options.get("lateness", 0)
        self.keys, self.times = flow.keys(node.options["keys"]), flow.times()
        self.open: dict[tuple[Row, Span], list[int]] = {}
        self.given: set[tuple[Row, Span]] = set()
        self.rows: list[Row] = []
        self.late: list[int] = []

    def spans(self, i: int) -> list[Span]:
        if self.assign is not None:
            return list(self.assign(self.flow.tuples()[i]))
        at, size, slide = self.times[i], self.node.options["size"], self.node.options["slide"]
        first = (at - size) // slide * slide + slide
        return [(start, start + size) for start in range(first, at + 1, slide) if start <= at < start + size]

    def give(self, key: Row, span: Span, *, corrected: bool) -> None:
        bounds: tuple[Any, ...] = (*span, corrected) if self.lateness else span
        chosen = self.open[key, span]
        self.rows.append((*key, *bounds, *aggregated(self.flow, chosen, self.node.options["aggregates"], self.times)))
        self.given.add((key, span))

    def was_given(self, key: Row, span: Span) -> bool:
        return (key, span) in self.given

    def advance(self, mark: int | None) -> None:
        for key, span in list(self.open):
            if (key, span) not in self.given and (mark is None or span[1] - 1 <= mark):
                self.give(key, span, corrected=False)

    def run(self) -> None:
        marks = self.flow.marks
        assert marks is not None
        for i, key in enumerate(self.keys):
            mark = marks[i]
            if mark is not None:
                self.advance(mark)
            spans = self.spans(i)
            taken = [span for span in spans if mark is None or span[1] + self.lateness - 1 > mark]
            if spans and not taken:
                self.late.append(i)
            for span in taken:
                self.open.setdefault((key, span), []).append(i)
                if mark is not None and span[1] - 1 <= mark:
                    self.give(key, span, corrected=self.was_given(key, span))
        self.advance(None)


def windows(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Made:
    (flow,) = inputs
    made = Windows(node, flow, names)
    made.run()
    bounds = [integer("start"), integer("end"), *([Field("corrected", "bool")] if made.lateness else [])]
    schema = (
        *fields_of(flow, node.options["keys"]), *bounds, *aggregates_schema(flow, node.options["aggregates"]),
    )  # fmt: skip
    late = Flow(flow.schema, [flow.rows[i] for i in made.late], flow.ordered)
    return {node.name: Flow(schema, made.rows, False), f"{node.name}_late": late}


@dataclass(slots=True)
class Session:
    first: int
    last: int
    chosen: list[int]
    is_given: bool = False  # once at least
    is_open: bool = True  # to be given when it ends
    is_late: bool = False  # its tuple came behind its end


class Sessions:
    """Sessions of keys, given as time goes on."""

    def __init__(self, node: Node, flow: Flow) -> None:
        self.node, self.flow = node, flow
        self.gap, self.lateness = node.options["gap"], node.options.get("lateness", 0)
        self.times = flow.times()
        self.kept: dict[Row, list[Session]] = {}
        self.rows: list[Row] = []
        self.late: list[int] = []

    def has_ended(self, session: Session, mark: int | None, lateness: int = 0) -> bool:
        return mark is None or session.last + self.gap + lateness <= mark

    def give(self, key: Row, session: Session) -> None:
        bounds: tuple[Any, ...] = (session.first, session.last + self.gap)
        if self.lateness:
            bounds += (self.was_given(session),)
        chosen = sorted(session.chosen)
        self.rows.append((*key, *bounds, *aggregated(self.flow, chosen, self.node.options["aggregates"], self.times)))
        session.is_given, session.is_open = True, False

    def was_given(self, session: Session) -> bool:
        return session.is_given

    def advance(self, mark: int | None) -> None:
        for key, sessions in self.kept.items():
            for session in sessions:
                if session.is_open and self.has_ended(session, mark):
                    self.give(key, session)
            sessions[:] = [one for one in sessions if not self.has_ended(one, mark, self.lateness)]

    def run(self) -> None:
        marks = self.flow.marks
        assert marks is not None
        keys = self.flow.keys(self.node.options["keys"])
        for i, (key, at, mark) in enumerate(zip(keys, self.flow.times(), marks, strict=True)):
            if mark is not None:
                self.advance(mark)
            sessions = self.kept.setdefault(key, [])
            near = [one for one in sessions if one.first - self.gap <= at <= one.last + self.gap]
            if not near and mark is not None and at + self.gap + self.lateness <= mark:
                self.late.append(i)
                continue
            joined = Session(
                min([at, *(one.first for one in near)]), max([at, *(one.last for one in near)]),
                [i, *(n for one in near for n in one.chosen)], any(one.is_given for one in near),
            )  # fmt: skip
            sessions[:] = [*(one for one in sessions if one not in near), joined]
            if mark is not None and self.has_ended(joined, mark):
                joined.is_late = True
                self.give(key, joined)
        self.advance(None)


def sessions(node: Node, inputs: list[Flow], _: Mapping[str, Any]) -> Made:
    (flow,) = inputs
    made = Sessions(node, flow)
    made.run()
    bounds = [integer("start"), integer("end"), *([Field("corrected", "bool")] if made.lateness else [])]
    schema = (
        *fields_of(flow, node.options["keys"]), *bounds, *aggregates_schema(flow, node.options["aggregates"]),
    )  # fmt: skip
    late = Flow(flow.schema, [flow.rows[i] for i in made.late], flow.ordered)
    return {node.name: Flow(schema, made.rows, False), f"{node.name}_late": late}


def _frames(node: Node, times: list[int], chosen: list[int]) -> list[tuple[int, int, list[int]]]:
    """Start, end and rows of each window, or session, of a key whose rows are in the order of their times."""
    if "gap" in node.options:
        gap = node.options["gap"]
        found: list[list[int]] = []
        for i in chosen:
            if found and times[i] - times[found[-1][-1]] <= gap:
                found[-1].append(i)
            else:
                found.append([i])
        return [(times[some[0]], times[some[-1]] + gap, some) for some in found]
    size, slide = node.options["size"], node.options["slide"]
    frames: dict[int, list[int]] = {}
    for i in chosen:
        for start in range((times[i] - size) // slide * slide + slide, times[i] + 1, slide):
            if start <= times[i] < start + size:
                frames.setdefault(start, []).append(i)
    return [(start, start + size, some) for start, some in sorted(frames.items())]


def gathered(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Made:
    """Windows and sessions by fold, reduce, top, collect, process and combine: in the order of times."""
    (flow,), fields, how = inputs, node.options["keys"], node.options["how"]
    tuples, times, rows = flow.tuples(), flow.times(), []
    others = [name for name in flow.names if name not in fields]
    for key, chosen in grouped(flow.keys(fields), flow.punctual()).items():
        for start, end, some in _frames(node, times, chosen):
            rows += _gathered(how, key, (start, end), [tuples[i] for i in some], others, node, names)
    bounds = [*fields_of(flow, fields), integer("start"), integer("end")]
    if how == "process":
        schema = [*fields_of(flow, fields), integer("start"), integer("j"), integer("last"), integer("n")]
    elif how in ("fold", "combine"):
        schema = [*bounds, node.options["value"]]
    else:
        schema = [*bounds, *([integer("place")] if how != "reduce" else []), *fields_of(flow, others)]
    return {node.name: Flow(tuple(schema), rows, False), f"{node.name}_late": flow.too_late()}


def _gathered(
    how: str, key: Row, bounds: Row, tuples: list[Any], others: list[str], node: Node, names: Mapping[str, Any]
) -> list[Row]:
    def shown(t: Any) -> Row:
        return tuple(getattr(t, name) for name in others)

    match how:
        case "fold":
            total = node.options["start"]
            for t in tuples:
                total = names[node.options["fn"]](total, t)
            return [(*key, *bounds, total)]
        case "reduce":
            total = tuples[0]
            for t in tuples[1:]:
                total = names[node.options["fn"]](total, t)
            return [(*key, *bounds, *shown(total))]
        case "top":
            by = node.options["by"]
            best = sorted((t for t in tuples if getattr(t, by) is not None), key=lambda t: -getattr(t, by))
            return [(*key, *bounds, place, *shown(t)) for place, t in enumerate(best[: node.options["k"]], 1)]
        case "collect":
            return [(*key, *bounds, place, *shown(t)) for place, t in enumerate(tuples, 1)]
        case "process":
            return [(*key, bounds[0], tuples[0].j, tuples[-1].j, len(tuples))]
    own = names["Range"]()
    state = type("Kept", (), own.init()._asdict())()
    for t in tuples:
        own.add(t, state)
    return [(*key, *bounds, own.result(state))]


WINDOWS: dict[str, Any] = {"windows": windows, "sessions": sessions, "gathered": gathered}
