"""Padding, tabs, replace, slices with a step of str and bytes."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from typing import Any

from numba.core import types

from rayelastic.compile.lowering.base.declare import overloads, primitive
from rayelastic.compile.lowering.base.services import is_bytes, service
from rayelastic.compile.lowering.base.views import ViewType
from rayelastic.compile.lowering.text.methods import Argument, Method, declare, with_kind

_WIDTH = Argument("width", int)

for _name, _side in (("ljust", ord("<")), ("rjust", ord(">")), ("center", ord("^"))):
    declare(
        _name,
        Method(
            "rel_text_pad",
            (_WIDTH, Argument("fillchar", str, " ")),
            with_kind(_side),
            raises=(TypeError,),
        ),
    )
declare("zfill", Method("rel_text_zfill", (_WIDTH,), with_kind()))
declare(
    "expandtabs",
    Method(
        "rel_text_expand_tabs",
        (Argument("tabsize", int, 8, by_name=True),),
        with_kind(),
        raises=(OverflowError,),
    ),
)
declare(
    "replace",
    Method(
        "rel_text_replace",
        (Argument("old", str), Argument("new", str), Argument("count", int, -1)),
        with_kind(),
    ),
)


@primitive
def _stepped(typingctx: Any, text: Any, start: Any, stop: Any, step: Any) -> Any:
    kind = text(text, types.int64, types.int64, types.int64)
    return service("rel_text_slice", kind, is_bytes(text), raises=(ValueError,))


@overloads(operator.getitem)
def _getitem(text: Any, index: Any) -> Any:
    if isinstance(text, ViewType) and isinstance(index, types.SliceType) and index.has_step:
        return lambda text, index: _stepped(text, index.start, index.stop, index.step)
    return None
