"""Checks of every declaration: names, functions, states and execution modes; errors name the operator and the line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from rayelastic.errors import DeclarationError, ErrorCode, GraphError, LaneError
from rayelastic.graph.records.shown import counted, shown
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.operator_spec import Lane, OperatorSpec
from rayelastic.graph.spec.requests import FunctionKind

_NAME_WAY_OUT = "Use a short printable name, such as 'word_count'"
LaneChoice = Lane | Literal["auto", "compiled", "vectorised", "python"]


def check_name(name: object, what: str = "an operator") -> None:
    """Reject a name that can't key metrics, state, plans and links."""
    if not isinstance(name, str):
        raise GraphError(
            f"the name of {what} is {shown(name)}, which isn't a str", hint=_NAME_WAY_OUT, code=ErrorCode.BAD_NAME
        )
    if not name or name != name.strip():
        raise GraphError(
            f"the name of {what} is {name!r}: empty or with space around", hint=_NAME_WAY_OUT, code=ErrorCode.BAD_NAME
        )
    if "/" in name or "->" in name or not name.isprintable():
        raise GraphError(
            f"the name of {what} is {name!r}: '/', '->' and control characters are reserved",
            hint=_NAME_WAY_OUT,
            code=ErrorCode.BAD_NAME,
        )


def check_new(name: str, operators: Mapping[str, OperatorSpec]) -> None:
    """Reject a name that an operator has already."""
    if name in operators:
        other = operators[name]
        raise GraphError(
            f"the name is used by the {other.kind} declared at {other.location or 'an unknown place'}",
            hint="Set name= of that one" if other.automatic else "Use another name=",
            code=ErrorCode.DUPLICATE_NAME,
        )


@contextmanager
def declaring(operator: str, location: str) -> Iterator[None]:
    """Add the operator and the line to an error that is raised inside."""
    try:
        yield
    except DeclarationError as error:
        error.at(operator, location)
        raise


class NewOperator:
    """An operator while it is declared: checks its name, and adds it and the line to an error that is raised inside.

    Args:
        name: The operator's name, which must be free.
        operators: The operators declared before.
    """

    def __init__(self, name: str, operators: Mapping[str, OperatorSpec]) -> None:
        self._name = name
        self._operators = operators
        self._location = caller_location()

    def __enter__(self) -> str:
        """Return 'file.py:12' of the user's line."""
        try:
            check_name(self._name)
        except GraphError as error:
            error.location = self._location
            raise
        with declaring(self._name, self._location):
            check_new(self._name, self._operators)
        return self._location

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Add the operator and the line to an error."""
        if isinstance(error, DeclarationError):
            error.at(self._name, self._location)


def check_function(
    function: Any, kind: FunctionKind, state: object, *, concurrent: bool = False, returns: bool = False
) -> None:
    """Reject a function that can't be called with one tuple, or with a tuple and a state.

    Args:
        function: The user's function.
        kind: Its operator's kind.
        state: Makes the state of a key; None: it has none.
        concurrent: Whether calls are concurrent.
        returns: Whether it is the function of a filter_map, which returns its one tuple.
    """
    verb = "filter_map" if returns else kind.value
    if not callable(function):
        raise GraphError(
            f"{verb} needs a function, not {shown(function)}",
            hint=f"Write .{verb}(function)",
            code=ErrorCode.NOT_A_FUNCTION,
        )
    if concurrent and state is not None:
        raise GraphError(
            "concurrent calls can't share the state of a key",
            hint="Keep the state in another operator, or drop concurrent= and async",
            code=ErrorCode.ASYNC_LANE,
        )
    yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if (returns or kind is not FunctionKind.FLAT_MAP) and yields:
        raise GraphError(
            f"{verb} got a function that yields",
            hint="Use flat_map, or return instead of yield",
            code=ErrorCode.MUST_RETURN,
        )
    arguments = (None,) if state is None else (None, None)
    given = "one tuple" if state is None else "a tuple and the state of its key"
    if not binds(function, arguments):
        hint = " For a state of the key, write .key_by(...) before and state= here" if state is None else ""
        raise GraphError(
            f"{verb} calls its function with {given}, but it takes {inspect.signature(function)}",
            hint=f"Let it accept {counted(len(arguments), 'positional argument')}.{hint}",
            code=ErrorCode.WRONG_PARAMETERS,
        )


def check_state(state: Any) -> None:
    """Reject a value that can't make the initial state of a key."""
    if not callable(state):
        raise GraphError(
            f"state={shown(state)} can't create the state of a key",
            hint="Pass a NamedTuple class with defaults, or a function without arguments",
            code=ErrorCode.WRONG_TYPE,
        )
    if not binds(state, ()):
        missing = [n for n in getattr(state, "_fields", ()) if n not in state._field_defaults]
        what = f"its fields {', '.join(missing)} have no default" if missing else "it takes arguments"
        raise GraphError(
            f"state={shown(getattr(state, '__name__', state))} can't create the state of a key: {what}",
            hint="Write an initial value for every field, or a function without arguments",
            code=ErrorCode.BAD_DEFAULT,
        )


def binds(function: Callable[..., Any], arguments: tuple[object, ...]) -> bool:
    """Return whether a function can be called with so many arguments, if its signature is known."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # many built-in functions have no signature
        return True
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def lane_of(choice: object) -> Literal["auto"] | Lane:
    """Convert a user's choice of execution mode into the enum."""
    if isinstance(choice, str) and choice == "auto":
        return "auto"
    try:
        lane = Lane(choice)
    except ValueError:
        lane = Lane.BUILT_IN
    if lane is Lane.BUILT_IN:
        raise LaneError(
            f"lane={shown(choice)} isn't a lane of a function",
            hint="Choose 'auto', 'compiled', 'vectorised' or 'python'",
            code=ErrorCode.UNKNOWN_CHOICE,
        )
    return lane
