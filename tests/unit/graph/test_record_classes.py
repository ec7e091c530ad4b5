"""Classes that describe records, wherever a schema is declared."""

from __future__ import annotations

import enum
import typing
import uuid
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypedDict

import pytest

from rayelastic.connectors.memory.declaration import rows
from rayelastic.graph.records.record_classes import field_names
from rayelastic.graph.records.schema import Schema


@dataclass
class Data:
    user: str
    ms: int | None = None
    cached: int = field(default=0, init=False)


class Dict(TypedDict, total=False):
    user: typing.Required[str]
    ms: int


class Annotated:
    user: str
    ms: int | None
    limit: ClassVar[int] = 3


class Attrs:
    """As attrs makes them."""

    user: str
    ms: int | None
    __attrs_attrs__ = (type("A", (), {"name": "user"}), type("A", (), {"name": "ms"}))


class Base:
    model_fields: ClassVar[dict[str, Any]] = {}


class Model(Base):
    """As Pydantic makes them."""

    user: str
    ms: int | None
    model_fields: ClassVar[dict[str, Any]] = {"user": None, "ms": None}


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize("cls", [Data, Dict, Annotated, Attrs, Model])
def test_its_fields_are_the_schema(cls: type) -> None:
    assert str(Schema.of(cls)) == f"{cls.__name__}(user: string, ms: int64 | None)"
    made = Schema.of(cls).tuple_type("ada", 3)
    assert made._asdict() == {"user": "ada", "ms": 3}


@pytest.mark.parametrize("cls", [int, str, Colour, uuid.UUID, dict, object, list])
def test_values_are_no_records(cls: type) -> None:
    assert field_names(cls) is None


def test_rows_of_instances_and_of_dicts_that_lack_a_key() -> None:
    assert rows([Data("ada", 1), Data("bob")]).rows == (("ada", 1), ("bob", None))
    assert rows([{"user": "ada"}], Dict).rows == (("ada", None),)
