"""Whether a refused tuple had to be refused: what Python's own evaluation meets that 64 bits can't hold.

The function runs again in Python with every expression watched. Knows nothing of the compiler.
"""

from __future__ import annotations

import ast
import copy
import datetime as dt
import sys
from typing import Any

from tests.oracle.program import Program, parsed

_EXACT_IN_FLOAT = 2**53


class Watch:
    """Looks at every value of one evaluation."""

    def __init__(self) -> None:
        self.beyond = False  # an int, or a timedelta's microseconds, outside 64 bits; a complex number; an unbound name
        self.inexact = False  # an int that a float can't hold
        self.floats = False

    def __call__(self, value: Any) -> Any:
        """Notes what is remarkable about a value, and gives it back."""
        kind = type(value)
        if kind is int:
            self.beyond |= not -(2**63) <= value < 2**63
            self.inexact |= abs(value) > _EXACT_IN_FLOAT
        elif kind is float:
            self.floats = True
            self.inexact |= abs(value) >= _EXACT_IN_FLOAT  # NaN isn't
        elif kind is complex:
            self.beyond = True
        elif kind is dt.timedelta:
            self.beyond |= not -(2**63) < value // dt.timedelta(microseconds=1) < 2**63
        elif kind in (tuple, list, set) and len(value) < 100:
            for item in value:
                self(item)
        return value

    def trace(self, frame: Any, event: str, argument: Any) -> Any:
        """Notes a name without a value, which only Python can give to a handler."""
        if event == "exception" and issubclass(argument[0], NameError):
            self.beyond = True
        return self.trace


class _Watched(ast.NodeTransformer):
    """Each expression that is read becomes `rel_seen(expression)`."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.guard = self.visit(case.guard) if case.guard else None
            made = [self.visit(one) for one in case.body]
            case.body = [one for some in made for one in (some if isinstance(some, list) else [some])]
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        node.value = self.visit(node.value)
        if not isinstance(node.target, ast.Name | ast.Attribute):
            return node
        look = copy.deepcopy(node.target)
        look.ctx = ast.Load()
        return [node, ast.Expr(_seen(look))]  # type: ignore[return-value]

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        """What a function that is given as `key=` gives is looked at, too."""
        node.value = self.visit(node.value)
        if node.arg == "key":
            given = ast.arguments([], [], ast.arg("rel_given"), [], [], None, [])
            each = ast.Starred(ast.Name("rel_given", ast.Load()), ast.Load())
            node.value = ast.Lambda(given, _seen(ast.Call(node.value, [each], [])))
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        plain = isinstance(
            node, ast.BinOp | ast.UnaryOp | ast.Call | ast.Subscript | ast.IfExp | ast.Name | ast.Attribute
        )
        if plain and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return _seen(node)  # type: ignore[arg-type]
        return node


def _seen(node: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("rel_seen", ast.Load()), [node], [])


def watched(program: Program, names: dict[str, Any], arguments: list[Any]) -> Watch:
    """What one evaluation of the function meets.

    Args:
        program: it.
        names: of its module.
        arguments: tuple, and state where it has one.
    """
    node = ast.fix_missing_locations(_Watched().visit(parsed(program.body)))
    watch = Watch()
    own = {**names, "rel_seen": watch}
    exec(compile(ast.Module([node], []), "<watched>", "exec", dont_inherit=True), own)
    before = sys.gettrace()
    sys.settrace(watch.trace)
    try:
        made = own["f"](*arguments)
        if program.kind == "flat_map":
            list(made or ())
    except Exception:  # what it met until then counts
        pass
    finally:
        sys.settrace(before)
    return watch
