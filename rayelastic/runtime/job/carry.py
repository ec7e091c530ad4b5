"""Copies files of a checkpoint from the local disks of nodes to the nodes where another plan's elements need them.

A process on the target node writes them before any element of the job ends, and later runs the new element. Knows
elements by their handles. A file is checked against its digest, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rayelastic.errors import ChangeError, ErrorCode
from rayelastic.errors.invariants import invariant
from rayelastic.plan.plan_change import predecessors
from rayelastic.runtime.checkpoint.files import SnapshotFolder, rows_of
from rayelastic.runtime.values.specs import PESpec

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.job.context import JobContext
    from rayelastic.runtime.values.snapshot import Manifest, Snapshot

__all__ = ["carry", "wanted_elsewhere"]

CARRY_TIMEOUT = 120.0  # seconds for a file of some megabytes; a process may have to start first

File = tuple[str, str, str]  # 'state' or 'rows', name, SHA-256 in hex


def carry(context: JobContext, snapshot: Snapshot, wanted: ExecPlan) -> None:
    """Copy the files that elements need that restart elsewhere.

    Args:
        context: The job, whose elements have written the checkpoint and run.
        snapshot: The checkpoint.
        wanted: The plan that restores it, placed.

    Raises:
        ChangeError: A node has no room, or an element lacks a file that it wrote.
        PELostError: An element is lost.
        TimeoutError: An element doesn't answer.
    """
    job, handles = context.job, context.cluster.handles
    places = {"state": snapshot, "rows": rows_of(snapshot)}
    by_node: dict[str, dict[File, str]] = {}
    for owner, node, file in wanted_elsewhere(SnapshotFolder(snapshot).manifest(), context.plan.now, wanted):
        by_node.setdefault(node, {})[file] = owner
    for node, files in by_node.items():
        spec = PESpec(f"carrier-{node}", job.name, job.job_id, job.secret, (), (), (), job.config, node=node)
        carrier = context.host.start_pe(spec)
        try:
            element = carrier.within(CARRY_TIMEOUT)
            if (at := element.status().node) != node:
                raise ChangeError(
                    f"node {node} has no room: a process for it started on {at}",
                    hint="Add CPUs",
                    code=ErrorCode.NO_ROOM,
                )
            for (place, name, digest), owner in files.items():
                if element.checkpoint.read_file(places[place], name, digest) is not None:
                    continue  # the nodes have one disk
                data = handles[owner].within(CARRY_TIMEOUT).checkpoint.read_file(places[place], name, digest)
                if data is None:
                    raise ChangeError(f"{owner} no longer has {name}, which it wrote for the checkpoint")
                element.checkpoint.write_file(places[place], name, data)
        finally:
            context.host.recycle(carrier)


def wanted_elsewhere(manifest: Manifest, now: ExecPlan, wanted: ExecPlan) -> Iterator[tuple[str, str, File]]:
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
    for pe in wanted.pes:
        node = wanted.nodes.get(pe, "")
        for operator, owner in predecessors(now, wanted, pe).items():
            if now.nodes.get(owner, "") == node:
                continue
            for name, digest in manifest.files.get(operator, ()):
                if name.startswith(f"{owner}-"):
                    yield owner, node, ("state", name, digest)
            if (output := manifest.outputs.get(operator)) is not None:
                yield from ((owner, node, ("rows", blob.name, blob.digest)) for blob in output.blobs)
