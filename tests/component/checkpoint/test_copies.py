"""Second copies of checkpoints on hosts that fail, have no room, or lack files: where they are, what is restored."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import rayelastic as rel
from rayelastic.errors import DamagedError, PELostError, StateError
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.job import copies
from rayelastic.runtime.job.copies import Copies
from rayelastic.runtime.journal import ChangeJournal, SavedAt
from rayelastic.runtime.values.checkpoint_record import Copied
from rayelastic.runtime.values.snapshot import File, Manifest, Snapshot
from rayelastic.runtime.values.specs import JobSpec, PESpec
from rayelastic.runtime.values.status import PEStatus, State
from tests.unit.runtime.performing import GROW, Run


@dataclass
class Disk:
    """A node's disk, in memory."""

    files: dict[File, bytes] = field(default_factory=dict)
    problem: Exception | None = None
    kept: Sequence[str] = ()

    def lacking(self, snapshot: Snapshot, files: Sequence[File]) -> list[File]:
        self.fail()
        return [file for file in files if file not in self.files]

    def read(self, snapshot: Snapshot, files: Sequence[File]) -> list[bytes | None]:
        self.fail()
        return [self.files.get(file) for file in files[:2]]

    def write(self, snapshot: Snapshot, files: Sequence[tuple[File, bytes]]) -> None:
        self.fail()
        self.files.update(files)

    def manifest(self, snapshot: Snapshot) -> bytes | None:
        self.fail()
        return next((data for file, data in self.files.items() if file.name == "manifest.json"), None)

    def keep(self, locations: Sequence[str], rows: object) -> None:
        self.fail()
        self.kept = locations

    def discard(self) -> None:
        self.files.clear()

    def fail(self) -> None:
        if self.problem is not None:
            raise self.problem


class Element:
    """An element, or a holder, on a node; its own handle."""

    def __init__(self, pe: str, node: str, disk: Disk) -> None:
        self.pe, self.node, self.disk = pe, node, disk

    def within(self, timeout: float) -> Element:
        return self

    def status(self) -> PEStatus:
        self.disk.fail()
        return PEStatus(self.pe, State.RUNNING, node=self.node)

    def is_alive(self) -> bool:
        return True

    def kill(self, *, at_once: bool = False) -> None:
        pass


class Cluster:
    """Hosts with disks, and a job with an element on the first."""

    can_lose = True

    def __init__(self, folder: Path, nodes: str = "abc") -> None:
        self.disks = {node: Disk() for node in nodes}
        run = Run(GROW)
        self.journal = ChangeJournal()
        plan = run.change.old
        self.plan = plan.with_nodes(dict.fromkeys(plan.pes, "a"))
        self.element = Element(next(iter(plan.pes)), "a", self.disks["a"])
        self.states = {f"{self.element.pe}-{number}.state": bytes([number]) * 10 for number in range(5)}
        handles = dict.fromkeys(plan.pes, self.element)
        life = SimpleNamespace(state=State.RUNNING, elements=lambda: {self.element.pe: self.element.status()})
        job = JobSpec("job", run.cluster.operators, plan, rel.JobConfig(regions="manual"))
        context = SimpleNamespace(
            job=job, host=self, settings=rel.Checkpoint(), journal=self.journal, life=life,
            cluster=SimpleNamespace(handles=handles), placed=lambda: self.plan,
        )  # fmt: skip
        self.copies = Copies(cast("Any", context))
        self.operator = plan.pes[self.element.pe][0]
        self.snapshot = Snapshot(folder / "00000001", key=b"k" * 16)

    def hosts(self) -> frozenset[str]:
        return frozenset(self.disks)

    silent: frozenset[str] = frozenset()

    def start_holder(self, spec: PESpec) -> Element:
        return Element(spec.pe, spec.node, self.disks[spec.node])

    def manifest(self) -> Manifest:
        files = [(name, hashlib.sha256(data).hexdigest()) for name, data in self.states.items()]
        return Manifest("job", {}, {}, {self.operator: files}, {}, {}, signed=True)

    def take(self) -> tuple[SavedAt, Copied]:
        """Write a checkpoint on the first host, and copy it."""
        manifest, folder = self.manifest(), SnapshotFolder(self.snapshot)
        folder.make()
        for file in manifest.files_of(self.operator, self.element.pe):
            self.disks["a"].files[file] = self.states[file.name]
        copied = self.copies.copy(self.snapshot, manifest, folder.write_manifest(manifest), self.plan)
        at = SavedAt(1, str(self.snapshot.location), copied.nodes)
        self.journal.checkpointed(at, self.plan, 1)
        return at, copied

    def restore(self, at: SavedAt, node: str) -> None:
        """Start an element that restores it, on a node."""
        manifest = self.copies.manifest(at, self.snapshot)
        spec = PESpec(self.element.pe, "job", "id", b"", (), (), (), rel.JobConfig())
        operators = (SimpleNamespace(name=self.operator),)
        spec = replace(spec, operators=cast("Any", operators), restore=self.snapshot, manifest=manifest)
        self.copies.deliver(at, [(cast("Any", Element(spec.pe, node, self.disks[node])), spec)])


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_a_share_is_on_two_nodes_and_copied_once(cluster: Cluster) -> None:
    at, copied = cluster.take()
    assert dict(at.copies) == {"a": "b"}
    assert (copied.bytes, copied.is_complete) == (50, True)
    assert cluster.disks["b"].files == cluster.disks["a"].files
    cluster.states[f"{cluster.element.pe}-0.state"] = b"changed"
    cluster.snapshot = Snapshot(f"{cluster.snapshot.location[:-1]}2", key=b"k" * 16)  # type: ignore[index]
    manifest, folder = cluster.manifest(), SnapshotFolder(cluster.snapshot)
    folder.make()
    for file in manifest.files_of(cluster.operator, cluster.element.pe):
        cluster.disks["a"].files[file] = cluster.states[file.name]
    again = cluster.copies.copy(cluster.snapshot, manifest, folder.write_manifest(manifest), cluster.plan)
    assert (dict(again.nodes), again.bytes) == ({"a": "b"}, len(b"changed"))


