"""A function of a plain value as one of the record of one field that holds it. Knows no Numba.

`lambda line: line.split()` becomes `lambda line: line.line.split()`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reading.results.bindings import is_changed
from rayelastic.compile.reading.syntax import compiled_definition, definition
from rayelastic.graph.records.schema import Schema

__all__ = ["of_value"]


def of_value(function: Callable[..., Any], schema: Schema, given: int) -> Callable[..., Any] | None:
    """Return a function of a record that passes its one field to a function of that value.

    The syntax alone decides, so that each execution mode runs the same function. What a record can do as well, such as
    `t[0]`, `str(t)` or a call with `t`, is done to the record.

    Args:
        function: Of the user.
        schema: The fields of the record.
        given: Number of arguments of a call.

    Returns:
        The function; None if the user's is one of a record.

    >>> word = Schema.of({"value": str})
    >>> of_value(lambda word: word.upper(), word, 1).__code__.co_names
    ('value', 'upper')
    >>> of_value(lambda t: t.value + "!", word, 1)
    >>> of_value(lambda t: t[0], word, 1)
    >>> of_value(lambda t: t.valeu, word, 1)  # a misspelt field: no text has that attribute
    """
    if len(schema.fields) != 1:
        return None
    field, found = schema.fields[0].name, taken_apart(function, given)
    if found is None:
        if given > 1 or not inspect.isroutine(function):
            return None
        of_record: Callable[..., Any] = eval(f"lambda t: function(t.{field})", {"function": function})  # noqa: S307
        return of_record
    node, name = definition(found.function), found.tuple_name
    if node is None or found.values or not name or is_changed(node, name) or _reads_record(node, name, field):
        return None
    kind = schema.fields[0].type.python_type
    if not _needs_value(node, name) or not all(hasattr(kind, attribute) for attribute in _attributes(node, name)):
        return None
    of_field: Callable[..., Any] | None = compiled_definition(_Read(name, field).visit(node), found.function)
    return of_field


def _reads_record(node: ast.AST, name: str, field: str) -> bool:
    """Whether a function reads what only records have."""
    return any(attribute == field or attribute.startswith("_") for attribute in _attributes(node, name))


def _needs_value(node: ast.AST, name: str) -> bool:
    """Whether a function does what no record can: reads other attributes, calculates, compares, is an item."""
    for each in ast.walk(node):
        match each:
            case ast.BinOp(left=ast.Tuple()) | ast.BinOp(right=ast.Tuple()) | ast.Compare(comparators=[ast.Tuple()]):
                continue  # what a tuple is added to, or compared with, is one
            case ast.BinOp(left=ast.Name(id=found)) | ast.BinOp(right=ast.Name(id=found)) if found == name:
                return True
            case ast.Compare(left=ast.Name(id=found)) | ast.UnaryOp(operand=ast.Name(id=found)) if found == name:
                return True
            case ast.Call(func=ast.Name(id="len" | "int" | "float"), args=[ast.Name(id=found)]) if found == name:
                return True
            case ast.Lambda(body=result) | ast.Return(value=result) | ast.Yield(value=result):
                if name in _items(result):
                    return True
    return any(True for _ in _attributes(node, name))


def _items(result: ast.AST | None) -> list[str]:
    """Return the names that are items of a tuple or values of a dict: no field holds a record."""
    items = result.elts if isinstance(result, ast.Tuple) else result.values if isinstance(result, ast.Dict) else []
    return [item.id for item in items if isinstance(item, ast.Name)]


def _attributes(node: ast.AST, name: str) -> Iterator[str]:
    for each in ast.walk(node):
        match each:
            case ast.Attribute(value=ast.Name(id=found), attr=attribute) if found == name:
                yield attribute


class _Read(ast.NodeTransformer):
    def __init__(self, name: str, field: str) -> None:
        self.name, self.field = name, field

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self.name or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(ast.Attribute(node, self.field, ast.Load()), node)
