"""Copies files of checkpoints between the local disks of nodes, so that the loss of a node loses none.

Each node's share of a checkpoint gets a second copy on another node. Elements that restart elsewhere get the files that
they need from either copy. A node on which a copy lies has a holder: a process without operators, which needs no CPU of
the cluster. One group of files is copied at a time, and the copier rests as long as it has worked. So copying uses at
most half of what disks and network carry. Which node gets what is decided in checkpoint/protocol.py.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import TYPE_CHECKING

from rayelastic.errors import ChangeError, DamagedError, ErrorCode, PELostError, StateError, UnreadableError
from rayelastic.errors.invariants import invariant
from rayelastic.plan.plan_change import predecessors
from rayelastic.runtime.checkpoint.files import MANIFEST, SnapshotFolder
from rayelastic.runtime.checkpoint.protocol import lost_shares, second_nodes
from rayelastic.runtime.rounds import call_all
from rayelastic.runtime.values.checkpoint_record import Copied
from rayelastic.runtime.values.snapshot import STATE, File
from rayelastic.runtime.values.specs import PESpec
from rayelastic.runtime.values.status import State
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.checkpoint.disk import NodeDisk
    from rayelastic.runtime.element.host import PEHandle
    from rayelastic.runtime.job.context import JobContext
    from rayelastic.runtime.journal import SavedAt
    from rayelastic.runtime.values.snapshot import Manifest, Snapshot

CARRY_TIMEOUT = 120.0  # seconds for a file of some megabytes; a process may have to start first
START_TIMEOUT = 30.0  # seconds for a holder's process to start
CALL_TIMEOUT = 5.0  # seconds for a group of files of some megabytes
CHECK_TIMEOUT = 20.0  # seconds for a new holder to check all files that an earlier one left
LOOK_TIMEOUT = 1.0  # seconds for a holder to answer, of several that may have a file
DISCARD_TIMEOUT = 2.0  # seconds for a holder to remove files at the end of the job
MOST_FILES = 1000  # in a group
REST = 1.0  # seconds of rest for each second of copying
ONE_HOST = "no other host exists"
LOST = (PELostError, TimeoutError)


class Copies:
    """The second copies of one job's checkpoints.

    Args:
        context: The job.
    """

    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._job, self._host = context.job, context.host
        self._is_needed = context.settings.location is None and context.host.can_lose
        saved = context.journal.checkpoints
        self._second: Mapping[str, str] = saved[-1].copies if saved else {}  # the last choice
        self._holders: dict[str, PEHandle] = {}
        self._lock = threading.Lock()  # guards _holders
        self._stored = {node for one in saved for node in one.nodes}  # nodes with files of the job
        self._clean: set[str] = set()  # of these, nodes without files that another checkpoint needs
        self._rows: dict[str | Path, frozenset[str]] = {}  # {location of a checkpoint: its files of rows}
        self._problem = ""
        self._closed = threading.Event()

    def prepare(self) -> None:
        """Start the processes that take the first copies, and return at once."""
        if self._is_needed:
            shares = set(self._context.placed().nodes.values())
            self._second = second_nodes(shares, self._host.hosts() - self._host.silent, self._second)
            for node in self._second.values():
                self._holder(node)

    # --- a checkpoint gets its second copies --------------------------------------------------------------------------

    def copy(self, snapshot: Snapshot, manifest: Manifest, digest: str, plan: ExecPlan) -> Copied:
        """Copy each node's share to another node, and the manifest to both.

        Without another node that can take it, a share stays with one copy, and the result has the reason.

        Args:
            snapshot: The checkpoint, which is written.
            manifest: Its manifest.
            digest: The SHA-256 of the manifest's file.
            plan: The plan in force, placed.

        Raises:
            PELostError: An element is lost.
            TimeoutError: An element doesn't answer.
            StateError: An element lacks a file that it wrote, or the job no longer runs.
        """
        if not self._is_needed:
            return Copied()
        self._rows[snapshot.location] = frozenset(
            blob.name for output in manifest.outputs.values() for blob in output.blobs
        )
        shares: dict[str, list[str]] = {}
        for pe in plan.pes:
            shares.setdefault(plan.nodes.get(pe, ""), []).append(pe)
        hosts, size, problem = self._host.hosts() - self._host.silent, 0, ""
        nodes = dict.fromkeys(shares, "")
        about = File(STATE, MANIFEST, digest)
        content = next(SnapshotFolder(snapshot).chunks([(MANIFEST, digest)]))
        self._stored |= set(shares)
        for owner, pes in shares.items():
            disk = self._element(pes[0])
            if disk.lacking(snapshot, [about]):
                disk.write(snapshot, [(about, content)])
            while True:
                self._second = second_nodes(shares, hosts, {**self._second, **{o: s for o, s in nodes.items() if s}})
                if not (second := self._second.get(owner, "")):
                    problem = problem or ONE_HOST
                    break
                try:
                    size += self._copy_share(snapshot, manifest, pes, plan, second, (about, content))
                except _HolderError as error:
                    hosts, problem = hosts - {second}, f"node {second} can't take a copy: {error}"
                else:
                    nodes[owner] = second
                    break
        problem = "" if all(nodes.values()) else problem  # another node could take it
        self._log(problem)
        return Copied(nodes, size, problem)

    def prune(self) -> None:
        """Remove the copies of checkpoints that aren't kept any more; what fails is removed with the next ones."""
        if not self._is_needed:
            return
        kept = self._context.journal.checkpoints
        locations, needed = [saved.location for saved in kept], {node for saved in kept for node in saved.nodes}
        known = all(location in self._rows for location in locations)
        self._rows = {location: rows for location, rows in self._rows.items() if location in locations}
        rows = frozenset().union(*self._rows.values()) if known else None
        with self._lock:
            holders = dict(self._holders)
        for node in needed & holders.keys():
            with contextlib.suppress(*LOST, StateError):
                holders[node].within(CALL_TIMEOUT).disk.keep(locations, rows)
        occupied = {status.node for status in self._context.life.elements().values()}  # these remove their own
        self._clean &= self._stored - needed
        unneeded = (self._stored - self._clean - needed - occupied) & self._host.hosts()
        for node in self._visit(unneeded, lambda disk: disk.keep(locations, rows), CALL_TIMEOUT):
            self._clean.add(node)  # the rest of its files at the end: nodes may have one disk

    def discard(self) -> None:
        """Remove all copies where no element of the job does so, and end the holders."""
        occupied = {status.node for status in self._context.life.elements().values()}
        if self._is_needed:
            self._visit((self._stored - occupied) & self._host.hosts(), lambda disk: disk.discard(), DISCARD_TIMEOUT)
        self.close()

    def close(self) -> None:
        """End the holders; the copies stay."""
        self._closed.set()
        with self._lock:
            holders, self._holders = self._holders, {}
        for holder in holders.values():
            with contextlib.suppress(PELostError):
                holder.kill(at_once=True)

    # --- elements get the files of their checkpoint -------------------------------------------------------------------

    def manifest(self, saved: SavedAt, snapshot: Snapshot) -> Manifest:
        """Read the manifest of a checkpoint, from this disk or from a node that has a copy.

        Raises:
            DamagedError: A share of the checkpoint is gone, or no node has the manifest.
            UnreadableError: A node doesn't answer.
        """
        if gone := lost_shares(saved.copies, self._host.hosts()):
            raise DamagedError(_loss(saved, gone), hint=_HINT)
        folder = SnapshotFolder(snapshot)
        try:
            return folder.manifest()
        except DamagedError as error:
            if not saved.copies:
                raise
            damaged = error
        for source in self._sources(saved):
            with contextlib.suppress(DamagedError, *LOST):
                if (content := source.manifest(snapshot)) is not None:
                    folder.make()
                    folder.write(MANIFEST, content)
                    return folder.manifest()
        raise damaged

    def deliver(self, saved: SavedAt, started: Sequence[tuple[PEHandle, PESpec]]) -> None:
        """Copy the files that new elements restore to their nodes, if these lack them.

        Args:
            saved: The checkpoint that they restore.
            started: The elements, which have opened nothing yet.

        Raises:
            DamagedError: No node has a file.
            UnreadableError: A node that may have it doesn't answer.
        """
        if not saved.copies:
            return
        call_all({spec.pe: (handle, spec) for handle, spec in started}, lambda one: self._deliver(saved, *one))

    def carry(self, snapshot: Snapshot, wanted: ExecPlan) -> None:
        """Copy the files of a checkpoint to the nodes where another plan's elements need them.

        A process on the target node writes them before any element of the job ends, and later runs the new element.

        Args:
            snapshot: The checkpoint, which the elements that run have written.
            wanted: The plan that restores it, placed.

        Raises:
            ChangeError: A node has no room, or an element lacks a file that it wrote.
            PELostError: An element is lost.
            TimeoutError: An element doesn't answer.
        """
        by_node: dict[str, dict[str, list[File]]] = {}
        manifest = SnapshotFolder(snapshot).manifest()
        for owner, node, file in files_elsewhere(manifest, self._context.plan.now, wanted):
            by_node.setdefault(node, {}).setdefault(owner, []).append(file)
        for node, files in by_node.items():
            carrier = self._host.start_pe(self._spec(f"carrier-{node}", node))
            try:
                element = carrier.within(CARRY_TIMEOUT)
                if (at := element.status().node) != node:
                    problem = f"node {node} has no room: a process for it started on {at}"
                    raise ChangeError(problem, hint="Add CPUs", code=ErrorCode.NO_ROOM)
                for owner, owned in files.items():
                    source = self._element(owner, CARRY_TIMEOUT)
                    if left := _bring(snapshot, source, element.disk, element.disk.lacking(snapshot, owned))[0]:
                        problem = f"{owner} no longer has {left[0].name}, which it wrote for the checkpoint"
                        raise ChangeError(problem)
            finally:
                self._host.recycle(carrier)

    # -- implementation -------------------------------------------------------------------------------------------

    def _spec(self, pe: str, node: str) -> PESpec:
        job = self._job
        return PESpec(pe, job.name, job.job_id, job.secret, (), (), (), job.config, node=node)

    def _element(self, pe: str, timeout: float = CALL_TIMEOUT) -> NodeDisk:
        if (handle := self._context.cluster.handles.get(pe)) is None:
            raise PELostError(f"PE {pe} doesn't exist any more", code=ErrorCode.PE_MISSING)
        return handle.within(timeout).disk

    def _copy_share(
        self,
        snapshot: Snapshot,
        manifest: Manifest,
        pes: Sequence[str],
        plan: ExecPlan,
        second: str,
        about: tuple[File, bytes],
    ) -> int:
        """Copy the files of some elements, then the manifest; return the bytes."""
        size, holder = 0, _HolderDisk(self._holder(second), self._rest)
        self._stored.add(second)
        for pe in pes:
            owned = [file for operator in plan.pes[pe] for file in manifest.files_of(operator, pe)]
            left, copied = _bring(snapshot, self._element(pe), holder, holder.lacking(snapshot, owned), self._rest)
            if left:
                problem = f"{pe} no longer has {left[0].name}, which it wrote for the checkpoint"
                raise DamagedError(problem, hint="Keep the disk of its node")
            size += copied
        holder.write(snapshot, [about])
        return size

    def _rest(self, seconds: float) -> None:
        """Rest after a group of files that took so long; raise StateError if the job doesn't run any more."""
        self._closed.wait(REST * seconds)
        if self._context.life.state is not State.RUNNING:
            raise StateError("the job doesn't run", code=ErrorCode.JOB_NOT_RUNNING)

    def _holder(self, node: str) -> PEHandle:
        """Return the holder of a node, whose process may still have to start."""
        with self._lock:
            holder = self._holders.get(node)
            if holder is None or not holder.is_alive():
                holder = self._holders[node] = self._host.start_holder(self._spec(f"holder-{node}", node))
            return holder

    def _visit(self, nodes: Collection[str], act: Callable[[NodeDisk], None], timeout: float) -> list[str]:
        """Act on the disks of nodes that no later checkpoint uses, and end their holders; return where it worked."""
        reached: list[str] = []
        for node in nodes:
            with contextlib.suppress(*LOST):
                element = self._holder(node).within(timeout)
                if element.status().node == node:
                    act(element.disk)
                    reached.append(node)
            with self._lock, contextlib.suppress(PELostError, KeyError):
                self._holders.pop(node).kill(at_once=True)
        return reached

    def _deliver(self, saved: SavedAt, handle: PEHandle, spec: PESpec) -> None:
        snapshot, manifest = spec.restore, spec.manifest
        assert snapshot is not None
        assert manifest is not None
        names = [operator.name for operator in spec.operators]
        files = [file for name in names for file in manifest.files_of(name, spec.predecessor(name))]
        element = handle.within(CARRY_TIMEOUT)
        missing = element.disk.lacking(snapshot, files)
        if not missing:
            return
        node, count = element.status().node, len(missing)
        for source in self._sources(saved, node):
            with contextlib.suppress(*LOST):
                missing = _bring(snapshot, source, element.disk, missing)[0]
            if not missing:
                tell("files copied", job=self._job.name, pe=spec.pe, node=node, files=count)
                return
        problem = f"no node has {missing[0].name} of checkpoint {saved.checkpoint}, which {spec.pe} restores"
        raise DamagedError(problem, hint=_HINT)

    def _sources(self, saved: SavedAt, node: str = "") -> Iterator[NodeDisk]:
        """Yield the disks of the nodes that have files of a checkpoint, except one node's, as they answer.

        Raises:
            UnreadableError: After those that answer: another one doesn't.
        """
        silent = self._host.silent  # asked last
        nodes = sorted((saved.nodes & self._host.hosts()) - {node}, key=lambda name: (name in silent, name))
        holders = {name: self._holder(name) for name in nodes}
        until = time.monotonic() + START_TIMEOUT
        while holders and time.monotonic() < until:
            for name, holder in list(holders.items()):
                try:
                    at = holder.within(LOOK_TIMEOUT).status().node
                except PELostError:
                    del holders[name]
                except TimeoutError:
                    continue
                else:
                    del holders[name]
                    if at == name:
                        yield holder.within(CARRY_TIMEOUT).disk
        if holders:
            problem = f"checkpoint {saved.checkpoint} can't be read: {', '.join(holders)} doesn't answer"
            raise UnreadableError(problem, hint="Switch the node on again")

    def _log(self, problem: str) -> None:
        """Log why there is no second copy, or that there is one again, once."""
        if problem != self._problem:
            level = logging.INFO if problem in ("", ONE_HOST) else logging.WARNING
            event = "checkpoints have one copy" if problem else "checkpoints have two copies again"
            tell(event, job=self._job.name, level=level, reason=problem)
        self._problem = problem


