"""The contract of Ray's private calls (on_ray/private/adapter.py): a new Ray is taken up when this holds with it."""

from __future__ import annotations

import secrets
import socket
import threading
from pathlib import Path

import pytest
import ray

from rayelastic.on_ray.private import adapter

pytestmark = pytest.mark.cluster


@ray.remote(num_cpus=0)
class Echo:
    def said(self, word: str) -> str:
        return word


def test_an_actor_is_dead_once_it_was_killed(ray_cluster: str) -> None:
    echo = Echo.remote()  # type: ignore[attr-defined]  # Ray gives it
    assert ray.get(echo.said.remote("here")) == "here"
    assert not adapter.actor_is_dead(echo)
    ray.kill(echo, no_restart=True)
    waited = threading.Event()
    while not adapter.actor_is_dead(echo):
        waited.wait(0.05)


def test_the_machine_of_an_actor_has_a_name_and_accepts_connections(ray_cluster: str) -> None:
    echo = Echo.remote()  # type: ignore[attr-defined]  # Ray gives it
    ray.get(echo.said.remote("here"))
    name, address = adapter.machine_of(echo)
    assert name == socket.gethostname()
    socket.create_connection(address, 5.0).close()


def test_the_driver_that_asks_lives(ray_cluster: str) -> None:
    assert not adapter.driver_is_dead(ray.get_runtime_context().get_job_id())
    assert not adapter.driver_is_dead("ffffffff")


def test_who_started_ray_knows_it(ray_cluster: str) -> None:
    assert adapter.started_here()


def test_the_logs_of_the_session_are_there(ray_cluster: str) -> None:
    assert list(Path(adapter.logs_path()).glob("gcs_server*"))


def test_the_dashboard_has_an_address_or_none_and_headers_are_texts(ray_cluster: str) -> None:
    address = adapter.dashboard_address()
    assert not address or address.rpartition(":")[2].isdigit()
    assert all(isinstance(text, str) for pair in adapter.token_headers().items() for text in pair)


def test_a_cluster_tells_its_nodes_and_whether_it_wants_a_token(ray_cluster: str) -> None:
    address = ray.get_runtime_context().gcs_address
    assert adapter.living_nodes(address, 5.0) == 1
    assert adapter.asks_for_token() is adapter.take_token()


def test_a_key_is_written_once_without_overwriting(ray_cluster: str) -> None:
    space, prefix = f"contract-{secrets.token_hex(4)}", "line:"
    assert adapter.kv_get("line:1", space) is None
    assert not adapter.kv_put("line:1", b"first", space, overwrite=False)
    assert adapter.kv_put("line:1", b"second", space, overwrite=False)
    assert adapter.kv_get("line:1", space) == b"first"
    adapter.kv_put("line:1", b"third", space)
    assert adapter.kv_get("line:1", space) == b"third"
    for key in ("line:3", "line:2", "other"):
        adapter.kv_put(key, b"", space)
    assert adapter.kv_keys(prefix, space) == ["line:1", "line:2", "line:3"]
    adapter.kv_delete("line:2", space)
    assert adapter.kv_keys(prefix, space) == ["line:1", "line:3"]
    adapter.kv_delete(prefix, space, prefix=True)
    assert adapter.kv_keys("", space) == ["other"]
    adapter.kv_delete("other", space)
    adapter.kv_delete("other", space)
    assert not adapter.kv_keys("", space)


@pytest.mark.edges
def test_lines_of_workers_come_filtered_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ray._private import worker

    monkeypatch.setattr(worker, "print_to_stdstream", worker.print_to_stdstream)  # which is put back
    for _ in range(2):  # a second call replaces the first one
        adapter.filter_worker_lines(lambda lines, pid: [line for line in lines if pid != "raylet" and line != "no"])
    for pid in (7, "raylet"):
        data = {"lines": [f"from {pid}", "no"], "pid": pid, "ip": "1", "localhost": "1", "is_err": False}
        worker.print_to_stdstream(data, False)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert [line[-6:] for line in shown.err.splitlines() if "from " in line or line.endswith("no")] == ["from 7"]
