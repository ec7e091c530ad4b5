"""Methods that change a state and return nothing, as functions that can be compiled. Knows no Numba."""

from __future__ import annotations

import ast
import copy
import types
from typing import Any

from rayelastic.compile.reading.bound import taken_apart
from rayelastic.compile.reading.callables import NotRewrittenError
from rayelastic.compile.reading.syntax import compiled_definition, definition

__all__ = ["as_filter", "give_false"]


def as_filter(method: Any) -> Any:
    """Return a method of a record and a state as a filter that passes no record: it returns False at every exit.

    Raises:
        NotRewrittenError: It can't be compiled, with the reason.
    """
    found = taken_apart(method, 2)
    if found is None or len(found.values) > 1:
        raise NotRewrittenError("it is no plain method", "", 0)
    path = found.function.__code__.co_filename
    source = definition(found.function)
    if source is None:
        raise NotRewrittenError("its source isn't known", path, found.function.__code__.co_firstlineno)
    node = copy.deepcopy(source)
    give_false(node, path)
    made = compiled_definition(node, found.function)
    if made is None:
        raise NotRewrittenError("it can't be written as a function", path, source.lineno)
    for instance in found.values.values():
        made = types.MethodType(made, instance)
    return made


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
            raise NotRewrittenError("it returns what nobody takes", self._path, node.lineno)
        return ast.copy_location(ast.Return(ast.Constant(False)), node)
