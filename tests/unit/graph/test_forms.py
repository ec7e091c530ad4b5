"""Forms of values are read from their texts again; what says none is refused."""

from __future__ import annotations

import decimal
import uuid
from typing import Annotated, Any

import pyarrow as pa
import pytest

from rayelastic.graph.records.annotations import optional_form
from rayelastic.graph.records.forms import Form, Json, plain_form
from tests.component.values.kinds import Leg, Level, Point, Side

DECLARED = [
    int, str, bytes, uuid.UUID, decimal.Decimal, Annotated[decimal.Decimal, pa.decimal128(12, 2)],
    pa.timestamp("us", "UTC"), Side, Level, Json, list[int], tuple[str | None, ...], list[list[Point | None]],
    dict[str, list[Leg]], dict[uuid.UUID, Side | None], Point, Leg, Any, list[Any],
]  # fmt: skip


def shape(form: Form) -> tuple[Any, ...]:
    """What there is of a form without classes."""
    return str(form), form.kind, [(name, shape(part), optional) for name, part, optional in form.parts]


@pytest.mark.parametrize("declared", DECLARED)
def test_a_text_says_the_form(declared: Any) -> None:
    form, _ = optional_form(declared)
    assert form is not None
    read = plain_form(str(form))
    assert shape(read) == shape(form)
    assert read.arrow == form.arrow


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "+x",
        "+l",
        "+l<",
        "+l<l",
        "+l<l>l",
        "+m<l>",
        "+l<l;l>",
        "+l<+e<a>",
        "+s<>",
        "+s<a;l>",
        "+e<a",
        "nothing",
    ],
)
def test_what_says_none_is_refused(text: str) -> None:
    with pytest.raises(KeyError):
        plain_form(text)