class _HolderError(Exception):
    """A node can't take a copy."""


class _HolderDisk:
    """The disk of a holder, whose failures don't abort the checkpoint.

    Args:
        holder: The holder, whose process may still have to start.
        rest: Raises StateError if the job doesn't wait for it any more.
    """

    def __init__(self, holder: PEHandle, rest: Callable[[float], None]) -> None:
        self._holder = holder
        for _ in range(round(START_TIMEOUT / LOOK_TIMEOUT)):
            with self._failing(), contextlib.suppress(TimeoutError):
                at = holder.within(LOOK_TIMEOUT).status().node
                if holder.pe != f"holder-{at}":
                    raise PELostError(f"its process started on {at}")
                return
            rest(0.0)
        raise _HolderError(f"its process didn't start within {START_TIMEOUT:g} s")

    def lacking(self, snapshot: Snapshot, files: Sequence[File]) -> list[File]:
        """See NodeDisk."""
        with self._failing():
            return self._holder.within(CHECK_TIMEOUT).disk.lacking(snapshot, files)

    def write(self, snapshot: Snapshot, files: Sequence[tuple[File, bytes]]) -> None:
        """See NodeDisk."""
        with self._failing():
            self._holder.within(CALL_TIMEOUT).disk.write(snapshot, files)

    @staticmethod
    @contextlib.contextmanager
    def _failing() -> Iterator[None]:
        try:
            yield
        except (*LOST, StateError) as error:
            raise _HolderError(f"{error}") from error


