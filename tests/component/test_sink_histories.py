"""Random histories of every sink that writes files or tables: right or rejected; see sink_histories.py."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import rayelastic as rel
from tests.component.outputs import KINDS, Kind
from tests.component.sink_histories import History, play
from tests.postgres import needs_postgres, postgres_server

pytestmark = pytest.mark.edges

FEW, MANY = 4, 200  # histories of each sink


@pytest.mark.parametrize("kind", KINDS)
def test_random_histories_of_files(kind: str) -> None:
    assert sum(play(kind, f"gate:{number}").accepted for number in range(FEW)) > FEW


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_histories_of_files(kind: str) -> None:
    assert sum(play(kind, f"nightly:{number}").accepted for number in range(MANY)) > MANY


def play_on_postgres(count: int, seed: str, folder: Path) -> int:
    accepted = 0
    with postgres_server() as server:
        for number in range(count):
            table = f"t{number}"

            def read(table: str = table) -> list[int]:
                with psycopg.connect(server) as connection:
                    (there,) = connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() or (None,)
                    rows = connection.execute(f"SELECT n FROM {table}").fetchall() if there else []
                return [n for (n,) in sorted(rows)]

            kind = Kind(table, lambda table: rel.postgres(server, Path(table).name), appends=True)
            place = folder / table
            place.mkdir()
            history = History(kind, place, f"{seed}:{number}", read, takes_over=True)
            history.play()
            accepted += history.accepted
    return accepted


@needs_postgres
def test_random_histories_of_postgres(tmp_path: Path) -> None:
    assert play_on_postgres(FEW, "gate", tmp_path) > FEW


@needs_postgres
@pytest.mark.nightly
def test_many_random_histories_of_postgres(tmp_path: Path) -> None:
    assert play_on_postgres(MANY, "nightly", tmp_path) > MANY
