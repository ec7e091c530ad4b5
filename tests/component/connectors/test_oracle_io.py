"""The oracle of readers and writers finds nothing, and finds what is planted."""

from __future__ import annotations

import logging

import pytest

from tests.oracle_io.__main__ import Options, compared, run
from tests.oracle_io.plants import PLANTS

pytestmark = pytest.mark.edges


@pytest.fixture(autouse=True)
def silent() -> None:
    """Jobs that fail on purpose log nothing."""
    logging.getLogger("rayelastic.events").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("first", range(0, 400, 200))
def test_readers_and_writers_do_what_formats_say(first: int) -> None:
    found = {number: compared(number, Options(77, None)) for number in range(first, first + 200)}
    assert {number: one for number, one in found.items() if one} == {}


@pytest.mark.parametrize("plant", sorted(PLANTS))
def test_a_planted_fault_is_found(plant: str) -> None:
    options = Options(1, plant)
    assert any(found.kind == "value" for number in range(600) for found in compared(number, options))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [101, 102, 103])
def test_many_programs(seed: int) -> None:
    assert run(Options(seed, None), range(20_000), jobs=2) == 0
