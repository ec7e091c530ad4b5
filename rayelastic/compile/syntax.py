"""Python that Numba doesn't read becomes Python that it does: a rewrite of the function's source, where there is one.

`yield from`; lists that a flat_map function returns; generator expressions in sum, any, all and join; `if (k := ..)`;
format specs, `%` and str.format (format_strings.py); `except ValueError` where nothing else can be raised
(exceptions.py); `t._replace(..)`. The new function has the old one's globals, closure and line numbers. Source that
isn't there, or isn't what the function was made of, leaves the function as it is. Knows no Numba.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import itertools
import linecache
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rayelastic.compile.bound import bind
from rayelastic.compile.exceptions import Narrowing
from rayelastic.compile.format_strings import Formats

__all__ = ["FORMAT", "definition", "rewritten", "value_of"]

FORMAT = "rel_formatted"  # the name by which new functions know what formats
_FUTURES = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0
)
_MADE = "rel_function"  # the name of a definition while it is made: the user's may be a global that it calls
_REDUCERS = {"sum", "any", "all"}
_COLLECTORS = {"list", "tuple", "set", "sorted", "frozenset"}


def rewritten(
    function: Callable[..., Any],
    formatted: Callable[..., Any],
    *,
    flat: bool = False,
    nullable: frozenset[str] = frozenset(),
    record: type | None = None,
    bound: Mapping[str, Any] | None = None,
    members: frozenset[str] = frozenset(),
    may_be_none: bool = False,
) -> Callable[..., Any]:
    """The function to compile in place of a user's.

    Args:
        function: of the user.
        formatted: what `format(value, spec)` becomes.
        flat: whether it is a flat_map function, whose lists are to be yielded.
        nullable: fields that may be None.
        record: class of its first argument where known.
        bound: parameters whose values are known (bound.py), which the new function doesn't have.
        members: names of methods and properties of the user's objects and classes.
        may_be_none: whether what it is given may be None, or have it.

    Raises:
        SyntaxError: parameters are bound, but the function's source isn't known.
    """
    bound = bound or {}
    found = definition(function)
    if found is None:
        if bound:
            raise SyntaxError(f"the source of {function.__qualname__} isn't known, which a method or partial needs")
        return function
    before = ast.dump(found)
    node = copy.deepcopy(found)
    names = set(function.__code__.co_names) | set(function.__code__.co_freevars)
    values = {name: value_of(function, name) for name in names} | dict(bound)
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    first = next((name for name in parameters if name not in bound), None)
    extra = bind(node, bound)
    if record is not None and first is not None:
        node = _Replaced(first, record).visit(node)
    node = Formats(FORMAT).visit(node)
    may_be_none = may_be_none or (bool(nullable) and _reads_one_of(node, nullable | members, first))
    node = Narrowing(values, may_be_none=may_be_none, members=members).visit(node)
    if flat and not inspect.isgeneratorfunction(function):
        node = _Yielded().begin(node)
    _Hoisted(values, set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)).begin(node)
    if ast.dump(node) == before:
        return function
    extra |= {FORMAT: formatted, RECORD: record}
    return _compiled(ast.fix_missing_locations(node), function, extra) or function


def _reads_one_of(node: ast.AST, names: frozenset[str], record: str | None) -> bool:
    """Whether a function may read one of these fields: by name, or by taking the tuple as a whole."""
    attributes = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    by_name = {id(n.value) for n in attributes}
    whole = any(isinstance(n, ast.Name) and n.id == record and id(n) not in by_name for n in ast.walk(node))
    return whole or any(n.attr in names for n in attributes)


def value_of(function: Any, name: str) -> Any:
    """Return what a name that isn't local stands for in a function; None if nothing."""
    for at, free in enumerate(function.__code__.co_freevars):
        if free == name:
            try:
                return function.__closure__[at].cell_contents
            except ValueError:
                return None
    builtins = function.__globals__.get("__builtins__", {})
    builtins = builtins if isinstance(builtins, dict) else vars(builtins)
    return function.__globals__.get(name, builtins.get(name))


# --- finding and making -----------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _functions(source: str) -> dict[int, list[ast.FunctionDef | ast.Lambda]]:
    """Functions of a file by first line."""
    found: dict[int, list[ast.FunctionDef | ast.Lambda]] = {}
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            found.setdefault(decorators[0].lineno if decorators else node.lineno, []).append(node)
    return found


@functools.lru_cache(maxsize=64)
def _imported(source: str) -> tuple[str, ...]:
    """Names that a file imports: calls of their attributes are other byte code than those of other names."""
    found: list[str] = []
    rest: list[ast.AST] = [ast.parse(source)]
    while rest:
        node = rest.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [(one.asname or one.name).partition(".")[0] for one in node.names]
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            rest += ast.iter_child_nodes(node)
    return tuple(one for one in found if one.isidentifier())


