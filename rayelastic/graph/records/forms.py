"""Types of values that aren't one plain Arrow value: enums, lists, structs, maps, JSON, objects; decimals and UUIDs.

A *form* is the text that describes a field's type; this package also calls it "format". It is an Arrow C Data Interface
format string, or one of the kinds of native_sched/include/rayelastic/record/value_form.hpp, which has the grammar. It
holds the Python classes of its values, which its text names, so that equal forms are equal values. Knows no schemas.
"""

from __future__ import annotations

import enum
import json
import re
import typing
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from urllib.parse import quote, unquote

from rayelastic.errors import ErrorCode, SchemaError
from rayelastic.graph.records.data_type import DataType, parsed_format
from rayelastic.graph.records.sealing import WITHIN_PROCESS, Seal, seal_of_this_process

Part = tuple[str, "Form", bool]  # a part of a form: name, form, whether it may be None
_ENUM = "+e<"  # the start of an enum's text
Known = tuple[Any, ...] | None  # a form's classes for the native codec, see value_codec.hpp


if TYPE_CHECKING:
    Json: TypeAlias = Any  # for type checkers: any result of json.loads
else:

    class Json:
        """The type of a field that holds any JSON value: None, bool, int, float, str, list, dict.

        It is transported as text. Python functions receive the result of `json.loads`.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("json")
        >>> rows = rel.rows([({"user": {"name": "ada"}},)], schema={"payload": rel.Json})
        >>> topology.source(rows, name="in").sink(rel.list(), name="out")
        <sink out>
        >>> rel.run(topology)["out"]
        [Record(payload={'user': {'name': 'ada'}})]
        """


class Form(str):
    """The text of a form, and the Python side of its values.

    Args:
        text: The form's text.
        kind: Its type.
        parts: The items of a list, the fields of a struct, or the keys and values of a map.
        of: The class of its values (list or tuple, the struct's, the enum's), or the seal of its objects.
    """

    __slots__ = ("kind", "of", "parts")

    kind: DataType
    parts: tuple[Part, ...]
    of: type | Seal | None

    def __new__(cls, text: str, kind: DataType, parts: Iterable[Part] = (), of: type | Seal | None = None) -> Self:
        """Make one; see the class."""
        form = super().__new__(cls, text)
        form.kind, form.parts, form.of = kind, tuple(parts), of
        return form

    def __reduce__(self) -> tuple[Any, ...]:
        return Form, (str.__str__(self), self.kind, self.parts, self.of)

    @property
    def cls(self) -> type | None:
        """The class of its values, if the user named it."""
        return self.of if isinstance(self.of, type) else None

    @property
    def seal(self) -> Seal | None:
        """The seal of the objects that it is, or contains; None if there are none."""
        return (
            self.of if isinstance(self.of, Seal) else next((form.seal for _, form, _ in self.parts if form.seal), None)
        )

    @property
    def shown(self) -> str:
        """The type as messages write it.

        >>> list_form(plain_form("l"), nullable=True).shown
        'list[int64 | None]'
        """
        inner = [form.shown + (" | None" if optional else "") for _, form, optional in self.parts]
        if self.kind is DataType.LIST:
            return f"{'tuple' if self.cls is tuple else 'list'}[{inner[0]}]"
        if self.kind is DataType.MAP:
            return f"map[{inner[0]}, {inner[1]}]"
        if self.kind is DataType.STRUCT:
            called = self.cls.__name__ if self.cls is not None else "struct"
            return f"{called}({', '.join(f'{n}: {i}' for (n, _, _), i in zip(self.parts, inner, strict=True))})"
        if self.kind is DataType.ENUM:
            return f"enum {self.cls.__name__}" if self.cls is not None else "enum"
        if self.kind is DataType.DECIMAL:
            return f"decimal128({self[2:].replace(',', ', ')})"
        return str(self.kind.value)

    @property
    def arrow(self) -> Any:
        """The pyarrow.DataType of its values."""
        import pyarrow as pa

        if self.kind is DataType.LIST:
            _, item, optional = self.parts[0]
            return pa.list_(pa.field("item", item.arrow, nullable=optional))
        if self.kind is DataType.MAP:
            (_, key, _), (_, value, optional) = self.parts
            return pa.map_(
                pa.field("key", key.arrow, nullable=False), pa.field("value", value.arrow, nullable=optional)
            )
        if self.kind is DataType.STRUCT:
            return pa.struct([pa.field(name, form.arrow, nullable=optional) for name, form, optional in self.parts])
        if self.kind is DataType.ENUM:
            return pa.int64() if _has_numbers(self) else pa.string()
        if self.kind is DataType.DECIMAL:
            return pa.decimal128(*map(int, self[2:].split(",")))
        if self.kind is DataType.UUID:
            return pa.uuid()
        if self.kind is DataType.JSON:
            return pa.string()
        if self.kind is DataType.OBJECT:
            return pa.binary()
        _, factory, arguments = parsed_format(self)
        factory_of: Any = getattr(pa, factory)
        return factory_of(*arguments)

    @property
    def holds_objects(self) -> bool:
        """Whether it is, or contains, an object that only Python can read."""
        return self.kind is DataType.OBJECT or any(form.holds_objects for _, form, _ in self.parts)


