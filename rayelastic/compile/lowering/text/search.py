"""in, find, rfind, index, rindex, count, startswith, endswith, removeprefix, removesuffix of str and bytes."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: SIM110

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.extending import register_jitable

from rayelastic.compile.lowering.base.declare import overloads, overloads_method
from rayelastic.compile.lowering.base.views import BYTES, ViewType, byte_at, compare_bytes, cut, search, size_of
from rayelastic.compile.lowering.text.methods import LAST, Argument, Method, declare, with_kind


def _both(text: Any, wanted: Any) -> bool:
    return isinstance(text, ViewType) and text == wanted


@overloads(operator.contains)
def _contains(text: Any, wanted: Any) -> Any:
    if _both(text, wanted):
        return lambda text, wanted: search(text, wanted, 0, size_of(text)) >= 0
    if text == BYTES and isinstance(wanted, types.Integer):

        def contains(text: Any, wanted: Any) -> Any:
            if wanted < 0 or wanted > 255:
                raise ValueError("byte must be in range(0, 256)")
            return any_byte(text, wanted)

        return contains
    return None


@register_jitable
def any_byte(text: Any, wanted: int) -> bool:
    """Return whether a byte occurs."""
    for at in range(size_of(text)):
        if byte_at(text, at) == wanted:
            return True
    return False


_WITHIN = (Argument("sub", str), Argument("start", int, 0), Argument("end", int, LAST))

for _name, _from_right, _has_to in (("find", 0, 0), ("rfind", 1, 0), ("index", 0, 1), ("rindex", 1, 1)):
    declare(
        _name,
        Method(
            "rel_text_find",
            _WITHIN,
            with_kind(_from_right, _has_to),
            types.int64,
            raises=(ValueError,),
        ),
    )
declare("count", Method("rel_text_count", _WITHIN, with_kind(), types.int64))

_ENDS = (Argument("sub", str, or_tuple=True), *_WITHIN[1:])


@register_jitable
def starts(text: Any, prefix: Any) -> bool:
    """Return whether the text begins with a view."""
    return size_of(prefix) <= size_of(text) and compare_bytes(text, prefix, size_of(prefix)) == 0


@register_jitable
def ends(text: Any, suffix: Any) -> bool:
    """Return whether the text ends with a view."""
    rest = size_of(text) - size_of(suffix)
    return rest >= 0 and compare_bytes(cut(text, rest, size_of(text)), suffix, size_of(suffix)) == 0


for _name, _at_end, _inline in (("startswith", 0, starts), ("endswith", 1, ends)):
    declare(_name, Method("rel_text_starts", _ENDS, with_kind(_at_end), types.boolean, inline=_inline))


@overloads_method(ViewType, "removeprefix")
def _removeprefix(text: Any, prefix: Any) -> Any:
    if _both(text, prefix):
        return lambda text, prefix: cut(text, size_of(prefix), size_of(text)) if starts(text, prefix) else text
    return None


@overloads_method(ViewType, "removesuffix")
def _removesuffix(text: Any, suffix: Any) -> Any:
    if not _both(text, suffix):
        return None

    def removed(text: Any, suffix: Any) -> Any:
        return cut(text, 0, size_of(text) - size_of(suffix)) if size_of(suffix) > 0 and ends(text, suffix) else text

    return removed
