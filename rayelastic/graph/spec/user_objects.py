"""The lifecycle methods of a user's object, which the runtime calls besides the one that receives tuples.

`initialize()` is called before the first tuple, `shutdown()` after the last one, and `flush()` of a sink at each
checkpoint and at the end. Other systems have other names for them. An object with such a method is rejected, because
it would never be called, and whatever it opens or writes would silently be missing.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from rayelastic.errors import DeclarationError, ErrorCode, GraphError
from rayelastic.graph.spec.declaration import binds

INITIALIZE, SHUTDOWN, FLUSH = "initialize", "shutdown", "flush"
LIFE = (INITIALIZE, SHUTDOWN)
_INSTEAD = {  # {name in other systems: name here}
    "open": INITIALIZE,
    "setup": INITIALIZE,
    "set_up": INITIALIZE,
    "__enter__": INITIALIZE,
    "__aenter__": INITIALIZE,
    "close": SHUTDOWN,
    "teardown": SHUTDOWN,
    "tear_down": SHUTDOWN,
    "__exit__": SHUTDOWN,
    "__aexit__": SHUTDOWN,
}
FLUSHED = {**_INSTEAD, FLUSH: SHUTDOWN}  # of a class whose attributes are saved: only its end has to write the rest
_WHEN = {INITIALIZE: "before the first tuple", SHUTDOWN: "after the last tuple"}
_WHERE = "map, flat_map, process, rel.call or a class of @rel.operator"


def is_object(given: object) -> bool:
    """Return whether it is an object with attributes, rather than a function, a method or a class.

    >>> is_object(len), is_object(lambda t: t), is_object([].append), is_object(Exception())
    (False, False, False, True)
    """
    return not inspect.isroutine(given) and not isinstance(given, type | functools.partial)


def has_method(given: object, name: str) -> bool:
    """Return whether the class of an object defines a method; dynamic attributes, as of a mock, don't count."""
    return is_object(given) and _defines(type(given), name)


def _defines(cls: type, name: str) -> bool:
    attribute = inspect.getattr_static(cls, name, None)
    return callable(attribute) or isinstance(attribute, staticmethod | classmethod)


def method_of(given: object, name: str) -> Callable[[], Any] | None:
    """Return the method of that name; None if there is none."""
    return getattr(given, name) if has_method(given, name) else None


def check_object(
    given: object,
    called: Collection[str] = (),
    *,
    known: Collection[str] = (),
    awaited: bool = False,
    error: type[DeclarationError] = GraphError,
) -> None:
    """Reject an object with a method that its author expects to be called, but that is never called.

    Args:
        given: The user's object; functions, methods and classes have no lifecycle.
        called: Which of `initialize`, `shutdown` and `flush` are called.
        known: Further methods that are called, for other reasons.
        awaited: Whether they may be `async def`.
        error: The class of the error to raise.
    """
    if not is_object(given):
        return
    for name in (*LIFE, FLUSH):
        if has_method(given, name):
            _check_called(given, name, called, awaited=awaited, error=error)
    check_names(type(given), called, known=known, error=error)


def check_names(
    cls: type,
    called: Collection[str] = (),
    *,
    known: Collection[str] = (),
    error: type[DeclarationError] = GraphError,
    others: Mapping[str, str] = _INSTEAD,
) -> None:
    """Reject a class with a method of another system's name, unless it has the one of this system as well.

    Args:
        cls: The user's class.
        called: The methods that are called.
        known: Further methods that are called.
        error: The class of the error to raise.
        others: {name in other systems: name here}.
    """
    for name, instead in others.items():
        if name in known or not _defines(cls, name) or _defines(cls, instead):
            continue
        if instead in called:
            hint = f"Call it {instead}(), which comes {_WHEN[instead]}; or pass a function that calls the object"
        else:
            hint = f"Use {_WHERE}, which have initialize() and shutdown()"
        raise error(
            f"its class {cls.__name__} has {name}(), which is never called", hint=hint, code=ErrorCode.UNKNOWN_METHOD
        )


def _check_called(
    given: object, name: str, called: Collection[str], *, awaited: bool, error: type[DeclarationError]
) -> None:
    cls, method = type(given).__name__, getattr(given, name)
    if name not in called:
        where = "rel.call" if name == FLUSH else _WHERE
        problem = f"its class {cls} has {name}(), which is never called here"
        raise error(problem, hint=f"Use {where}, or rename it", code=ErrorCode.UNKNOWN_METHOD)
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise error(f"{name} of {cls} yields", hint="Make it a plain method", code=ErrorCode.ASYNC_FUNCTION)
    if inspect.iscoroutinefunction(method) and not (awaited and name != FLUSH):
        raise error(
            f"{name} of {cls} is async, and nothing awaits it",
            hint=f"Write def {name}(self); it may be async where __call__ is",
            code=ErrorCode.ASYNC_FUNCTION,
        )
    if not binds(method, ()):
        raise error(
            f"{name} of {cls} is called without arguments, but takes {inspect.signature(method)}",
            hint=f"Write def {name}(self)",
            code=ErrorCode.WRONG_PARAMETERS,
        )