@pytest.mark.parametrize("problem", [PELostError("gone"), TimeoutError("silent"), StateError("the disk is full")])
def test_a_node_that_cannot_take_a_copy_is_left_out(cluster: Cluster, problem: Exception, monkeypatch: Any) -> None:
    monkeypatch.setattr(copies, "START_TIMEOUT", 1.0)
    cluster.disks["b"].problem = problem
    at, copied = cluster.take()
    assert (dict(at.copies), copied.is_complete) == ({"a": "c"}, True)


def test_without_another_node_there_is_one_copy_and_a_reason(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, "ab")
    cluster.disks["b"].problem = StateError("the disk is full")
    at, copied = cluster.take()
    assert (dict(at.copies), copied.bytes, copied.is_complete) == ({"a": ""}, 0, False)
    assert copied.problem == "node b can't take a copy: the disk is full"
    alone = Cluster(tmp_path / "alone", "a")
    assert alone.take()[1].problem == "no other host exists"


def test_a_lost_node_is_restored_from_the_second_copy(cluster: Cluster) -> None:
    at, _ = cluster.take()
    del cluster.disks["a"]
    SnapshotFolder(cluster.snapshot).remove()  # the coordinator was there, too
    cluster.restore(at, "c")
    assert sorted(cluster.disks["c"].files.values()) == sorted(cluster.states.values())


def test_a_node_that_returns_without_a_file_gets_it_from_the_other_copy(cluster: Cluster) -> None:
    at, _ = cluster.take()
    cluster.disks["a"].files.popitem()
    cluster.disks["a"].files.pop(cluster.manifest().files_of(cluster.operator, cluster.element.pe)[0])
    cluster.restore(at, "a")
    assert set(cluster.states.values()) <= set(cluster.disks["a"].files.values())


def test_a_checkpoint_whose_copies_are_gone_is_damaged(cluster: Cluster) -> None:
    at, _ = cluster.take()
    gone = {node: cluster.disks.pop(node) for node in "ab"}
    with pytest.raises(DamagedError, match="checkpoint 1 can't be read: gone are a and its second copy on b"):
        cluster.restore(at, "c")
    cluster.disks |= gone
    for disk in gone.values():
        disk.files.clear()  # they return, with other disks
    with pytest.raises(DamagedError, match=r"no node has .*-0\.state of checkpoint 1"):
        cluster.restore(at, "c")


def test_what_is_not_kept_is_removed_from_all_nodes(cluster: Cluster) -> None:
    at, _ = cluster.take()
    cluster.copies.prune()
    assert cluster.disks["b"].kept == [at.location]
    cluster.copies.discard()
    assert not cluster.disks["b"].files
