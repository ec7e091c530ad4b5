"""Random histories of every sink that writes files or tables: right or rejected; see sink_histories.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.component.connectors.outputs import KINDS
from tests.component.connectors.sink_histories import play, play_on_postgres
from tests.postgres import needs_postgres

pytestmark = pytest.mark.edges

FEW, MANY = 4, 200  # histories of each sink


@pytest.mark.parametrize("kind", KINDS)
def test_random_histories_of_files(kind: str) -> None:
    assert sum(play(kind, f"gate:{number}").accepted for number in range(FEW)) > FEW


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_histories_of_files(kind: str) -> None:
    assert sum(play(kind, f"nightly:{number}").accepted for number in range(MANY)) > MANY


@needs_postgres
def test_random_histories_of_postgres(tmp_path: Path) -> None:
    assert play_on_postgres(FEW, "gate", tmp_path) > FEW


@needs_postgres
@pytest.mark.nightly
def test_many_random_histories_of_postgres(tmp_path: Path) -> None:
    assert play_on_postgres(MANY, "nightly", tmp_path) > MANY
