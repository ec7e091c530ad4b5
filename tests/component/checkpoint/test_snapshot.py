"""Jobs that are stopped, saved, and go on elsewhere (J05, J16, reliability rules D7, R15)."""

from __future__ import annotations

import errno
import hashlib
import json
import random
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import ConfigError, StateError
from rayelastic.fluent.stream import Stream
from rayelastic.runtime.checkpoint import files
from rayelastic.testing.collect import topology_of
from tests.raising import raises
from tests.waiting import wait_until_emitted

KEY = b"0123456789abcdef" * 2
PATIENCE = 60.0


class Row(NamedTuple):
    user: str | None
    n: int


class Tally(NamedTuple):
    total: int = 0
    longest: str = ""


ROWS = [Row(None if n % 13 == 0 else f"user {n % 29} " + "x" * (n % 29), n) for n in range(3000)]


def tally(t: Row, s: Any) -> tuple[str | None, int, str]:
    s.total += t.n
    if t.user is not None and len(t.user) > len(s.longest):
        s.longest = t.user
    return t.user, s.total, s.longest


def remembered(t: Row, s: list[int]) -> tuple[str | None, int]:
    s.append(t.n)
    return t.user, sum(s)


def compiled(s: Stream) -> Stream:
    schema = {"user": str | None, "total": int, "longest": str}
    return s.key_by("user").map(tally, name="tally", state=Tally, schema=schema, lane="compiled")


def python_record(s: Stream) -> Stream:
    schema = {"user": str | None, "total": int, "longest": str}
    return s.key_by("user").map(tally, name="tally", state=Tally, schema=schema, lane="python")


def python_values(s: Stream) -> Stream:
    return s.key_by("user").map(
        remembered, name="seen", state=list, schema={"user": str | None, "sum": int}, lane="python"
    )


def final_aggregate(s: Stream) -> Stream:
    return s.key_by("user").aggregate(name="totals", total=rel.sum("n"), last=rel.last("n"), some=rel.max("user"))


def running_aggregate(s: Stream) -> Stream:
    return s.key_by("user").aggregate(name="totals", emit="update", total=rel.sum("n"))


def chain(s: Stream) -> Stream:
    return final_aggregate(
        s.filter(lambda t: t.n % 2 == 0, name="even").key_by("user").map(keep, name="same", state=Tally)
    )


def keep(t: Row, s: Any) -> Row:
    s.total += 1
    return Row(t.user, t.n + s.total)


DECLARED = [compiled, python_record, python_values, final_aggregate, running_aggregate, chain]


def stopped(
    declare: Callable[[Stream], Stream],
    snapshot: rel.Snapshot,
    cut: int,
    config: rel.JobConfig | None = None,
    restore: rel.Snapshot | None = None,
    first: int = 0,
) -> list[Any]:
    gate = testing.Gate()
    topology = topology_of(declare, testing.script([*ROWS[:cut], gate], Row))
    job = rel.start(topology, config, restore=restore)
    try:
        assert gate.wait_reached(PATIENCE)
        wait_until_emitted(job, "rows", cut - first)
        return [tuple(row) for row in job.stop(snapshot)["collected"]]
    finally:
        job.close()


@pytest.mark.parametrize("declare", DECLARED)
def test_two_runs_leave_what_one_would_have(declare: Callable[..., Stream], tmp_path: Path) -> None:
    one, other = (rel.Snapshot(tmp_path / name, key=KEY) for name in ("one", "other"))
    output = stopped(declare, one, 1000)
    output += stopped(declare, other, 1700, rel.JobConfig(threads=rel.Threads(count=2, model="dynamic")), one, 1000)
    output += testing.collect(declare, ROWS, Row, restore=other)
    assert output == testing.collect(declare, ROWS, Row)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 2)])
def test_another_number_of_processing_elements_goes_on(before: int, after: int, tmp_path: Path) -> None:
    snapshot = rel.Snapshot(tmp_path / "snapshot", key=KEY)
    output = stopped(chain, snapshot, 2000, rel.JobConfig(pes=before))
    output += testing.collect(chain, ROWS, Row, rel.JobConfig(pes=after), restore=snapshot)
    assert output == testing.collect(chain, ROWS, Row)


def test_what_a_source_makes_after_the_snapshot_is_not_submitted(tmp_path: Path) -> None:
    inside = Event()

    def busy_while_saved(n: int) -> int:
        if n == 50:
            inside.set()
            while not (tmp_path / "saved" / "manifest.json").exists():
                pass
            for _ in range(20_000):  # until the operators have been let go
                tmp_path.stat()
        return n

    def topology(function: Callable[[int], int]) -> rel.Topology:
        topology = rel.Topology("late")
        numbers = topology.source(rel.generate(function, 100, schema={"n": int}), name="numbers")
        numbers.aggregate(name="count", emit="update", count=rel.count()).sink(rel.list(), name="out")
        return topology

    job = rel.start(topology(busy_while_saved))
    assert inside.wait(PATIENCE)
    before = job.stop(tmp_path / "saved")["out"]
    after = rel.run(topology(int), restore=tmp_path / "saved")["out"]
    assert [t.count for t in before + after] == list(range(1, 101))


