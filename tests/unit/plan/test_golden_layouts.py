"""Boxes and lines lie where they lay, and pictures show what they showed."""

from __future__ import annotations

import json

import pytest

from tests.unit.plan.golden_layouts import FOLDER, LAYOUTS, SEEDS, layout_of, pictures


@pytest.mark.parametrize("seed", SEEDS)
def test_layouts_are_those_written_down(seed: int) -> None:
    known = json.loads(LAYOUTS.read_text())[str(seed)]
    made = json.loads(json.dumps(layout_of(seed)))
    assert made["boxes"] == known["boxes"]
    assert made["lines"] == known["lines"]
    assert made["size"] == known["size"]


@pytest.mark.parametrize("name", pictures())
def test_pictures_are_those_written_down(name: str) -> None:
    assert pictures()[name].splitlines() == (FOLDER / name).read_text().splitlines()
