"""Eight mistakes, planted: each is told where it is made, with the operator, the field and the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.guesses.guess import clicks, guess, lines, rel


@guess("mistake", says=("parse", "'ms'"))
def a_dict_that_lacks_a_key(t: Any, folder: Path) -> None:
    parsed = lines(t, '{"user": "ada"}').map(
        lambda t: json.loads(t.line), name="parse", schema={"user": str, "ms": int}
    )
    parsed.sink(rel.list(), name="out")


@guess("mistake", says=("parse", "'extra'", "schema"))
def a_dict_with_another_key(t: Any, folder: Path) -> None:
    text = '{"user": "ada", "ms": 3, "extra": 1}'
    parsed = lines(t, text).map(lambda t: json.loads(t.line), name="parse", schema={"user": str, "ms": int})
    parsed.sink(rel.list(), name="out")


@guess("mistake", says=("outt", "'out'"))
def a_misspelt_output(t: Any, folder: Path) -> Any:
    clicks(t).sink(rel.list(), name="out")
    return rel.run(t)["outt"]


@guess("mistake", says=("keep", "filter", "None"))
def a_map_that_returns_none(t: Any, folder: Path) -> None:
    clicks(t).map(lambda c: c if c.ms > 100 else None, name="keep")


@guess("mistake", says=("wrong", "'mss'", "'ms'"))
def a_misspelt_field(t: Any, folder: Path) -> None:
    clicks(t).map(lambda c: c.mss * 2, name="wrong")


@guess("mistake", says=("out", "rel.call"))
def a_function_as_sink(t: Any, folder: Path) -> None:
    clicks(t).sink(print, name="out")


@guess("mistake", says=("key_by", "field"))
def key_by_a_function(t: Any, folder: Path) -> None:
    clicks(t).key_by(lambda c: c.user.lower())


@guess("mistake", says=("no subscripts", "select"))
def a_stream_with_a_subscript(t: Any, folder: Path) -> None:
    clicks(t)["ms"]
