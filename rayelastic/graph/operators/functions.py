"""`map`, `filter` and `flat_map`: operators of a user-defined function, with or without keyed state.

Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypedDict, Unpack

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.concurrency import concurrency_of, is_async
from rayelastic.graph.spec.dead_letters import OnError, dead_letters, on_error_of
from rayelastic.graph.spec.declaration import NewOperator, check_function, check_state, lane_of
from rayelastic.graph.spec.operator_spec import Lane, OperatorSpec
from rayelastic.graph.spec.ordering import with_order
from rayelastic.graph.spec.ports import OUT, OutputPort, side_ports
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest
from rayelastic.graph.spec.upstream import Upstream
from rayelastic.graph.spec.user_objects import LIFE, check_object

NO_SIDES: Mapping[str, object] = MappingProxyType({})


class FunctionOptions(TypedDict, total=False):
    """The options of ``Stream.map`` and ``KeyedStream.map``; drops_none: those of ``filter_map``."""

    state: Callable[[], Any] | None
    ttl: object
    schema: object
    lane: object
    on_error: object
    sides: Mapping[str, object]
    concurrent: object
    drops_none: bool
    ordered: object


def function_operator(
    up: Upstream, kind: FunctionKind, name: str, function: Callable[..., Any], **options: Unpack[FunctionOptions]
) -> OperatorSpec:
    """See ``Stream.map``, ``Stream.filter_map`` and ``KeyedStream.map``; without state it doesn't depend on keys."""
    state, schema, drops_none = options.get("state"), options.get("schema"), options.get("drops_none", False)
    with NewOperator(name, up.operators) as location:
        if state is not None:
            check_state(state)
        how = concurrency_of(function, options.get("concurrent"))
        check_function(function, kind, state, concurrent=how is not None, returns=drops_none)
        check_object(function, () if drops_none else LIFE, awaited=is_async(function))
        lives = up.time_to_live(options.get("ttl"), None if state is not None else "state=")
        output = None if schema is None else Schema.of(schema)
        policy = on_error_of(options.get("on_error", OnError.FAIL))
        further = side_ports(options.get("sides", NO_SIDES))
        keys = () if state is None else up.keys
        request = FunctionRequest(
            name, kind, function, up.schema, output, keys, state, lane_of(options.get("lane", "auto")), location,
            tuple(port.name for port in further), how, drops_none,
        )  # fmt: skip
        compiled = up.compiler.compile(request)
        if lives is not None and lives.since == "change" and compiled.lane is not Lane.COMPILED:
            raise GraphError(
                f"a ttl since the last change needs the compiled lane: {compiled.reason}",
                hint="Use since='last' or 'first', or a function that compiles",
                code=ErrorCode.UNSUPPORTED_TTL,
            )
        gives = up.schema if kind is FunctionKind.FILTER else compiled.output_schema
        if policy is OnError.DIVERT:
            further += (dead_letters(up.schema),)
        spec = up.operator(name, compiled, location, (OutputPort(OUT, gives), *further), keys=keys, ttl=lives)
        return with_order(replace(spec, on_error=policy), options.get("ordered"), up.keys, up.operators)


class _Seen(NamedTuple):
    """Whether a key has occurred."""

    seen: bool = False


def _is_first(_tuple: Any, state: Any) -> bool:
    if state.seen:
        return False
    state.seen = True
    return True


def deduplicate(up: Upstream, name: str, ttl: object) -> OperatorSpec:
    """See ``KeyedStream.deduplicate``."""
    return function_operator(up, FunctionKind.FILTER, name, _is_first, state=_Seen, ttl=ttl)
