"""Why a function is not compiled is said in Python's types; a mistake names operator, field and fix."""

from __future__ import annotations

import collections
import re
from collections.abc import Callable
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import SchemaError
from tests.raising import check_reason, raises

NUMBAS = re.compile(
    r"(?i)numba|nopython|dispatcher|DictType|ListType|UniTuple|Literal|Poison|unicode_type|<iv=|\w#\d|\$\w|getiter|"
    r"[gs]etitem\(|i64\*|[iu]nt(8|16|32|64)|float(16|32|64)|boolean|TypingError|reflected|Function\(<|range_state"
)


def setting(t: Any) -> Any:
    made = {"user": t.user}
    made["n"] = t.n
    return made


FUNCTIONS: list[Callable[[Any], Any]] = [
    setting,
    lambda t: t if t.n > 1 else None,
    lambda t: {"n": None},
    lambda t: {"n": t.n, "l": [1, 2]},
    lambda t: t.user + 1,
    lambda t: [t.n, t.user],
    lambda t: t.user[1.5],
    lambda t: list(t),
    lambda t: [t.n][t.user],
    lambda t: {"a": 1}[t.n],
    lambda t: 1 if t.n else "a",
    lambda t: sum(x for x in t.n),
    lambda t: t.user or t.n,
    lambda t: range(t.n),
    lambda t: collections.Counter(t.user),
    lambda t: t.n @ 2,
]


def stream() -> Any:
    return rel.Topology("words").source(rel.rows([("ada", 1)], {"user": str, "n": int}))


@pytest.mark.parametrize("fn", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_no_word_of_the_compilers(fn: Any) -> None:
    with pytest.raises(SchemaError) as error:
        stream().map(fn, name="op")
    assert error.value.operator == "op"
    assert NUMBAS.search(str(error.value)) is None, str(error.value)


def test_nor_for_flat_map_that_returns_nothing() -> None:
    with raises(SchemaError, "no-schema") as error:
        stream().flat_map(lambda t: None, name="op")
    assert NUMBAS.search(str(error.value)) is None


@pytest.mark.parametrize(
    ("fn", "said", "reason"),
    [
        (lambda t: t if t.n else None, ("no-schema", "filter_map", "filter"), ("returns_none", "some")),
        (lambda t: None, ("no-schema", "filter_map", "filter"), ("returns_none", "all")),
        (setting, ("no-schema", "schema="), ("unsupported", "dict[str, str][str] = int")),
    ],
)
def test_a_mistake_says_what_to_write(fn: Any, said: tuple[str, ...], reason: tuple[str, ...]) -> None:
    with raises(SchemaError, *said) as caught:
        stream().map(fn, name="op")
    if reason:
        check_reason(caught.value.details, *reason)


def test_a_class_may_have_keys_of_its_own() -> None:
    with raises(SchemaError, "no-schema"):  # the parameter is another value here
        stream().map(lambda t: (t := {"n": 1})["n"] and setting(t), name="op")
