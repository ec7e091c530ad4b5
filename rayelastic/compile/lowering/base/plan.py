"""The results of compiling one user function: its output, and problems in the user's terms.

Imports no Numba: its types are opaque here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from rayelastic.compile.reasons import Code, Reason, packed
from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind


class Plan:
    """State of one compilation, which its record types carry.

    Args:
        function: The user's function, the one whose `yield` emits.
        kind: MAP, FILTER or FLAT_MAP.
        declared: The output schema that the user declared, if any.
        members: Names of methods and properties of the user's objects and classes.
        names: Fields of the dicts that it emits; empty if it emits none.
        may_be_none: Whether a field may be None.
        times: Whether it may receive or make a datetime, date or timedelta.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        kind: FunctionKind,
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
        self.has_suspicions = False  # exact.py: the loop over the run checks them
        self.problem: Reason | None = None  # the first problem that only Python can handle
        self.mistake: SchemaError | None = None  # the first problem that no execution mode can handle

    @property
    def output(self) -> Schema:
        """The output schema; known once the function's types are."""
        assert self.decided is not None
        return self.decided

    def refuse(self, code: Code, **values: Any) -> str:
        """Record why the function can't be compiled, and return it as the message of an error."""
        self.problem = self.problem or code(**values)
        return packed(code, **values)

    def is_member(self, schema: Schema, name: str) -> bool:
        """Return whether the user's tuple class has a method or property of that name, written in Python."""
        member = inspect.getattr_static(schema.tuple_type, name, None)
        function = member.fget if isinstance(member, property) else member
        return inspect.isfunction(function) and not hasattr(tuple, name) and not name.startswith("_")

    def missing_field(self, schema: Schema, name: str, *, is_state: bool) -> str:
        """Record an unknown field, as misspelt unless the user's tuple class has a member of that name."""
        if hasattr(schema.tuple_type, name):
            return self.refuse(
                Code.UNSUPPORTED, what=f"'{name}' of {schema.name}, which is no field, method or property,"
            )
        what = "state " if is_state else ""
        self.mistake = self.mistake or SchemaError(
            f"{what}{schema.name} has no field '{name}'", hint=schema.suggestion(name), code=ErrorCode.UNKNOWN_FIELD
        )
        return str(self.mistake)
