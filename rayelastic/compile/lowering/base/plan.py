"""What is found out about one user function while Numba compiles it: its output, and problems in the user's own words.

Imports no Numba: the types that it is handed are opaque here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rayelastic.errors import SchemaError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import OperatorKind

__all__ = ["Plan"]


class Plan:
    """Carried by the record types of one compilation.

    Args:
        function: the user's function, the one whose `yield` emits.
        kind: MAP, FILTER or FLAT_MAP.
        declared: the output schema where the user declared one.
        members: names of methods and properties of the user's objects and classes.
        names: fields of the tuples that it delivers, where they were dicts; empty if they weren't.
        may_be_none: whether a field may be None.
        times: whether datetime, date or timedelta may come in or be made.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        kind: OperatorKind,
        declared: Schema | None,
        members: frozenset[str] = frozenset(),
        names: tuple[str, ...] = (),
        *,
        may_be_none: bool = False,
        times: bool = False,
    ) -> None:
        self.members, self.may_be_none, self.times = members, may_be_none, times
        self.function = function
        self.names = names
        self.kind = kind
        self.declared = declared
        self.decided: Schema | None = declared
        self.is_generator = False
        self.has_suspicions = False  # exact.py: the loop over the run looks at them
        self.problem: str = ""  # the first thing found that the python lane can do and the compiled one can't
        self.mistake: SchemaError | None = None  # the first thing found that no lane can do

    @property
    def output(self) -> Schema:
        """The output schema; known once the types of the function are."""
        assert self.decided is not None
        return self.decided

    def refuse(self, problem: str) -> str:
        """Record why the function can't be compiled; return it."""
        self.problem = self.problem or problem
        return problem

    def is_member(self, schema: Schema, name: str) -> bool:
        """Return whether the user's tuple class has a method or property of that name, written in Python."""
        found = inspect.getattr_static(schema.tuple_type, name, None)
        function = found.fget if isinstance(found, property) else found
        return inspect.isfunction(function) and not hasattr(tuple, name) and not name.startswith("_")

    def missing_field(self, schema: Schema, name: str, *, is_state: bool) -> str:
        """Record that there is no such field: misspelt, unless the user's tuple class has something of that name."""
        if hasattr(schema.tuple_type, name):
            return self.refuse(f"'{name}' of {schema.name} isn't compiled: only its fields, methods and properties are")
        what = "state " if is_state else ""
        self.mistake = self.mistake or SchemaError(
            f"{what}{schema.name} has no field '{name}'", hint=schema.suggestion(name)
        )
        return str(self.mistake)
