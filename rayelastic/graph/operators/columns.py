"""Operators that choose, rename and add fields, or limit a stream to its first tuples: written as functions of a tuple.

Each becomes a lambda over its fields, which compiles as a user's would. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from rayelastic.errors import ErrorCode, GraphError, SchemaError
from rayelastic.graph.operators.functions import function_operator
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.schema import Field, Schema, laid_out
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.declaration import NewOperator, binds, check_function
from rayelastic.graph.spec.operator_class import operator
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.ports import operator_of
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest
from rayelastic.graph.spec.upstream import Upstream


def select(up: Upstream, name: str, fields: tuple[str, ...]) -> OperatorSpec:
    """See ``Stream.select``."""
    with NewOperator(name, up.operators):
        if not fields:
            raise GraphError("select needs a field", hint=up.schema.suggestion(""), code=ErrorCode.MISSING_ARGUMENT)
        kept = {field: up.schema.field(field) for field in fields}
    return _projected(up, name, kept)


def drop(up: Upstream, name: str, fields: tuple[str, ...]) -> OperatorSpec:
    """See ``Stream.drop``."""
    with NewOperator(name, up.operators):
        dropped = [up.schema.field(field).name for field in fields]
        kept = {field.name: field for field in up.schema.fields if field.name not in dropped}
        if not kept:
            raise GraphError("drop leaves no field", hint="Keep at least one", code=ErrorCode.NO_FIELDS)
    return _projected(up, name, kept)


def rename(up: Upstream, name: str, names: Any) -> OperatorSpec:
    """See ``Stream.rename``."""
    with NewOperator(name, up.operators):
        if not isinstance(names, Mapping):
            raise GraphError(
                f"rename needs {{old: new}}, not {shown(names)}",
                hint="Write .rename({'old': 'new'})",
                code=ErrorCode.WRONG_TYPE,
            )
        for field in names:
            up.schema.field(field)
        renamed = [names.get(field.name, field.name) for field in up.schema.fields]
        twice = next((field for field in renamed if renamed.count(field) > 1), None)
        if twice is not None:
            raise GraphError(
                f"rename makes two fields {twice!r}",
                hint="Rename one of them",
                code=ErrorCode.DUPLICATE_FIELD,
            )
        fields = dict(zip(renamed, up.schema.fields, strict=True))
        _schema_of(fields)
    return _projected(up, name, fields)


def _projected(up: Upstream, name: str, fields: Mapping[str, Field]) -> OperatorSpec:
    """Make an operator that emits fields of the tuple under new names."""
    output = _schema_of(fields)
    values = "".join(f"t.{field.name}, " for field in fields.values())
    return function_operator(up, FunctionKind.MAP, name, _written(f"lambda t: ({values})", {}), schema=output)


def with_columns(up: Upstream, name: str, columns: Mapping[str, Callable[[Any], Any]]) -> OperatorSpec:
    """See ``Stream.with_columns``."""
    with NewOperator(name, up.operators) as location:
        if not columns:
            raise GraphError(
                "with_columns needs a column",
                hint="Write .with_columns(column=lambda t: t.field * 2)",
                code=ErrorCode.MISSING_ARGUMENT,
            )
        fields = {field.name: field for field in up.schema.fields}
        for column, function in columns.items():
            check_function(function, FunctionKind.MAP, None)
            request = FunctionRequest(f"{name}.{column}", FunctionKind.MAP, function, up.schema, location=location)
            schema = up.compiler.compile(request).output_schema
            if len(schema.fields) != 1:
                raise GraphError(
                    f"the function of column {column!r} returns {schema}",
                    hint="Return one value",
                    code=ErrorCode.BAD_RETURN,
                )
            fields[column] = schema.fields[0]
        output = _schema_of(fields)
    functions = {f"f{number}": function for number, function in enumerate(columns.values())}
    calls = {column: f"f{number}(t)" for number, column in enumerate(columns)}
    values = "".join(f"{calls.get(field, f't.{field}')}, " for field in fields)
    return function_operator(up, FunctionKind.MAP, name, _written(f"lambda t: ({values})", functions), schema=output)


def drop_nulls(up: Upstream, name: str, fields: tuple[str, ...]) -> tuple[OperatorSpec, OperatorSpec]:
    """See ``Stream.drop_nulls``."""
    with NewOperator(name, up.operators):
        nullable = [field.name for field in up.schema.fields if field.nullable]
        dropped = [up.schema.field(field).name for field in fields] or nullable
    test = " and ".join(f"t.{field} is not None" for field in dropped) or "True"
    filtered = function_operator(up, FunctionKind.FILTER, f"{name}.filter", _written(f"lambda t: {test}", {}))
    return filtered, without_nulls(up.behind(filtered), name, dropped)


def without_nulls(up: Upstream, name: str, fields: Collection[str]) -> OperatorSpec:
    """Declare that fields hold no None; one that does fails the job, or goes where `on_error` says."""
    kept = {f.name: replace(f, nullable=f.nullable and f.name not in fields) for f in up.schema.fields}
    return _projected(up, name, kept)


def fill_null(up: Upstream, name: str, value: Any) -> OperatorSpec:
    """See ``Stream.fill_null``."""
    with NewOperator(name, up.operators):
        fields = {field.name: field for field in up.schema.fields}
        if isinstance(value, Mapping):
            filled = {up.schema.field(field).name: one for field, one in value.items()}
        else:
            filled = {name: value for name, field in fields.items() if field.nullable and _holds(field, value)}
        if not filled:
            raise GraphError(f"no field that may be None holds {shown(value)}", hint=f"Its schema is {up.schema}")
        output = _schema_of(
            {name: replace(f, nullable=f.nullable and name not in filled) for name, f in fields.items()}
        )
    constants = {f"v{number}": one for number, one in enumerate(filled.values())}
    places = dict(zip(filled, constants, strict=True))
    values = "".join(
        f"({places[field]} if t.{field} is None else t.{field}), " if field in places else f"t.{field}, "
        for field in fields
    )
    return function_operator(up, FunctionKind.MAP, name, _written(f"lambda t: ({values})", constants), schema=output)


def _holds(field: Field, value: object) -> bool:
    kind = field.type.python_type
    return type(value) is kind or (kind is float and type(value) is int)


def explode(up: Upstream, name: str, field: str) -> OperatorSpec:
    """See ``Stream.explode``."""
    with NewOperator(name, up.operators):
        form = plain_form(up.schema.field(field).format)
        if form.kind is not DataType.LIST:
            raise SchemaError(f"field '{field}' of {up.schema.name} is {form.shown}, not a list")
        _, item, nullable = form.parts[0]
        columns = [(f.name, f.format, f.nullable) for f in up.schema.fields]
        output = laid_out("Record", [(field, item, nullable) if n == field else (n, f, o) for n, f, o in columns])
    values = "".join("one, " if other == field else f"t.{other}, " for other in up.schema.names)
    made = _written(f"lambda t: [({values}) for one in (t.{field} or ())]", {})
    return function_operator(up, FunctionKind.FLAT_MAP, name, made, schema=output)


def _schema_of(fields: Mapping[str, Field]) -> Schema:
    return laid_out("Record", [(new, field.format, field.nullable) for new, field in fields.items()])


def _written(source: str, functions: dict[str, Any]) -> Callable[..., Any]:
    """Compile the text of a lambda; the names in it are fields of a schema, which are identifiers."""
    function: Callable[..., Any] = eval(source, {"__name__": __name__, **functions})  # noqa: S307  of names that a schema checked
    return function


def inspect(up: Upstream, name: str, fn: Any) -> OperatorSpec:
    """See ``Stream.inspect``."""
    with NewOperator(name, up.operators):
        if not callable(fn) or not binds(fn, (None,)):
            raise GraphError(
                f"inspect needs a function of one tuple, not {shown(fn)}",
                hint="Write .inspect(print)",
                code=ErrorCode.NOT_A_FUNCTION,
            )

    def inspected(t: Any) -> Any:
        fn(t)
        return t

    return function_operator(up, FunctionKind.MAP, name, inspected, schema=up.schema, lane="python")


def check_count(count: object, verb: str = "take") -> int:
    """Check a number of tuples.

    Raises:
        GraphError: It isn't a positive whole number.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise GraphError(
            f"{verb}({shown(count)}) isn't a number of tuples",
            hint="Pass a whole number, 0 or more",
            code=ErrorCode.OUT_OF_RANGE,
        )
    return count


