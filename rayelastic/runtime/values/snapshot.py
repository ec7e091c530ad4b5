"""A snapshot's location and its content, as values: the part of each PE, and the manifest of all of it.

Knows no files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rayelastic.connectors.files.locations import is_uri
from rayelastic.connectors.inputs import Input
from rayelastic.connectors.output.record import Output
from rayelastic.errors import ConfigError, ErrorCode, StateError
from rayelastic.graph.records.shown import shown
from rayelastic.plan.settings.checkpoint import SHORTEST_KEY

FORMAT = 4  # of manifest and files
READABLE = (2, 3, FORMAT)  # in 2 no file was packed, before 4 no sink kept a ledger of its parts

Files = Sequence[tuple[str, str]]  # names, and SHA-256 in hex
STATE, ROWS = "state", "rows"  # the places of files: a checkpoint's own folder, and the one of rows beside all of them
T = TypeVar("T")


class File(NamedTuple):
    """A file of a checkpoint: its place, its name, and its SHA-256 in hex."""

    place: str
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The location of a job's saved state.

    Args:
        location: A folder, or a URI that `pyarrow.fs` knows, such as 's3://bucket/folder'. Every PE has
            to reach it. A relative path is relative to the calling process. A missing local folder is made; only its
            owner may be allowed to write there.
        key: Secret bytes (16 or more) that sign the snapshot. Required if an operator keeps Python values.
        drop: Operators whose state isn't restored, because the topology lacks them. Also sources to read from the
            start, and sinks to begin anew, replacing the output of the first run.
        rename: {name in the snapshot: name in the topology}, of renamed operators.

    Raises:
        ConfigError: An invalid location, too short a key, or two operators of one name.

    >>> Snapshot("/tmp/counts", key=b"0123456789abcdef")
    Snapshot(location='/tmp/counts', drop=(), rename={})
    """

    location: str | Path
    key: bytes | None = field(default=None, repr=False)
    drop: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        location: object = self.location
        if not (isinstance(location, str | Path) and str(location)):
            hint = "Pass a folder, or a URI such as s3://b/f"
            raise ConfigError(f"Snapshot({location!r}): no location", hint=hint, code=ErrorCode.BAD_LOCATION)
        object.__setattr__(self, "location", str(location) if is_uri(str(location)) else str(Path(location).absolute()))
        key: object = self.key
        if key is not None and not (isinstance(key, bytes) and len(key) >= SHORTEST_KEY):
            hint = "Make one with secrets.token_bytes(32) and keep it where the job can read it"
            problem = f"Snapshot(key=...) needs {SHORTEST_KEY} bytes or more"
            raise ConfigError(problem, hint=hint, code=ErrorCode.BAD_SIGNING_KEY)
        drop: object = self.drop
        names = () if isinstance(drop, str | bytes) or not isinstance(drop, Iterable) else tuple(drop)
        if (drop and not names) or not all(isinstance(name, str) for name in names):  # the letters of a text aren't
            hint = "Pass drop=('name', 'another')"
            raise ConfigError(f"Snapshot(drop={shown(drop)}): no names", hint=hint, code=ErrorCode.WRONG_TYPE)
        object.__setattr__(self, "drop", names)
        object.__setattr__(self, "rename", dict(self.rename))
        if len(set(self.rename.values())) < len(self.rename):
            raise ConfigError(
                f"Snapshot(rename={self.rename}): two operators have one new name",
                hint="Rename each to another name, and drop the state of one",
                code=ErrorCode.DUPLICATE_NAME,
            )


