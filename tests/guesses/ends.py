"""Fifteen programs about sources and sinks in general."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from tests.guesses.guess import CLICKS, clicks, guess, rel


@dataclass
class Click:
    user: str
    ms: int


class ClickDict(TypedDict):
    user: str
    ms: int


@guess("ends", gives=2)
def count_lines_of_a_file(t: Any, folder: Path) -> None:
    (folder / "a.txt").write_text("to be\nor not\n")
    t.source(rel.text(folder / "a.txt"), name="lines").sink(rel.count(), name="out")


@guess("ends", gives=[("ada", 120), ("bob", 80)])
def csv_with_its_own_types(t: Any, folder: Path) -> None:
    (folder / "a.csv").write_text("user,ms\nada,120\nbob,80\n")
    t.source(rel.csv(folder / "a.csv"), name="in").sink(rel.list(), name="out")


@guess("ends", gives=[("ada", 120), ("bob", 80)])
def csv_of_a_dataclass(t: Any, folder: Path) -> None:
    (folder / "a.csv").write_text("user,ms\nada,120\nbob,80\n")
    t.source(rel.csv(folder / "a.csv", schema=Click), name="in").sink(rel.list(), name="out")


@guess("ends", gives=[("ada", 120)])
def json_lines_of_a_typed_dict(t: Any, folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"user": "ada", "ms": 120}\n')
    t.source(rel.json(folder / "a.jsonl", schema=ClickDict), name="in").sink(rel.list(), name="out")


@guess("ends", gives=4)
def parquet_there_and_back(t: Any, folder: Path) -> Any:
    clicks(t).sink(rel.parquet(folder / "clicks.parquet"), name="out")
    rel.run(t)
    back = rel.Topology("back")
    back.source(rel.parquet(folder / "clicks.parquet"), name="in").sink(rel.count(), name="out")
    return rel.run(back)["out"]


@guess("ends", gives=[{"user": "ada", "ms": 120}])
def write_json_lines(t: Any, folder: Path) -> Any:
    t.source(rel.rows([Click("ada", 120)]), name="in").sink(rel.json(folder / "out.jsonl"), name="out")
    rel.run(t)
    return [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]


@guess("ends", gives=[("ada", 120), ("bob", 80)])
def rows_of_a_dataclass(t: Any, folder: Path) -> None:
    t.source(rel.rows([("ada", 120), ("bob", 80)], schema=Click), name="in").sink(rel.list(), name="out")


@guess("ends", gives=4)
def a_sink_that_prints(t: Any, folder: Path) -> None:
    clicks(t).sink(rel.print(), name="out")


@guess("ends", gives=[("ada", 120)])
def json_lines_with_their_own_types(t: Any, folder: Path) -> None:
    (folder / "a.jsonl").write_text('{"user": "ada", "ms": 120}\n')
    t.source(rel.json(folder / "a.jsonl"), name="in").sink(rel.list(), name="out")


@guess("ends", gives=["ada", "ada", "bob", "eve"])
def call_a_function(t: Any, folder: Path) -> Any:
    seen: list[str] = []
    clicks(t).sink(rel.call(lambda c: seen.append(c.user)), name="out")
    rel.run(t)
    return sorted(seen)


@guess("ends", gives=[(0, 0), (1, 1), (2, 4)])
def generate_dicts(t: Any, folder: Path) -> None:
    t.source(rel.generate(lambda i: {"n": i, "square": i * i}, 3, {"n": int, "square": int}), name="n").sink(
        rel.list(), name="out"
    )


@guess("ends", gives=[("ada", 120), ("bob", 80)])
def a_generator_of_dataclasses(t: Any, folder: Path) -> None:
    def read() -> Iterator[Click]:
        yield Click("ada", 120)
        yield Click("bob", 80)

    t.source(rel.callable(read, schema=Click), name="in").sink(rel.list(), name="out")


@guess("ends", says=("read_csv", "rel.csv"))
def read_csv(t: Any, folder: Path) -> None:
    t.source(rel.read_csv(folder / "a.csv"), name="in")


@guess("ends", says=("from_list", "rel.rows"))
def from_a_list(t: Any, folder: Path) -> None:
    t.source(rel.from_list(CLICKS), name="in")


@guess("ends", gives=[["user", "ms"], ["ada", "120"]])
def write_csv(t: Any, folder: Path) -> Any:
    t.source(rel.rows([{"user": "ada", "ms": 120}], schema=ClickDict), name="in").sink(
        rel.csv(folder / "o.csv"), name="out"
    )
    rel.run(t)
    return list(csv.reader((folder / "o.csv").read_text().splitlines()))
