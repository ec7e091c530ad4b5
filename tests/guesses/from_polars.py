"""Sixteen programs by people who know Polars or pandas: columns, frames, and no names of operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.guesses.guess import CLICKS, clicks, guess, rel


@guess("polars", gives=[("ada", 120), ("bob", 80), ("ada", 300), ("eve", 50)])
def select_columns(t: Any, folder: Path) -> None:
    clicks(t).select("user", "ms").sink(rel.list(), name="out")


@guess("polars", gives=[("ada", 120), ("bob", 80), ("ada", 300), ("eve", 50)])
def drop_a_column(t: Any, folder: Path) -> None:
    clicks(t).drop("page").sink(rel.list(), name="out")


@guess("polars", gives=["user", "page", "millis"])
def rename_a_column(t: Any, folder: Path) -> Any:
    clicks(t).rename({"ms": "millis"}).sink(rel.arrow(), name="out")
    return rel.run(t)["out"].column_names


@guess("polars", gives=[("ada", 240), ("bob", 160), ("ada", 600), ("eve", 100)])
def with_a_new_column(t: Any, folder: Path) -> None:
    twice = clicks(t).with_columns(twice=lambda c: c.ms * 2)
    twice.select("user", "twice").sink(rel.list(), name="out")


@guess("polars", gives=[("ada", 0.12), ("bob", 0.08), ("ada", 0.3), ("eve", 0.05)])
def replace_a_column(t: Any, folder: Path) -> None:
    clicks(t).with_columns(ms=lambda c: c.ms / 1000).drop("page").sink(rel.list(), name="out")


@guess("polars", gives=CLICKS[:2])
def head(t: Any, folder: Path) -> None:
    clicks(t).head(2).sink(rel.list(), name="out")


@guess("polars", gives=CLICKS[:3])
def limit(t: Any, folder: Path) -> None:
    clicks(t).limit(3).sink(rel.list(), name="out")


@guess("polars", gives=[("ada", 420), ("bob", 80), ("eve", 50)])
def group_by_and_aggregate(t: Any, folder: Path) -> None:
    clicks(t).group_by("user").aggregate(total=rel.sum("ms")).sink(rel.list(), name="out")


@guess("polars", says=("agg", "aggregate"))
def group_by_and_agg(t: Any, folder: Path) -> None:
    clicks(t).group_by("user").agg(total=rel.sum("ms"))


@guess("polars", gives=[("ada", 2), ("eve", 1)])
def inner_join_of_two_tables(t: Any, folder: Path) -> None:
    ages = t.source(rel.rows([("ada", 36), ("eve", 41)], {"user": str, "age": int}))
    joined = clicks(t).key_by("user").join(ages.key_by("user"), how="inner")
    joined.key_by("user").aggregate(n=rel.count()).sink(rel.list(), name="out")


@guess("polars", says=("join", "key_by"))
def join_on_a_column(t: Any, folder: Path) -> None:
    ages = t.source(rel.rows([("ada", 36)], {"user": str, "age": int}))
    clicks(t).join(ages, on="user", how="left")


@guess("polars", says=("sort", "arrow"))
def sort(t: Any, folder: Path) -> None:
    clicks(t).sort("ms")


@guess("polars", gives=[("ada", 300)])
def filter_and_select(t: Any, folder: Path) -> None:
    clicks(t).filter(lambda c: c.user == "ada" and c.ms > 200).select("user", "ms").sink(rel.list(), name="out")


@guess("polars", gives=[("ada", 120), ("bob", 80)])
def rows_of_dicts(t: Any, folder: Path) -> None:
    t.source(rel.rows([{"user": "ada", "ms": 120}, {"user": "bob", "ms": 80}])).sink(rel.list(), name="out")


@guess("polars", gives=420)
def to_pandas(t: Any, folder: Path) -> Any:
    clicks(t).filter(lambda c: c.user == "ada").sink(rel.arrow(), name="out")
    return int(rel.run(t)["out"].to_pandas().ms.sum())


@guess("polars", says=("pandas", "rel.arrow"))
def a_pandas_sink(t: Any, folder: Path) -> None:
    clicks(t).sink(rel.pandas(), name="out")
