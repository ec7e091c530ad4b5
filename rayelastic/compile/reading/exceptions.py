"""Rewrites `except ValueError` as `except Exception`, the only form that Numba supports; part of syntax.py.

This is enough if the block can raise nothing else, which the form of its expressions shows. Otherwise the handler
compares the exception's class, and raises it again if no user's handler names it.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
from collections.abc import Iterator
from typing import Any

from rayelastic.compile.reading.callables import NotRewrittenError, assigned, called, load, placed
from rayelastic.reasons import Code

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
        values: The values of names outside the function.
        path: The file, for errors.
        may_be_none: Whether operands of arithmetic may be None.
        members: Names of the user's methods and properties, which may raise anything.
        times: Whether arithmetic may leave the range of datetime or timedelta.
    """

    def __init__(
        self,
        values: dict[str, Any],
        path: str,
        *,
        may_be_none: bool,
        members: frozenset[str] = frozenset(),
        times: bool = False,
    ) -> None:
        self._values, self._path, self._may_be_none, self._members = values, path, may_be_none, members
        self._times = times
        self._numbers = itertools.count()
        self._functions: dict[str, list[ast.stmt]] = {}

    def visit_Try(self, node: ast.Try) -> ast.AST:
        """Rewrite try: .. except X: .."""
        self.generic_visit(node)
        if any(isinstance(one, ast.Try) for s in node.finalbody for one in ast.walk(s)):
            raise NotRewrittenError(Code.UNSUPPORTED, self._path, node.finalbody[0].lineno, what="a try inside finally")
        self._check_local_functions(node)
        node.body = [_Listed().visit(statement) for statement in node.body]
        if not node.handlers:
            return node
        raises_again = any(_is_bare(one) for handler in node.handlers for s in handler.body for one in ast.walk(s))
        for handler in node.handlers:
            if handler.name is not None and not _reads(handler):
                handler.name = None
        if not raises_again and len(node.handlers) == 1 and self._is_all(node):
            handler = node.handlers[0]
            handler.type = ast.copy_location(load("Exception"), node) if handler.type is not None else None
            return node
        for handler in node.handlers:
            if handler.name is not None:
                raise NotRewrittenError(Code.READS_EXCEPTION, self._path, handler.lineno)
        kinds = [self._kinds(handler.type) for handler in node.handlers]
        return node if None in kinds else self._told_apart(node, kinds)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Rewrite `raise X from error` without the cause, which is never read."""
        if isinstance(node.cause, ast.Name | ast.Constant):
            node.cause = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Visit a function, the outer one or an inner one."""
        self._functions[node.name] = node.body
        self.generic_visit(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Visit `f = lambda ..`."""
        if isinstance(node.value, ast.Lambda):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._functions[target.id] = [ast.Expr(node.value.body)]
        self.generic_visit(node)
        return node

    def _check_local_functions(self, node: ast.Try) -> None:
        """Reject inner functions in `try`: Numba inlines them, and they would continue after an exception."""
        for call in (one for statement in node.body for one in ast.walk(statement)):
            name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
            if name in self._functions and list(itertools.chain(*map(self._raised, self._functions[name]))):
                raise NotRewrittenError(Code.RAISES_IN_TRY, self._path, node.lineno, name=name)

    def _is_all(self, node: ast.Try) -> bool:
        """Return whether its only handler catches all that its block can raise."""
        kind, name = node.handlers[0].type, node.handlers[0].name
        if name is not None:
            return False
        if kind is None or (isinstance(kind, ast.Name) and self._values.get(kind.id) is Exception):
            return True
        caught = self._classes(kind)
        raised = [one for statement in node.body for one in self._raised(statement)]
        return bool(caught) and all(one is not None and issubclass(one, caught) for one in raised)

    def _kinds(self, node: ast.expr | None) -> list[ast.expr] | None:
        """Return the classes that a handler names, none for all; None if they are unknown."""
        if node is None:
            return []
        named = node.elts if isinstance(node, ast.Tuple) else [node]
        found = [self._value(one) for one in named]
        if any(one in (Exception, BaseException) for one in found):
            return []
        return named if all(isinstance(one, type) and issubclass(one, Exception) for one in found) else None

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Attribute):
            return getattr(self._value(node.value), node.attr, None)
        return self._values.get(node.id) if isinstance(node, ast.Name) else None

    def _told_apart(self, node: ast.Try, kinds: list[Any]) -> ast.AST:
        exception = f"rel_exception_{next(self._numbers)}"
        again = ast.parse(f"rel_raise_again({exception})\nraise Exception").body
        rest = [copy.deepcopy(one) for one in again]
        for handler, named in reversed(list(zip(node.handlers, kinds, strict=True))):
            body = [_RaisedAgain(again).visit(one) for one in handler.body]
            body = [one for made in body for one in (made if isinstance(made, list) else [made])]
            test = called(load("rel_is_a"), load(exception), ast.Tuple(named, ast.Load()))
            rest = [ast.If(test, body, rest)] if named else body
        first = assigned(exception, called(load("rel_caught")))
        handler = ast.ExceptHandler(load("Exception"), None, [first, *rest])
        node.handlers = [placed(handler, node.handlers[0])]
        return node

    def _classes(self, node: ast.expr | None) -> tuple[type, ...]:
        names = node.elts if isinstance(node, ast.Tuple) else [node]
        found = [self._values.get(name.id) if isinstance(name, ast.Name) else None for name in names]
        if "Exception" in self._values and self._values["Exception"] is not Exception:
            return ()
        known = [one for one in found if isinstance(one, type) and issubclass(one, Exception)]
        return tuple(known) if len(known) == len(found) else ()

    def _raised(self, statement: ast.AST) -> Iterator[type[Exception] | None]:
        """Yield the exceptions that a statement can raise; None for an unknown one."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                yield from self._of_call(node)
            elif isinstance(node, ast.BinOp):
                yield from _OPERATORS.get(type(node.op), ())
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                yield from (
                    (IndexError, KeyError) if not isinstance(node.slice, ast.Slice) else _of_step(node.slice.step)
                )
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
            if self._times and isinstance(node, ast.BinOp | ast.AugAssign | ast.UnaryOp | ast.Call):
                yield OverflowError
            if self._may_be_none and isinstance(
                node, ast.BinOp | ast.AugAssign | ast.Compare | ast.Call | ast.Subscript
            ):
                yield TypeError
            if self._may_be_none and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield AttributeError

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


def _of_step(step: ast.expr | None) -> tuple[type[Exception], ...]:
    """Return the exception of a slice whose step is zero."""
    number = step.operand if isinstance(step, ast.UnaryOp) else step
    is_known = number is None or (isinstance(number, ast.Constant) and number.value != 0)
    return () if is_known else (ValueError,)


class _Listed(ast.NodeTransformer):
    """Rewrites lists of constants in a try block, whose byte code Numba doesn't support there."""

    def visit_List(self, node: ast.List) -> ast.AST:
        """Rewrite [1, 2, 3]."""
        self.generic_visit(node)
        kinds = {type(one.value) if isinstance(one, ast.Constant) else None for one in node.elts}
        if len(node.elts) < 3 or None in kinds or len(kinds) > 1 or not isinstance(node.ctx, ast.Load):
            return node
        return placed(called(load("rel_listed"), ast.Tuple(node.elts, ast.Load())), node)


class _RaisedAgain(ast.NodeTransformer):
    """Rewrites `raise` in a handler."""

    def __init__(self, again: list[ast.stmt]) -> None:
        self._again = again

    def visit_Raise(self, node: ast.Raise) -> Any:
        """Rewrite a bare raise."""
        return [placed(copy.deepcopy(one), node) for one in self._again] if _is_bare(node) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Leave inner functions unchanged."""
        return node


def _is_bare(node: ast.AST) -> bool:
    return isinstance(node, ast.Raise) and node.exc is None


def _reads(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler uses the exception, other than as the cause of another."""
    said = [part for s in handler.body for r in ast.walk(s) if isinstance(r, ast.Raise) for part in ast.walk(r)]
    known = {id(one) for one in said}
    names = (n for s in handler.body for n in ast.walk(s) if isinstance(n, ast.Name) and n.id == handler.name)
    return any(id(one) not in known for one in names)