def definition(function: Any) -> ast.FunctionDef | None:
    """Return the function's own definition, a lambda as a def; None where its source isn't known."""
    source = "".join(linecache.getlines(function.__code__.co_filename, function.__globals__))
    if not source:
        return None
    for node in _functions(source).get(function.__code__.co_firstlineno, []):
        plain = _as_def(node)
        made = _compiled(copy.deepcopy(plain), function, {}, _imported(source))
        if made is not None and _same(made.__code__, function.__code__):
            return plain
    return None


def _as_def(node: ast.FunctionDef | ast.Lambda) -> ast.FunctionDef:
    node = copy.deepcopy(node)
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    if isinstance(node, ast.Lambda):
        returned = ast.copy_location(ast.Return(node.body), node.body)
        made = ast.FunctionDef(_MADE, node.args, [returned], [], None, None)
        return ast.fix_missing_locations(ast.copy_location(made, node))
    node.name, node.decorator_list, node.returns = _MADE, [], None
    return node


def _same(a: types.CodeType, b: types.CodeType) -> bool:
    return (
        a.co_code == b.co_code
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and len(a.co_consts) == len(b.co_consts)
        and all(x == y or isinstance(x, types.CodeType) for x, y in zip(a.co_consts, b.co_consts, strict=True))
    )


def _compiled(node: ast.FunctionDef, function: Any, extra: dict[str, Any], imported: Sequence[str] = ()) -> Any:
    """A definition as a function with the globals and the closure of another."""
    free = [*function.__code__.co_freevars, *extra]
    parameters = ast.arguments([], [ast.arg(one) for one in free], None, [], [], None, [])
    outer = ast.FunctionDef("rel_outer", parameters, [node], [], None, None)
    imports = [ast.Import([ast.alias(one)]) for one in imported]  # never run
    module = ast.fix_missing_locations(ast.Module([*imports, ast.copy_location(outer, node)], []))
    flags = function.__code__.co_flags & _FUTURES
    try:
        code = compile(module, function.__code__.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    inner = _inner(_inner(code)).replace(co_name=function.__code__.co_name)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {one: types.CellType(value) for one, value in extra.items()}
    made = types.FunctionType(
        inner,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[n] for n in inner.co_freevars),
    )
    made.__kwdefaults__, made.__module__ = function.__kwdefaults__, function.__module__
    return made


def _inner(code: types.CodeType) -> types.CodeType:
    return next(constant for constant in code.co_consts if isinstance(constant, types.CodeType))


# --- the rewrites -----------------------------------------------------------------------------------------------------

RECORD = "rel_record"


class _Replaced(ast.NodeTransformer):
    """t._replace(x=1) constructs the tuple."""

    def __init__(self, name: str, record: type) -> None:
        self._name, self._fields = name, getattr(record, "_fields", ())

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if not (isinstance(function, ast.Attribute) and function.attr == "_replace" and not node.args):
            return node
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if not (isinstance(function.value, ast.Name) and function.value.id == self._name) or set(given) - set(
            self._fields
        ):
            return node
        values = [
            given.get(name) or ast.Attribute(ast.Name(self._name, ast.Load()), name, ast.Load())
            for name in self._fields
        ]
        return ast.copy_location(ast.Call(ast.Name(RECORD, ast.Load()), values, []), node)


