"""Each controller decides as it did: a single changed decision in a seeded run shows, with the period and the line."""

from __future__ import annotations

import json

import pytest

from tests.unit.policy.golden import TRACES, scenarios

KNOWN: dict[str, list[str]] = json.loads(TRACES.read_text()) if TRACES.exists() else {}
AGAIN = "if that is meant, python -m tests.unit.policy.golden writes them anew"


@pytest.mark.parametrize("name", scenarios())
def test_decisions_are_those_written_down(name: str) -> None:
    decided, known = list(scenarios()[name]()), KNOWN[name]
    different = [at for at, pair in enumerate(zip(decided, known, strict=False)) if pair[0] != pair[1]]
    at = different[0] if different else min(len(decided), len(known))
    assert decided == known, f"from change {at} on: {decided[at : at + 1]}, not {known[at : at + 1]}; {AGAIN}"


def test_all_that_is_written_down_is_played() -> None:
    assert KNOWN.keys() == scenarios().keys()
