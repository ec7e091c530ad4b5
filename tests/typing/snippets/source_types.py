"""Sources: the class of their tuples becomes the type of the stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, assert_type

import rayelastic as rel
from rayelastic.connectors.typed import Value

topology = rel.Topology("sources")


class Click(NamedTuple):
    user: str
    ms: int


@dataclass
class Reading:
    sensor: str
    celsius: float


class Row(TypedDict):
    user: str
    ms: int


def rows_of_instances() -> None:
    assert_type(topology.source(rel.rows([Click("ada", 120)])), rel.Stream[Click])


def rows_with_a_schema() -> None:
    assert_type(topology.source(rel.rows([("ada", 120)], Click)), rel.Stream[Click])


def rows_of_dicts() -> None:
    assert_type(topology.source(rel.rows([{"user": "ada", "ms": 120}])), rel.Stream[Any])


def rows_of_a_dict_of_types() -> None:
    assert_type(topology.source(rel.rows([("ada", 120)], {"user": str, "ms": int})), rel.Stream[Any])


def rows_of_plain_values() -> None:
    assert_type(topology.source(rel.rows([(1,), (2,)], int)), rel.Stream[Value[int]])


def rows_of_dataclasses() -> None:
    assert_type(topology.source(rel.rows([Reading("a", 20.5)])), rel.Stream[Reading])


def rows_of_a_typed_dict_have_attributes() -> None:
    topology.source(rel.rows([], Row)).filter(lambda t: t.ms > 100)


def csv_with_a_schema() -> None:
    assert_type(topology.source(rel.csv("clicks.csv", schema=Click)), rel.Stream[Click])


def csv_without_a_schema() -> None:
    assert_type(topology.source(rel.csv("clicks.csv", delimiter=";")), rel.Stream[Any])


def json_with_a_schema() -> None:
    assert_type(topology.source(rel.json("clicks.json", Click, on_bad_row="skip"), name="clicks"), rel.Stream[Click])


def parquet_with_a_schema() -> None:
    assert_type(topology.source(rel.parquet("clicks", Click, time_ordered=True)), rel.Stream[Click])


def text_has_lines() -> None:
    topology.source(rel.text("words.txt")).flat_map(lambda t: t.line.split())


def generate_with_a_schema() -> None:
    assert_type(topology.source(rel.generate(lambda n: ("ada", n), 10, Click)), rel.Stream[Click])


def generate_numbers() -> None:
    assert_type(topology.source(rel.generate(lambda n: n * n, None, int)), rel.Stream[Value[int]])


def callable_with_a_schema() -> None:
    def clicks() -> Iterator[Click]:
        yield Click("ada", 1)

    assert_type(topology.source(rel.callable(clicks, Click)), rel.Stream[Click])


def misspelt_option_of_csv() -> None:
    rel.csv("clicks.csv", schema=Click, delimeter=";")  # mypy: call-overload; pyright: reportCallIssue


def wrong_literal_of_csv() -> None:
    rel.csv("clicks.csv", on_bad_row="ignore")  # mypy: call-overload; pyright: reportArgumentType


def wrong_count_of_generate() -> None:
    rel.generate(lambda n: n, "10", int)  # mypy: call-overload; pyright: reportCallIssue, reportArgumentType


def misspelt_field_behind_a_source() -> None:
    topology.source(rel.rows([Click("ada", 1)])).filter(
        lambda t: t.msec > 1  # mypy: attr-defined; pyright: reportAttributeAccessIssue
    )


def misspelt_source() -> None:
    rel.cvs("clicks.csv")  # mypy: attr-defined; pyright: reportAttributeAccessIssue


def result_of_a_run() -> None:
    assert_type(rel.run(topology), rel.JobResult)
