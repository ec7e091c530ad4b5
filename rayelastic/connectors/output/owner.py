"""The owner of an output: a record beside its files, which one run holds at a time.

A claim is a file with a number, created only if the number is free; the highest number is valid. A new owner creates
the next number and removes those before. So an abandoned writer that still runs detects that before it shows anything
(fencing as by Kafka's producer epochs, put-if-absent as by Delta's log).

A claim of another run is valid while its process lives. The process of another machine isn't visible: its claim is
valid while it is renewed. An object store can't reject an existing name, so each claim has its own name there. A
claimant that sees another claim of the same number withdraws.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rayelastic.connectors.output.folder import OutputFolder, WrittenFile
from rayelastic.connectors.output.processes import ProcessId
from rayelastic.errors import SinkError, SinkTakenError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rayelastic.connectors.output.record import SinkContext

__all__ = ["OutputOwner", "OwnerRecord"]

RECORDS = ".rayelastic"  # the folder of claims, which readers ignore
BEAT = 10.0  # seconds between two renewals of a claim
LEASE = 60.0  # seconds without one, by the clock of the file system, after which its process counts as gone
LOOK = 1.0  # seconds between two checks whether a claim was renewed
KEPT = ("job", "sink", "run", "lineage", "replaces", "whole", "parts")  # fields that a run without output keeps


@dataclass(frozen=True, slots=True)
class OwnerRecord:
    """The content of a claim.

    Args:
        number: The claim's number.
        job: The name of the job.
        sink: The name of the sink; empty: the job stores its checkpoints there.
        run: The id of the job's run.
        lineage: The id of the first run in the chain of restored ones.
        process: The writing process; None: it has ended.
        replaces: Files of an earlier run of the same job, to be removed when the first one of this run is shown.
        whole: Of a single file, the one that readers see, by any run; None: unknown.
        parts: The digests of the parts of that file.
    """

    number: int
    job: str
    sink: str
    run: str
    lineage: str
    process: ProcessId | None
    replaces: tuple[str, ...] = ()
    whole: WrittenFile | None = None
    parts: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return the content of its file."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def of(data: bytes, number: int) -> OwnerRecord:
        """Read a record; of an incomplete one the owner is unknown."""
        try:
            held: dict[str, Any] = json.loads(data)
            process, whole = held["process"], held["whole"]
            return OwnerRecord(
                number,
                str(held["job"]),
                str(held["sink"]),
                str(held["run"]),
                str(held["lineage"]),
                None if process is None else ProcessId(**process),
                tuple(held["replaces"]),
                None if whole is None else WrittenFile(**whole),
                tuple(held["parts"]),
            )
        except (ValueError, KeyError, TypeError):
            return OwnerRecord(number, "", "", "", "", ProcessId("", "", 0, ""))


class OutputOwner:
    """The claim of one writer on an output, from its creation to `release`.

    Args:
        folder: The output.
        context: The writer.
        lineage: The id of the first run in the chain of restored ones.
        wait: Waits so many seconds for the claim of another machine to be renewed.

    Raises:
        SinkTakenError: Another run writes there.
        SinkError: It can't be written.
    """

    def __init__(
        self, folder: OutputFolder, context: SinkContext, lineage: str, *, wait: Callable[[float], None] = time.sleep
    ) -> None:
        self._folder = folder
        self._context = context
        self._wait = wait
        self._prefix = folder.file or "owner"
        self._pattern = re.compile(rf"{re.escape(self._prefix)}-(\d{{8}})(-[0-9a-f]{{8}})?\.json")
        self._token = "" if folder.is_local else f"-{secrets.token_hex(4)}"
        self._lock = threading.Lock()  # guards the record, in memory and as a file
        self._released = threading.Event()
        self.before, self.record = self._claimed(lineage)
        weakref.finalize(self, self._released.set)  # nobody releases the claim of a lost element's writer
        owner, released = weakref.ref(self), self._released
        threading.Thread(target=_renew, args=(owner, released), name=f"owner-{context.sink}", daemon=True).start()

    def check(self) -> None:
        """Raise SinkTakenError unless this claim is still valid."""
        claims = self._claims()
        if self._name(self.record.number) in claims and max(claims.values()) == self.record.number:
            return
        number, name = max(((number, name) for name, number in claims.items()), default=(0, ""))
        taken_by = self._read(name, number) if number > self.record.number else None
        who = "its owner record was removed" if taken_by is None else f"{_shown(taken_by)} has taken it over"
        raise SinkTakenError(
            f"{self._folder.shown!r} no longer belongs to this run: {who}; this run writes nothing more",
            hint="Use another output for each job",
        )

    def note(self, **changes: Any) -> None:
        """Change the record; see OwnerRecord."""
        with self._lock:
            self.record = replace(self.record, **changes)
            self._folder.write(self._at(self.record.number), self.record.to_json(), new=False)

    def release(self, *, changed: bool, forget: bool = False) -> None:
        """Let others claim the output; safe to repeat.

        Args:
            changed: Whether this run has shown or prepared anything; otherwise the record is restored.
            forget: Whether this run needs no record, because no checkpoint or snapshot refers to its output.
        """
        if self._released.is_set():
            return
        self._released.set()
        try:
            self.check()
            if forget or not (changed or self.before):
                self._folder.delete(self._at(self.record.number))
                self._folder.delete_folder(RECORDS)
            elif changed:
                self.note(process=None)
            else:
                self.note(**{name: getattr(self.before, name) for name in KEPT}, process=None)
        except SinkError:
            return  # another run has it, or the claim ends with this process

    # -- implementation -------------------------------------------------------------------------------------------

    def _claimed(self, lineage: str) -> tuple[OwnerRecord | None, OwnerRecord]:
        self._make_folder()
        while True:
            claims = self._claims()
            number, name = max(((number, name) for name, number in claims.items()), default=(0, ""))
            before = self._read(name, number) if name else None
            if before is not None:
                self._check_free(before, name)
            context = self._context
            record = OwnerRecord(number + 1, context.job, context.sink, context.run, lineage, ProcessId.here())
            if before is not None:
                replaces = before.replaces if before.lineage == lineage else ()
                record = replace(record, replaces=replaces, whole=before.whole, parts=before.parts)
            if self._put(record):
                for name, earlier in sorted(claims.items(), key=lambda claim: claim[1]):
                    if earlier < record.number:
                        self._folder.delete(f"{RECORDS}/{name}")
                return before, record

    def _make_folder(self) -> None:
        try:
            self._folder.make(RECORDS)
        except OSError as error:
            raise self._folder.error(error) from error

    def _put(self, record: OwnerRecord) -> bool:
        if not self._folder.write(self._at(record.number), record.to_json(), new=True):
            return False
        rivals = [name for name, number in self._claims().items() if number == record.number]
        if rivals == [self._name(record.number)]:
            return True
        self._folder.delete(self._at(record.number))
        raise SinkTakenError(
            f"another job claims {self._folder.shown!r} at the same moment", hint="Start one job at a time on it"
        )

    def _check_free(self, record: OwnerRecord, name: str) -> None:
        """Raise SinkTakenError if another run has the output, or another sink of this run."""
        process, context = record.process, self._context
        if process is None or (record.run == context.run and record.sink == context.sink):
            return
        if process.is_alive is not False and (process.is_alive or self._is_renewed(name)):
            raise SinkTakenError(
                f"{self._folder.shown!r} belongs to {_shown(record)}, which runs in process {process.pid} on "
                f"{process.host or 'an unknown host'}",
                hint="End that job first, or set another path for this sink, as to try a savepoint beside the running "
                "job",
            )

    def _is_renewed(self, name: str) -> bool:
        """Wait, and return whether the claim of a process on another machine is renewed."""
        first = changed_at = self._folder.changed_at(f"{RECORDS}/{name}")
        probe = f"{RECORDS}/{secrets.token_hex(4)}.probe"
        self._folder.write(probe, b"", new=True)
        now = self._folder.changed_at(probe)  # the clocks of two machines may differ
        self._folder.delete(probe)
        age = LEASE if first is None or now is None else now - first
        while age < LEASE and changed_at == first:
            self._wait(LOOK)
            age += LOOK
            changed_at = self._folder.changed_at(f"{RECORDS}/{name}")
        return changed_at not in (first, None)

    def _beat(self) -> None:
        with suppress(OSError, SinkError), self._lock:  # a takeover is detected before anything is shown
            if not self._folder.is_local:
                self._folder.write(self._at(self.record.number), self.record.to_json(), new=False)
            else:
                self._folder.touch(self._at(self.record.number))

    def _claims(self) -> dict[str, int]:
        """Return the existing claims and their numbers."""
        matches = ((name, self._pattern.fullmatch(name)) for name in self._folder.sizes(RECORDS))
        return {name: int(matched[1]) for name, matched in matches if matched is not None}

    def _read(self, name: str, number: int) -> OwnerRecord:
        try:
            with self._folder.read(f"{RECORDS}/{name}") as file:
                return OwnerRecord.of(file.read(), number)
        except OSError:
            return OwnerRecord.of(b"", number)

    def _name(self, number: int) -> str:
        return f"{self._prefix}-{number:08}{self._token}.json"

    def _at(self, number: int) -> str:
        return f"{RECORDS}/{self._name(number)}"


def _renew(owner: weakref.ref[OutputOwner], released: threading.Event) -> None:
    """Renew a claim until it is released, or its owner is gone."""
    while not released.wait(BEAT) and (claim := owner()) is not None:
        claim._beat()
        del claim  # else the thread itself would keep it


def _shown(record: OwnerRecord) -> str:
    sink = f"sink {record.sink!r}, " if record.sink else ""
    return f"job {record.job!r} ({sink}run {record.run[:8]})" if record.run else "another job"
