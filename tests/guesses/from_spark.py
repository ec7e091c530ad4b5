"""Five programs by people who know Spark's DataFrames: camel case, actions at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.guesses.guess import clicks, guess, rel


@guess("spark", says=("groupBy", "group_by"))
def group_by_in_camel_case(t: Any, folder: Path) -> None:
    clicks(t).groupBy("user").count()


@guess("spark", says=("withColumn", "with_columns"))
def with_column(t: Any, folder: Path) -> None:
    clicks(t).withColumn("seconds", lambda c: c.ms / 1000)


@guess("spark", gives=[("ada", 210.0), ("bob", 80.0), ("eve", 50.0)])
def average_by_key(t: Any, folder: Path) -> None:
    clicks(t).select("user", "ms").group_by("user").aggregate(ms=rel.avg("ms")).sink(rel.list(), name="out")


@guess("spark", says=("show", "print"))
def show(t: Any, folder: Path) -> None:
    clicks(t).show()


@guess("spark", gives=[("ada", 36), ("bob", None), ("ada", 36), ("eve", None)])
def left_join(t: Any, folder: Path) -> None:
    ages = t.source(rel.rows([("ada", 36)], {"user": str, "age": int}))
    joined = clicks(t).key_by("user").join(ages.key_by("user"), how="left")
    joined.select("user", "age").sink(rel.list(), name="out")
