"""Tuples of many megabytes: what passes inside a PE passes between two."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

import rayelastic as rel
from rayelastic.errors import ConfigError, JobFailedError
from rayelastic.graph.records import limits
from tests.raising import raises


def long_text(n: int) -> tuple[str, int]:
    return "".join(chr(97 + (n + i) % 26) for i in range(997)) * (n * 10_000), n


def digest(t: Any) -> tuple[str, int]:
    return hashlib.sha256(t.text.encode()).hexdigest(), t.n


def hashed(config: rel.JobConfig | None = None) -> list[tuple[str, int]]:
    topology = rel.Topology("large")
    texts = topology.source(rel.generate(long_text, 4, schema={"text": str, "n": int}), name="texts")
    texts.map(digest, name="hash", schema={"digest": str, "n": int}, lane="python").sink(rel.list(), name="out")
    return [tuple(row) for row in rel.run(topology, config)["out"]]


def test_texts_of_megabytes_pass_between_processing_elements_as_inside_one() -> None:
    there = hashed(rel.JobConfig(pes={"texts": 0, "hash": 1}))
    assert (
        there
        == hashed()
        == [digest(type("T", (), dict(zip(("text", "n"), long_text(n), strict=True)))) for n in range(4)]
    )


def test_a_tuple_that_is_too_large_is_told_where_it_was_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rayelastic.runtime.element.reach.dialling.MOST_TEXT", 25_000_000)
    with raises(JobFailedError, "link-failed", "25000000", operator="texts->hash") as failed:
        hashed(rel.JobConfig(pes={"texts": 0, "hash": 1}))
    assert failed.value.operator == "texts->hash"
    assert limits.MOST_TEXT > 25_000_000


def test_patience_is_a_number_of_seconds_that_heartbeats_fit_into() -> None:
    assert rel.Network().patience >= 30
    for patience in (1.9, 0, "10", True, float("inf")):
        with raises(ConfigError, "invalid-setting", "Network", "patience="):
            rel.Network(patience=patience)  # type: ignore[arg-type]