class _Yielded(ast.NodeTransformer):
    """A function that returns lists yields their items."""

    def begin(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [made for statement in node.body for made in _listed(self.visit(statement))]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        given, end = node.value, ast.copy_location(ast.Return(None), node)
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return node
        if isinstance(given, ast.List | ast.Tuple):
            return [*(ast.copy_location(ast.Expr(ast.Yield(item)), item) for item in given.elts), end]
        if isinstance(given, ast.ListComp | ast.GeneratorExp):
            return [_loops(given, [ast.Expr(ast.Yield(given.elt))]), end]
        item = ast.Name("rel_item", ast.Load())
        loop = ast.For(ast.Name("rel_item", ast.Store()), given, [ast.Expr(ast.Yield(item))], [], None)
        return [ast.copy_location(loop, node), end]


def _listed(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]


def _loops(
    comprehension: ast.ListComp | ast.GeneratorExp, body: list[ast.stmt], first: ast.expr | None = None
) -> ast.For:
    """The loops and conditions of a comprehension around statements; `first` is iterated in place of its first."""
    for at, generator in reversed(list(enumerate(comprehension.generators))):
        for condition in reversed(generator.ifs):
            body = [ast.If(condition, body, [])]
        iterable = first if at == 0 and first is not None else generator.iter
        body = [ast.copy_location(ast.For(generator.target, iterable, body, [], None), comprehension)]
    loop = body[0]
    assert isinstance(loop, ast.For)
    return loop


class _Hoisted(ast.NodeTransformer):
    """`yield from` as a loop; any(.. for ..) as a call of a local function, defined before the statement."""

    def __init__(self, values: dict[str, Any], local: set[str]) -> None:
        self._values, self._local = values, local
        self._made: list[ast.stmt] = []
        self._numbers = itertools.count()

    def begin(self, node: ast.FunctionDef) -> None:
        node.body = self._statements(node.body)

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
            return statement
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.YieldFrom):
            item = ast.Expr(ast.Yield(ast.Name("rel_item", ast.Load())))
            iterable = self.visit(statement.value.value)
            return ast.copy_location(ast.For(ast.Name("rel_item", ast.Store()), iterable, [item], [], None), statement)
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

    def _without_first_assignment(self, test: ast.expr) -> ast.expr:
        """`if (k := ..) > 0` with the assignment before it, which Numba 0.68 takes wrongly."""
        if isinstance(test, ast.NamedExpr):
            name = test.target.id
            self._made.append(
                ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], self.visit(test.value)), test)
            )
            return ast.copy_location(ast.Name(name, ast.Load()), test)
        for name in ("left", "operand", "value"):
            if isinstance(getattr(test, name, None), ast.expr):
                setattr(test, name, self._without_first_assignment(getattr(test, name)))
        if isinstance(test, ast.BoolOp):
            test.values[0] = self._without_first_assignment(test.values[0])
        return test

    def _part(self, part: Any) -> Any:
        """A handler or a case, with statements of its own, or an expression."""
        if hasattr(part, "body") and isinstance(part.body, list):
            part.body = self._statements(part.body)
            return part
        return self.visit(part) if isinstance(part, ast.AST) else part

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        by_name = len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
        if by_name and isinstance(node.func, ast.Attribute) and node.func.attr == "group":
            return ast.copy_location(ast.Subscript(node.func.value, node.args[0], ast.Load()), node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        given = node.args[0] if node.args else None
        if not isinstance(given, ast.GeneratorExp):
            return node
        if (isinstance(node.func, ast.Attribute) and node.func.attr == "join") or self._is(name, _COLLECTORS):
            node.args[0] = ast.copy_location(ast.ListComp(given.elt, given.generators), given)
        elif self._is(name, _REDUCERS) and len(node.args) == 1 and not node.keywords:
            return self._reduced(name, given, node)
        return node

    def _is(self, name: str, names: set[str]) -> bool:
        return name in names and getattr(self._values.get(name), "__module__", "") == "builtins"

    def _reduced(self, name: str, given: ast.GeneratorExp, node: ast.Call) -> ast.AST:
        own = {n.id for n in ast.walk(given) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        read = {n.id for n in ast.walk(given) if isinstance(n, ast.Name)} - own
        passed = sorted(read & self._local)
        made = f"rel_{name}_{next(self._numbers)}"
        text, begin, end = _REDUCTIONS[name]
        body = ast.parse(text).body
        for statement in ast.walk(ast.Module(body, [])):
            for field, value in ast.iter_fields(statement):
                if isinstance(value, ast.Name) and value.id == "ELEMENT":
                    setattr(statement, field, given.elt)
        iterable = ast.Name("rel_items", ast.Load())
        parameters = ast.arguments([], [ast.arg("rel_items"), *map(ast.arg, passed)], None, [], [], None, [])
        function = ast.FunctionDef(
            made,
            parameters,
            [*ast.parse(begin).body, _loops(given, body, iterable), *ast.parse(end).body],
            [],
            None,
            None,
        )
        self._made.append(ast.fix_missing_locations(ast.copy_location(function, node)))
        _at(function, node)
        arguments = [given.generators[0].iter, *(ast.Name(one, ast.Load()) for one in passed)]
        return ast.copy_location(ast.Call(ast.Name(made, ast.Load()), arguments, []), node)


_REDUCTIONS = {  # for each item; before; after
    "sum": ("rel_sum += ELEMENT", "rel_sum = 0", "return rel_sum"),
    "any": ("if ELEMENT:\n    return True", "", "return False"),
    "all": ("if not ELEMENT:\n    return False", "", "return True"),
}


def _at(made: ast.AST, node: ast.AST) -> None:
    """Puts all of what was made on the line of a node."""
    for one in ast.walk(made):
        if hasattr(one, "lineno"):
            ast.copy_location(one, node)
