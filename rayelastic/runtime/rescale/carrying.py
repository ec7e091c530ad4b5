"""Copies files of a checkpoint from the local disks of nodes to the nodes where another plan's elements need them.

A process on the target node writes them before any element of the job ends, and later runs the new element. Knows
elements by their handles. A file is checked against its digest, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rayelastic.errors import ChangeError, ErrorCode
from rayelastic.plan.plan_change import predecessors
from rayelastic.runtime.snapshot import SnapshotFolder, rows_beside
from rayelastic.runtime.values.specs import PESpec

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.host import PEHandle, PEHost
    from rayelastic.runtime.snapshot import Manifest, Snapshot
    from rayelastic.runtime.values.specs import JobSpec

__all__ = ["carry", "wanted_elsewhere"]

CARRY_TIMEOUT = 120.0  # seconds for a file of some megabytes; a process may have to start first

File = tuple[str, str, str]  # 'state' or 'rows', name, SHA-256 in hex


def carry(
    job: JobSpec, saved: Snapshot, now: ExecPlan, wanted: ExecPlan, handles: Mapping[str, PEHandle], host: PEHost
) -> None:
    """Copy the files that elements need that restart elsewhere.

    Args:
        job: The job.
        saved: The checkpoint, written by elements of the plan in force.
        now: The plan in force, placed.
        wanted: The plan that restores it, placed.
        handles: The running elements, by id.
        host: Makes processes.

    Raises:
        ChangeError: A node has no room, or an element lacks a file that it wrote.
        PELostError: An element is lost.
        TimeoutError: An element doesn't answer.
    """
    manifest = SnapshotFolder(saved).manifest()
    places = {"state": saved, "rows": rows_beside(saved)}
    by_node: dict[str, dict[File, str]] = {}
    for giver, node, file in wanted_elsewhere(manifest, now, wanted):
        by_node.setdefault(node, {})[file] = giver
    for node, files in by_node.items():
        spec = PESpec(f"carrier-{node}", job.name, job.job_id, job.secret, (), (), (), job.config, node=node)
        carrier = host.start_pe(spec)
        try:
            element = carrier.within(CARRY_TIMEOUT)
            if (at := element.status().node) != node:
                raise ChangeError(
                    f"node {node} has no room: a process for it started on {at}",
                    hint="Add CPUs",
                    code=ErrorCode.NO_ROOM,
                )
            for (place, name, digest), giver in files.items():
                if element.saved(places[place], name, digest) is not None:
                    continue  # the nodes have one disk
                data = handles[giver].within(CARRY_TIMEOUT).saved(places[place], name, digest)
                if data is None:
                    raise ChangeError(f"{giver} no longer has {name}, which it wrote for the checkpoint")
                element.keep_saved(places[place], name, data)
        finally:
            host.recycle(carrier)


def wanted_elsewhere(manifest: Manifest, now: ExecPlan, wanted: ExecPlan) -> Iterator[tuple[str, str, File]]:
    """Yield the files that another node needs: (the element that has it, that node, the file).

    Args:
        manifest: The checkpoint's manifest.
        now: The plan that wrote it, placed.
        wanted: The plan that restores it, placed.
    """
    for pe in wanted.pes:
        node = wanted.nodes.get(pe, "")
        for operator, giver in predecessors(now, wanted, pe).items():
            if now.nodes.get(giver, "") == node:
                continue
            for name, digest in manifest.files.get(operator, ()):
                if name.startswith(f"{giver}-"):
                    yield giver, node, ("state", name, digest)
            if (output := manifest.outputs.get(operator)) is not None:
                yield from ((giver, node, ("rows", blob.name, blob.digest)) for blob in output.blobs)
