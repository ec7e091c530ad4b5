"""A job on Ray that writes to PostgreSQL, and whose processes or server are lost: no row is lost or doubled."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import ray
from ray.experimental import internal_kv

import rayelastic as rel
from rayelastic.on_ray.connect import NAMESPACE
from tests.cluster.test_recovery import KEYS, PATIENCE, PES, ROWS, counted, kill
from tests.postgres import away, needs_postgres, postgres_server, restart
from tests.waiting import wait_until

pytestmark = [pytest.mark.cluster, needs_postgres]

KILLS = 2
PASSWORD = "Kq7-of-the-server-itself"  # looked for in all that Ray stores


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server(PASSWORD) as conninfo:
        yield conninfo


def rows_in(server: str) -> int:
    with psycopg.connect(server, password=PASSWORD) as connection:
        if connection.execute("SELECT to_regclass('counts')").fetchone() == (None,):
            return 0
        found = connection.execute("SELECT count(*) FROM counts").fetchone()
        return 0 if found is None else int(found[0])


def with_the_password() -> Iterator[str]:
    """Yield what of Ray's store, logs and files has the password."""
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    secret, seen = PASSWORD.encode(), 0
    for path in session.rglob("*"):
        with contextlib.suppress(OSError):  # sockets, and files that go
            if path.is_file():
                seen += 1
                if secret in path.read_bytes():
                    yield str(path)
    keys: set[bytes] = set()
    for space in (None, b"fun", NAMESPACE):
        for key in internal_kv._internal_kv_list(b"", namespace=space):
            keys.add(key)
            if secret in (internal_kv._internal_kv_get(key, namespace=space) or b""):
                yield f"{key!r}"
    assert seen > 10
    assert any(key.startswith(b"journal:") for key in keys)


@pytest.mark.parametrize("lost", ["process", "server", pytest.param("server for a while", marks=pytest.mark.edges)])
@pytest.mark.guarantee(
    source="a seekable Python source",
    sink="PostgreSQL",
    lost="the process that writes, or the server, again and again",
    rows="each once",
)
def test_what_writes_is_lost_again_and_again(ray_cluster: None, server: str, tmp_path: Path, lost: str) -> None:
    with psycopg.connect(server, password=PASSWORD) as connection:
        connection.execute("DROP TABLE IF EXISTS counts")
    file = tmp_path / "password"
    file.write_text(PASSWORD)
    topology = counted("to_postgres", tmp_path, rel.postgres(server, "counts", password=rel.secret(file=str(file))))
    restarts = 1 if lost == "server for a while" else 100  # which outages don't count as
    config = rel.JobConfig(pes=PES, checkpoint=rel.Checkpoint(every=0.5, restarts=restarts))
    job = rel.submit(topology, config)
    try:
        for number in range(KILLS):
            before = rows_in(server)
            wait_until(job, lambda before=before: rows_in(server) > before)  # type: ignore[misc]
            if lost == "server for a while":
                with away(server):
                    wait_until(job, lambda: job.status.outage is not None and job.status.outage.attempts >= 2)
            elif lost == "process":
                kill(job, "pe2" if number % 2 == 0 else "pe1")
            else:
                restarts = job.status.checkpoints.restarts
                restart(server)
                wait_until(job, lambda n=restarts: job.status.checkpoints.restarts > n)  # type: ignore[misc]
        assert not list(with_the_password())
        (tmp_path / "go").touch()
        job.wait(PATIENCE)
        with psycopg.connect(server, password=PASSWORD) as connection:
            held = connection.execute('SELECT n, "all" FROM counts ORDER BY n').fetchall()
        assert held == [(n, n // KEYS + 1) for n in range(ROWS)]
        assert job.status.checkpoints.restarts >= KILLS
    finally:
        job.close()
