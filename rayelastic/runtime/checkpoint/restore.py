"""What a job saves and restores, checked before anything starts: its snapshot or checkpoint, and whether both fit.

An operator's state is matched by name, and an automatic name depends on earlier declarations. So a snapshot records
what each operator with such a name followed. Knows folders and declarations, neither PEs nor schedulers.
"""

from __future__ import annotations

import logging
import pickle
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rayelastic.compile.code.state import state_factory
from rayelastic.connectors.files.locations import below, local_path, shown_location
from rayelastic.errors import ConfigError, DamagedError, ErrorCode, StateError
from rayelastic.graph.records.forms import plain_form
from rayelastic.graph.records.shown import shown
from rayelastic.graph.spec.operator_spec import PICKLED
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.checkpoint.files import SnapshotFolder, rows_of
from rayelastic.runtime.checkpoint.location import COMPLETE, key_of_snapshot
from rayelastic.runtime.state.descriptor import keeps_objects, older_records
from rayelastic.runtime.values.snapshot import Manifest, Snapshot
from rayelastic.runtime.watch.event_log import tell

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rayelastic.graph.spec.operator_spec import OperatorSpec

LATEST = "latest"  # of `restore=`: the newest checkpoint of the job, or its start if none was ever complete


# --- which one --------------------------------------------------------------------------------------------------------


def snapshot_of(restore: Snapshot | Checkpoint | str | Path) -> Snapshot:
    """Return a user's snapshot, which may be one, settings of checkpoints, or a location.

    Raises:
        ConfigError: It names no location.

    >>> snapshot_of(Checkpoint("/mnt/checkpoints")).location
    '/mnt/checkpoints'
    """
    if isinstance(restore, Snapshot):
        return restore
    if isinstance(restore, Checkpoint):
        if restore.location is None:
            problem = "Checkpoint() without a location keeps checkpoints for its own job only"
            hint = "Pass the location of the earlier job, as Checkpoint('/mnt/checkpoints')"
            raise ConfigError(problem, hint=hint, code=ErrorCode.BAD_LOCATION)
        return Snapshot(restore.location, restore.key)
    if not isinstance(restore, str | Path):
        raise ConfigError(
            f"{shown(restore)} isn't a snapshot",
            hint="Pass rel.Snapshot(...), rel.Checkpoint(...) or a folder",
            code=ErrorCode.WRONG_TYPE,
        )
    return Snapshot(str(restore))


def newest(saved: Snapshot, job: str) -> tuple[Snapshot, Manifest]:
    """Return the snapshot itself, or of a folder of checkpoints the newest undamaged one.

    Args:
        saved: The snapshot or folder.
        job: The restoring job, for the log.

    Raises:
        StateError: There is none, or it is of another format or key, for which no earlier one is a substitute.
    """
    saved = replace(saved, key=key_of_snapshot(saved))
    folder = SnapshotFolder(saved)
    whole = None if folder.has() else _newest_whole(saved, folder.numbered(), job)
    return whole or (saved, folder.manifest())


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
        problem = f'restore="{LATEST}" needs a location of checkpoints, and this job has none'
        hint = "Pass JobConfig(checkpoint=rel.Checkpoint('/mnt/checkpoints')), a folder that outlives the job"
        raise ConfigError(problem, hint=hint, code=ErrorCode.BAD_LOCATION)
    saved = snapshot_of(settings)
    saved = replace(saved, key=key_of_snapshot(saved))
    folder = SnapshotFolder(saved)
    complete = [name for name in folder.numbered() if SnapshotFolder(_numbered(saved, name)).has()]
    whole = _newest_whole(saved, complete, job)
    if whole is None and folder.has(COMPLETE):
        problem = f"the checkpoints in {shown_location(str(saved.location))} are gone"
        hint = f'Put them back, or leave restore="{LATEST}" out to start from the beginning'
        raise DamagedError(problem, hint=hint, code=ErrorCode.CHECKPOINTS_GONE)
    return whole


