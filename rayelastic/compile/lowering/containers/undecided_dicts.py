"""`d = {}` before its first item: the results of `get`, `setdefault` and so on while its types are unknown.

Numba infers the types from the first `d[k] = v`, and supports no method of a dict before. In `d[k] = d.get(k, 0) + 1`
each waits for the other: so `get` has the default's type until the dict is decided, then the dict's.
"""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, signature


class _Method(AbstractTemplate):
    """A method of a dict of undecided types."""

    this: Any
    key: Any
    prefer_literal = True

    def generic(self, args: Any, kws: Any) -> Any:
        """Return its signature."""
        if self.this.is_precise():
            decided = self.context.resolve_getattr(self.this, self.key[1])
            return decided.get_call_type(self.context, args, kws)
        if kws or len(args) != 2 or isinstance(args[1], types.NoneType | types.Optional):
            return None
        key, default = types.unliteral(args[0]), types.unliteral(args[1])
        method_type = signature(default, *args)
        return method_type if self.key[1] == "get" else method_type.replace(recvr=types.DictType(key, default))


class _Get(_Method):
    key = (types.DictType, "get")


class _Setdefault(_Method):
    key = (types.DictType, "setdefault")


_METHODS = {"get": _Get, "setdefault": _Setdefault}


def _declare(undecided: types.DictType) -> None:
    @infer_getattr
    class Undecided(AttributeTemplate):
        key = undecided

        def generic_resolve(self, typ: Any, name: str) -> Any:  # type: ignore[override]
            """Resolve a method."""
            if name in _METHODS:
                return types.BoundFunction(_METHODS[name], typ)
            for template in self.context._attributes[types.DictType]:
                method = template.resolve(typ, name)
                if method is not None:
                    return method
            return None


_declare(types.DictType(types.undefined, types.undefined))  # dict()
_declare(types.DictType(types.undefined, types.undefined, {}))
