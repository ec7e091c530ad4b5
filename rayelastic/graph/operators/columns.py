"""Operators that choose, rename and add fields, or limit a stream to its first tuples: written as functions of a tuple.

Each becomes a lambda over its fields, which compiles as a user's would. Knows no threads, PEs or native code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.operators.functions import function_operator
from rayelastic.graph.records.schema import Field, Schema, laid_out
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.declaration import NewOperator, binds, check_function
from rayelastic.graph.spec.operator_class import operator
from rayelastic.graph.spec.operator_spec import FunctionRequest, OperatorKind, OperatorSpec
from rayelastic.graph.spec.upstream import Upstream

__all__ = ["First", "check_count", "drop", "first_of_each", "inspect", "rename", "select", "with_columns"]


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
    return function_operator(up, OperatorKind.MAP, name, _written(f"lambda t: ({values})", {}), schema=output)


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
            check_function(function, OperatorKind.MAP, None)
            request = FunctionRequest(f"{name}.{column}", OperatorKind.MAP, function, up.schema, location=location)
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
    return function_operator(up, OperatorKind.MAP, name, _written(f"lambda t: ({values})", functions), schema=output)


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

    return function_operator(up, OperatorKind.MAP, name, inspected, schema=up.schema, lane="python")


def check_count(count: object) -> int:
    """Check a number of tuples.

    Raises:
        GraphError: It isn't a positive whole number.
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise GraphError(
            f"take({shown(count)}) isn't a number of tuples",
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

    return function_operator(up, OperatorKind.FILTER, name, is_among_first, state=_Taken)
