"""First programs of people from other systems: those that run give the right result, all others are told the way."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.guesses.guess import GUESSES, Guess, rel

ORIGINS = ("from_bytewax", "from_flink", "from_polars", "from_spark", "connectors", "ends", "settings", "mistakes")
COUNTS = {"bytewax": 12, "flink": 11, "polars": 16, "spark": 5, "connector": 5, "ends": 15}
SETTINGS = {"json": 4, "results": 5, "config": 5, "async": 3, "functions": 5}
LEAST = 60  # that run

for origin in ORIGINS:
    importlib.import_module(f"tests.guesses.{origin}")


def plain(value: Any) -> Any:
    """Tuples of any class as tuples."""
    return [tuple(one) if isinstance(one, tuple) else one for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("one", GUESSES, ids=lambda one: one.name)
def test_guess(one: Guess, tmp_path: Path) -> None:
    topology = rel.Topology("guess")

    def result() -> Any:
        returned = one.program(topology, tmp_path)
        return plain(rel.run(topology)["out"] if returned is None else returned)

    if not one.says:
        assert result() == one.gives
        return
    with pytest.raises((AttributeError, KeyError, TypeError, rel.errors.RayelasticError)) as error:
        result()
    assert [word for word in one.says if word not in str(error.value)] == []


def test_the_guesses_are_the_planned_ones() -> None:
    sincere = [one for one in GUESSES if one.origin != "mistake"]
    assert Counter(one.origin for one in sincere) == COUNTS | SETTINGS
    assert len(sincere) == 86
    assert sum(not one.says for one in sincere) >= LEAST