def _bring(
    snapshot: Snapshot,
    source: NodeDisk,
    target: NodeDisk | _HolderDisk,
    files: Sequence[File],
    rest: Callable[[float], None] = lambda _: None,
) -> tuple[list[File], int]:
    """Copy files between two disks; return those that the source lacks, and the bytes of the others."""
    lacked: list[File] = []
    at, size = 0, 0
    while at < len(files):
        began = time.monotonic()
        contents = source.read(snapshot, files[at : at + MOST_FILES])
        invariant(len(contents) > 0, "each call reads a file")
        group = list(zip(files[at:], contents, strict=False))
        lacked += [file for file, content in group if content is None]
        if sound := [(file, content) for file, content in group if content is not None]:
            target.write(snapshot, sound)
        size += sum(len(content) for _, content in sound)
        at += len(contents)
        rest(time.monotonic() - began)
    return lacked, size


def files_elsewhere(manifest: Manifest, now: ExecPlan, wanted: ExecPlan) -> Iterator[tuple[str, str, File]]:
    """Yield the files that another node needs: (the element that has it, that node, the file).

    Args:
        manifest: The checkpoint's manifest.
        now: The plan that wrote it, placed.
        wanted: The plan that restores it, placed.
    """
    invariant(
        all(now.region(part.region.name).replicas == part.replicas for part in wanted.regions),
        "a plan that restores files elsewhere has as many replicas",
    )
    for pe, owners in predecessors(now, wanted).items():
        node = wanted.nodes.get(pe, "")
        for operator, owner in owners.items():
            if now.nodes.get(owner, "") != node:
                yield from ((owner, node, file) for file in manifest.files_of(operator, owner))


_HINT = "Start the job again; with Checkpoint(location), a folder that every node sees, it can restore"


def _loss(saved: SavedAt, gone: Sequence[str]) -> str:
    """Return the sentence on a checkpoint whose shares are gone."""
    shares = [f"{node} and its second copy on {saved.copies[node]}" if saved.copies[node] else node for node in gone]
    only = "" if all(saved.copies[node] for node in gone) else ", which had no second copy"
    return f"checkpoint {saved.checkpoint} can't be read: gone are {'; '.join(shares)}{only}"
