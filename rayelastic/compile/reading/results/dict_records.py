"""Rewrites dicts that a function returns as records to tuples: `return {"user": t.user, "ms": t.ms}`.

Their keys are the fields of the declared schema, whose order the tuples have, or else of the inferred one. Only dict
displays in the return statement qualify, all with the same keys; `**t._asdict()` stands for all fields of the
parameter. Knows no Numba.
"""

from __future__ import annotations

import ast
from typing import Any

from rayelastic.compile.reading.results.bindings import SCOPES, is_changed, own_nodes
from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.names import is_field_name
from rayelastic.graph.records.schema import Schema


class NoRecordError(Exception):
    """The results of a function aren't written as records; Python finds out what they are.

    Args:
        what: What it returns.
        line: The line of the file.
    """

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what, self.line = f"returning {what}", line


class DictRecords(ast.NodeTransformer):
    """Rewrites one function's results.

    Args:
        declared: Their declared schema, if any.
        record: The name of the tuple parameter; None if there is none.
        fields: The tuple's fields.
    """

    def __init__(self, declared: Schema | None, record: str | None, fields: tuple[str, ...]) -> None:
        self._declared, self._record, self._fields = declared, record, fields
        self._found: list[tuple[str, ...]] = []  # the keys of each
        self._others = 0  # values that aren't dicts
        self._lets_yield = False

    @property
    def names(self) -> tuple[str, ...]:
        """The fields of the tuples; empty if no dict is returned."""
        return self._found[0] if self._found else ()

    def begin(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Rewrite a function.

        Raises:
            NoRecordError: Not all results are written as dicts of the same keys.
            SchemaError: A dict lacks a field of the declared schema, or has another.
        """
        if self._declared is not None and not self._declared.takes_names:
            return node
        if self._record is not None and is_changed(node, self._record):
            self._record = None
        self._lets_yield = any(isinstance(one, ast.Yield) for one in own_nodes(node))
        node.body = [self.visit(statement) for statement in node.body]
        if self._found and (self._others or len(set(self._found)) > 1):
            what = "dicts and other values" if self._others else "dicts with different keys"
            raise NoRecordError(what, node.lineno)
        return node

    def visit(self, node: ast.AST) -> Any:
        """Leave inner functions and classes unchanged."""
        return node if isinstance(node, SCOPES) else super().visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Rewrite what a function returns, if it doesn't yield."""
        if not self._lets_yield and node.value is not None:
            node.value = self._record_of(node.value)
        return node

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        """Rewrite what it yields."""
        if node.value is not None:
            node.value = self._record_of(node.value)
        return node

    def _record_of(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.IfExp):
            value.body, value.orelse = self._record_of(value.body), self._record_of(value.orelse)
            return value
        if not isinstance(value, ast.Dict):
            self._others += 1
            return value
        given = self._items(value)
        names = tuple(given) if self._declared is None else self._in_order(given, value.lineno)
        self._found.append(names)
        nothing = ast.Constant(None)
        return ast.copy_location(ast.Tuple([given.get(name, nothing) for name in names], ast.Load()), value)

    def _items(self, made: ast.Dict) -> dict[str, ast.expr]:
        given: dict[str, ast.expr] = {}
        for key, value in zip(made.keys, made.values, strict=True):
            if key is None:
                given |= self._spread(value)
                continue
            if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
                raise NoRecordError("a dict whose keys aren't constants", made.lineno)
            if not is_field_name(key.value):
                raise SchemaError(
                    f"field {key.value!r} can't be an attribute of a tuple",
                    hint="Use a Python name as key",
                    code=ErrorCode.BAD_FIELD_NAME,
                )
            if key.value in given and not _is_free(given[key.value]):
                raise NoRecordError(f"a dict with the key {key.value!r} twice", made.lineno)
            given[key.value] = value
        return given

    def _spread(self, value: ast.expr) -> dict[str, ast.expr]:
        """Return the fields of `**t._asdict()`."""
        match value:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="_asdict"), args=[], keywords=[]):
                if name == self._record:
                    return {f: ast.Attribute(ast.Name(name, ast.Load()), f, ast.Load()) for f in self._fields}
        raise NoRecordError("a dict made of another one", value.lineno)

    def _in_order(self, given: dict[str, ast.expr], line: int) -> tuple[str, ...]:
        """Return the fields of the declared schema, all of which the dict has."""
        assert self._declared is not None
        schema = self._declared
        if surplus := next((name for name in given if schema.find(name) is None), None):
            raise SchemaError(
                f"it returns a dict with the key {surplus!r}, which {schema.name} has no field for",
                hint=f"Leave it out, or add it to schema=. {schema.suggestion(surplus)}",
                code=ErrorCode.BAD_RETURN,
            )
        if missing := next((f.name for f in schema.fields if f.name not in given and not f.nullable), None):
            raise SchemaError(
                f"it returns a dict without the key {missing!r}, a field of {schema.name}",
                hint=f"Add {missing!r} to the dict, or declare the field as '<type> | None'",
                code=ErrorCode.BAD_RETURN,
            )
        names = schema.names
        if tuple(given) != names and any(
            isinstance(one, ast.NamedExpr) for value in given.values() for one in ast.walk(value)
        ):
            raise NoRecordError("a dict that assigns names, in another order than its fields,", line)
        return names


def _is_free(value: ast.expr) -> bool:
    """Return whether dropping a value has no effect: it is an attribute of the tuple."""
    return isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name)
