"""Rewrites a function's source as Python that Numba compiles, if the source is available.

Here lists that a flat_map function returns are yielded, and `t._replace(..)` becomes a constructor. The other rewrites
are in unassigned, statements.py, lazy_loops.py, loops.py, format_strings.py, assignment_expressions.py and
exceptions.py. The new function has the old one's globals, closure and line numbers. Without its source, or with source
that doesn't match it, a function stays unchanged. Knows no Numba.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import inspect
import linecache
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rayelastic.compile.reading.assignment_expressions import AssignmentExpressions
from rayelastic.compile.reading.bound import bind
from rayelastic.compile.reading.callables import NotRewrittenError
from rayelastic.compile.reading.cells import cells_written
from rayelastic.compile.reading.exceptions import Narrowing
from rayelastic.compile.reading.format_strings import Formats
from rayelastic.compile.reading.lazy_loops import LazyLoops
from rayelastic.compile.reading.loops import Loops, loop_over
from rayelastic.compile.reading.recursion import DEPTH, counted, in_circle
from rayelastic.compile.reading.results.bindings import is_changed
from rayelastic.compile.reading.results.dict_records import DictRecords, NoRecordError
from rayelastic.compile.reading.statements import Statements
from rayelastic.compile.reading.unassigned.flags import with_flags
from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.schema import Schema, is_generated
from rayelastic.reasons import Code

__all__ = ["FORMAT", "NotRewrittenError", "compiled_definition", "definition", "names_of", "rewritten", "value_of"]

FORMAT = "rel_formatted"  # the name of the formatting function in new functions
_FUTURES = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0
)
_DEFINITION = "rel_definition"  # the attribute of a new function with its definition
_NAMES = "rel_names"  # the attribute of a new function with the keys of dicts
_MADE = "rel_function"  # the name of a definition while it is compiled; the user's may be a global that it calls


def rewritten(
    function: Callable[..., Any],
    provided: dict[str, Any],
    *,
    flat: bool = False,
    nullable: frozenset[str] = frozenset(),
    record: type | None = None,
    bound: Mapping[str, Any] | None = None,
    members: frozenset[str] = frozenset(),
    may_be_none: bool = False,
    times: bool = False,
    emits: bool = False,
    output: Schema | None = None,
) -> Callable[..., Any]:
    """Return the function to compile in place of a user's.

    Args:
        function: The user's function.
        provided: The functions that new functions call, by name.
        flat: Whether it is a flat_map function, whose lists are to be yielded.
        nullable: Fields that may be None.
        record: The class of its first argument, if known.
        bound: Parameters with known values (bound.py), which the new function lacks.
        members: Names of methods and properties of the user's objects and classes.
        may_be_none: Whether its arguments may be None, or contain it.
        times: Whether it may use datetime, date or timedelta.
        emits: Whether its results are records, which may be written as dicts; see `names_of`.
        output: The declared schema of these records, if any.

    Raises:
        SchemaError: A returned dict lacks a field of `output`, or has another; or it reads a field as t["x"].
        NotRewrittenError: It can't be compiled, with the reason.
    """
    bound = bound or {}
    if changed := next(cells_written(function.__code__), None):
        raise NotRewrittenError(
            Code.CHANGES_OUTSIDE, function.__code__.co_filename, function.__code__.co_firstlineno, name=changed
        )
    found = definition(function)
    circle = in_circle(function, value_of, bound) if isinstance(function, types.FunctionType) else []
    if found is None:
        if bound or circle:
            raise NotRewrittenError(
                Code.NO_SOURCE,
                function.__code__.co_filename,
                function.__code__.co_firstlineno,
                function=function.__qualname__,
            )
        return function
    before = ast.dump(found)
    node = copy.deepcopy(found)
    names = _names(function.__code__) | set(function.__code__.co_freevars)
    values = {name: value_of(function, name) for name in names} | dict(bound)
    parameters = function.__code__.co_varnames[: function.__code__.co_argcount]
    first = next((name for name in parameters if name not in bound), None)
    extra = bind(node, bound)
    defaults = _default_values(function, found, node)
    path = function.__code__.co_filename
    if circle:
        counted(node, circle, values, path)
        defaults[DEPTH] = 0
    statements = Statements(path)
    node = statements.begin(with_flags(node, path))
    values |= statements.imported
    if record is not None and first is not None:
        items: Any = getattr(record, "__getitem__", None)
        if not is_changed(found, first) and (is_generated(record) or items is tuple.__getitem__):
            node = _Subscripts(first, record).visit(node)
        node = _Replaced(first, record).visit(node)
    node = Formats(FORMAT).visit(node)
    may_be_none = may_be_none or (bool(nullable) and _reads_one_of(node, nullable | members, first))
    local = (set(function.__code__.co_varnames) | set(function.__code__.co_cellvars)) - set(statements.imported)
    node = Narrowing(values, path, may_be_none=may_be_none, members=members, times=times).visit(node)
    if flat and not inspect.isgeneratorfunction(function):
        node = _Yielded(path).begin(node)
    keys: tuple[str, ...] = ()
    if emits:
        dicts = DictRecords(output, first, tuple(getattr(record, "_fields", ())))
        try:
            node, keys = dicts.begin(node), dicts.names
        except NoRecordError as error:
            raise NotRewrittenError(Code.UNSUPPORTED, path, error.line, what=error.what) from None
    lazy = LazyLoops(values, local, path, first, helper=record is None)
    node = lazy.begin(node)
    Loops(values, local | lazy.made).begin(node)
    AssignmentExpressions().begin(node)
    if ast.dump(node) == before:
        return function
    extra |= {**provided, **statements.imported, RECORD: record}
    made: types.FunctionType | None = _compiled(ast.fix_missing_locations(node), function, extra)
    if made is None:
        return function
    order = [one.arg for one in [*node.args.posonlyargs, *node.args.args]]
    made.__defaults__ = tuple(defaults[name] for name in order if name in defaults)
    if not node.args.kwonlyargs:
        made.__kwdefaults__ = None
    made.__dict__[_NAMES] = keys
    return made


def names_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the fields of the dicts that a rewritten function returned; empty if there were none."""
    names: tuple[str, ...] = getattr(function, _NAMES, ())
    return names


