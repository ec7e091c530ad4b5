"""The nodes of a function, and whether a name in it always has the same value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of inner functions."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, SCOPES):
            yield from own_nodes(child)


def is_changed(node: ast.FunctionDef, name: str) -> bool:
    """Return whether a function may assign a name or one of its attributes, or binds the name elsewhere."""
    for each in ast.walk(node):
        match each:
            case ast.Name(id=found, ctx=ast.Store() | ast.Del()) if found == name:
                return True
            case ast.Attribute(value=ast.Name(id=found), ctx=ast.Store() | ast.Del()) if found == name:
                return True
            case ast.ExceptHandler(name=found) | ast.MatchAs(name=found) if found == name:
                return True
            case ast.MatchStar(name=found) if found == name:
                return True
            case ast.MatchMapping(rest=found) if found == name:
                return True
            case ast.FunctionDef(name=found) | ast.ClassDef(name=found) if found == name:
                return True
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                if name in ((one.asname or one.name).partition(".")[0] for one in imported):
                    return True
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                return True
    arguments = [each.arg for each in ast.walk(node) if isinstance(each, ast.arg)]
    return arguments.count(name) > 1
