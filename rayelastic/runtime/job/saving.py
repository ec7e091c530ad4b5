"""Saves a job at one moment of its streams: all sources are held, what they sent is processed, then state is written.

Knows the elements by their handles, and nothing of changes of plan.
"""

from __future__ import annotations

from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from rayelastic.errors import PELostError, StateError
from rayelastic.runtime.snapshot import Part, Snapshot, SnapshotFolder, state_form
from rayelastic.runtime.values.status import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rayelastic.plan.exec_plan import ExecPlan
    from rayelastic.runtime.element.host import PEHandle
    from rayelastic.runtime.rescale.change_journal import ChangeJournal
    from rayelastic.runtime.values.specs import JobSpec

SNAPSHOT_TIMEOUT = 600.0  # seconds for a processing element to process what is under way, and for it to write its state
RELEASE_TIMEOUT = 10.0  # seconds for a processing element to go on, or to end


def check_savable(job: JobSpec, state: State, elastic: Sequence[str]) -> None:
    """Refuses a job that can't be saved now.

    Args:
        job: which.
        state: where it is in its life.
        elastic: its regions whose replicas can change.

    Raises:
        StateError: it can't.
    """
    if state is not State.RUNNING:
        raise StateError(f"job '{job.name}' is {state.value}: there is nothing to save")
    if elastic:
        raise StateError(
            f"job '{job.name}' has elastic regions, and what is on its way inside them can't be saved yet",
            way_out="Run it without JobConfig(regions='elastic')",
        )


def save_job(
    job: JobSpec, plan: ExecPlan, running: Mapping[str, PEHandle], snapshot: Snapshot, journal: ChangeJournal
) -> None:
    """Holds a job, saves it and has its sources end where they are; it goes on if it can't be saved.

    Args:
        job: which.
        plan: in force.
        running: its elements.
        snapshot: where to.
        journal: of the job, so that another coordinator ends what this one has begun.

    Raises:
        StateError: it can't be saved; names the operator.
    """
    folder = SnapshotFolder(snapshot)
    order = _upstream_first(plan)
    folder.prepare()
    handles = [running[pe] for pe in order]
    journal.stops(str(snapshot.location))
    try:
        for handle in handles:
            handle.within(SNAPSHOT_TIMEOUT).hold_sources()
        sent: dict[str, int] = {}
        for handle in handles:
            sent |= handle.within(SNAPSHOT_TIMEOUT).hold_all(sent)
        parts = [handle.within(SNAPSHOT_TIMEOUT).save(snapshot) for handle in handles]
        folder.write_manifest(job.name, _forms(job), parts)
        _read_back(folder, parts)
        journal.saved()
    except BaseException:
        folder.discard()
        _release(handles, go_on=True)
        journal.goes_on()
        raise
    _release(handles, go_on=False)


def end_stop(journal: ChangeJournal, handles: Sequence[PEHandle]) -> None:
    """Ends what a coordinator that died has begun: a job that was saved ends where it is held, another one goes on.

    Args:
        journal: of the job.
        handles: its elements.
    """
    if (stop := journal.open_stop) is None:
        return
    if not stop.saved:  # nobody has been told that it is a snapshot
        SnapshotFolder(Snapshot(stop.location)).discard()
    _release(handles, go_on=not stop.saved)
    if not stop.saved:
        journal.goes_on()


def _read_back(folder: SnapshotFolder, parts: Sequence[Part]) -> None:
    """Raises StateError unless a later run can read what was written: the job still has its state."""
    try:
        folder.manifest()
        for part in parts:
            written = next(iter(part.files.values()), ())
            for _ in folder.chunks(written[:1]):
                pass
    except StateError as error:
        raise StateError(
            f"what was saved can't be read back: {error}", way_out="Give a folder that every node of the cluster sees"
        ) from None


def _release(handles: Sequence[PEHandle], go_on: bool) -> None:
    for handle in handles:
        with suppress(PELostError, TimeoutError):  # its watcher reports a loss
            handle.within(RELEASE_TIMEOUT).release(go_on)


def _forms(job: JobSpec) -> dict[str, str]:
    forms = {name: state_form(spec) for name, spec in job.operators.items()}
    return {name: form for name, form in forms.items() if form is not None}


def _upstream_first(plan: ExecPlan) -> list[str]:
    feeds: dict[str, set[str]] = {pe: set() for pe in plan.pes}
    for link in plan.links:
        feeds[link.to_pe].add(link.from_pe)
    try:
        return list(TopologicalSorter(feeds).static_order())
    except CycleError:
        raise StateError(
            "processing elements that feed each other can't be saved", way_out="Pin them together"
        ) from None