def test_metrics_tell_size_and_count_of_state() -> None:
    topology = topology_of(final_aggregate, rel.rows(ROWS, schema=Row))
    result = rel.run(topology)
    counters = result.metrics.operator("totals")
    assert counters.state_keys == len({row.user for row in ROWS}) == len(result["collected"])
    assert counters.state_bytes > 32 * counters.state_keys
    assert result.metrics.operator("rows").state_keys == 0


def test_a_job_that_cannot_be_saved_goes_on(tmp_path: Path) -> None:
    class Closed:
        def __init__(self) -> None:
            self.file = Path("/dev/null").open()  # noqa: SIM115  (what can't be pickled is the point)

    def use(t: Row, s: Closed) -> int:
        return t.n if s.file.readable() else 0

    def declare(s: Stream) -> Stream:
        return s.key_by("user").map(use, name="use", state=Closed, schema={"n": int}, lane="python")

    gate = testing.Gate()
    job = rel.start(topology_of(declare, testing.script([*ROWS[:100], gate, *ROWS[100:200]], Row)))
    assert gate.wait_reached(PATIENCE)
    with raises(StateError, "unsigned-values", "key=", operator="use"):
        job.stop(tmp_path / "unsigned")
    with raises(StateError, "not-saveable", operator="use"):
        job.stop(rel.Snapshot(tmp_path / "signed", key=KEY))
    gate.open()
    assert [row.n for row in job.wait(PATIENCE)["collected"]] == list(range(200))
    with raises(StateError, "damaged-state"):
        rel.run(topology_of(declare, rel.rows([], schema=Row)), restore=tmp_path / "signed")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "snapshot"
    stopped(compiled, rel.Snapshot(folder, key=KEY), 1000)
    return folder


def test_files_are_for_their_owner_only(saved: Path) -> None:
    assert stat.S_IMODE(saved.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in saved.iterdir()} == {0o600}


def restored(folder: Path, declare: Callable[..., Stream] = compiled, **options: Any) -> Any:
    return testing.collect(declare, ROWS, Row, restore=rel.Snapshot(folder, **{"key": KEY, **options}))


def test_damaged_snapshots_are_refused(saved: Path, tmp_path: Path) -> None:
    dice = random.Random(5)
    files = sorted(saved.iterdir())
    for number in range(100):
        copy = tmp_path / str(number)
        copy.mkdir()
        for file in files:
            (copy / file.name).write_bytes(file.read_bytes())
        victim = copy / dice.choice(files).name
        data = bytearray(victim.read_bytes())
        at = dice.randrange(len(data))
        match dice.choice(["flip", "cut", "lose", "add"]):
            case "flip":
                data[at] ^= 1 << dice.randrange(8)
                victim.write_bytes(data)
            case "cut":
                victim.write_bytes(data[:at])
            case "lose":
                victim.unlink()
            case "add":
                victim.write_bytes(bytes(data) + b"}")
        with raises((StateError, rel.errors.JobFailedError), "damaged-state"):
            restored(copy)
    assert restored(saved)


def narrower(s: Stream) -> Stream:
    class Tally(NamedTuple):
        total: int = 0

    def count(t: Row, s: Any) -> int:
        s.total += 1
        total: int = s.total
        return total

    return s.key_by("user").map(count, name="tally", state=Tally, schema={"n": int}, lane="compiled")


def renamed(s: Stream) -> Stream:
    return s.key_by("user").aggregate(name="sums", total=rel.sum("n"))


def stateless(s: Stream) -> Stream:
    return s.map(lambda t: t.n, name="tally")


@pytest.mark.parametrize(
    ("declare", "code", "values"),
    [
        (narrower, "changed-state", ("total: l, longest: u", "total: l)")),
        (renamed, "unknown-state", ("drop=('tally',)",)),
        (stateless, "unknown-state", ("drop=('tally',)",)),
    ],
)
def test_state_of_another_layout_is_refused_before_anything_starts(
    saved: Path, declare: Callable[..., Stream], code: str, values: tuple[str, ...]
) -> None:
    with raises(StateError, code, *values, operator="tally"):
        restored(saved, declare)


def test_what_is_dropped_starts_anew(saved: Path) -> None:
    rest = restored(saved, renamed, drop=("tally",))
    assert sum(row[1] for row in rest) == sum(row.n for row in ROWS[1000:])


