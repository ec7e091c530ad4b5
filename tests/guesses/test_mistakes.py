"""Mistakes that first programs make: the error names the operator, the field and the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import rayelastic as rel

CLICKS = [("ada", "home", 120), ("bob", "home", 80)]


def clicks() -> Any:
    return rel.Topology("mistakes").source(rel.rows(CLICKS, {"user": str, "page": str, "ms": int}), name="clicks")


def parsed(text: str) -> Any:
    lines = rel.Topology("mistakes").source([text])
    return lines.map(lambda t: json.loads(t.value), name="parse", schema={"user": str, "ms": int})


def forgets(click: Any) -> Any:
    click.ms > 100  # noqa: B015


def out(stream: Any, name: str = "out") -> Any:
    stream.sink(rel.list(), name="out")
    return rel.run(stream.topology)[name]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda: out(parsed('{"user": "ada"}')), ("parse", "'ms'")),
        (lambda: out(parsed('{"user": "ada", "ms": 3, "extra": 1}')), ("parse", "'extra'", "schema")),
        (lambda: out(clicks(), "outt"), ("outt", "'out'")),
        (lambda: clicks().map(lambda c: c if c.ms > 100 else None, name="keep"), ("keep", "filter", "None")),
        (lambda: clicks().filter(forgets, name="keep"), ("keep", "returns nothing", "return")),
        (lambda: clicks().flat_map(forgets, name="each"), ("each", "returns nothing", "for_each")),
        (lambda: clicks().flat_map(lambda c: {"page": c.page}), ("flat_map returns one dict", "list of dicts")),
        (lambda: clicks().filter(lambda c: (c.ms > 100, c.user == "ada")), ("always true", "and")),
        (lambda: clicks().filter(lambda c: c.user.isdigit), ("always true", "isdigit()")),
        (lambda: rel.Topology("one").source(["a"]).filter(lambda w: w.isdigit), ("always true", "isdigit()")),
        (lambda: clicks().map(lambda c: c.mss * 2, name="wrong"), ("wrong", "'mss'", "'ms'")),
        (lambda: clicks().sink(rel.list), ("isn't a sink", "rel.list(")),
        (lambda: clicks().key_by(lambda c: c.page or c.user), ("the function computes", "with_columns")),
        (lambda: clicks().key_by(lambda c: c.page.lower()), ("the function computes", "with_columns")),
        (lambda: clicks().map(lambda c: c.ms, retires=3), ("no argument 'retires'", "'retries'|retry=")),
        (lambda: rel.JobConfig(checkpoints=5), ("no 'checkpoints'", "'checkpoint'")),  # type: ignore[call-arg]
        (lambda: clicks().unique("user", keep="last"), ("keep='last'", "rel.last")),
        (lambda: clicks().query("ms > @least"), ("query", ".filter(")),
        (lambda: clicks().filter(rel.col("ms") > 10 and rel.col("user") == "ada"), ("truth value", "&")),
        (lambda: rel.sum(lambda t: t.ms * 2), ("rel.sum", "with_columns", "name of a field")),  # type: ignore[arg-type]
        (lambda: clicks().key_by("user").aggregate(n="sum"), ("n='sum' isn't an aggregate", "rel.sum('n')")),
    ],
)
def test_an_error_names_the_way(program: Callable[[], Any], said: tuple[str, ...]) -> None:
    with pytest.raises((AttributeError, KeyError, TypeError, rel.errors.RayelasticError)) as error:
        program()
    text = str(error.value)
    assert [one for one in said if not any(other in text for other in one.split("|"))] == []
