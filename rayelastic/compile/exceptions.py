"""`except ValueError` becomes `except Exception` where the block can raise nothing else: what syntax.py rewrites.

Compiled code can't tell exceptions apart. What an expression can raise is looked up by its form; where that isn't
known, or is more than the handler names, the handler stays, and the function is refused with the reason.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

__all__ = ["Narrowing"]

_CALLS: dict[Any, tuple[type[Exception], ...]] = {
    int: (ValueError,),
    float: (ValueError,),
    str: (),
    bool: (),
    len: (),
    abs: (),
    ord: (TypeError,),
    range: (ValueError,),
    enumerate: (),
    min: (ValueError,),
    max: (ValueError,),
    round: (ValueError, OverflowError),
    divmod: (ZeroDivisionError,),
}
_METHODS: dict[str, tuple[type[Exception], ...]] = {
    **dict.fromkeys(
        ("strip", "lstrip", "rstrip", "lower", "upper", "startswith", "endswith", "find", "rfind", "isdigit",
         "isalpha", "isalnum", "isspace", "isdecimal", "isnumeric", "removeprefix", "removesuffix", "replace", "get",
         "count", "join", "total_seconds", "append"), (),
    ),
    "split": (ValueError,), "rsplit": (ValueError,), "partition": (ValueError,), "index": (ValueError,),
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], tuple[type[Exception], ...]] = {
    ast.Div: (ZeroDivisionError,),
    ast.FloorDiv: (ZeroDivisionError,),
    ast.Mod: (ZeroDivisionError,),
    ast.Pow: (ZeroDivisionError, OverflowError),
    ast.LShift: (ValueError,),
    ast.RShift: (ValueError,),
}
_HARMLESS = (
    ast.Name, ast.Constant, ast.Attribute, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
    ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.If, ast.For,
    ast.While, ast.Tuple, ast.List, ast.Pass, ast.Break, ast.Continue, ast.JoinedStr,
    ast.FormattedValue, ast.Slice, ast.keyword, ast.Yield, ast.NamedExpr,
)  # fmt: skip


class Narrowing(ast.NodeTransformer):
    """Rewrites handlers.

    Args:
        values: what names outside the function stand for.
        may_be_none: whether arithmetic may meet None.
        members: names of methods and properties of the user's own, which may raise anything.
    """

    def __init__(self, values: dict[str, Any], *, may_be_none: bool, members: frozenset[str] = frozenset()) -> None:
        self._values, self._may_be_none, self._members = values, may_be_none, members

    def visit_Try(self, node: ast.Try) -> ast.AST:
        """try: .. except X: .."""
        self.generic_visit(node)
        if len(node.handlers) != 1 or node.handlers[0].type is None:
            return node
        handler = node.handlers[0]
        caught = self._classes(handler.type)
        named = handler.name is not None and any(
            isinstance(n, ast.Name) and n.id == handler.name for s in handler.body for n in ast.walk(s)
        )
        raised = [one for statement in node.body for one in self._raised(statement)]
        if caught and not named and all(one is not None and issubclass(one, caught) for one in raised):
            handler.type = ast.copy_location(ast.Name("Exception", ast.Load()), node)
            handler.name = None
        return node

    def _classes(self, node: ast.expr | None) -> tuple[type, ...]:
        names = node.elts if isinstance(node, ast.Tuple) else [node]
        found = [self._values.get(name.id) if isinstance(name, ast.Name) else None for name in names]
        if "Exception" in self._values and self._values["Exception"] is not Exception:
            return ()
        known = [one for one in found if isinstance(one, type) and issubclass(one, Exception)]
        return tuple(known) if len(known) == len(found) else ()

    def _raised(self, statement: ast.AST) -> Iterator[type[Exception] | None]:
        """What a statement can raise; None for what isn't known."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield from self._of_call(node)
            elif isinstance(node, ast.BinOp):
                yield from _OPERATORS.get(type(node.op), ())
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                if not isinstance(node.slice, ast.Slice):
                    yield from (IndexError, KeyError)
            elif isinstance(node, ast.Raise):
                yield self._of_raise(node)
            elif (
                (isinstance(node, ast.Attribute) and node.attr in self._members)
                or isinstance(node, ast.Try)
                or not isinstance(node, _HARMLESS)
            ):
                yield None
            if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Store):
                yield ValueError
            if isinstance(node, ast.AugAssign):
                yield from _OPERATORS.get(type(node.op), ())
            if self._may_be_none and isinstance(node, ast.BinOp | ast.AugAssign | ast.Compare | ast.Call):
                yield TypeError

    def _of_call(self, node: ast.Call) -> Iterator[type[Exception] | None]:
        if isinstance(node.func, ast.Attribute):
            yield from _METHODS.get(node.func.attr, (None,))
            return
        value = self._values.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            return
        is_builtin = getattr(value, "__module__", "") == builtins.__name__
        yield from _CALLS.get(value, (None,)) if is_builtin else (None,)

    def _of_raise(self, node: ast.Raise) -> type[Exception] | None:
        made = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        value = self._values.get(made.id) if isinstance(made, ast.Name) else None
        return value if isinstance(value, type) and issubclass(value, Exception) else None
