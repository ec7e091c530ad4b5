"""Methods that change a state and return nothing, as functions that can be compiled. Knows no Numba."""

from __future__ import annotations

import ast
import copy
import types
from typing import Any

from rayelastic.compile.reading.bound import Bound, taken_apart
from rayelastic.compile.reading.callables import NotRewrittenError
from rayelastic.compile.reading.syntax import compiled_definition, definition
from rayelastic.reasons import Code


def as_filter(method: Any) -> Any:
    """Return a method of a record and a state as a filter that passes no record: it returns False at every exit.

    Raises:
        NotRewrittenError: It can't be compiled, with the reason.
    """
    found, node = parts_of(method, 2)
    give_false(node, found.function.__code__.co_filename)
    return bound_again(node, found)


def parts_of(method: Any, arguments: int) -> tuple[Bound, ast.FunctionDef]:
    """Return the function of a method with so many arguments, and a copy of its definition.

    Raises:
        NotRewrittenError: It can't be compiled, with the reason.
    """
    found = taken_apart(method, arguments)
    if found is None or len(found.values) > 1:
        name = getattr(method, "__qualname__", type(method).__name__)
        raise NotRewrittenError(Code.NOT_A_METHOD, "", 0, function=name)
    source = definition(found.function)
    if source is None:
        raise _no_source(found)
    return found, copy.deepcopy(source)


def bound_again(node: ast.FunctionDef, found: Bound) -> Any:
    """Return a changed definition as the method that it was.

    Raises:
        NotRewrittenError: It can't be compiled, with the reason.
    """
    made = compiled_definition(node, found.function)
    if made is None:
        raise _no_source(found)
    for instance in found.values.values():
        made = types.MethodType(made, instance)
    return made


def _no_source(found: Bound) -> NotRewrittenError:
    function = found.function
    place = function.__code__.co_filename, function.__code__.co_firstlineno
    return NotRewrittenError(Code.NO_SOURCE, *place, function=function.__qualname__)


def give_false(node: ast.FunctionDef, path: str) -> None:
    """Make a definition without return values return False.

    Raises:
        NotRewrittenError: It returns a value.
    """
    node.body = [_Returns(path).visit(statement) for statement in node.body]
    node.body.append(ast.copy_location(ast.Return(ast.Constant(False)), node.body[-1]))


class _Returns(ast.NodeTransformer):
    """Makes a method without return values return False at every exit."""

    def __init__(self, path: str) -> None:
        self._path = path

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            raise NotRewrittenError(Code.UNSUPPORTED, self._path, node.lineno, what="returning a value of this method")
        return ast.copy_location(ast.Return(ast.Constant(False)), node)
