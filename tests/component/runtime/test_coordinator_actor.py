"""The shell of a coordinator that can't begin: it tells why when it is asked, and isn't started again and again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest

import rayelastic as rel
from rayelastic.errors import StateError
from rayelastic.job import prepare
from rayelastic.on_ray import coordinator_actor
from rayelastic.on_ray.coordinator_actor import COORDINATOR_CLASS, CoordinatorActor
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.remote import Call
from tests.raising import raises


class Store:
    """A job and its lines, in memory."""

    def __init__(self, job: bytes, lines: list[str]) -> None:
        self._job, self._lines = job, lines

    def job(self, digest: bytes) -> bytes:
        return self._job

    def lines(self) -> list[str]:
        return self._lines

    def append(self, line: str, *, alone: bool) -> None:
        self._lines.append(line)

    def close(self) -> None:
        self._lines.clear()


class Host(InProcessHost):
    """Knows what it was given, and whether that has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.adopted: list[Any] = []

    def adopt(self, early: list[Any]) -> None:
        self.adopted = [*early]

    def close(self) -> None:
        self.adopted.clear()


@pytest.mark.parametrize("died", [False, True])
def test_one_that_cannot_see_where_checkpoints_go_says_so(
    died: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a file"
    place.write_text("")
    topology = rel.Topology("refused")
    topology.source(rel.sequence(10), name="numbers").sink(rel.count(), name="out")
    job = cloudpickle.dumps(prepare(topology, rel.JobConfig(checkpoint=rel.Checkpoint(place))))
    store = Store(job, ['{"kind": "started", "incarnation": 1}'] if died else [])
    monkeypatch.setattr(coordinator_actor, "GcsStore", lambda _: store)
    host = Host()
    monkeypatch.setattr(coordinator_actor, "RayHost", lambda _: host)
    monkeypatch.setattr(coordinator_actor, "own_process", lambda _: None)
    settings: Any = SimpleNamespace(job_id="refused", owner="")
    if died:  # its elements run on: another process tries again
        with raises(StateError, "bad-location"):
            CoordinatorActor(COORDINATOR_CLASS, b"", settings, ["a process"])
        assert not host.adopted, "an element lives there"
        return
    actor = CoordinatorActor(COORDINATOR_CLASS, b"", settings, ["a process"])
    assert not host.adopted, "what was started early ends as well"
    for method in ("start", "status"):
        with raises(StateError, "bad-location"):
            actor.call(Call(method))
    assert actor.call(Call("close")) is None
