"""Rewrites generator expressions, comprehensions and functions with a key as loops in local functions.

Examples are `any(.. for ..)`, `max(words, key=len)`, `sorted(d.items(), key=lambda p: -p[1])`, `map(f, words)` and
`{w for w in ws}`: Numba lacks them, or differs from CPython. Each local function precedes the statement that calls it,
and receives what it reads as arguments. Knows no Numba.
"""

# ruff: noqa: N802 -- called by ast

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Iterator
from typing import Any

from rayelastic.compile.reading.callables import ITEM, Callables, assigned, called, load, method, placed

_COLLECTORS = {"list", "tuple", "set", "sorted", "frozenset", "dict"}
_CONSUMERS = {*_COLLECTORS, "sum", "min", "max", "any", "all", "enumerate", "zip"}
_EXTREMES = {"min": "<", "max": ">"}
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
ITEMS = "rel_items"

_ANY = "if ELEMENT:\n    return True"
_ALL = "if not ELEMENT:\n    return False"
_BEST = """
if rel_none:
    rel_best = rel_item
    rel_best_key = rel_key
    rel_none = False
elif rel_key {} rel_best_key:
    rel_best = rel_item
    rel_best_key = rel_key
"""


def loop_over(comprehension: Any, body: list[ast.stmt], first: ast.expr | None = None) -> ast.For:
    """Return the loops and conditions of a comprehension around statements; `first` replaces its first iterable."""
    for at, generator in reversed(list(enumerate(comprehension.generators))):
        for condition in reversed(generator.ifs):
            body = [ast.If(condition, body, [])]
        iterable = first if at == 0 and first is not None else generator.iter
        body = [ast.copy_location(ast.For(generator.target, iterable, body, [], None), comprehension)]
    loop = body[0]
    assert isinstance(loop, ast.For)
    return loop


