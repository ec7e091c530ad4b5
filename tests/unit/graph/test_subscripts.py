"""`stream["field"]` selects, after key_by beside the keys; what else pandas would do with it is an error."""

from __future__ import annotations

from typing import Any

import pytest

import rayelastic as rel
from tests.raising import raises


def orders() -> Any:
    return rel.Topology("t").source(rel.rows([("a", 1, 2.5)], {"user": str, "n": int, "x": float}))


@pytest.mark.parametrize(
    ("select", "names", "keys"),
    [
        (lambda s: s["n"], ("n",), ()),
        (lambda s: s[["x", "user"]], ("x", "user"), ()),
        (lambda s: s.key_by("user")["n"], ("user", "n"), ("user",)),
        (lambda s: s.key_by("user")[["n", "user"]], ("n", "user"), ("user",)),
        (lambda s: s.key_by("user", "n")["x"].mean(), ("user", "n", "x"), ()),
        (lambda s: s.key_by("user").max(), ("user", "n", "x"), ()),
        (lambda s: s["user"].value_counts(), ("user", "count"), ()),
    ],
)
def test_it_selects(select: Any, names: tuple[str, ...], keys: tuple[str, ...]) -> None:
    selected = select(orders())
    assert (selected.schema.names, selected.keys) == (names, keys)


@pytest.mark.parametrize("use", [lambda s: s[0], lambda s: s[["n", 1]], lambda s: s[s["n"] > 1], lambda s: list(s)])
def test_rows_are_kept_by_filter(use: Any) -> None:
    with pytest.raises(TypeError, match=r"\.filter\("):
        use(orders())


def test_a_field_that_is_not_there() -> None:
    with raises(rel.errors.SchemaError, "unknown-field"):
        orders()["m"]
    with raises(rel.errors.GraphError, "invalid-topology"):
        orders().key_by("user").window(count=2).sum()
