"""Rewrites statements that Numba doesn't support; calls of local functions get all arguments by position.

Examples are `a, *rest = words`, `counts, seen = {}, []`, `import math` inside a function, and default and keyword
arguments of inner functions, which Numba would mix up. Knows no Numba.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import sys
from typing import Any

from rayelastic.compile.reading.callables import NotRewrittenError, assigned, called, load, placed
from rayelastic.reasons import Code


class Statements(ast.NodeTransformer):
    """The rewrite of one function.

    Args:
        path: The file, for errors.

    Attributes:
        imported: Names of modules, and of their members, that the function imports itself.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._numbers = itertools.count()
        self._functions: dict[str, ast.arguments] = {}
        self.imported: dict[str, Any] = {}

    def begin(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite a function."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef) and inner is not node:
                self._note(inner.name, inner.args)
            elif isinstance(inner, ast.Assign) and isinstance(inner.value, ast.Lambda):
                for target in inner.targets:
                    if isinstance(target, ast.Name):
                        self._note(target.id, inner.value.args)
        node.body = [made for statement in node.body for made in _listed(self.visit(statement))]
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef | ast.Lambda) and inner is not node:
                _without_defaults(inner.args)
        return node

    def _note(self, name: str, arguments: ast.arguments) -> None:
        before = self._functions.setdefault(name, arguments)
        if ast.dump(before) != ast.dump(arguments):
            anything = ast.arguments([], [], ast.arg("rest"), [], [], None, [])
            self._functions[name] = anything

    # --- assignments ---

    def visit_Assign(self, node: ast.Assign) -> Any:
        """Rewrite `a, *rest = ..`, and several assignments at once."""
        self.generic_visit(node)
        target = node.targets[0] if len(node.targets) == 1 else None
        if not isinstance(target, ast.Tuple | ast.List):
            return node
        if any(isinstance(one, ast.Starred) for one in target.elts):
            return [placed(one, node) for one in self._starred(target.elts, node.value)]
        given = node.value.elts if isinstance(node.value, ast.Tuple) else []
        if len(given) == len(target.elts) and all(map(_is_plain, given)) and any(map(_is_empty, given)):
            return [placed(ast.Assign([to], value), node) for to, value in zip(target.elts, given, strict=True)]
        return node

    def _starred(self, targets: list[ast.expr], value: ast.expr) -> list[ast.stmt]:
        star = next(at for at, one in enumerate(targets) if isinstance(one, ast.Starred))
        rest = targets[star]
        assert isinstance(rest, ast.Starred)
        name, behind = f"rel_all_{next(self._numbers)}", len(targets) - star - 1
        made: list[ast.stmt] = [assigned(name, called(load("rel_listed"), value))]
        made += ast.parse(f"if len({name}) < {len(targets) - 1}:\n    raise ValueError").body
        for at, target in enumerate(targets):
            if at == star:
                end = f"len({name}) - {behind}" if behind else ""
                part = f"{name}[{star}:{end}]"
                target = rest.value
            else:
                part = f"{name}[{at if at < star else at - len(targets)}]"
            made.append(ast.Assign([target], ast.parse(part, mode="eval").body))
        return made

    def visit_Delete(self, node: ast.Delete) -> Any:
        """Rewrite `del d[k]`."""
        self.generic_visit(node)
        made: list[ast.stmt] = []
        for one in node.targets:
            if not isinstance(one, ast.Subscript) or isinstance(one.slice, ast.Slice):
                return node
            made.append(placed(ast.Expr(called(load("rel_remove"), one.value, one.slice)), node))
        return made

    # --- imports ---

    def visit_Import(self, node: ast.Import) -> ast.AST:
        """Remove `import math`, and record it."""
        for one in node.names:
            module = self._module(one.name, node)
            top = sys.modules[one.name.partition(".")[0]]
            self.imported[one.asname or top.__name__] = module if one.asname else top
        return ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """Remove `from math import floor`, and record it."""
        module = self._module("." * node.level + (node.module or ""), node)
        for one in node.names:
            if not hasattr(module, one.name):
                raise NotRewrittenError(Code.UNDEFINED, self._path, node.lineno, name=f"{node.module}.{one.name}")
            self.imported[one.asname or one.name] = getattr(module, one.name)
        return ast.copy_location(ast.Pass(), node)

    def _module(self, name: str, node: ast.stmt) -> Any:
        if name.partition(".")[0] not in sys.stdlib_module_names - {"__main__"}:
            raise NotRewrittenError(Code.IMPORTS, self._path, node.lineno, name=name)
        return importlib.import_module(name)

    # --- inner functions ---

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Pass all arguments of an inner function by position."""
        self.generic_visit(node)
        arguments = self._functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if arguments is None or not isinstance(node.func, ast.Name):
            return node
        names = [one.arg for one in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
        if len(node.args) == len(names) and not node.keywords and not arguments.kwonlyargs:
            return node
        given: dict[str, ast.expr] = _defaults(arguments)
        given |= dict(zip(names, node.args, strict=False))
        given |= {one.arg: one.value for one in node.keywords if one.arg is not None}
        starred = any(isinstance(one, ast.Starred) for one in node.args) or any(
            one.arg is None for one in node.keywords
        )
        if starred or arguments.vararg or arguments.kwarg or set(given) != set(names):
            raise NotRewrittenError(Code.ARGUMENTS, self._path, node.lineno, what=f"'{node.func.id}'")
        return ast.copy_location(ast.Call(node.func, [given[name] for name in names], []), node)


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    """Return the constants that are defaults of missing arguments."""
    names = [one.arg for one in [*arguments.posonlyargs, *arguments.args]]
    found = dict(zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=True))
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found |= {one.arg: default for one, default in pairs if default is not None}
    return {name: value for name, value in found.items() if _is_constant(value)}


def _without_defaults(arguments: ast.arguments) -> None:
    """Make all parameters of an inner function positional."""
    arguments.args += arguments.kwonlyargs
    arguments.defaults, arguments.kwonlyargs, arguments.kw_defaults = [], [], []


def _is_constant(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.UnaryOp) and isinstance(value.operand, ast.Constant)
    )


def _is_empty(value: ast.expr) -> bool:
    return (isinstance(value, ast.List) and not value.elts) or (isinstance(value, ast.Dict) and not value.keys)


def _is_plain(value: ast.expr) -> bool:
    """Return whether it can't raise, nor read what is assigned beside it."""
    return _is_constant(value) or _is_empty(value)


def _listed(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]