def plain_form(text: str) -> Form:
    """Parse a form. The text alone has neither classes of values nor the seal of objects.

    Raises:
        KeyError: It isn't a form.
    """
    if isinstance(text, Form):
        return text
    form, end = _read(text, 0)
    if end != len(text):
        raise KeyError(text)
    return form


_WORD = re.compile(r"[^;<>=?]*")
_WITHOUT_PARTS = {"o": DataType.OBJECT, "j": DataType.JSON, "e": DataType.ENUM}
_WITH_PARTS: dict[str, tuple[DataType, type | None]] = {
    "l": (DataType.LIST, list),
    "t": (DataType.LIST, tuple),
    "m": (DataType.MAP, dict),
    "s": (DataType.STRUCT, None),
}
_NAMES = {DataType.LIST: ("item",), DataType.MAP: ("key", "value")}


def _read(text: str, begin: int) -> tuple[Form, int]:
    """Parse the form that begins at a position; return it and its end."""
    if text[begin : begin + 1] != "+":
        word = _word(text, begin)
        return _of_arrow(word), begin + len(word)
    letter, at = text[begin + 1 : begin + 2], begin + 2
    if (plain := _WITHOUT_PARTS.get(letter)) is not None:
        end = at if letter != "e" else text.find(">", at) + 1
        return Form(text[begin:end], plain), end
    kind, of = _WITH_PARTS[letter]
    at = _behind(text, at, "<")
    parts: list[Part] = []
    if kind is DataType.STRUCT:
        at = _behind(text, at + len(_word(text, at)), ";")  # skips its class
    names = _NAMES.get(kind, ())  # of a struct they are in the text
    while True:
        if not names:
            name = _word(text, at)
            at = _behind(text, at + len(name), "=")
        elif len(parts) < len(names):
            name = names[len(parts)]
        else:
            raise KeyError(text)
        form, at = _read(text, at)
        optional = text.startswith("?", at)
        parts.append((name, form, optional))
        at += optional
        if text.startswith(">", at) and len(parts) >= len(names):
            return Form(text[begin : at + 1], kind, parts, of), at + 1
        at = _behind(text, at, ";")


def _word(text: str, at: int) -> str:
    match = _WORD.match(text, at)
    return "" if match is None else match.group()


def _behind(text: str, at: int, letter: str) -> int:
    if not text.startswith(letter, at):
        raise KeyError(text)
    return at + 1


def _of_arrow(text: str) -> Form:
    """Return the form of an Arrow format string of one plain value."""
    if text.startswith("d:"):
        return decimal_form(*map(int, text[2:].split(",")))
    return Form(text, DataType.UUID if text == "w:16" else parsed_format(text)[0])


def decimal_form(precision: int, scale: int) -> Form:
    """Return the form of decimals of a precision and a scale.

    Raises:
        SchemaError: decimal128 doesn't support them.
    """
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise SchemaError(
            f"a decimal of {precision} digits, {scale} of them after the point, doesn't fit a record",
            hint="Use 1 to 38 digits, with at most all of them after the point",
            code=ErrorCode.UNSUPPORTED_TYPE,
        )
    return Form(f"d:{precision},{scale}", DataType.DECIMAL)


