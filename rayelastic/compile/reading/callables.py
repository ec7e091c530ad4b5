"""Writes the application of a key, or of the function of map and filter, as an expression. Knows no Numba."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator
from typing import Any, TypeVar

from rayelastic.compile.reasons import Code, packed

Node = TypeVar("Node", bound=ast.AST)
ITEM = "rel_item"


def load(name: str) -> ast.Name:
    """Return a name in load context."""
    return ast.Name(name, ast.Load())


def assigned(name: str, value: ast.expr) -> ast.stmt:
    """Return `name = value`."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


def called(function: ast.expr, *arguments: ast.expr) -> ast.Call:
    """Return `function(arguments)`."""
    return ast.Call(function, list(arguments), [])


def method(owner: str, name: str, *arguments: ast.expr) -> ast.expr:
    """Return `owner.name(arguments)`."""
    return called(ast.Attribute(load(owner), name, ast.Load()), *arguments)


def placed(made: Node, node: ast.AST) -> Node:
    """Return a new node, on the line of an old one."""
    for one in ast.walk(made):
        if "lineno" in one._attributes and not hasattr(one, "lineno"):
            ast.copy_location(one, node)
    return made


def _is_in_order(call: ast.Call) -> bool:
    """Return whether it is a call of sorted(..), by its name after `words.sort(..)` was rewritten."""
    return isinstance(call.func, ast.Name) and call.func.id == "rel_in_order"


class NotRewrittenError(Exception):
    """The reason why a function isn't compiled, and its line."""

    def __init__(self, code: Code, path: str, line: int, **values: Any) -> None:
        super().__init__(f'{packed(code, **values)}\nFile "{path}", line {line}')


class Callables(ast.NodeTransformer):
    """A rewrite that knows the values of names.

    Args:
        values: The values of names outside the function.
        local: The function's own names.
        numbers: Numbers for generated names.
    """

    def __init__(self, values: dict[str, Any], local: set[str], numbers: Iterator[int]) -> None:
        self._values, self._local, self._numbers = values, local, numbers

    @staticmethod
    def _name(node: ast.Call) -> str:
        """Return the name of the called function."""
        assert isinstance(node.func, ast.Name)
        return "sorted" if _is_in_order(node) else node.func.id

    # --- function arguments ---

    def _key(self, key: ast.expr | None, given: ast.expr) -> tuple[list[ast.stmt], ast.expr] | None:
        """Return statements and the expression of the key of `rel_item`; None if the key is unknown."""
        if key is None or (isinstance(key, ast.Constant) and key.value is None):
            return [], load(ITEM)
        if isinstance(key, ast.Attribute) and key.attr == "get" and isinstance(key.value, ast.Name):
            of = key.value.id
            if isinstance(given, ast.Name) and given.id == of:
                return [], ast.Subscript(load(of), load(ITEM), ast.Load())  # max(d, key=d.get)
        return self._applied(key, ITEM)

    def _applied(self, function: ast.expr, item: str) -> tuple[list[ast.stmt], ast.expr] | None:
        """Return statements, and the expression of a function's value for the variable."""
        if isinstance(function, ast.Constant) and function.value is None:
            return [], load(item)
        if isinstance(function, ast.Lambda):
            arguments = function.args
            if len(arguments.args) != 1 or arguments.vararg or arguments.kwonlyargs or arguments.defaults:
                return None
            return [assigned(arguments.args[0].arg, load(item))], function.body
        if isinstance(function, ast.Attribute) and self._is_name(function.value, {"str", "bytes"}):
            return [], method(item, function.attr)
        if isinstance(function, ast.Call) and len(function.args) == 1 and not function.keywords:
            made = self._value(function.func)
            constant = function.args[0]
            if made is operator.itemgetter and isinstance(constant, ast.Constant | ast.UnaryOp):
                return [], ast.Subscript(load(item), constant, ast.Load())
            if made is operator.attrgetter and isinstance(constant, ast.Constant) and isinstance(constant.value, str):
                return [], ast.Attribute(load(item), constant.value, ast.Load())
            return None
        if isinstance(function, ast.Name | ast.Attribute):
            return [], called(function, load(item))
        return None

    def _as_generator(self, call: ast.expr) -> ast.expr:
        """Return map(f, xs) and filter(f, xs) as generator expressions; anything else unchanged."""
        if not (isinstance(call, ast.Call) and self._is_call(call, {"map", "filter"})):
            return call
        if call.keywords or len(call.args) != 2:
            return call
        function, iterable = call.args
        item = f"{ITEM}_{next(self._numbers)}"
        if isinstance(function, ast.Lambda) and len(function.args.args) == 1 and not function.args.defaults:
            item, value = function.args.args[0].arg, function.body
        else:
            found = self._applied(function, item)
            if found is None or found[0]:
                return call
            value = found[1]
        is_map = self._is_call(call, {"map"})
        generator = ast.comprehension(ast.Name(item, ast.Store()), iterable, [] if is_map else [value], 0)
        return placed(ast.GeneratorExp(value if is_map else load(item), [generator]), call)

    # --- names ---

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            return None if node.id in self._local else self._values.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return getattr(self._value(node.value), node.attr, None)
        return None

    def _is(self, name: str, names: set[str]) -> bool:
        known = self._values.get(name)
        return name in names and name not in self._local and getattr(known, "__module__", "") == "builtins"

    def _is_name(self, node: ast.AST, names: set[str]) -> bool:
        return isinstance(node, ast.Name) and self._is(node.id, names)

    def _is_call(self, node: ast.AST, names: set[str]) -> bool:
        if not isinstance(node, ast.Call):
            return False
        return self._is_name(node.func, names) or ("sorted" in names and _is_in_order(node))
