"""Jobs on Ray at their edges: owners of outputs, the same command again, outages of a store, keys that end."""

from __future__ import annotations

import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from pyarrow import csv

import rayelastic as rel
from rayelastic.errors import ConfigError, DamagedError, SinkTakenError, StateError
from rayelastic.runtime.values.status import State
from tests.cluster.test_recovery import KEYS, PATIENCE, PES, ROWS, counted, kill, wait_for_checkpoint
from tests.component.connectors.object_store import object_store
from tests.component.operators.keys_once import ALIVE, row_of
from tests.component.operators.keys_once import Row as Once
from tests.component.operators.test_keys_end import FREED, topology_of
from tests.component.runtime import test_restart as restart
from tests.raising import raises
from tests.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.edges, pytest.mark.usefixtures("ray_cluster")]

EXACT = [(n, n // KEYS + 1) for n in range(ROWS)]
REQUESTS = {"HEAD", "GET", "PUT", "POST", "DELETE"}
LOOK = 0.02  # seconds


def rows_in(folder: Path) -> list[tuple[int, int]]:
    tables = [csv.read_csv(part) for part in folder.glob("part-*")]
    return sorted((row["n"], row["all"]) for table in tables for row in table.to_pylist())


def until(go: Path, rows: list[Any], held: int) -> Callable[[], Iterator[Any]]:
    """Rows, of which those behind a number come once there is a file `go`."""

    def numbers() -> Iterator[Any]:
        for number, row in enumerate(rows):
            while number == held and not go.exists():
                threading.Event().wait(LOOK)
            yield row
        while held == len(rows) and not go.exists():
            threading.Event().wait(LOOK)

    return numbers


def test_a_folder_belongs_to_one_job_until_that_is_over(tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    out = tmp_path / "out"
    config = rel.JobConfig(pes=PES, checkpoint=rel.Checkpoint(every=0.5, restarts=100))
    first = rel.submit(counted("first", tmp_path, rel.csv(out)), config)
    try:
        wait_until(first, lambda: len(rows_in(out)) > 0)
        with raises(SinkTakenError, "output-taken", "first"):
            rel.submit(counted("second", tmp_path / "second", rel.csv(out)), config)
        for pe in ("pe2", "pe1"):
            kill(first, pe)
        (tmp_path / "go").touch()
        first.wait(PATIENCE)
    finally:
        first.close()
    assert first.status.checkpoints.restarts >= 2
    assert rows_in(out) == EXACT


def test_the_same_command_starts_restores_and_rejects_what_is_damaged(tmp_path: Path) -> None:
    """E4 and A9: with Python values by key, and no key of the user."""
    go, saved, out = tmp_path / "go", tmp_path / "saved", tmp_path / "out"
    config = rel.JobConfig(pes={"rows": 0, "totals": 1, "out": 1}, checkpoint=rel.Checkpoint(saved, every=0.3))

    def submit() -> rel.Job:
        source = rel.callable(until(go, restart.ROWS, 1500), restart.SCHEMA)
        return rel.submit(restart.totals(source, out), config, restore="latest")

    first = submit()
    try:
        wait_until(first, lambda: any(out.glob("part-*")))
        assert stat.S_IMODE((saved / "key").stat().st_mode) == 0o600
        other = restart.totals(rel.rows(restart.ROWS, schema=restart.SCHEMA), tmp_path / "more")
        with raises(StateError, "location-taken", "totals"):
            rel.submit(other, config, name="other")
    finally:
        first.close()
    assert 0 < len(restart.written(out)) <= 1500
    go.touch()
    second = submit()
    try:
        second.wait(PATIENCE)
    finally:
        second.close()
    assert restart.written(out) == restart.expected()
    for manifest in saved.glob("0*/manifest.json"):
        manifest.write_bytes(b"{}")
    with pytest.raises(DamagedError):
        submit()
    assert restart.written(out) == restart.expected()


def test_a_store_of_checkpoints_that_is_away_costs_time_alone(tmp_path: Path) -> None:
    """While everybody dies, and at the very end: the job waits, and each row counts once."""
    out = tmp_path / "out"
    with object_store() as store:
        config = rel.JobConfig(pes=PES, checkpoint=rel.Checkpoint(store.uri("saved"), every=0.5, restarts=2))
        job = rel.submit(counted("stored", tmp_path, rel.csv(out)), config)

        def waits(attempts: int) -> bool:
            outage = job.status.outage
            return outage is not None and outage.attempts >= attempts

        try:
            wait_for_checkpoint(job)
            (tmp_path / "second").mkdir()
            with raises(StateError, "location-taken", "stored"):
                rel.submit(counted("second", tmp_path / "second", rel.csv(tmp_path / "more")), config)
            store.failing.update(REQUESTS)
            os.kill(ray.get(job._control._actor.__ray_call__.remote(lambda _: os.getpid())), signal.SIGKILL)  # type: ignore[attr-defined]
            os.kill(next(one.pid for one in job.status.pes if one.pe == "pe1"), signal.SIGKILL)
            wait_until(job, lambda: waits(2))
            store.failing.clear()
            wait_until(job, lambda: job.status.outage is None and job.status.state is State.RUNNING)
            wait_for_checkpoint(job)
            store.failing.update(REQUESTS)
            (tmp_path / "go").touch()
            wait_until(job, lambda: waits(1))
            store.failing.clear()
            job.wait(PATIENCE)
        finally:
            job.close()
    assert rows_in(out) == EXACT
    assert not (tmp_path / "more").exists()


def test_keys_end_in_another_process_and_stay_so_after_its_loss(tmp_path: Path) -> None:
    """A3."""
    go, rows = tmp_path / "go", [row_of(number) for number in range(2000)]
    topology = topology_of(FREED, rel.callable(until(go, rows, len(rows)), Once))
    pins = {name: 0 if name in ("rows", "time") else 1 for name in topology.operators}
    job = rel.submit(topology, rel.JobConfig(pes=pins, checkpoint=rel.Checkpoint(every=0.3)))

    def ops() -> list[Any]:
        metrics = job.metrics()
        return [metrics.operator(f"op{number}") for number in range(len(FREED))]

    try:
        wait_until(job, lambda: all(op.tuples_in > 2 * ALIVE and op.queued == 0 for op in ops()))
        assert {name: op.state_keys for name, op in zip(FREED, ops(), strict=True) if op.state_keys > ALIVE} == {}
        wait_for_checkpoint(job)
        wait_for_checkpoint(job)
        kill(job, "pe1")
        keys = {name: len(list(job.state(f"op{FREED.index(name)}").keys(limit=10_000))) for name in FREED[:2]}
        assert {name: count for name, count in keys.items() if not 290 <= count <= 310} == {}
        go.touch()
        result = job.wait(PATIENCE)
    finally:
        job.close()
    assert [result[f"out{number}"] for number in (0, 1)] == [len(rows)] * 2


SEEN: set[int] = set()


def fresh(t: Any) -> bool:
    new = t.n not in SEEN
    SEEN.add(t.n)
    return new


def test_what_remembers_outside_its_state_has_one_replica(tmp_path: Path) -> None:
    """A8."""
    go = tmp_path / "go"
    topology = rel.Topology("seen")
    rows = topology.source(rel.callable(until(go, [(n % 2000,) for n in range(4000)], 3000), {"n": int}), name="rows")
    rows.filter(fresh, name="fresh").sink(rel.count(), name="out")
    with raises(ConfigError, "invalid-setting", "fresh", "SEEN"):
        rel.submit(topology, rel.JobConfig(replicas={"fresh": 2}))
    job = rel.submit(topology)
    try:
        with raises(ConfigError, "fixed-region", "SEEN"):
            job.rescale(job.plan().region_of("fresh").region.name, 2)
        go.touch()
        assert job.wait(PATIENCE)["out"] == 2000
    finally:
        job.close()


NAMES = {"error disk": "disk", "error net": "net"}


def test_functions_of_plain_values_give_the_same_in_every_process() -> None:
    """With all defaults, then in processes of their own, which find the machine code in the cache."""
    lines = ["error disk", "ok", "error net", "error disk", "error ?"] * 100

    def named(lane: Any) -> rel.Topology:
        topology = rel.Topology("plain")
        errors = topology.source(lines, name="lines").filter(lambda line: "error" in line, name="errors", lane=lane)
        names = errors.filter_map(lambda line: NAMES.get(line), name="names", schema=str, lane=lane)
        counts = names.key_by("value").aggregate(name="counts", n=rel.count())
        counts.map(lambda t: (t["value"], t["n"]), name="pairs", schema={"name": str, "n": int}, lane=lane).top(
            1, by="n", name="most"
        ).sink(rel.list(), name="out")
        return topology

    for lane, config in (("auto", None), ("auto", rel.JobConfig(pes=4)), ("python", rel.JobConfig(pes=4))):
        job = rel.submit(named(lane), config)
        try:
            assert [tuple(t) for t in job.wait(PATIENCE)["out"]] == [("disk", 200)]
        finally:
            job.close()