def list_form(item: Form, *, nullable: bool = False, of: type = list) -> Form:
    """Return the form of lists, or of tuples of any length."""
    letter = "t" if of is tuple else "l"
    return Form(f"+{letter}<{item}{'?' if nullable else ''}>", DataType.LIST, [("item", item, nullable)], of)


def map_form(key: Form, value: Form, *, nullable: bool = False) -> Form:
    """Return the form of dicts."""
    parts = [("key", key, False), ("value", value, nullable)]
    return Form(f"+m<{key};{value}{'?' if nullable else ''}>", DataType.MAP, parts, dict)


def struct_form(parts: Iterable[Part], of: type | None) -> Form:
    """Return the form of named tuples, or instances of a dataclass; `of` None: of a generated class."""
    parts = tuple(parts)
    fields = "".join(f";{name}={form}{'?' if optional else ''}" for name, form, optional in parts)
    return Form(f"+s<{_called(of)}{fields}>", DataType.STRUCT, parts, of)


def enum_form(cls: type[enum.Enum]) -> Form:
    """Return the form of an enum: in Arrow its values, if all are texts or all whole numbers, otherwise its names.

    Raises:
        SchemaError: It has no members, or its members can be combined.
    """
    members = list(cls)
    if not members or issubclass(cls, enum.Flag):
        raise SchemaError(
            f"{cls.__name__} has {'members that can be combined' if members else 'no members'}",
            hint="Declare the field as an int" if members else "Add members",
            code=ErrorCode.UNSUPPORTED_TYPE,
        )
    letter, texts = "u", [member.name for member in members]
    if all(type(member.value) is int and abs(member.value) < 2**63 for member in members):
        letter, texts = "l", [str(member.value) for member in members]
    elif all(isinstance(member.value, str) for member in members):
        texts = [str(member.value) for member in members]
    return Form(f"{_ENUM}{_called(cls)};{letter};{';'.join(map(_quoted, texts))}>", DataType.ENUM, (), cls)


JSON = Form("+j", DataType.JSON)


def object_form() -> Form:
    """Return the form of any Python object."""
    return Form("+o", DataType.OBJECT, (), seal_of_this_process())


def within_process(form: Form) -> Form:
    """Return the form of values that never leave their process, whose objects need no seal."""
    parts = ((name, within_process(part), optional) for name, part, optional in form.parts)
    return Form(form, form.kind, parts, WITHIN_PROCESS if isinstance(form.of, Seal) else form.of)


def members_of(form: Form) -> tuple[str | int, ...]:
    """Return Arrow's values for the members of an enum, in order."""
    texts = [unquote(text) for text in form[len(_ENUM) : -1].split(";")[2:]]
    return tuple(map(int, texts)) if _has_numbers(form) else tuple(texts)


def _has_numbers(form: Form) -> bool:
    return form.split(";", 2)[1] == "l"


def _called(cls: type | None) -> str:
    return "" if cls is None else _quoted(f"{cls.__module__}.{cls.__qualname__}")


def _quoted(text: str) -> str:
    return quote(text, safe=" ")


# --- what the native codec knows ------------------------------------------------------------------------------------


def known_of(form: Form, generated: Callable[[str, tuple[str, ...]], type]) -> Known:
    """Return what a value's codec needs besides its form; None if it is a plain value.

    Args:
        form: The value's form.
        generated: Makes the class of a struct that has none, from its name and its fields.
    """
    inner = tuple(known_of(part, generated) for _, part, _ in form.parts)
    if form.kind is DataType.LIST:
        return (form.cls or list, *inner)
    if form.kind is DataType.MAP:
        return inner
    if form.kind is DataType.STRUCT:
        cls = form.cls or generated("Struct", tuple(name for name, _, _ in form.parts))
        return cls, issubclass(cls, tuple), inner
    if form.kind is DataType.ENUM:
        return tuple(members_of(form) if form.cls is None else typing.cast("type[enum.Enum]", form.cls))
    if form.kind is DataType.JSON:
        return json.loads, _dumped
    return (form.of.opened, form.of.sealed) if isinstance(form.of, Seal) else None


def _dumped(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
