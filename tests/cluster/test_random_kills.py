"""Elements, coordinators, hosts are killed at random: in checkpoints, on the way back, while replicas change or move.

Whoever reads the sinks' files and tables afterwards finds each row once, with the value that it had to have.
Twenty-four kills in the gate, a thousand in `./dev nightly` (with test_random_kills_spark.py): a part of them in
changes that meet a checkpoint, which the coordinator itself waits for. The summary lists them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rayelastic as rel
from tests.cluster import words_and_prices
from tests.cluster.kills import ROOT
from tests.cluster.random_kills import ROWS, Campaign, Kills, Outsider, config, heard, submitted
from tests.cluster.test_nodes import load_netns
from tests.cluster.test_recovery import check, counted
from tests.postgres import needs_postgres, postgres_server

netns = load_netns()
needs_hosts = [
    pytest.mark.netns,
    pytest.mark.nightly,
    pytest.mark.skipif(bool(netns.missing()), reason=netns.missing() or "everything is there"),
]
pytestmark = pytest.mark.timeout(7200)

IN_THE_GATE = (4, 1)  # kills of a job, and those of them in a change that meets a checkpoint
AT_NIGHT = (100, 40)
PACE = (words_and_prices.BURST, words_and_prices.PACE)
DETECTION = {  # of a host that died: in ten seconds; a busy machine takes longer to answer than kills.py gives it
    "RAY_health_check_initial_delay_ms": "5000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "3000",
    "RAY_health_check_failure_threshold": "3",
}
HOSTS = [f"rel-node{number}" for number in range(3)]


def seeds(first: int, *others: int) -> list[Any]:
    """Those of the gate, and for the nightly run those alone that the gate has no time for."""
    marked = [pytest.param(seed, AT_NIGHT, marks=pytest.mark.nightly, id=str(seed)) for seed in others]
    return [pytest.param(first, IN_THE_GATE, marks=pytest.mark.timeout(300), id=str(first)), *marked]


@pytest.fixture(scope="module")
def kills(request: pytest.FixtureRequest) -> Iterator[Kills]:
    made = Kills()
    yield made
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        sys.stdout.write(f"\n{made}\n")  # also where all goes well


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as conninfo:
        yield conninfo


def killed(job: rel.Job, folder: Path, seed: int, wanted: tuple[int, int], operators: list[str], kills: Kills) -> None:
    campaign = Campaign(job, folder, seed, operators)
    try:
        campaign.run(*wanted)
    finally:
        kills.include(campaign.kills)


@pytest.mark.parametrize(("seed", "wanted"), seeds(0, 3, 4, 5))
@pytest.mark.guarantee(
    source="text and CSV files", sink="Parquet", lost="processes and coordinators, at random moments", rows="each once"
)
def test_random_kills_where_files_are_read_and_written(
    ray_cluster: None, tmp_path: Path, kills: Kills, seed: int, wanted: tuple[int, int]
) -> None:
    rows = ROWS * wanted[0]
    job = submitted(words_and_prices.of_files(f"random{seed}", tmp_path, rows), config())
    killed(job, tmp_path, seed, wanted, ["counts", "vwap"], kills)
    words_and_prices.finish(job, tmp_path, rows)


@pytest.mark.parametrize(("seed", "wanted"), seeds(1, 6))
@pytest.mark.guarantee(
    source="a seekable Python source",
    sink="Parquet, `rel.list`",
    lost="processes and coordinators, at random moments",
    rows="each once",
)
def test_random_kills_where_a_function_is_read_and_a_list_is_kept(
    ray_cluster: None, tmp_path: Path, kills: Kills, seed: int, wanted: tuple[int, int]
) -> None:
    rows = ROWS * wanted[0]
    job = submitted(counted(f"random{seed}", tmp_path, rows=rows, pace=PACE), config())
    killed(job, tmp_path, seed, wanted, ["counts"], kills)
    check(job, tmp_path, rows)


@needs_postgres
@pytest.mark.parametrize(("seed", "wanted"), seeds(2, 7, 8))
@pytest.mark.guarantee(
    source="text and CSV files",
    sink="PostgreSQL",
    lost="processes and coordinators, at random moments",
    rows="each once",
)
def test_random_kills_where_files_and_a_postgresql_table_are_written(
    ray_cluster: None, tmp_path: Path, server: str, kills: Kills, seed: int, wanted: tuple[int, int]
) -> None:
    rows = ROWS * wanted[0]
    job = submitted(words_and_prices.of_files(f"random{seed}", tmp_path, rows, server), config())
    killed(job, tmp_path, seed, wanted, ["counts", "vwap"], kills)
    words_and_prices.finish(job, tmp_path, rows, server)


# --- hosts ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in {"PYTHONPATH": str(ROOT), **DETECTION}.items():
        monkeypatch.setenv(name, value)  # for the raylets, and so for all workers
    with netns.Nodes(len(HOSTS), cpus=2) as made:
        yield made


def killed_on_hosts(nodes: Any, folder: Path, seed: int, kills: Kills, server: str = "") -> None:
    command = [sys.executable, "-m", "tests.cluster.random_kills", str(folder), f"--seed={seed}", "--hosts", *HOSTS]
    wanted = [f"--kills={AT_NIGHT[0]}", f"--aimed={AT_NIGHT[1]}", f"--server={server}"]
    with Outsider(nodes, folder):
        kills.include(heard(nodes.start(0, command + wanted)))


@pytest.mark.parametrize("seed", [pytest.param(9, marks=needs_hosts)])
@pytest.mark.guarantee(
    source="text and CSV files", sink="Parquet", lost="nodes, if checkpoints have a shared location", rows="each once"
)
def test_random_kills_on_three_hosts_where_files_are_written(
    nodes: Any, tmp_path: Path, kills: Kills, seed: int
) -> None:
    killed_on_hosts(nodes, tmp_path, seed, kills)


@needs_postgres
@pytest.mark.parametrize("seed", [pytest.param(10, marks=needs_hosts)])
@pytest.mark.guarantee(
    source="text and CSV files",
    sink="PostgreSQL",
    lost="nodes, if checkpoints have a shared location",
    rows="each once",
)
def test_random_kills_on_three_hosts_where_a_postgresql_table_is_written(
    nodes: Any, tmp_path: Path, server: str, kills: Kills, seed: int
) -> None:
    killed_on_hosts(nodes, tmp_path, seed, kills, server)
