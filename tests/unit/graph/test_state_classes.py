"""`@rel.state`: the state of a key as a class."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import SchemaError
from rayelastic.graph.records.schema import Schema
from tests.raising import raises


@rel.state
class Seen:
    """What there was of a key."""

    n: int = 0
    last: str | None = None


def test_a_state_class_is_a_record_with_first_values() -> None:
    first = Seen()
    assert (first.n, first.last) == (0, None)
    assert str(Schema.of(Seen)) == "Seen(n: int64, last: string | None)"
    assert pickle.loads(pickle.dumps(first)) == first


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"__annotations__": {"n": int}}, "bad-default Bad"),
        ({"__annotations__": {"n": int}, "n": 0, "add": len}, "bad-state-class Bad"),
        ({}, "bad-state-class Bad"),
    ],
)
def test_what_is_no_state(members: dict[str, Any], message: str) -> None:
    with raises(SchemaError, *message.split()):
        rel.state(type("Bad", (), members))


def test_a_state_class_with_a_base_and_no_class() -> None:
    with raises(SchemaError, "bad-state-class"):
        rel.state(type("Bad", (Exception,), {"__annotations__": {"n": int}, "n": 0}))
    with raises(SchemaError, "bad-state-class"):
        rel.state(3)  # type: ignore[type-var]
