"""Reads the state in a snapshot, savepoint or checkpoint, as Arrow tables: `rel.read_snapshot`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rayelastic.connectors.files.locations import shown_location
from rayelastic.errors import DamagedError, StateError
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.checkpoint.restore import newest, snapshot_of
from rayelastic.runtime.state.descriptor import StateDescriptor, required
from rayelastic.runtime.state.tables import table_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from rayelastic.plan.settings.checkpoint import Checkpoint
    from rayelastic.runtime.values.snapshot import Manifest, Snapshot


class SavedStates(Mapping[str, "pa.Table"]):
    """The state of each operator in a snapshot that can be shown as a table, read on access.

    Args:
        snapshot: The snapshot.
        manifest: Its manifest.

    Attributes:
        job: The name of the job.
        checkpoint: The id of the checkpoint or savepoint; 0: the job was stopped.
        forms: {operator: the form of its state, as text}.
        positions: {source: rows that it had emitted}.
        location: The snapshot's location.
    """

    def __init__(self, snapshot: Snapshot, manifest: Manifest) -> None:
        self._snapshot = snapshot
        self._manifest = manifest
        self.job = manifest.job
        self.checkpoint = manifest.checkpoint
        self.forms = dict(manifest.forms)
        self.positions = dict(manifest.positions)
        self.location = str(snapshot.location)

    def __getitem__(self, operator: str) -> pa.Table:
        if operator not in self.forms:
            raise KeyError(operator)
        try:
            held = self._manifest.shapes.get(operator)
            known = None if held is None else StateDescriptor.from_json(held)
            chunks = SnapshotFolder(self._snapshot).states(self._manifest.files.get(operator, ()))
            return table_of(chunks, required(known, operator, self.forms[operator]), trusted=self._manifest.signed)
        except StateError as error:
            raise error.at(operator, "") from None
        except (LookupError, TypeError, ValueError):
            raise DamagedError(
                f"the layout of its state can't be read in snapshot {shown_location(self.location)}",
                operator=operator,
                hint="Use an earlier snapshot",
            ) from None

    def __iter__(self) -> Iterator[str]:
        return (operator for operator in self.forms if operator in self._manifest.shapes)

    def __contains__(self, operator: object) -> bool:
        return operator in set(self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        where = shown_location(self.location)
        return f"SavedStates({where!r}, job={self.job!r}, checkpoint={self.checkpoint}, operators={list(self.forms)})"


def read_snapshot(snapshot: Snapshot | Checkpoint | str | Path) -> SavedStates:
    """Read what a job saved: by job.snapshot, by job.stop, or in a checkpoint. The job's program isn't needed.

    The table of an operator has a row for each key: the key fields, then those of its state.

    - Aggregates have their current results, windows and sessions a row for each open one with its current result.
    - Python values are a column `value`, or `value_as_text`, written by `repr`, if Arrow has no common type for them.
      The attributes of a class's object, or the result of its `snapshot`, are such a value, too.
    - Operators with timers also have `timers`, as ticks of their event time, or microseconds since 1970.
    - Joins have a row for each kept tuple: `side`, 'left' or 'right', and the fields of both sides, null on the other.
    - Patterns have one, too: `sequence`, a number, `step`, its step in it, and `until`, the deadline of the next step.
      All three are null if it waits for the watermark. Then follow its fields.
    - Delays have `due_in`, the rest of the delay, merges `input`; then the fields.
    - A switch or gate has one row: `on`, or `may_pass`, how many more tuples may pass, and `waiting`, a list of tuples.

    Args:
        snapshot: The snapshot; of a folder of checkpoints the newest undamaged one is read.

    Returns:
        {operator: its table}.

    Raises:
        StateError: It is damaged, of another format, or not signed with the key. Or, on access to an operator, its
            state can't be shown as a table (tuples that wait for those of other inputs). Or the state holds Python
            values and isn't signed.

    >>> import tempfile
    >>> import rayelastic as rel
    >>> from rayelastic import testing
    >>> gate, topology = testing.Gate(), rel.Topology("odd_and_even")
    >>> rows = [(n % 2, n) for n in range(100)]
    >>> numbers = topology.source(testing.script([*rows, gate], {"odd": int, "n": int}), name="rows")
    >>> numbers.key_by("odd").aggregate(name="totals", total=rel.sum("n")).sink(rel.list(), name="out")
    <sink out>
    >>> job = rel.start(topology)
    >>> gate.wait_reached(60)
    True
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rel.read_snapshot(job.snapshot(f"{folder}/saved"))["totals"].to_pylist()
    [{'odd': 0, 'total': 2450}, {'odd': 1, 'total': 2500}]
    >>> job.state("totals").get(1).total
    2500
    >>> gate.open()
    >>> _ = job.wait()
    """
    saved, manifest = newest(snapshot_of(snapshot), "")
    return SavedStates(saved, manifest)
