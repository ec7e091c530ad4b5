"""rsplit() and splitlines() of str and bytes, which return a row of texts in the engine's memory."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils, types
from numba.core.errors import TypingError

from rayelastic.compile.lowering.base.declare import overloads, overloads_method, primitive, structure
from rayelastic.compile.lowering.base.rows import RowType, count, item, reads
from rayelastic.compile.lowering.base.services import is_bytes, service
from rayelastic.compile.lowering.base.views import ViewType
from rayelastic.compile.lowering.text.methods import Argument, Method, declare, with_kind
from rayelastic.compile.reasons import packed


class TextsType(RowType):
    """A list of texts that isn't changed."""

    def __init__(self, view: ViewType) -> None:
        self.item = view
        super().__init__(name=f"list of {view}")

    @property
    def dtype(self) -> types.Type:
        """The type of an item."""
        return self.item

    def compares(self, wanted: types.Type) -> bool:
        """Return whether the texts are of the same kind."""
        return bool(wanted == self.item)


# rel_texts.
structure(TextsType, lambda kind: [("data", types.CPointer(kind.item)), ("count", types.int64)])


@primitive
def _rsplit_by_space(typingctx: Any, text: Any, most: Any) -> Any:
    return service("rel_text_rsplit_space", TextsType(text)(text, types.int64), is_bytes(text))


@primitive
def _rsplit_by(typingctx: Any, text: Any, separator: Any, most: Any) -> Any:
    kind = TextsType(text)(text, separator, types.int64)
    return service("rel_text_rsplit", kind, raises=(ValueError,))


@overloads_method(ViewType, "rsplit")
def _rsplit(text: Any, sep: Any = None, maxsplit: Any = -1) -> Any:
    if isinstance(sep, types.Omitted | types.NoneType) or sep is None:
        return lambda text, sep=None, maxsplit=-1: _rsplit_by_space(text, maxsplit)
    if sep != text:
        raise TypingError(packed(what=f"{text}.rsplit({sep})"))
    return lambda text, sep=None, maxsplit=-1: _rsplit_by(text, sep, maxsplit)


declare(
    "splitlines",
    Method(
        "rel_text_lines",
        (Argument("keepends", int, 0, by_name=True),),
        with_kind(),
        returned=TextsType,
    ),
)


# --- operations of a row of texts -------------------------------------------------------------------------------------


def _count_of(context: Any, builder: Any, typ: TextsType, value: Any) -> Any:
    return builder.extract_value(value, 1)


def _text_at(context: Any, builder: Any, typ: TextsType, value: Any, count: Any, index: Any) -> Any:
    return builder.load(builder.gep(builder.extract_value(value, 0), [index]))


reads(TextsType, _count_of, _text_at)


@primitive
def _part(typingctx: Any, texts: Any, start: Any, stop: Any) -> Any:
    """Return a part of the row, with unchecked bounds."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        part = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        part.data = builder.gep(builder.extract_value(args[0], 0), [args[1]])
        part.count = builder.sub(args[2], args[1])
        return part._getvalue()

    return texts(texts, types.int64, types.int64), codegen


@overloads(operator.getitem)
def _getitem(texts: Any, index: Any) -> Any:
    if not isinstance(texts, TextsType):
        return None
    if isinstance(index, types.SliceType) and not index.has_step:

        def part(texts: Any, index: Any) -> Any:
            total = count(texts)
            start = max(index.start + total, 0) if index.start < 0 else min(index.start, total)
            stop = max(index.stop + total, 0) if index.stop < 0 else min(index.stop, total)
            return _part(texts, start, max(start, stop))

        return part
    if not isinstance(index, types.Integer):
        return None

    def chosen(texts: Any, index: Any) -> Any:
        at = index + count(texts) if index < 0 else index
        if at < 0 or at >= count(texts):
            raise IndexError("list index out of range")
        return item(texts, at)

    return chosen
