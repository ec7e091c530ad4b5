"""Declares methods of str and bytes that call an engine service: one to three lines for each.

Types are resolved and calls are generated without compiling a Python function, which is the main cost of compiling.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, signature

from rayelastic.compile.lowering.base.services import call, is_bytes
from rayelastic.compile.lowering.base.views import TEXT, BytesLiteral, TextLiteral, ViewType
from rayelastic.compile.reasons import packed

REQUIRED: Any = inspect.Parameter.empty
LAST = 9223372036854775807  # the default of `end`

_METHODS: dict[str, Method] = {}


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a method.

    Args:
        name: Its name in CPython.
        kind: `int` (or bool), or `str` for a text of the same type as the method's.
        default: A default of its kind, also a str for bytes.
        by_name: Whether it may be passed by name; a parameter of this project's is passed only so.
        or_tuple: Whether it may be a tuple of such values.
    """

    name: str
    kind: type
    default: Any = REQUIRED
    by_name: bool = False
    or_tuple: bool = False

    def formal(self, view: ViewType, given: Any) -> Any:
        """Return the type that the argument is cast to; None if it isn't supported."""
        if self.kind is str:
            tuples = self.or_tuple and isinstance(given, types.UniTuple) and given.dtype == view
            return given if tuples else view if given in (None, view) else None
        accepted = given is None or isinstance(given, types.Integer | types.Boolean)
        return types.int64 if accepted else None

    def parameter(self, view: ViewType) -> inspect.Parameter:
        """Return Numba's parameter, with its default."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if self.by_name else inspect.Parameter.POSITIONAL_ONLY
        default = self.default
        if isinstance(default, str):
            default = TextLiteral(default) if view == TEXT else BytesLiteral(default.encode())
        return inspect.Parameter(self.name, kind, default=default)


@dataclass(frozen=True, slots=True)
class Method:
    """A method and its service.

    Args:
        service: The service's name.
        arguments: The method's parameters; the service receives the text, these, and the constants.
        constants: Returns the constants for a type of text.
        returned: The result's type, or a function from the text's type to it; None: a text of the same type.
        raises: The exceptions that CPython may raise.
        of: The types that have the method.
        inline: Replaces a call with one text alone, if the call would cost more than the work.
    """

    service: str
    arguments: Sequence[Argument]
    constants: Callable[[ViewType], Sequence[int | bytes]]
    returned: Any = None
    raises: Sequence[type[Exception]] = ()
    of: Sequence[str] = ("str", "bytes")
    inline: Callable[[Any, Any], bool] | None = None

    def result(self, view: ViewType) -> Any:
        """Return the type of the result."""
        if self.returned is None:
            return view
        return self.returned if isinstance(self.returned, types.Type) else self.returned(view)


def with_kind(*constants: int) -> Callable[[ViewType], Sequence[int | bytes]]:
    """Return constants of a method, followed by whether its text is bytes."""
    return lambda view: (*constants, is_bytes(view))


def declare(name: str, method: Method) -> None:
    """Declare a method to the compiler."""
    _METHODS[name] = method
    lower_builtin(_key(name), ViewType, types.VarArg(types.Any))(_lowering(method))
    if method.inline is not None:
        lower_builtin(_key(name), ViewType, ViewType)(_inlining(method.inline))


def _inlining(written: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    return lambda context, builder, sig, args: context.compile_internal(builder, written, sig, args)


def _key(name: str) -> str:
    return f"rayelastic text.{name}"


def _lowering(method: Method) -> Callable[..., Any]:
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        view, given = sig.args[0], list(sig.args)
        for at, argument in enumerate(method.arguments, 1):
            if argument.or_tuple and given[at] == view:  # one text is a tuple of length one
                given[at] = types.UniTuple(view, 1)
                args = [*args[:at], context.make_tuple(builder, given[at], [args[at]]), *args[at + 1 :]]
        kinds = signature(sig.return_type, *given)
        return call(context, builder, method.service, kinds, args, method.constants(view), method.raises)

    return lower


@infer_getattr
class TextMethods(AttributeTemplate):
    """Resolves `t.line.name`."""

    key = ViewType

    def generic_resolve(self, view: Any, name: str) -> Any:  # type: ignore[override]  # Numba's is a marker
        """Return the method, None if it isn't one of these."""
        method = _METHODS.get(name)
        if method is None or view.name not in method.of:
            return None
        return types.BoundFunction(_template(name, method), view)


def in_words(kind: Any) -> str:
    """Return the user's name of a type."""
    kind = types.unliteral(kind)
    for family, word in ((types.Boolean, "bool"), (types.Integer, "int"), (types.Float, "float")):
        if isinstance(kind, family):
            return word
    return str(kind)


def _template(name: str, method: Method) -> type[Any]:
    class Template(AbstractTemplate):
        key = _key(name)
        this: Any

        def generic(self, args: Any, kws: Any) -> Any:
            """Return the signature of a call."""
            view = self.this
            if method.inline is not None and tuple(args) == (view,) and not kws:
                return signature(types.boolean, view, recvr=view)
            pysig = inspect.Signature([argument.parameter(view) for argument in method.arguments])
            shown = ", ".join([*map(in_words, args), *(f"{key}={in_words(kind)}" for key, kind in kws.items())])
            by_place = [one for one in method.arguments if not one.name.startswith("rel_")]
            bad = packed(what=f"{view}.{name}({shown})")
            try:
                given = pysig.bind(*args, **kws).arguments
            except TypeError:
                raise TypingError(bad) from None
            if len(given) != len(args) + len(kws) or len(args) > len(by_place):
                raise TypingError(bad)
            formal = [one.formal(view, given.get(one.name)) for one in method.arguments]
            if None in formal:
                raise TypingError(bad)
            return signature(method.result(view), *formal, recvr=view).replace(pysig=pysig)

    return Template
