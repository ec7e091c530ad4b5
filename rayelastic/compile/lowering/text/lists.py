"""rsplit() and splitlines() of str and bytes: what they give, a row of texts in memory of the engine."""

# mypy: allow-untyped-calls, no-warn-return-any
# ruff: noqa: ARG001, ARG005, SIM110 -- what Numba calls has the parameters that Numba gives

from __future__ import annotations

import operator
from typing import Any

from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.errors import TypingError
from numba.core.imputils import RefType, iternext_impl, lower_builtin
from numba.core.types.common import SimpleIteratorType
from numba.extending import register_model

from rayelastic.compile.lowering.base.declare import overloads, overloads_method, primitive
from rayelastic.compile.lowering.base.services import is_bytes, service
from rayelastic.compile.lowering.base.views import I64, ViewType
from rayelastic.compile.lowering.text.methods import Argument, Method, declare, with_kind


class TextsType(types.IterableType):
    """A list of texts that isn't changed."""

    def __init__(self, view: ViewType) -> None:
        self.view = view
        super().__init__(name=f"list of {view}")

    @property
    def dtype(self) -> ViewType:
        """Of an item."""
        return self.view

    @property
    def iterator_type(self) -> TextsIterator:
        """Of iter()."""
        return TextsIterator(self)


class TextsIterator(SimpleIteratorType):
    """A place in a row of texts."""

    def __init__(self, texts: TextsType) -> None:
        self.texts = texts
        super().__init__(name=f"iter({texts})", yield_type=texts.view)


@register_model(TextsType)
class TextsModel(models.StructModel):
    """rel_texts."""

    def __init__(self, dmm: Any, fe_type: TextsType) -> None:
        super().__init__(dmm, fe_type, [("data", types.CPointer(fe_type.view)), ("count", types.int64)])


@register_model(TextsIterator)
class TextsIteratorModel(models.StructModel):
    """The texts and the index of the next one."""

    def __init__(self, dmm: Any, fe_type: TextsIterator) -> None:
        super().__init__(dmm, fe_type, [("texts", fe_type.texts), ("at", types.EphemeralPointer(types.int64))])


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
        raise TypingError(f"{text}.rsplit({sep}) isn't compiled")
    return lambda text, sep=None, maxsplit=-1: _rsplit_by(text, sep, maxsplit)


declare(
    "splitlines",
    Method(
        "rel_text_lines",
        (Argument("keepends", int, 0, by_name=True),),
        with_kind(),
        gives=TextsType,
    ),
)


# --- what a row of texts can do ---------------------------------------------------------------------------------------


@primitive
def _count(typingctx: Any, texts: Any) -> Any:
    return types.int64(texts), lambda context, builder, sig, args: builder.extract_value(args[0], 1)


@primitive
def _text_at(typingctx: Any, texts: Any, index: Any) -> Any:
    """Not checked."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(builder.gep(builder.extract_value(args[0], 0), [args[1]]))

    return texts.view(texts, types.int64), codegen


@primitive
def _part(typingctx: Any, texts: Any, start: Any, stop: Any) -> Any:
    """Not checked."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        part = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        part.data = builder.gep(builder.extract_value(args[0], 0), [args[1]])
        part.count = builder.sub(args[2], args[1])
        return part._getvalue()

    return texts(texts, types.int64, types.int64), codegen


@overloads(len)
def _len(texts: Any) -> Any:
    return (lambda texts: _count(texts)) if isinstance(texts, TextsType) else None


@overloads(bool)
def _bool(texts: Any) -> Any:
    return (lambda texts: _count(texts) > 0) if isinstance(texts, TextsType) else None


@overloads(operator.not_)
def _not(texts: Any) -> Any:
    return (lambda texts: _count(texts) == 0) if isinstance(texts, TextsType) else None


@overloads(operator.getitem)
def _getitem(texts: Any, index: Any) -> Any:
    if not isinstance(texts, TextsType):
        return None
    if isinstance(index, types.SliceType) and not index.has_step:

        def part(texts: Any, index: Any) -> Any:
            count = _count(texts)
            start = max(index.start + count, 0) if index.start < 0 else min(index.start, count)
            stop = max(index.stop + count, 0) if index.stop < 0 else min(index.stop, count)
            return _part(texts, start, max(start, stop))

        return part
    if not isinstance(index, types.Integer):
        return None

    def item(texts: Any, index: Any) -> Any:
        at = index + _count(texts) if index < 0 else index
        if at < 0 or at >= _count(texts):
            raise IndexError("list index out of range")
        return _text_at(texts, at)

    return item


@overloads(operator.contains)
def _contains(texts: Any, wanted: Any) -> Any:
    if not isinstance(texts, TextsType) or wanted != texts.view:
        return None

    def contains(texts: Any, wanted: Any) -> Any:
        for text in texts:
            if text == wanted:
                return True
        return False

    return contains


@lower_builtin("getiter", TextsType)
def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    iterator = context.make_helper(builder, sig.return_type)
    iterator.texts = args[0]
    iterator.at = cgutils.alloca_once_value(builder, I64(0))
    return iterator._getvalue()


@lower_builtin("iternext", TextsIterator)
@iternext_impl(RefType.UNTRACKED)
def _iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    iterator = context.make_helper(builder, sig.args[0], value=args[0])
    at = builder.load(iterator.at)
    more = builder.icmp_signed("<", at, builder.extract_value(iterator.texts, 1))
    result.set_valid(more)
    with builder.if_then(more):
        result.yield_(builder.load(builder.gep(builder.extract_value(iterator.texts, 0), [at])))
        builder.store(builder.add(at, I64(1)), iterator.at)
