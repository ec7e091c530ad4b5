"""A function of a plain value as one of the record of one field that holds it. Knows no Numba.

`lambda line: line.split()` becomes `lambda line: line.line.split()`.
"""

from __future__ import annotations

import ast
import enum
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reading.results.bindings import is_changed
from rayelastic.compile.reading.syntax import compiled_definition, definition, value_of
from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.schema import Schema

_OF_BOTH = (
    *(callable, dict, enumerate, filter, getattr, hasattr, id, isinstance, iter, list, map, next, print, setattr),
    *(tuple, type, vars, zip),
)  # what people call with a record as well
_KEEPS = frozenset({"add", "append", "appendleft", "extend", "insert", "put", "put_nowait"})
_LIBRARIES = sys.stdlib_module_names | {"numpy"}
_DEPTH = 4  # of functions that call each other


class _Use(enum.Enum):
    """Whether a function needs the record or its value, or works with both. Of several, the first here decides."""

    RECORD, VALUE, EITHER = range(3)


def of_value(
    function: Callable[..., Any], schema: Schema, given: int, *, of_truth: bool = False
) -> Callable[..., Any] | None:
    """Return a function of a record that passes its one field to a function of that value.

    The source alone decides, so that each execution mode runs the same function. A function that reads the field by
    its name is one of the record. One that does what makes no sense with a record of one field is one of the value.
    For example, it compares or formats it, looks something up in it or by it, or passes it to a builtin function.
    `t[0]` and a result `t` can be both, and alone they are the record's. Functions of the user that it calls are
    decided one by one.

    Args:
        function: Of the user.
        schema: The fields of the record.
        given: Number of arguments of a call.
        of_truth: Whether its result is only true or false.

    Returns:
        The function; None if the user's is one of a record.

    Raises:
        SchemaError: An object with `__call__`, or a partial, would be one of the value.

    >>> word = Schema.of({"value": str})
    >>> of_value(lambda word: word.upper(), word, 1).__code__.co_names
    ('value', 'upper')
    >>> of_value(lambda word: "a" in word, word, 1).__code__.co_names
    ('value',)
    >>> of_value(lambda t: t.value + "!", word, 1)
    >>> of_value(lambda t: t[0], word, 1)
    >>> of_value(lambda t: t.valeu, word, 1)  # a misspelt field: no text has that attribute
    """
    if len(schema.fields) != 1:
        return None
    field, found = schema.fields[0], taken_apart(function, given)
    if found is None:
        if given > 1 or not inspect.isroutine(function):
            return None
        of_record: Callable[..., Any] = eval(f"lambda t: function(t.{field.name})", {"function": function})  # noqa: S307
        return of_record
    if not found.tuple_name:
        return None
    reading = _Reading(found.function, found.tuple_name, field.name, field.type.python_type, 0)
    node = reading.node
    if node is None:
        return None
    if of_truth and any(isinstance(each, ast.Return) and reading.is_it(each.value) for each in ast.walk(node)):
        reading.found.append(_Use.VALUE)
    made = _Read(reading).visit(node)
    if not reading.changed:
        return None
    if not isinstance(function, types.FunctionType | types.MethodType):
        raise SchemaError(
            f"it uses a tuple of one field as its value, which {type(function).__name__} objects don't receive",
            hint=f"Write {reading.name}.{field.name}",
            code=ErrorCode.WRONG_TYPE,
        )
    of_field: Callable[..., Any] | None = compiled_definition(made, found.function)
    if of_field is None or isinstance(function, types.FunctionType):
        return of_field
    return types.MethodType(of_field, function.__self__)