def _default_values(function: Any, found: ast.FunctionDef, node: ast.FunctionDef) -> dict[str, Any]:
    """Return default values by name; make keyword-only parameters of the new function positional if possible."""
    names = [one.arg for one in [*found.args.posonlyargs, *found.args.args]]
    values = function.__defaults__ or ()
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True)) | (function.__kwdefaults__ or {})
    arguments = node.args
    if arguments.vararg is None and all(one.arg in defaults for one in arguments.kwonlyargs):
        arguments.args = arguments.args + arguments.kwonlyargs
        arguments.defaults = arguments.defaults + [one for one in arguments.kw_defaults if one is not None]
        arguments.kwonlyargs, arguments.kw_defaults = [], []
    return defaults


def _names(code: types.CodeType) -> set[str]:
    """Return the names of globals, and of attributes, in a function and its inner ones."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _reads_one_of(node: ast.AST, names: frozenset[str], record: str | None) -> bool:
    """Return whether a function may read one of these fields: by name, or by using the tuple as a whole."""
    attributes = [n for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    by_name = {id(n.value) for n in attributes}
    whole = any(isinstance(n, ast.Name) and n.id == record and id(n) not in by_name for n in ast.walk(node))
    return whole or any(n.attr in names for n in attributes)


def value_of(function: Any, name: str) -> Any:
    """Return the value of a name that isn't local to a function; None if it has none."""
    for at, free in enumerate(function.__code__.co_freevars):
        if free == name:
            try:
                return function.__closure__[at].cell_contents
            except ValueError:
                return None
    builtins = function.__globals__.get("__builtins__", {})
    builtins = builtins if isinstance(builtins, dict) else vars(builtins)
    return function.__globals__.get(name, builtins.get(name))


# --- finding and compiling definitions --------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _functions(source: str) -> dict[int, list[ast.FunctionDef | ast.Lambda]]:
    """Return the functions of a file by first line."""
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
    """Return the names that a file imports, because calls of their attributes have other byte code."""
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
    """Return the function's own definition, a lambda as a def; None if its source is unknown."""
    made_of: ast.FunctionDef | None = function.__dict__.get(_DEFINITION)
    if made_of is not None:
        return copy.deepcopy(made_of)
    source = "".join(linecache.getlines(function.__code__.co_filename, function.__globals__))
    if not source:
        return None
    for node in _functions(source).get(function.__code__.co_firstlineno, []):
        plain = _as_def(node)
        made = _compiled(copy.deepcopy(plain), function, {}, _imported(source))
        if made is not None and _same(made.__code__, function.__code__):
            return plain
    return None


def compiled_definition(node: ast.FunctionDef, function: Any) -> Any:
    """Return a definition as a function that replaces another; `definition` will find it."""
    made = _compiled(ast.fix_missing_locations(copy.deepcopy(node)), function, {})
    if made is not None:
        made.__dict__[_DEFINITION] = node
    return made


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
    """Return a definition as a function with the globals and the closure of another."""
    free = list(dict.fromkeys([*function.__code__.co_freevars, *extra]))
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


class _Subscripts(ast.NodeTransformer):
    """Rewrites t["price"] as t.price, which tuples of generated classes support (Schema.tuple_type)."""

    def __init__(self, name: str, record: type) -> None:
        self._name, self._record = name, record

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Name(id=found), slice=ast.Constant(value=str(key))) if found == self._name:
                if not is_generated(self._record):
                    fields = ", ".join(getattr(self._record, "_fields", ()))
                    raise SchemaError(
                        f"it reads {found}[{key!r}], but a {self._record.__name__} has its fields as attributes",
                        hint=f"Write {found}.{key}. Its fields are {fields}",
                        code=ErrorCode.FIELD_AS_KEY,
                    )
                return ast.copy_location(ast.Attribute(node.value, key, node.ctx), node)
        return node


class _Replaced(ast.NodeTransformer):
    """Rewrites t._replace(x=1) as a constructor."""

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
    """Makes a function that returns lists yield their items; in `try`, once they are all made."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._tries = 0

    def begin(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.body = [made for statement in node.body for made in _listed(self.visit(statement))]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Try(self, node: ast.Try) -> ast.AST:
        self._tries += 1
        self.generic_visit(node)
        self._tries -= 1
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        given, end = node.value, ast.copy_location(ast.Return(None), node)
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            return node
        if self._tries and isinstance(given, ast.GeneratorExp | ast.Call):
            raise NotRewrittenError(Code.LAZY_IN_TRY, self._path, node.lineno)
        if isinstance(given, ast.List | ast.Tuple) and (not self._tries or len(given.elts) < 2):
            return [*(ast.copy_location(ast.Expr(ast.Yield(item)), item) for item in given.elts), end]
        if isinstance(given, ast.ListComp | ast.GeneratorExp) and not self._tries:
            return [loop_over(given, [ast.Expr(ast.Yield(given.elt))]), end]
        item = ast.Name("rel_item", ast.Load())
        loop = ast.For(ast.Name("rel_item", ast.Store()), given, [ast.Expr(ast.Yield(item))], [], None)
        return [ast.copy_location(loop, node), end]


def _listed(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]