class Loops(Callables):
    """The rewrite of one function's body, in place.

    Args:
        values: The values of names outside the function.
        local: The function's own names.
    """

    def __init__(self, values: dict[str, Any], local: set[str], numbers: Iterator[int] | None = None) -> None:
        super().__init__(values, local, numbers or itertools.count())
        self._made: list[ast.stmt] = []

    def begin(self, node: ast.FunctionDef) -> None:
        """Rewrite a function."""
        changed = {name for n in ast.walk(node) for name in _changed(n)}
        for statement in ast.walk(node):
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    statement.value = _as_list(target, statement.value, changed)
        node.body = self._statements(node.body)

    # --- statements ---

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for statement in body:
            before, self._made = self._made, []
            changed = self._statement(statement)
            done += [*self._made, changed]
            self._made = before
        return done

    def _statement(self, statement: ast.stmt) -> ast.stmt:
        if isinstance(statement, ast.FunctionDef):
            return self._function(statement)
        statement = self._sorted_in_place(statement)
        if isinstance(statement, ast.For) and not self._is_call(statement.iter, {"map", "filter"}):
            statement.iter = self._iterated(statement.iter)
        if isinstance(statement, ast.If):
            statement.test = self._without_first_assignment(statement.test)
        for name, value in ast.iter_fields(statement):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(statement, name, self._statements(value))
            elif isinstance(value, list):
                setattr(statement, name, [self._part(one) for one in value])
            elif isinstance(value, ast.AST):
                setattr(statement, name, self.visit(value))
        return statement

    def _function(self, node: ast.FunctionDef) -> ast.stmt:
        """Rewrite an inner function, which sees the outer function's names."""
        own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        own |= {n.arg for n in ast.walk(node.args) if isinstance(n, ast.arg)}
        Loops(self._values, self._local | own, self._numbers).begin(node)
        return node

    def _sorted_in_place(self, statement: ast.stmt) -> ast.stmt:
        """Rewrite `words.sort(..)` as `words[:] = sorted(words, ..)`."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "sort"):
            return statement
        if call.args or not isinstance(call.func.value, ast.Name):
            return statement
        name = call.func.value.id
        made = ast.Call(load("rel_in_order"), [load(name)], call.keywords)
        target = ast.Subscript(load(name), ast.Slice(None, None, None), ast.Store())
        return placed(ast.Assign([target], made), statement)

    def _without_first_assignment(self, test: ast.expr) -> ast.expr:
        """Move the assignment of `if (k := ..) > 0` before it, which Numba 0.68 compiles wrongly."""
        if isinstance(test, ast.NamedExpr):
            name = test.target.id
            self._made.append(placed(assigned(name, self.visit(test.value)), test))
            return ast.copy_location(load(name), test)
        for name in ("left", "operand", "value"):
            if isinstance(getattr(test, name, None), ast.expr):
                setattr(test, name, self._without_first_assignment(getattr(test, name)))
        if isinstance(test, ast.BoolOp):
            test.values[0] = self._without_first_assignment(test.values[0])
        return test

    def _part(self, part: Any) -> Any:
        """Rewrite a handler or a case, with its own statements, or an expression."""
        if hasattr(part, "body") and isinstance(part.body, list):
            part.body = self._statements(part.body)
            return part
        return self.visit(part) if isinstance(part, ast.AST) else part

    # --- expressions ---

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        """Leave lambdas unchanged."""
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Rewrite a call of a function that iterates."""
        if self._is_lifted(node):
            made = self._lifted(node)
            if made is not None:
                return made
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        joins = isinstance(node.func, ast.Attribute) and node.func.attr == "join"
        if joins or self._is(name, _CONSUMERS):
            node.args = [self._iterated(one) for one in node.args]
        if self._is(name, {"enumerate"}) and [one.arg for one in node.keywords] == ["start"] and len(node.args) == 1:
            node.args, node.keywords = [*node.args, node.keywords[0].value], []
        if self._is(name, {"list"}) and len(node.args) == 1 and not node.keywords:
            if isinstance(node.args[0], ast.ListComp):
                return self._comprehension(node.args[0])
            node = placed(called(load("rel_listed"), node.args[0]), node)
        self.generic_visit(node)
        by_name = len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        if by_name and isinstance(node.func, ast.Attribute) and node.func.attr == "group":
            return ast.copy_location(ast.Subscript(node.func.value, node.args[0], ast.Load()), node)
        return node

    def _iterated(self, given: ast.expr) -> ast.expr:
        """Return an argument that is iterated to its end."""
        given = self._as_generator(given)
        if isinstance(given, ast.Name) and isinstance(self._value(given), dict):
            return placed(method(given.id, "keys"), given)
        if isinstance(given, ast.Call) and self._is_call(given, {"reversed"}) and len(given.args) == 1:
            return placed(called(load("rel_backwards"), given.args[0]), given)
        if isinstance(given, ast.GeneratorExp):
            return ast.copy_location(ast.ListComp(given.elt, given.generators), given)
        return given

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        """Rewrite `for x in reversed(..)` of a comprehension."""
        node.iter = self._iterated(node.iter)
        self.generic_visit(node)
        return node

    def _comprehension(self, node: Any) -> ast.AST:
        inside = [node.elt] if hasattr(node, "elt") else [node.key, node.value]
        inside += [one for generator in node.generators for one in generator.ifs]
        inside += [generator.iter for generator in node.generators[1:]]
        if isinstance(node, ast.GeneratorExp) or not (
            isinstance(node, ast.SetComp) or any(self._needs_a_function(n) for i in inside for n in ast.walk(i))
        ):
            self.generic_visit(node)
            return node
        if isinstance(node, ast.ListComp):
            begin, put = "rel_made = []", method("rel_made", "append", node.elt)
        elif isinstance(node, ast.SetComp):
            begin, put = "rel_made = set()", method("rel_made", "add", node.elt)
        else:
            begin, put = "rel_made = {}", None
        if put is None:
            target = ast.Subscript(load("rel_made"), node.key, ast.Store())
            body: ast.stmt = ast.Assign([target], node.value)
        else:
            body = ast.Expr(put)
        return self._loop(node, [body], begin, "return rel_made")

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def _needs_a_function(self, node: ast.AST) -> bool:
        return isinstance(node, (*_COMPREHENSIONS, ast.NamedExpr)) or (
            isinstance(node, ast.Call) and self._is_lifted(node)
        )

    # --- local functions ---

    def _is_lifted(self, node: ast.Call) -> bool:
        if not self._is_call(node, {"sum", "any", "all", "min", "max", "next", "sorted"}) or not node.args:
            return False
        name, given = self._name(node), node.args[0]
        generated = isinstance(given, ast.GeneratorExp) or self._is_call(given, {"map", "filter"})
        keys = {one.arg for one in node.keywords}
        if name in ("any", "all"):
            return len(node.args) == 1 and not keys
        if name == "sum":
            return generated and len(node.args) == 1 and not keys and (sys.version_info < (3, 12) or _counts(given))
        if name == "next":
            return generated and len(node.args) == 2
        if name == "sorted":
            return keys <= {"key", "reverse"} and "key" in keys
        if len(node.args) > 1:
            return keys == {"key"}
        return keys <= {"key", "default"} and not isinstance(given, ast.Starred | ast.Tuple)

    def _lifted(self, node: ast.Call) -> ast.AST | None:
        name = self._name(node)
        options = {one.arg: one.value for one in node.keywords}
        given: ast.expr = node.args[0]
        if name in _EXTREMES and len(node.args) > 1:
            given = ast.copy_location(ast.List(node.args, ast.Load()), given)
        given = self._as_generator(given)
        source = given if isinstance(given, ast.GeneratorExp) else _plain(given)
        element = source.elt
        if name in ("any", "all"):
            body = _with(ast.parse(_ANY if name == "any" else _ALL).body, element)
            return self._loop(source, body, "", f"return {name == 'all'}", node, unordered=True)
        if name == "sum":
            body = [ast.AugAssign(ast.Name("rel_sum", ast.Store()), ast.Add(), element)]
            return self._loop(source, body, "rel_sum = 0", "return rel_sum", node, unordered=_counts(source))
        if name == "next":
            return self._loop(source, [ast.Return(element)], "", "return rel_default", node, default=node.args[1])
        key = self._key(options.get("key"), given)
        if key is None:
            return None
        if name == "sorted":
            return self._sorted(given, key, options.get("reverse") or ast.Constant(False), node)
        body = [assigned(ITEM, element), *key[0], assigned("rel_key", key[1])]
        body += ast.parse(_BEST.format(_EXTREMES[name])).body
        end = "if rel_none:\n    rel_no_items()\nreturn rel_best"
        if "default" in options:
            end = "if rel_none:\n    return rel_default\nreturn rel_best"
        default = options.get("default")
        return self._loop(source, body, "rel_none = True", end, node, default=default, unordered="key" not in options)

    def _sorted(
        self, given: ast.expr, key: tuple[list[ast.stmt], ast.expr], reverse: ast.expr, node: ast.expr
    ) -> ast.AST:
        listed = self._iterated(given)
        keyed = _plain(load("rel_list"))
        assert isinstance(keyed.generators[0].target, ast.Name)
        keyed.generators[0].target.id = ITEM
        body = [*key[0], ast.Expr(method("rel_keys", "append", key[1]))]
        body = [*ast.parse("rel_list = rel_listed(rel_items)\nrel_keys = []").body, loop_over(keyed, body)]
        body += ast.parse("return rel_arranged(rel_list, rel_keys, rel_default)").body
        return self._defined(body, listed, node, default=reverse)

    def _loop(
        self,
        source: Any,
        body: list[ast.stmt],
        begin: str,
        end: str,
        node: Any = None,
        *,
        default: ast.expr | None = None,
        unordered: bool = False,
    ) -> ast.AST:
        """Return a call of a function with the loop of a comprehension."""
        may_be_set = unordered and isinstance(source.generators[0].iter, ast.Name | ast.Attribute | ast.Set | ast.BinOp)
        items: ast.expr = called(load("rel_unordered"), load(ITEMS)) if may_be_set else load(ITEMS)
        loop = loop_over(source, body, items)
        whole = [*ast.parse(begin).body, loop, *ast.parse(end).body]
        return self._defined(whole, source.generators[0].iter, node or source, default=default)

    def _defined(
        self, body: list[ast.stmt], iterable: ast.expr, node: ast.expr, *, default: ast.expr | None = None
    ) -> ast.AST:
        names = [n for s in body for n in ast.walk(s) if isinstance(n, ast.Name)]
        own = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        passed = sorted((({n.id for n in names} - own) & self._local) - {ITEMS, "rel_default"})
        made = f"rel_loop_{next(self._numbers)}"
        extra = [] if default is None else ["rel_default"]
        parameters = [ITEMS, *extra, *passed]
        arguments = ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, [])
        function = placed(ast.FunctionDef(made, arguments, body, [], None, None), node)
        Loops(self._values, own | set(parameters), self._numbers).begin(function)
        given = [self.visit(self._iterated(iterable)), *([] if default is None else [self.visit(default)])]
        self._made.append(function)
        return placed(called(load(made), *given, *map(load, passed)), node)