def _newest_whole(saved: Snapshot, names: Sequence[str], job: str) -> tuple[Snapshot, Manifest] | None:
    """Return the newest undamaged one of some checkpoints, if there are any; raise the error of the newest."""
    problem: StateError | None = None
    for name in names:
        candidate = _numbered(saved, name)
        try:
            manifest = SnapshotFolder(candidate).manifest()
            _check_whole(candidate, manifest)
        except DamagedError as error:
            tell("checkpoint left out", job=job, level=logging.WARNING, reason=f"{error}")
            problem = problem or error
        else:
            return candidate, manifest
    if problem is not None:
        raise problem
    return None


def _numbered(saved: Snapshot, name: str) -> Snapshot:
    return replace(saved, location=below(str(saved.location), name))


def _check_whole(saved: Snapshot, manifest: Manifest) -> None:
    folder = SnapshotFolder(saved)
    for files in manifest.files.values():
        for _ in folder.chunks(files):
            pass
    rows = SnapshotFolder(rows_of(saved, alone=manifest.alone))
    for output in manifest.outputs.values():
        for _ in rows.chunks([(blob.name, blob.digest) for blob in output.blobs]):
            pass


# --- whether it can be saved ------------------------------------------------------------------------------------------


def check_initial_values(operators: Iterable[OperatorSpec]) -> None:
    """Raise StateError, naming the operator, if the initial state of a key can't be pickled.

    Later values are checked at the first checkpoint; objects of classes are copied at their declaration.

    Args:
        operators: The operators of a job with checkpoints.
    """
    for spec in operators:
        make = state_factory(getattr(spec.body, "state", None)) if _is_pickled(spec) else None
        try:
            initial = make() if make is not None else None
        except Exception:  # a user's function may raise anything, which is reported at the first key
            continue
        try:
            pickle.dumps(initial, pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # a user's object may raise anything
            why = f"what a key begins with can't be pickled: {type(error).__name__}: {error}"
            hint = "Keep values that can be pickled, or say JobConfig(checkpoint=False)"
            raise spec.state_error(f"no checkpoint can be taken: {why}", hint, ErrorCode.NOT_SAVEABLE) from None


def check_keepable(settings: Checkpoint, operators: Iterable[OperatorSpec]) -> None:
    """Raise StateError, naming the operator, if no other job could restore checkpoints in a store without a key."""
    if settings.location is None or settings.key is not None or local_path(str(settings.location)) is not None:
        return
    for spec in operators:
        if _is_pickled(spec):
            lacks = "which are restored from signed checkpoints only, and a store keeps no key"
            hint = "Pass Checkpoint(..., key=...) with 16 bytes or more, and the same key to restore"
            raise spec.state_error(f"it keeps Python values, {lacks}", hint, ErrorCode.UNSIGNED_VALUES)


def _is_pickled(spec: OperatorSpec) -> bool:
    return (spec.state_form or "").endswith(PICKLED)


def seal_of(spec: OperatorSpec) -> str | None:
    """Return the fingerprint of what opens the Python objects in an operator's native state; None if it has none."""
    if not keeps_objects(spec):
        return None
    forms = (plain_form(field.format) for port in spec.inputs for field in port.schema.fields)
    return next((form.seal.fingerprint for form in forms if form.seal is not None), None)


# --- whether it can be restored ---------------------------------------------------------------------------------------


def automatic_names(operators: Iterable[OperatorSpec]) -> dict[str, str]:
    """Return {operator with an automatic name: what it follows, as text}."""
    return {spec.name: _followed(spec) for spec in operators if spec.automatic}


def check_restorable(snapshot: Snapshot, manifest: Manifest, operators: Mapping[str, OperatorSpec]) -> None:
    """Raise StateError, naming the operator, if the topology can't restore the snapshot."""
    known = {*manifest.forms, *manifest.positions, *manifest.outputs, *operators}
    for name in snapshot.drop:
        if name not in known:
            problem = "drop= names it, and neither the snapshot nor the topology has it"
            hint = f"The snapshot has {', '.join(map(repr, sorted(manifest.forms))) or 'no state'}"
            raise StateError(problem, operator=name, hint=hint, code=ErrorCode.UNKNOWN_STATE)
    for name, form in manifest.forms.items():
        if name in snapshot.drop:
            continue
        spec = operators.get(name)
        now = None if spec is None else spec.state_form
        if spec is None or now is None:
            lacks = "has no such operator" if spec is None else "keeps none"
            hint = _name_hint(name, form, operators, manifest.forms)
            problem = f"the snapshot has state of it, the topology {lacks}"
            raise StateError(problem, operator=name, hint=hint, code=ErrorCode.UNKNOWN_STATE)
        _check_same(spec, manifest.automatic.get(name))
        if now != form and older_records(manifest.shapes.get(name), spec) is None:
            hint = (
                "Declare it as it was (a record may have more fields, with defaults, and wider numbers). "
                "Or rename the operator and drop the old one"
            )
            raise spec.state_error(f"its state was {form}, and is {now} now", hint, ErrorCode.CHANGED_STATE)
        if form.endswith(PICKLED) and not manifest.signed:
            problem = "the snapshot holds pickled Python values of it, which are read from signed snapshots only"
            hint = "Pass Snapshot(..., key=...) when it is written and when it is restored"
            raise spec.state_error(problem, hint, ErrorCode.UNSIGNED_VALUES)
        if (seal := manifest.seals.get(name)) is not None and seal != seal_of(spec):
            problem = (
                "the snapshot has Python objects of it, which only the process that declared that topology can open"
            )
            hint = "Declare their fields by types other than typing.Any, or drop the operator's state"
            raise spec.state_error(problem, hint, ErrorCode.FOREIGN_OBJECTS)
    for name in manifest.positions:
        if name in snapshot.drop:
            continue
        if name not in operators or not operators[name].is_source:
            problem = "the snapshot has the position of it, the topology has no such source"
            hint = _name_hint(name, None, operators, manifest.positions)
            raise StateError(problem, operator=name, hint=hint, code=ErrorCode.UNKNOWN_STATE)
        _check_same(operators[name], manifest.automatic.get(name))


def _check_same(spec: OperatorSpec, recorded: str | None) -> None:
    """Raise StateError if an automatic name now belongs to an operator that follows something else.

    Args:
        spec: The operator with that name in the topology.
        recorded: What it followed; None: the program named it.
    """
    if spec.automatic and recorded is not None and recorded != (now := _followed(spec)):
        problem = f"its name is automatic: it follows {now}, and followed {recorded} in the snapshot"
        hint = f"Write name={spec.name!r} to restore that state"
        raise spec.state_error(problem, hint, ErrorCode.AUTOMATIC_NAME)


def _followed(spec: OperatorSpec) -> str:
    by = f" by {', '.join(spec.keys)}" if spec.keys else ""
    return f"{' and '.join(map(repr, spec.taken))}{by}" if spec.taken else str(spec.output_schema)


def _name_hint(name: str, form: str | None, operators: Mapping[str, OperatorSpec], known: Iterable[str]) -> str:
    """Return the hint for state whose operator is missing: which `name=` to write.

    Args:
        name: The name in the snapshot.
        form: The form of its state; None: it is a source.
        operators: The operators of the topology.
        known: The names in the snapshot.
    """
    others = set(known)
    unknown = (spec for spec in operators.values() if spec.automatic and spec.name not in others)
    matching = [spec for spec in unknown if (spec.state_form == form if form else not spec.inputs)]
    named = ", or ".join(f"the {spec.kind} at {spec.location}" for spec in matching)
    return f"Write name={name!r} for {named or 'it'}, or restore Snapshot(..., drop=({name!r},))"
