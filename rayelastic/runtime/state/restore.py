"""Chooses the snapshot or checkpoint that a job restores, and checks whether its topology can.

Everything is checked before anything starts. Knows folders and declarations, neither elements nor schedulers.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.connectors.files.locations import below, local_path, shown_location
from rayelastic.errors import ConfigError, DamagedError, ErrorCode, StateError
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import PICKLED
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.checkpoint_place import had_complete, known_key
from rayelastic.runtime.snapshot import Manifest, Snapshot, SnapshotFolder, rows_folder
from rayelastic.runtime.state.names import check_same, name_to_give
from rayelastic.runtime.state.widening import older_records
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rayelastic.graph.spec.operator_spec import OperatorSpec

__all__ = ["LATEST", "check_keepable", "check_restorable", "checked", "latest", "newest"]

LATEST = "latest"  # of `restore=`: the newest checkpoint of the job, or its start if none was ever complete


def checked(given: Snapshot | Checkpoint | str | Path) -> Snapshot:
    """Return a user's snapshot, which may be one, settings of checkpoints, or a location.

    Raises:
        ConfigError: It names no location.

    >>> checked(Checkpoint("/mnt/checkpoints")).location
    '/mnt/checkpoints'
    """
    if isinstance(given, Snapshot):
        return given
    if isinstance(given, Checkpoint):
        if given.location is None:
            raise ConfigError(
                "Checkpoint() without a location keeps checkpoints for its own job only",
                hint="Pass the location of the earlier job, as Checkpoint('/mnt/checkpoints')",
                code=ErrorCode.BAD_LOCATION,
            )
        return Snapshot(given.location, given.key)
    if not isinstance(given, str | Path):
        raise ConfigError(
            f"{shown(given)} isn't a snapshot",
            hint="Pass rel.Snapshot(...), rel.Checkpoint(...) or a folder",
            code=ErrorCode.WRONG_TYPE,
        )
    return Snapshot(str(given))


def newest(saved: Snapshot, job: str) -> tuple[Snapshot, Manifest]:
    """Return the snapshot itself, or of a folder of checkpoints the newest undamaged one.

    Args:
        saved: The snapshot or folder.
        job: The restoring job, for the log.

    Raises:
        StateError: There is none, or it is of another format or key, for which no earlier one is a substitute.
    """
    saved = replace(saved, key=known_key(saved))
    folder = SnapshotFolder(saved)
    whole, problem = (None, None) if folder.is_there() else _newest_whole(saved, folder.numbered(), job)
    if whole is not None:
        return whole
    if problem is not None:
        raise problem
    return saved, folder.manifest()


def latest(settings: object, job: str) -> tuple[Snapshot, Manifest] | None:
    """Return the newest undamaged checkpoint of a job; None: none was ever complete, and the job begins at its start.

    Args:
        settings: JobConfig.checkpoint.
        job: The restoring job, for the log.

    Raises:
        ConfigError: The job has no location for checkpoints.
        StateError: There were some, but they are all damaged, or of another format or key.
    """
    if not isinstance(settings, Checkpoint) or settings.location is None:
        raise ConfigError(
            f'restore="{LATEST}" needs a location of checkpoints, and this job has none',
            hint="Pass JobConfig(checkpoint=rel.Checkpoint('/mnt/checkpoints')), a folder that outlives the job",
            code=ErrorCode.BAD_LOCATION,
        )
    where = str(settings.location)
    saved = Snapshot(where, settings.key)
    saved = replace(saved, key=known_key(saved))
    names = SnapshotFolder(saved).numbered()
    begun = [name for name in names if not SnapshotFolder(_numbered(saved, name)).is_there()]
    whole, problem = _newest_whole(saved, [name for name in names if name not in begun], job)
    if whole is None and problem is None and had_complete(where):
        problem = DamagedError(
            f"the checkpoints in {shown_location(where)} are gone",
            hint=f'Put them back, or leave restore="{LATEST}" out to start from the beginning',
            code=ErrorCode.CHECKPOINTS_GONE,
        )
    if whole is None and problem is not None:
        raise problem
    return whole


def _newest_whole(
    saved: Snapshot, names: Sequence[str], job: str
) -> tuple[tuple[Snapshot, Manifest] | None, StateError | None]:
    """Return the newest undamaged one; without any, the error of the newest."""
    problem: StateError | None = None
    for name in names:
        one = _numbered(saved, name)
        try:
            manifest = SnapshotFolder(one).manifest()
            _check_whole(one, manifest)
        except DamagedError as error:
            tell("checkpoint left out", job=job, level=logging.WARNING, reason=f"{error}")
            problem = problem or error
        else:
            return (one, manifest), None
    return None, problem


def _numbered(saved: Snapshot, name: str) -> Snapshot:
    return replace(saved, location=below(str(saved.location), name))


def _check_whole(saved: Snapshot, manifest: Manifest) -> None:
    folder = SnapshotFolder(saved)
    for files in manifest.files.values():
        for _ in folder.chunks(files):
            pass
    rows = rows_folder(saved, alone=manifest.alone)
    for output in manifest.outputs.values():
        for _ in rows.chunks([(blob.name, blob.digest) for blob in output.blobs]):
            pass


def check_keepable(settings: Checkpoint, operators: Iterable[OperatorSpec]) -> None:
    """Raise StateError, naming the operator, if no other job could restore checkpoints in a store without a key."""
    if settings.location is None or settings.key is not None or local_path(str(settings.location)) is not None:
        return
    for spec in operators:
        if (spec.state_form or "").endswith(PICKLED):
            raise StateError(
                "it keeps Python values, which are restored from signed checkpoints only, and a store keeps no key",
                operator=spec.name,
                location=spec.location,
                hint="Pass Checkpoint(..., key=...) with 16 bytes or more, and the same key to restore",
                code=ErrorCode.UNSIGNED_VALUES,
            )


def check_restorable(snapshot: Snapshot, manifest: Manifest, operators: Mapping[str, OperatorSpec]) -> None:
    """Raise StateError, naming the operator, if the topology can't restore the snapshot."""
    there = {*manifest.forms, *manifest.positions, *manifest.outputs, *operators}
    for name in snapshot.drop:
        if name not in there:
            raise StateError(
                "drop= names it, and neither the snapshot nor the topology has it",
                operator=name,
                hint=f"The snapshot has {', '.join(map(repr, sorted(manifest.forms))) or 'no state'}",
                code=ErrorCode.UNKNOWN_STATE,
            )
    for name, form in manifest.forms.items():
        if name in snapshot.drop:
            continue
        spec = operators.get(name)
        now = None if spec is None else spec.state_form
        if spec is None or now is None:
            lacks = "has no such operator" if spec is None else "keeps none"
            raise StateError(
                f"the snapshot has state of it, the topology {lacks}",
                operator=name,
                hint=name_to_give(name, form, operators, manifest.forms),
                code=ErrorCode.UNKNOWN_STATE,
            )
        check_same(spec, manifest.automatic.get(name))
        if now != form and older_records(manifest.shapes.get(name), spec) is None:
            raise StateError(
                f"its state was {form}, and is {now} now",
                operator=name,
                location=spec.location,
                hint="Declare it as it was (a record may have more fields, with defaults, and wider numbers). "
                "Or rename the operator and drop the old one",
                code=ErrorCode.CHANGED_STATE,
            )
        if form.endswith(PICKLED) and not manifest.signed:
            raise StateError(
                "the snapshot holds pickled Python values of it, which are read from signed snapshots only",
                operator=name,
                location=spec.location,
                hint="Pass Snapshot(..., key=...) when it is written and when it is restored",
                code=ErrorCode.UNSIGNED_VALUES,
            )
    for name in manifest.positions:
        if name not in snapshot.drop and (name not in operators or not operators[name].is_source):
            raise StateError(
                "the snapshot has the position of it, the topology has no such source",
                operator=name,
                hint=name_to_give(name, None, operators, manifest.positions),
                code=ErrorCode.UNKNOWN_STATE,
            )
        if name in operators and name not in snapshot.drop:
            check_same(operators[name], manifest.automatic.get(name))
