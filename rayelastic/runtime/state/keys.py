"""Keys as users write them, in Python or on a command line, and their hashes in native tables."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rayelastic import _native
from rayelastic.errors import ErrorCode, StateError
from rayelastic.graph.records.data_type import DataType
from rayelastic.graph.records.forms import Form, members_of, plain_form
from rayelastic.runtime.operators.native_schema import native_schema

if TYPE_CHECKING:
    from rayelastic.graph.records.schema import Schema
    from rayelastic.runtime.state.descriptor import StateDescriptor


def key_hash(key: Sequence[Any], descriptor: StateDescriptor, operator: str) -> int:
    """Return the hash by which routers and tables know a key.

    Raises:
        StateError: It isn't a key of this operator.
    """
    if len(key) != len(descriptor.keys):
        raise _no_such_key(key, descriptor, operator, f"{len(descriptor.keys)} values")
    try:
        values = [_value(value, plain_form(text)) for value, (_, text, _) in zip(key, descriptor.keys, strict=True)]
        return _native.key_hash(native_schema(descriptor.key_schema), tuple(values))
    except (OverflowError, TypeError, ValueError) as error:
        raise _no_such_key(key, descriptor, operator, f"{error}") from None


def shown_key(key: bytes, schema: Schema, *, null: bool) -> str:
    """Return a key that a router counts as one would write it in Python; of several fields a tuple.

    Args:
        key: Its bytes.
        schema: The schema of the key's fields.
        null: Whether it is the key of one field that is null.

    >>> from rayelastic.graph.records.schema import laid_out
    >>> shown_key(b"home", laid_out("Key", [("page", "u", False)]), null=False)
    "'home'"
    """
    values = _native.key_of(native_schema(schema), key, null)
    return repr(values[0] if len(values) == 1 else values)


def parsed_key(texts: Sequence[str], descriptor: StateDescriptor) -> tuple[Any, ...]:
    """Parse the values of key fields; an invalid one stays a text, which `key_hash` rejects.

    In a nullable field, `null` is None. A text may be in double quotes, as in JSON: `"null"` is a text.
    """
    import pyarrow as pa

    if len(texts) != len(descriptor.keys):
        return tuple(texts)
    key: list[Any] = []
    for text, (_, form, nullable) in zip(texts, descriptor.keys, strict=True):
        if text == "null" and nullable:
            key.append(None)
            continue
        of = plain_form(form)
        if of.kind is DataType.STRING and len(text) > 1 and text[0] == text[-1] == '"':
            key.append(_unquoted(text))
            continue
        try:
            key.append(uuid.UUID(text) if of.kind is DataType.UUID else pa.array([text]).cast(of.arrow)[0].as_py())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
            key.append(text)
    return tuple(key)


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:  # the quotes belong to the text
        return text


def _value(value: Any, form: Form) -> Any:
    """Return a value of a key as tuples have it: also of Arrow's value of an enum's member, and of a UUID's text."""
    if form.kind is DataType.UUID and isinstance(value, str):
        return uuid.UUID(value)
    if form.kind is DataType.ENUM and form.cls is not None and value is not None and not isinstance(value, form.cls):
        members: list[Any] = list(form.cls)  # type: ignore[call-overload]
        return members[members_of(form).index(value)]
    return value


def _no_such_key(key: Sequence[Any], descriptor: StateDescriptor, operator: str, why: str) -> StateError:
    fields = ", ".join(f"{name}: {plain_form(text).shown}" for name, text, _ in descriptor.keys)
    hint = f"Pass the values of ({fields})" if fields else "It has no keys: pass the key ()"
    problem = f"{tuple(key)!r} can't be a key of it ({why})"
    return StateError(problem, operator=operator, hint=hint, code=ErrorCode.KEY_MISMATCH)
