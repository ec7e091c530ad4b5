"""Expect an error by its class, code and values. How errors read is tested in tests/unit/graph/test_messages.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from rayelastic.errors import ErrorCode, RayelasticError

E = TypeVar("E", bound=RayelasticError)


@contextmanager
def raises(
    kind: type[E] | tuple[type[E], ...],
    code: str,
    *values: str,
    operator: str | None = None,
    location: str | None = None,
) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error of this class with this code.

    Args:
        kind: its class, or a base of it.
        code: its stable code, such as "unknown-field".
        values: what its text shows: names, numbers, paths; no prose.
        operator: the operator that it names.
        location: how the location of its declaration starts or ends.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.code is ErrorCode(code), f"{error.code!r}: {error}"
    assert not [value for value in values if value not in str(error)], str(error)
    if operator is not None:
        assert getattr(error, "operator", None) == operator, str(error)
    if location is not None:
        assert location in getattr(error, "location", ""), str(error)


def check_reason(reason: Mapping[str, Any] | None, code: str, *values: str) -> None:
    """Check why something isn't compiled: its code, and texts that its values show, the line among them."""
    assert reason is not None
    assert reason["code"] == code, reason
    shown = " ".join(str(value) for value in reason.values())
    assert not [value for value in values if value not in shown], reason