@operator(outputs="in")
class First:
    """Emits the first tuples only.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self.left = count

    def invoke(self, t: Any) -> tuple[Any, ...]:
        """Emit the tuple, or nothing."""
        if self.left <= 0:
            return ()
        self.left -= 1
        return (t,)


def read_no_further(operators: Mapping[str, OperatorSpec]) -> dict[str, OperatorSpec]:
    """Bound the sources that can be bounded, and of which only the first tuples are needed.

    Operators in between emit one tuple for each of their input. Nothing else reads the streams.
    """
    bounded = dict(operators)
    consumed = Counter(
        operator_of(stream) for spec in operators.values() for stream, _ in (*spec.edges, *spec.loop_edges)
    )
    for first in operators.values():
        taker, source = getattr(first.body, "instance", None), first
        while source is first or (source.body.one_to_one and source.on_error is OnError.FAIL):
            if len(source.edges) != 1 or source.loop_edges or consumed[source.upstream[0]] != 1:
                break
            source = operators[source.upstream[0]]
        if isinstance(taker, First) and hasattr(source.body, "at_most"):
            bounded[source.name] = replace(source, body=source.body.at_most(taker.left))
    return bounded


class _Taken(NamedTuple):
    """The number of tuples of a key that were emitted."""

    n: int = 0


def first_of_each(up: Upstream, name: str, count: int) -> OperatorSpec:
    """See ``KeyedStream.take``."""

    def is_among_first(_tuple: Any, state: Any) -> bool:
        if state.n >= count:
            return False
        state.n += 1
        return True

    return function_operator(up, FunctionKind.FILTER, name, is_among_first, state=_Taken)