class _Reading:
    """What a function does with one of its parameters.

    Args:
        function: That has it.
        name: Of the parameter.
        field: Of the record.
        kind: The Python type of the field.
        depth: How many functions call it.
    """

    def __init__(self, function: Any, name: str, field: str, kind: Any, depth: int) -> None:
        self.function, self.name, self.field, self.kind, self.depth = function, name, field, kind, depth
        self.found: list[_Use] = []
        self.apart: dict[int, _Use] = {}  # arguments of functions of the user, by id of their nodes
        self.changed = False  # by _Read
        node = definition(function)
        self.node = None if node is None or is_changed(node, name) or _is_hidden(node, name) else node
        for each in () if self.node is None else ast.walk(self.node):
            self.found += self._uses(each)

    @property
    def use(self) -> _Use:
        """What decides for the function: a record, if anything needs one."""
        return min(self.found, key=lambda use: use.value, default=_Use.EITHER)

    def is_it(self, node: ast.AST | None) -> bool:
        """Whether an expression is the parameter."""
        return isinstance(node, ast.Name) and node.id == self.name

    def _uses(self, each: ast.AST) -> Iterator[_Use]:
        match each:
            case ast.Attribute(value=it, attr=attribute) if self.is_it(it):
                named = attribute == self.field or attribute.startswith("_")
                yield _Use.RECORD if named or not hasattr(self.kind, attribute) else _Use.VALUE
            case ast.Subscript(value=it, slice=place) if self.is_it(it):
                yield self._item(place)
            case ast.Starred(value=it) | ast.Assign(targets=[ast.Tuple() | ast.List()], value=it) if self.is_it(it):
                yield _Use.RECORD
            case ast.For(iter=it) | ast.comprehension(iter=it) if self.is_it(it) and hasattr(self.kind, "__iter__"):
                yield _Use.VALUE
            case ast.Compare(ops=[ast.In() | ast.NotIn()]) if self._has(each):
                yield _Use.VALUE
            case ast.BinOp() | ast.Compare() if self._has(each) and not self._has_tuple(each):
                yield _Use.VALUE  # what a tuple is added to, or compared with, is one
            case ast.UnaryOp() | ast.BoolOp() | ast.FormattedValue() if self._has(each):
                yield _Use.VALUE
            case ast.IfExp(test=it) | ast.If(test=it) | ast.While(test=it) | ast.Subscript(slice=it) if self.is_it(it):
                yield _Use.VALUE
            case ast.Return(value=items) | ast.Yield(value=items) if isinstance(items, ast.Tuple | ast.Dict):
                if self._has(items):
                    yield _Use.VALUE  # no field holds a record
            case ast.Call(args=arguments, keywords=keywords):
                for number, argument in enumerate([*arguments, *(one.value for one in keywords)]):
                    if self.is_it(argument):
                        yield from self._passed(each, number, argument)

    def _has(self, node: ast.AST) -> bool:
        return any(self.is_it(child) for child in ast.iter_child_nodes(node))

    @staticmethod
    def _has_tuple(node: ast.AST) -> bool:
        return any(isinstance(child, ast.Tuple) for child in ast.iter_child_nodes(node))

    def _item(self, place: ast.expr) -> _Use:
        match place:
            case ast.Constant(value=str()):
                return _Use.RECORD
            case ast.Constant(value=0):
                return _Use.EITHER
        return _Use.VALUE if hasattr(self.kind, "__getitem__") else _Use.EITHER

    def _passed(self, call: ast.Call, number: int, argument: ast.expr) -> Iterator[_Use]:
        called = self._called(call.func)
        own = None if called is None or isinstance(called, type) else taken_apart(called)
        if isinstance(called, type) or _is_of_library(called if own is None else own.function):
            yield _Use.EITHER if _is_of_both(called) else _Use.VALUE
        elif own is not None and self.depth < _DEPTH and number < len(call.args):
            names = [one for one in own.function.__code__.co_varnames if one not in own.values]
            if number < own.function.__code__.co_argcount - len(own.values):
                inner = _Reading(own.function, names[number], self.field, self.kind, self.depth + 1)
                self.apart[id(argument)] = inner.use

    def _called(self, node: ast.expr) -> Any:
        """Return what is called, as far as the source says; None: unknown."""
        code = self.function.__code__
        match node:
            case ast.Name(id=name) if name not in (*code.co_varnames, *code.co_cellvars):
                return value_of(self.function, name)
            case ast.Constant(value=value):
                return value
            case ast.Attribute(value=of, attr=attribute):
                owner = self._called(of)
                if owner is None:
                    return None
                if isinstance(owner, types.ModuleType | type) or _is_of_library(type(owner)):
                    return getattr(owner, attribute, None)
                method = inspect.getattr_static(type(owner), attribute, None)
                return types.MethodType(method, owner) if isinstance(method, types.FunctionType) else None
        return None


def _is_of_library(called: Any) -> bool:
    module = getattr(called, "__module__", None) or type(called).__module__
    return called is not None and str(module).partition(".")[0] in _LIBRARIES


def _is_of_both(called: Any) -> bool:
    return getattr(called, "__name__", "") in _KEEPS or any(called is one for one in _OF_BOTH)


def _is_hidden(node: ast.FunctionDef, name: str) -> bool:
    """Whether an inner function has a parameter of the same name."""
    return sum(isinstance(each, ast.arg) and each.arg == name for each in ast.walk(node)) > 1


class _Read(ast.NodeTransformer):
    """Reads the field where a value is used."""

    def __init__(self, reading: _Reading) -> None:
        self.reading = reading

    def visit_Name(self, node: ast.Name) -> ast.expr:
        use = self.reading.apart.get(id(node), _Use.EITHER)
        if not self.reading.is_it(node) or _Use.VALUE is not (self.reading.use if use is _Use.EITHER else use):
            return node
        self.reading.changed = True
        return ast.copy_location(ast.Attribute(node, self.reading.field, ast.Load()), node)
