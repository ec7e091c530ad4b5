"""The naive interpreter: what the guide says of each operator, over lists. Shares no code with the engine."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.random_topologies.flow import Flow, Row, fields_of, grouped, integer, tuple_type
from tests.random_topologies.functions import BASE, PATTERNS
from tests.random_topologies.naive_joins import JOINS
from tests.random_topologies.naive_windows import WINDOWS, aggregated, aggregates_schema
from tests.random_topologies.program import Node, Program
from tests.random_topologies.values import Field

Made = dict[str, Flow]
Interpret = Callable[[Node, list[Flow], Mapping[str, Any]], "Flow | Made"]


def interpreted(program: Program) -> Made:
    """The tuples of each stream."""
    names = program.module("random-topology-naive")
    flows: Made = {}
    for node in program.nodes:
        flows.update(result_of(node, [flows[name] for name in node.inputs], names))
    return flows


def result_of(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Made:
    """The streams that one operator makes."""
    made = INTERPRETERS[node.kind](node, inputs, names)
    return made if isinstance(made, dict) else {node.name: made}


def source(node: Node, _: list[Flow], __: Mapping[str, Any]) -> Flow:
    rows = [tuple(row) for row in node.options["rows"]]
    return Flow(node.options["schema"], rows, splits=[0] * len(rows))


def filtered(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Flow:
    (flow,), holds = inputs, names[node.options["fn"]]
    return flow.picked([i for i, t in enumerate(flow.tuples()) if holds(t)])


def mapped(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Flow:
    (flow,), fn = inputs, names[node.options["fn"]]
    tuples = flow.tuples()
    made = flow.mapped(lambda i: iter([tuple(fn(tuples[i]))]), BASE)
    return made if flow.has("at") else replace(made, marks=None)


def flat_mapped(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Flow:
    (flow,), fn = inputs, names[node.options["fn"]]
    tuples = flow.tuples()
    return flow.mapped(lambda i: iter([tuple(row) for row in fn(tuples[i])]), BASE)


class State:
    """A state whose fields are set, as that of a key."""

    def __init__(self, first: Any) -> None:
        self.__dict__.update(first._asdict())


def stateful(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Flow:
    (flow,), fn, how = inputs, names[node.options["fn"]], node.options["how"]
    states: dict[Row, Any] = {}
    tuples, keys = flow.tuples(), flow.keys(node.options["keys"])

    def made(i: int) -> Iterator[Row]:
        if keys[i] not in states:
            states[keys[i]] = {} if node.options["state"] == "dict" else State(names["State"]())
        given = fn(tuples[i], states[keys[i]])
        if how == "flat_map":
            yield from (tuple(row) for row in given)
        elif how == "map":
            yield tuple(given)
        elif given:
            yield flow.rows[i]

    return flow.mapped(made, flow.schema)


def scanned(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Flow:
    (flow,), fn, keys = inputs, names[node.options["fn"]], inputs[0].keys(node.options["keys"])
    tuples, rows = flow.tuples(), list[Row]()
    totals: dict[Row, Any] = {}
    final = node.options["final"]
    for i, t in enumerate(tuples):
        totals[keys[i]] = fn(totals.get(keys[i], copy.copy(node.options["start"])), t)
        rows.append((*keys[i], totals[keys[i]]))
    if final:
        rows = [(*key, total) for key, total in totals.items()]
    schema = (*fields_of(flow, node.options["keys"]), node.options["value"])
    return Flow(schema, rows, flow.ordered and not final)


def reduced(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Flow:
    (flow,), fn = inputs, names[node.options["fn"]]
    fields, keys = node.options["keys"], inputs[0].keys(node.options["keys"])
    others = [name for name in flow.names if name not in fields]
    totals: dict[Row, Any] = {}
    rows = []

    final = node.options["emit"] == "final"

    def shown(t: Any) -> Row:
        return tuple(getattr(t, name) for name in (*fields, *others))

    for i, t in enumerate(flow.tuples()):
        totals[keys[i]] = fn(totals[keys[i]], t) if keys[i] in totals else t
        rows.append(shown(totals[keys[i]]))
    if final:
        rows = [shown(t) for t in totals.values()]
    return Flow(fields_of(flow, [*fields, *others]), rows, flow.ordered and not final)


def combined(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Flow:
    (flow,), own = inputs, names["Range"]()
    keys, rows = inputs[0].keys(node.options["keys"]), list[Row]()
    states: dict[Row, Any] = {}
    for i, t in enumerate(flow.tuples()):
        state = states.setdefault(keys[i], State(own.init()))
        own.add(t, state)
        rows.append((*keys[i], own.result(state)))
    final = node.options["emit"] == "final"
    if final:
        rows = [(*key, own.result(state)) for key, state in states.items()]
    schema = (*fields_of(flow, node.options["keys"]), integer("value"))
    return Flow(schema, rows, flow.ordered and not final)


def aggregate(node: Node, inputs: list[Flow], _: Mapping[str, Any]) -> Flow:
    (flow,), fields, wanted = inputs, node.options["keys"], node.options["aggregates"]
    groups: dict[Row, list[int]] = {}
    rows = []
    for i, key in enumerate(flow.keys(fields)):
        groups.setdefault(key, []).append(i)
        if node.options["emit"] == "update":
            rows.append((*key, *aggregated(flow, groups[key], wanted)))
    final = node.options["emit"] == "final"
    if final:
        rows = [(*key, *aggregated(flow, chosen, wanted)) for key, chosen in groups.items()]
    schema = (*fields_of(flow, fields), *aggregates_schema(flow, wanted))
    return Flow(schema, rows, flow.ordered and not final)


def deduplicated(node: Node, inputs: list[Flow], _: Mapping[str, Any]) -> Flow:
    (flow,) = inputs
    return flow.picked(sorted(chosen[0] for chosen in grouped(flow.keys(node.options["keys"])).values()))


def event_time(node: Node, inputs: list[Flow], _: Mapping[str, Any]) -> Flow:
    (flow,) = inputs
    splits = flow.splits if flow.splits is not None else [0] * len(flow.rows)
    latest: dict[int, int] = {}
    marks: list[int | None] = []
    for split, at in zip(splits, flow.times(), strict=True):
        marks.append(latest[split] - node.options["lateness"] - 1 if split in latest else None)
        latest[split] = max(latest.get(split, at), at)
    timed = replace(flow, marks=marks)
    if flow.ordered or not timed.is_punctual:
        return timed
    return replace(flow, marks=[None] * len(marks))  # how far the others are at a tuple, nobody knows


def united(_: Node, inputs: list[Flow], __: Mapping[str, Any]) -> Flow:
    rows = [row for flow in inputs for row in flow.rows]
    timed = all(flow.is_timed for flow in inputs)
    splits: list[int] | None = []
    for flow in inputs:
        if flow.splits is None or splits is None:
            splits = None
            break
        splits += [one + max(splits, default=-1) + 1 for one in flow.splits]
    marks: list[int | None] | None = [None] * len(rows) if timed else None
    return Flow(inputs[0].schema, rows, False, marks, splits)


def merged(node: Node, inputs: list[Flow], _: Mapping[str, Any]) -> Made:
    every = [(at, which, i) for which, flow in enumerate(inputs) for i, at in enumerate(flow.times())]
    rows = [inputs[which].rows[i] for _, which, i in sorted(every)]
    ordered = all(flow.ordered for flow in inputs)
    late = Flow(inputs[0].schema, [])
    return {node.name: Flow(inputs[0].schema, rows, ordered, [None] * len(rows)), f"{node.name}_late": late}


def split(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Made:
    (flow,) = inputs
    ways: list[str] = node.options["ways"]
    chosen: dict[str, list[int]] = {way: [] for way in ways}
    for i, t in enumerate(flow.tuples()):
        if "by" in node.options:
            chosen[ways[names[node.options["by"]](t)]].append(i)
            continue
        holds = (way for way, fn in zip(ways, node.options["predicates"], strict=False) if names[fn](t))
        chosen[next(holds, ways[-1])].append(i)
    return {f"{node.name}_{way}": flow.picked(some) for way, some in chosen.items()}


def staged(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Flow:
    made = mapped(node, inputs, names)
    return made if node.options["order"] else replace(made, ordered=False, splits=None, marks=None)


def counted(node: Node, inputs: list[Flow], _: Mapping[str, Any]) -> Flow:
    (flow,), wanted = inputs, node.options["aggregates"]
    count, slide, rest = node.options["count"], node.options["slide"], node.options["rest"]
    fields, rows = node.options["keys"], list[Row]()
    seen: dict[Row, list[int]] = {}
    for i, key in enumerate(flow.keys(fields)):
        come = seen.setdefault(key, [])
        come.append(i)
        if len(come) >= count and (len(come) - count) % slide == 0:
            rows.append((*key, *aggregated(flow, come[-count:], wanted)))
    for key, come in seen.items():
        full = (len(come) - count) // slide + 1 if len(come) >= count else 0
        left = come[full * slide :]  # the next window, as far as it got
        if rest and left and (not full or (full - 1) * slide + count < len(come)):
            rows.append((*key, *aggregated(flow, left, wanted)))
    return Flow((*fields_of(flow, fields), *aggregates_schema(flow, wanted)), rows, False)


class Out:
    """What a process has to call."""

    def __init__(self, key: Row) -> None:
        self.key, self.time, self.timers = key, 0, set[int]()
        self.rows: list[Row] = []
        self.forgotten = False

    def give(self, row: Row) -> None:
        self.rows.append(tuple(row))

    def timer(self, at: int) -> None:
        self.timers.add(at)

    def after(self, seconds: int) -> None:
        self.timers.add(self.time + seconds)

    def forget(self) -> None:
        self.timers.clear()
        self.forgotten = True


def processed(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Made:
    (flow,), cls = inputs, names[node.options["cls"]]
    tuples, keys, rows = flow.tuples(), flow.keys(node.options["keys"]), []
    for key, chosen in grouped(keys, flow.punctual()).items():
        rows += _process(cls(), key, [tuples[i] for i in chosen], lambda: _first_state(node, names))
    schema = (*fields_of(flow, node.options["keys"]), integer("j"), integer("at"), integer("n"))
    return {node.name: Flow(schema, rows, False), f"{node.name}_late": flow.too_late()}


def _first_state(node: Node, names: Mapping[str, Any]) -> Any:
    return {} if node.options["state"] == "dict" else State(names["Seen"]())


def _process(own: Any, key: Row, tuples: list[Any], first: Callable[[], Any]) -> list[Row]:
    out, state, waiting, live = Out(key), first(), list(tuples), False
    while waiting or out.timers:
        now = min([t.at for t in waiting[:1]] + list(out.timers))
        out.time = now
        due = [t for t in waiting if t.at == now]
        waiting = waiting[len(due) :]
        for t in due:
            live = True
            own.on_tuple(t, state, out)
            if out.forgotten:
                state, out.forgotten, live = first(), False, False
        if now in out.timers:
            out.timers.discard(now)
            own.on_time(now, state, out)
            if out.forgotten:
                state, out.forgotten, live = first(), False, False
    if live and hasattr(own, "on_end"):
        own.on_end(state, out)
    return out.rows


def matched(node: Node, inputs: list[Flow], names: Mapping[str, Any]) -> Made:
    (flow,), steps = inputs, PATTERNS[node.options["pattern"]][1]
    tuples, fields, rows = flow.tuples(), node.options["keys"], []
    others = [name for name in flow.names if name not in fields]
    labels = ["one", "two", "end"][: len(steps) + 1]
    left = node.options["how"] == "left"
    for key, chosen in grouped(flow.keys(fields), flow.punctual()).items():
        for place, i in enumerate(chosen):
            if not names["s_small"](tuples[i]):
                continue
            found = _sequence([tuples[n] for n in chosen[place:]], steps, names)
            if found is None or (len(found) <= len(steps) and not left):
                continue
            missing = labels[len(found)] if len(found) <= len(steps) else None
            filled = [*found, *[None] * (len(labels) - len(found))]
            values = [None if t is None else getattr(t, name) for t in filled for name in others]
            rows.append((*key, *values, *([missing] if left else [])))
    schema = [*fields_of(flow, fields)]
    for number, label in enumerate(labels):
        schema += [
            Field(f"{label}_{f.name}", f.kind, f.nullable or (left and number > 0)) for f in fields_of(flow, others)
        ]
    if left:
        schema.append(Field("missing", "str", nullable=True))
    return {node.name: Flow(tuple(schema), rows, False), f"{node.name}_late": flow.too_late()}


def _sequence(tuples: list[Any], steps: list[Any], names: Mapping[str, Any]) -> list[Any] | None:
    """What has come of a sequence that begins with the first tuple; None: something ended it."""
    found, rest = [tuples[0]], tuples[1:]
    for holds, within, without in steps:
        while rest:
            t = rest.pop(0)
            if t.at > found[-1].at + within:
                return found
            if without is not None and names[without](t):
                return None
            if names[holds](t):
                found.append(t)
                break
        else:
            return found
    return found


INTERPRETERS: dict[str, Interpret] = {
    "source": source, "filter": filtered, "map": mapped, "flat_map": flat_mapped, "stateful": stateful,
    "scan": scanned, "reduce": reduced, "combine": combined, "aggregate": aggregate, "deduplicate": deduplicated,
    "event_time": event_time, "union": united, "merge": merged, "split": split, "stage": staged, "count": counted,
    "process": processed, "match": matched, **WINDOWS, **JOINS,
}  # fmt: skip

__all__ = ["interpreted", "result_of", "tuple_type"]