_CHANGES = {"append", "extend", "insert", "remove", "pop", "sort", "reverse", "clear"}


def _changed(node: ast.AST) -> Iterator[str]:
    """Yield the names of lists that a node changes."""
    owner: ast.AST | None = None
    if isinstance(node, ast.Attribute):
        owner = node.value if node.attr in _CHANGES else None
    elif isinstance(node, ast.Subscript):
        owner = None if isinstance(node.ctx, ast.Load) else node.value
    elif isinstance(node, ast.AugAssign):
        owner = node.target
    if isinstance(owner, ast.Name):
        yield owner.id


def _as_list(target: ast.expr, value: ast.expr, changed: set[str]) -> ast.expr:
    """Return a value as a new list, if it is split() and its name is changed later."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        value.elts = [_as_list(one, part, changed) for one, part in zip(target.elts, value.elts, strict=True)]
    elif isinstance(target, ast.Name) and target.id in changed and _is_split(value):
        return placed(called(load("rel_words"), value), value)
    return value


def _is_split(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in ("split", "rsplit", "splitlines")
    )


def _counts(given: ast.expr) -> bool:
    """Return whether a generator's items are a whole number each, whose sum doesn't depend on the order."""
    element = given.elt if isinstance(given, ast.GeneratorExp) else None
    return isinstance(element, ast.Constant) and isinstance(element.value, int)


def _plain(iterable: ast.expr) -> ast.GeneratorExp:
    """Return (x for x in iterable)."""
    generator = ast.comprehension(ast.Name("rel_element", ast.Store()), iterable, [], 0)
    return ast.copy_location(ast.GeneratorExp(load("rel_element"), [generator]), iterable)


def _with(body: list[ast.stmt], element: ast.expr) -> list[ast.stmt]:
    """Return statements with an expression in place of ELEMENT."""
    for statement in ast.walk(ast.Module(body, [])):
        for field, value in ast.iter_fields(statement):
            if isinstance(value, ast.Name) and value.id == "ELEMENT":
                setattr(statement, field, element)
    return body