def test_other_formats_keys_and_places_are_refused(saved: Path, tmp_path: Path) -> None:
    with raises(StateError, "bad-signing-key"):
        restored(saved, key=b"another key, also long")
    with raises(StateError, "damaged-state"):
        restored(tmp_path)
    with raises(StateError, "bad-location"):
        stopped(compiled, rel.Snapshot(saved, key=KEY), 10)
    for bad in (
        {"location": ""},
        {"location": 3},
        {"location": "x", "key": b"short"},
        {"location": "x", "key": "text" * 9},
    ):
        with raises(ConfigError, "bad-signing-key" if "key" in bad else "bad-location", "Snapshot"):
            rel.Snapshot(**bad)
    unsigned = tmp_path / "unsigned"
    stopped(compiled, rel.Snapshot(unsigned), 10)
    document = json.loads((unsigned / "manifest.json").read_text())
    for old, new, code in (
        ('"format": 4', '"format": 5', "older-version"),
        ("pe0-0001-000000.state", "../pe0-0001-000000.state", "damaged-state"),
    ):
        body = document["body"].replace(old, new)
        assert body != document["body"]
        changed = {"body": body, "sha256": hashlib.sha256(body.encode()).hexdigest(), "hmac": None}
        (unsigned / "manifest.json").write_text(json.dumps(changed))
        with raises(StateError, code):
            restored(unsigned, key=None)


def test_a_relative_folder_is_one_of_the_process_that_gives_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = rel.Snapshot("saved", key=KEY)
    assert given.location == str(tmp_path / "saved")
    assert rel.Snapshot("s3://bucket/saved").location == "s3://bucket/saved"


def test_no_planted_link_is_followed_and_no_open_folder_written_to(tmp_path: Path) -> None:
    folder, victim = tmp_path / "saved", tmp_path / "victim"
    victim.write_text("precious")
    folder.mkdir(0o700)
    (folder / "pe0-0001-000000.state").symlink_to(victim)
    (folder / "manifest.json").symlink_to(tmp_path / "nothing")
    stopped(compiled, rel.Snapshot(folder, key=KEY), 100)
    assert victim.read_text() == "precious"
    assert not any(file.is_symlink() for file in folder.iterdir())
    assert len(restored(folder)) == len(ROWS) - 100
    shared = tmp_path / "shared"
    for mode in (0o770, 0o707):
        shared.mkdir()
        shared.chmod(mode)
        with raises(StateError, "bad-location", "0700"):
            stopped(compiled, rel.Snapshot(shared, key=KEY), 100)
        assert not list(shared.iterdir())
        shared.rmdir()


def test_what_cannot_be_read_back_or_written_lets_the_job_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = testing.Gate()
    job = rel.start(topology_of(compiled, testing.script([*ROWS[:100], gate, *ROWS[100:200]], Row)))
    assert gate.wait_reached(PATIENCE)
    write = files.write_private

    def forgetful(path: Path, data: bytes) -> None:  # as a folder does that another machine doesn't see
        write(path, data if path.suffix == ".json" else b"")

    def full(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(files, "write_private", forgetful)
        with raises(StateError, "bad-location"):
            job.stop(rel.Snapshot(tmp_path / "lost", key=KEY))
        patched.setattr(files, "write_private", full)
        with raises(StateError, "unreadable-state"):
            job.stop(rel.Snapshot(tmp_path / "full", key=KEY))
    for name in ("lost", "full"):
        with raises(StateError, "damaged-state"):
            restored(tmp_path / name)
    gate.open()
    assert len(job.wait(PATIENCE)["collected"]) == 200


def grows(s: Stream) -> Stream:
    return s.key_by("user").aggregate(
        name="some",
        emit="update",
        users=rel.distinct("n"),
        middle=rel.quantile("n", 0.5),
        top=rel.top_k("n", 3),
    )


def windows(s: Stream) -> Stream:
    return s.key_by("user").window(count=9, slide=3).aggregate(name="some", n=rel.distinct("n"), last=rel.last("n"))


@pytest.mark.parametrize("declare", [grows, windows, compiled, final_aggregate])
def test_state_that_was_changed_with_its_digest_is_refused_or_is_another_state(
    declare: Callable[[Stream], Stream], tmp_path: Path
) -> None:
    folder = tmp_path / "saved"
    stopped(declare, rel.Snapshot(folder), 300)
    document = json.loads((folder / "manifest.json").read_text())
    (chunk,) = folder.glob("*.state")
    right, dice = chunk.read_bytes(), random.Random(3)
    digest = hashlib.sha256(right).hexdigest()
    refused = 0
    for _ in range(60):
        data = bytearray(right)
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        chunk.write_bytes(data)
        body = document["body"].replace(digest, hashlib.sha256(data).hexdigest())
        changed = {"body": body, "sha256": hashlib.sha256(body.encode()).hexdigest(), "hmac": None}
        (folder / "manifest.json").write_text(json.dumps(changed))
        try:
            testing.collect(declare, ROWS[:400], Row, restore=folder)
        except (StateError, rel.errors.JobFailedError):
            refused += 1
    assert refused > 0
