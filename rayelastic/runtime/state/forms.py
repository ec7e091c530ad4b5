"""Describes an operator's state as text: for people, and to check whether a topology fits a snapshot."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from rayelastic.graph.operators.event_time import EventTime
from rayelastic.graph.operators.joins.by_key import Join
from rayelastic.graph.operators.joins.merge import Merge
from rayelastic.graph.operators.patterns import Matching
from rayelastic.graph.operators.windows import Windowing
from rayelastic.graph.spec.operator_spec import OperatorKind, OperatorSpec, StateKind

if TYPE_CHECKING:
    from rayelastic.graph.records.schema import Schema

__all__ = ["PICKLED", "state_form"]

PICKLED = "python values"  # the end of the form of pickled state


def state_form(spec: OperatorSpec) -> str | None:
    """Describe an operator's state, for people and to compare; None if it keeps none."""
    if spec.kind in (OperatorKind.SOURCE, OperatorKind.SINK) or spec.kind.is_passage:
        return None
    waiting = " and ".join(f"({_fields(port.schema)})" for port in spec.inputs if port.demand is not None)
    if waiting:
        keeps = "" if spec.state_kind is StateKind.STATELESS else f", and its object, {PICKLED}"
        return f"tuples of {waiting} that wait for each other{keeps}"
    if spec.state_kind is StateKind.STATELESS:
        return None
    if spec.state_kind is StateKind.STATEFUL and (whole := _form_without_keys(spec)):
        return whole
    of = f"by key ({_fields(spec.input_schema, spec.keys)})"
    if spec.ttl is not None:
        of += f", {spec.ttl.form}"
    body = spec.body
    match body:
        case Windowing():
            time = f" of {body.window.time.field}" if body.window.time is not None else ""
            return f"{of}, {body.window}{time}, {_aggregates(body)}"
        case EventTime():
            of = " of each split" if body.splits else ""
            return f"the latest {body.time.field} in {body.time.unit}{of}"
        case Join():
            sides = " and ".join(f"({_fields(port.schema)})" for port in spec.inputs)
            return f"{of}, {sides} joined {body.matches}"
        case Matching():
            return f"{of}, ({_fields(spec.input_schema)}), {', then '.join(map(str, body.steps))}"
        case Merge():
            return f"{len(spec.inputs)} streams of ({_fields(spec.input_schema)}) by {body.time.field}"
    if spec.kind is OperatorKind.AGGREGATE:
        return f"{of}, {_aggregates(body)}"
    schema = getattr(body, "state_schema", None)
    return f"{of}, {PICKLED}" if schema is None else f"{of}, record ({_fields(schema)})"


def _form_without_keys(spec: OperatorSpec) -> str:
    match spec.kind:
        case OperatorKind.OPERATOR:
            return f"its object, {PICKLED}"
        case OperatorKind.DELAY:
            return f"tuples of ({_fields(spec.input_schema)}) that are delayed"
        case OperatorKind.SPLIT:
            return f"whose turn of {len(spec.outputs)} outputs it is"
    return ""


def _fields(schema: Schema | None, names: Container[str] | None = None) -> str:
    fields = () if schema is None else schema.fields
    return ", ".join(f"{f.name}: {f.format}" for f in fields if names is None or f.name in names)


def _aggregates(body: object) -> str:
    own = getattr(body, "own", None)
    if own is not None:
        return f"record ({_fields(own.state_schema)})"
    made = (f"{one.function.value}({one.field or ''})" for _, one in getattr(body, "aggregates", ()))
    return f"aggregates {', '.join(made)}"