@dataclass(frozen=True, slots=True)
class Part:
    """The part of one PE: positions of its sources, and files by operator.

    Args:
        positions: {source: number of records submitted since the job's first start}.
        files: {operator: its files}.
        inputs: {source: what it reads}.
        outputs: {sink: what it has written once it has ended}, of those that write files.
        costs: {operator: (bytes of its state, seconds since the start until they were written)}; not saved.
        held: {operator: seconds for which it was held while its state was written}; not saved.
    """

    positions: dict[str, int]
    files: dict[str, list[tuple[str, str]]]
    inputs: dict[str, Input]
    outputs: dict[str, Output]
    costs: dict[str, tuple[int, float]]
    held: dict[str, float]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a snapshot.

    Args:
        job: The name of the job.
        forms: {operator: the form of its state, as text}.
        positions: {source: records submitted}.
        files: {operator: its files}.
        inputs: {source: what it read}.
        outputs: {sink: what it wrote}.
        signed: Whether a key signs all of it.
        plan: The plan in force, an ExecPlan.to_dict; empty: of a snapshot without it.
        alone: Whether it has the rows that sinks keep in memory; otherwise they are beside the checkpoints.
        shapes: {operator: the descriptor of its state}, of state/descriptor.py; empty: of a snapshot without it.
        automatic: {operator with an automatic name: what it follows}.
        seals: {operator whose state has Python objects: the fingerprint of what opens them}.
    """

    job: str
    forms: Mapping[str, str]
    positions: Mapping[str, int]
    files: Mapping[str, Files]
    inputs: Mapping[str, Input]
    outputs: Mapping[str, Output]
    signed: bool
    plan: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = False
    shapes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    automatic: Mapping[str, str] = field(default_factory=dict)
    seals: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of_parts(job: str, forms: Mapping[str, str], parts: Iterable[Part], *, signed: bool, **about: Any) -> Manifest:
        """Make the manifest of what the PEs have written; `about` has the further fields."""
        files: dict[str, list[tuple[str, str]]] = {}
        positions: dict[str, int] = {}
        inputs: dict[str, Input] = {}
        outputs: dict[str, Output] = {}
        for part in parts:
            for operator, written in part.files.items():
                files.setdefault(operator, []).extend(written)
            positions.update(part.positions)
            inputs.update(part.inputs)
            outputs.update(part.outputs)
        return Manifest(job, forms, positions, files, inputs, outputs, signed, **about)

    def to_json(self) -> dict[str, Any]:
        """Return the same as JSON has it."""
        return {"format": FORMAT} | {name: value for name, value in asdict(self).items() if name != "signed"}

    @staticmethod
    def from_json(held: Mapping[str, Any], drop: Iterable[str], *, signed: bool) -> Manifest:
        """Return the manifest of a readable format; raise LookupError, TypeError or ValueError for what isn't one.

        Args:
            held: What the file has.
            drop: Sinks whose output is replaced; of others, an output without a ledger is an error.
            signed: Whether it is.
        """
        lacking = () if held["format"] == FORMAT else held["outputs"].keys() - set(drop)
        return Manifest(
            held["job"],
            dict(held["forms"]),
            {name: int(at) for name, at in held["positions"].items()},
            {name: [(str(file), str(digest)) for file, digest in files] for name, files in held["files"].items()},
            {name: Input(**one) for name, one in held["inputs"].items()},
            {name: Output.saved(name, one, name not in lacking) for name, one in held["outputs"].items()},
            signed,
            held.get("plan", {}),
            bool(held.get("alone")),
            dict(held.get("shapes", {})),
            dict(held.get("automatic", {})),
            dict(held.get("seals", {})),
        )

    def files_of(self, operator: str, pe: str) -> list[File]:
        """Return the files of an operator that one PE has written: its state, and the rows of a sink."""
        files = [File(STATE, *file) for file in self.files.get(operator, ()) if file[0].startswith(f"{pe}-")]
        output = self.outputs.get(operator)
        return [*files, *(File(ROWS, blob.name, blob.digest) for blob in (output.blobs if output is not None else ()))]

    def part(self, predecessors: Mapping[str, str]) -> Manifest:
        """Return what one PE restores of it, without the plan.

        Args:
            predecessors: {operator that the PE hosts: the PE that wrote its files}.
        """

        def own(part: Mapping[str, T]) -> dict[str, T]:
            return {name: part[name] for name in predecessors if name in part}

        def files(operator: str) -> Files:
            return [
                (file.name, file.digest)
                for file in self.files_of(operator, predecessors[operator])
                if file.place == STATE
            ]

        return replace(
            self,
            forms=own(self.forms),
            positions=own(self.positions),
            files={operator: files(operator) for operator in predecessors if operator in self.files},
            inputs=own(self.inputs),
            outputs=own(self.outputs),
            plan={},
            shapes=own(self.shapes),
            automatic={},
            seals=own(self.seals),
        )

    @property
    def checkpoint(self) -> int:
        """The id of its checkpoint, as its sinks know it; 0: the job was stopped, or has no sinks."""
        return max((output.epoch for output in self.outputs.values()), default=0)

    def renamed(self, names: Mapping[str, str]) -> Manifest:
        """Return the manifest with other names for some operators.

        Raises:
            StateError: It has no such operator, or two would have one name.
        """
        if not names:
            return self
        known = {name for part in (self.forms, self.positions, self.outputs) for name in part}
        hint = "Check Snapshot(rename=...)"
        for old, new in names.items():
            if old not in known:
                problem = "the snapshot has no state of it"
                raise StateError(problem, operator=old, hint=hint, code=ErrorCode.UNKNOWN_STATE)
            if new in known and new not in names:
                problem = f"it is renamed to {new!r}, and the snapshot has another operator of that name"
                raise StateError(problem, operator=old, hint=hint, code=ErrorCode.DUPLICATE_NAME)

        def called(part: Mapping[str, T]) -> dict[str, T]:
            return {names.get(name, name): content for name, content in part.items()}

        return replace(
            self,
            forms=called(self.forms),
            positions=called(self.positions),
            files=called(self.files),
            inputs=called(self.inputs),
            outputs=called(self.outputs),
            shapes=called(self.shapes),
            seals=called(self.seals),
            automatic={name: followed for name, followed in self.automatic.items() if name not in names},
        )
