"""Methods of a class with timers as functions that can be compiled: uses of `out` become yields and calls.

`out.give(x)` becomes `yield x`. Timers are set by the functions that lowering/times/timers.py declares under the names
here. `out.key`, `out.time` and on_time's time are fields of the function's record. Knows no Numba.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rayelastic.compile.reading.callables import NotRewrittenError
from rayelastic.compile.reading.methods.plain import bound_again, give_false, parts_of
from rayelastic.graph.records.time_values import TimeValues
from rayelastic.reasons import Code

TIME = "rel_time"  # the field with a moment's time
MOMENT = "rel_moment"  # the parameter of a method that is called without a tuple
_INNER = ast.Lambda | ast.FunctionDef | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_TAKES = {"give": 1, "timer": 1, "after": 1, "cancel": 1, "forget": 0}


@dataclass(frozen=True, slots=True)
class Written:
    """A method as a function of a record and the state of its key.

    Args:
        function: The function to compile.
        emits: Whether it emits tuples, and so yields; otherwise it returns False.
        sets: Whether it sets timers.
    """

    function: Any
    emits: bool
    sets: bool


def as_function(method: Any, called: str, keys: Sequence[str], times: TimeValues, field: str) -> Written:
    """Return the function of a method.

    Args:
        method: A method of an object.
        called: 'on_tuple', 'on_time' or 'on_end'.
        keys: Names of the key fields.
        times: How the times of the stream are represented.
        field: The field of the event time; empty in processing time.

    Raises:
        NotRewrittenError: It can't be compiled, with the reason.
    """
    found, node = parts_of(method, 2 if called == "on_end" else 3)
    path = found.function.__code__.co_filename
    given = [one for one in [*node.args.posonlyargs, *node.args.args] if one.arg not in found.values]
    state, out = given[-2:]
    record = given[0].arg if called == "on_tuple" else MOMENT
    write = _Write(path, called, out.arg, record, keys, times, field)
    if called == "on_time":
        write.time_name = given[0].arg
    node.body = [write.visit(statement) for statement in node.body]
    parameters = [*(ast.arg(name) for name in found.values), ast.arg(record), state]
    node.args = ast.arguments([], parameters, None, [], [], None, [])
    if not write.emits:
        give_false(node, path)
    return Written(bound_again(node, found), write.emits, write.sets)


class _Write(ast.NodeTransformer):
    """Rewrites the uses of `out` in a method."""

    def __init__(
        self, path: str, called: str, out: str, record: str, keys: Sequence[str], times: TimeValues, field: str
    ) -> None:
        self._path = path
        self._called = called
        self._out = out
        self._record = record
        self._keys = keys
        self._times = times
        self._field = field
        self.time_name = ""
        self.emits = False
        self.sets = False

    def visit_Expr(self, node: ast.Expr) -> Any:
        call = node.value
        name = self._of_out(call.func) if isinstance(call, ast.Call) else None
        if name is None:
            return self.generic_visit(node)
        assert isinstance(call, ast.Call)
        if name not in _TAKES:
            raise self._problem(node, f"out.{name}")
        if call.keywords or len(call.args) != _TAKES[name]:
            raise self._problem(node, f"out.{name}(..)", Code.ARGUMENTS)
        arguments = [self.visit(one) for one in call.args]
        return ast.copy_location(ast.Expr(ast.copy_location(self._done(node, name, arguments), call)), node)

    def visit_Starred(self, node: ast.Starred) -> Any:
        if self._of_out(node.value) == "key":
            raise self._problem(node, "*out.key outside of a tuple or a call")
        return self.generic_visit(node)

    def visit_Tuple(self, node: ast.Tuple) -> Any:
        node.elts = self._spread(node.elts)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        node.args = self._spread(node.args)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        name = self._of_out(node)
        if name is None:
            return self.generic_visit(node)
        if name == "key":
            return ast.copy_location(ast.Tuple(self._key(node), ast.Load()), node)
        if name == "time":
            return ast.copy_location(self._time(node), node)
        if name == "ended":
            return ast.copy_location(_call("rel_timer_ended"), node)
        raise self._problem(node, f"out.{name} that isn't called as a statement of its own")

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id == self._out:
            raise self._problem(node, "passing on or assigning out")
        if node.id != self.time_name or self._called != "on_time":
            return node
        if not isinstance(node.ctx, ast.Load):
            raise self._problem(node, f"assigning {node.id}, the time,")
        return ast.copy_location(_field(MOMENT, TIME), node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        names = {self._out, self.time_name}
        if isinstance(node, _INNER) and any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(node)):
            raise self._problem(node, "out, or the time, in a function or comprehension inside")
        return super().generic_visit(node)

    def _of_out(self, node: ast.AST) -> str | None:
        is_of = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self._out
        return node.attr if is_of and isinstance(node, ast.Attribute) else None

    def _done(self, node: ast.AST, name: str, arguments: list[Any]) -> ast.expr:
        if name == "give":
            self.emits = True
            return ast.Yield(arguments[0])
        if name == "forget":
            return _call("rel_timer_forget")
        self.sets = self.sets or name != "cancel"
        if name == "after":
            return _call("rel_timer_after", arguments[0])
        return _call("rel_timer_at" if name == "timer" else "rel_timer_cancel", self._ticks(node, arguments[0]))

    def _ticks(self, node: ast.AST, at: ast.expr) -> ast.expr:
        time = self._times
        if time.kind is float:
            scaled = ast.BinOp(at, ast.Mult(), ast.Constant(float(time.ticks_per_second)))
            whole = ast.BinOp(scaled, ast.FloorDiv(), ast.Constant(1.0))
            return _shifted(ast.Call(ast.Name("int", ast.Load()), [whole], []), time.time.shift)
        if time.kind is int:
            return _shifted(at, time.time.shift)
        raise self._problem(node, "a timer at a datetime", Code.WRITE_INSTEAD, instead="out.after(seconds)")

    def _time(self, node: ast.AST) -> ast.expr:
        if self._called == "on_end":
            raise self._problem(node, "out.time in on_end, which is None,")
        if self._called == "on_time":
            return _field(MOMENT, TIME)
        time = self._times
        if time.kind not in (int, float):
            return _field(self._record, self._field)
        at = _shifted(_call("rel_timer_now"), -time.time.shift)
        if time.kind is float:
            return ast.BinOp(at, ast.Div(), ast.Constant(float(time.ticks_per_second)))
        return at

    def _key(self, node: ast.AST) -> list[ast.expr]:
        return [ast.copy_location(_field(self._record, key), node) for key in self._keys]

    def _spread(self, items: list[Any]) -> list[Any]:
        """Replace `*out.key` by its fields."""
        found: list[Any] = []
        for item in items:
            is_key = isinstance(item, ast.Starred) and self._of_out(item.value) == "key"
            found += self._key(item) if is_key else [item]
        return found

    def _problem(self, node: Any, what: str, code: Code = Code.UNSUPPORTED, **values: str) -> NotRewrittenError:
        return NotRewrittenError(code, self._path, node.lineno, what=what, **values)


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _field(record: str, name: str) -> ast.expr:
    return ast.Attribute(ast.Name(record, ast.Load()), name, ast.Load())


def _shifted(at: ast.expr, shift: int) -> ast.expr:
    return at if shift == 0 else ast.BinOp(at, ast.Add(), ast.Constant(shift))
