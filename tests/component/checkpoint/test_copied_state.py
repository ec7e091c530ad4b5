"""State is copied at a mark and written while its operator goes on; what hasn't changed isn't written again."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.runtime.values.checkpoint_record import CheckpointRecord
from tests.component.checkpoint.test_checkpoints import Losing

PATIENCE = 60.0


class Row(NamedTuple):
    key: int
    at: int
    n: int


class Seen(NamedTuple):
    rows: int = 0
    text: str = ""


class Out(NamedTuple):
    key: int
    rows: int
    text: str


def seen(t: Row, s: Any) -> Out:
    s.rows += 1
    before = s.text
    s.text = f"a text that is long enough {t.n}"
    return Out(t.key, s.rows, before)


class Quiet:
    """Tells of keys of which nothing has come for a while."""

    def on_tuple(self, t: Row, state: Seen, out: rel.Out) -> None:
        state.rows += 1  # type: ignore[misc]
        out.timer(t.at + 7)

    def on_time(self, time: int, state: Seen, out: rel.Out) -> None:
        out.give(Out(time, state.rows, ""))


ROWS = [Row(n % 13, n // 3, n) for n in range(3000)]


def keeping(source: Any) -> rel.Topology:
    """Native operators of all kinds, each with state by key; windows also of Python values."""
    topology = rel.Topology("keeps")
    rows = topology.source(source, name="rows")
    keyed = rows.key_by("key")
    keyed.map(seen, name="seen", state=Seen, schema=Out, lane="compiled").sink(rel.list(), name="out")
    keyed.aggregate(name="all", n=rel.sum("n"), kinds=rel.distinct("n")).sink(rel.list(), name="totals")
    keyed.window(count=5, slide=2).aggregate(name="counted", n=rel.sum("n")).sink(rel.list(), name="windows")
    timed = rows.event_time("at", name="timed", lateness=2).key_by("key")
    timed.window(seconds=50, slide=10).aggregate(name="panes", n=rel.sum("n")).sink(rel.list(), name="by_time")
    timed.session(gap=4).aggregate(name="sessions", n=rel.count()).sink(rel.list(), name="by_session")
    timed.window(seconds=50, slide=10).fold(lambda ns, t: [*ns, t.n], [], name="folded", schema={"ns": list[int]}).sink(
        rel.list(), name="lists"
    )
    timed.process(Quiet, name="quiet", schema=Out, state=Seen, lane="compiled").sink(rel.list(), name="timers")
    odd = rows.filter(lambda t: t.n % 2 == 1, name="odd").event_time("at", name="odd_time", lateness=2).key_by("key")
    timed.join(odd, name="joined", within=(5, 5)).sink(rel.list(), name="pairs")
    even = rel.Pattern("even", lambda t: t.n % 2 == 0)
    timed.match(even.then("odd", lambda t: t.n % 2 == 1, within=20), name="found").sink(rel.list(), name="patterns")
    return topology


def in_order(result: rel.JobResult) -> dict[str, list[tuple[Any, ...]]]:
    return {name: sorted(tuple(t) for t in rows) for name, rows in result.items()}


def last_record(made: Losing) -> CheckpointRecord:
    return made.job.status.checkpoints.recent[-1]


def test_native_state_is_copied_while_its_operators_go_on(tmp_path: Path) -> None:
    gates = [testing.Gate(), testing.Gate()]
    source = testing.script([*ROWS[:1000], gates[0], *ROWS[1000:2000], gates[1], *ROWS[2000:]], Row)
    made = Losing(keeping(source), rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0)))
    try:
        for gate in gates:
            assert gate.wait_reached(PATIENCE)
            made.take()
            record = last_record(made)
            assert (record.problem, record.bytes > 1000) == ("", True)
            assert record.held == "", "nobody stands still"
            made.lose(gate)
        found = in_order(made.job.wait(PATIENCE))
    finally:
        for gate in gates:
            gate.open()
        made.job.close()
    assert found == in_order(rel.run(keeping(rel.rows(ROWS, schema=Row))))


FIELDS = [f"f{number}" for number in range(31)]
KEYS = 40_000  # of 256 bytes: several segments of some megabytes
Wide: Any = namedtuple("Wide", ["rows", *FIELDS], defaults=[0] * (len(FIELDS) + 1))  # type: ignore[misc]  # noqa: PYI024
Wide.__annotations__ = dict.fromkeys(Wide._fields, int)


class Keys(NamedTuple):
    first: int
    number: int


class Key(NamedTuple):
    key: int


class Rows(NamedTuple):
    key: int
    rows: int


def each(t: Keys) -> Iterator[Key]:
    for key in range(t.first, t.first + t.number):
        yield Key(key)


def touch(t: Key, s: Any) -> Rows:
    s.rows += 1
    return Rows(t.key, s.rows)


def wide(source: Any) -> rel.Topology:
    """State of several segments, of which the last keys alone are touched between two checkpoints."""
    topology = rel.Topology("wide")
    touched = (
        topology.source(source, name="keys").flat_map(each, name="each", schema=Key, lane="compiled").key_by("key")
    )
    touched.map(touch, name="touch", state=Wide, schema=Rows, lane="compiled").sink(rel.list(), name="out")
    return topology


FEW = Keys(KEYS - 10, 10)


@pytest.fixture
def touching(tmp_path: Path) -> Iterator[tuple[Losing, list[testing.Gate]]]:
    gates = [testing.Gate() for _ in range(4)]
    few = [item for gate in gates[1:] for item in (FEW, gate)]
    source = testing.script([Keys(0, KEYS), gates[0], *few, Keys(0, KEYS)], Keys)
    made = Losing(wide(source), rel.JobConfig(checkpoint=rel.Checkpoint(tmp_path / "saved", every=600.0, keep=2)))
    yield made, gates
    for gate in gates:
        gate.open()
    made.job.close()


def check_touched(out: list[Any]) -> None:
    last = {row.key: row.rows for row in out}
    assert last == {key: 5 if key >= FEW.first else 2 for key in range(KEYS)}
    assert len(out) == 2 * KEYS + 3 * FEW.number


def shared(one: Path, other: Path) -> int:
    """How many files two checkpoints have in common."""
    return sum((other / file.name).exists() and (other / file.name).samefile(file) for file in one.glob("*.state"))


def test_what_has_not_changed_is_not_written_again(touching: tuple[Losing, list[testing.Gate]], tmp_path: Path) -> None:
    made, gates = touching
    written, in_common = [], []
    for gate in gates:
        assert gate.wait_reached(PATIENCE)
        before = sorted((tmp_path / "saved").glob("0*"))
        kept = {file.stat().st_ino for folder in before[:1] for file in folder.glob("*.state")}
        made.take()
        written.append(last_record(made).bytes)
        folders = sorted((tmp_path / "saved").glob("0*"))
        in_common.append(sum(file.stat().st_ino in kept for file in folders[-1].glob("*.state")))
        if gate is not gates[-1]:
            gate.open()
    sizes = [sum(file.stat().st_size for file in folder.glob("*.state")) for folder in folders]
    made.lose(gates[-1])
    check_touched(made.job.wait(PATIENCE)["out"])
    assert KEYS * 256 / 10 > min(written[:2]) > KEYS, "the first two have all, packed: they are nearly all zeros"
    assert max(written[2:]) < written[0] / 2, "the others have what was touched since"
    assert len(folders) == 2
    assert min(sizes) > 0.99 * written[0], "but each is whole, without the one before"
    assert min(in_common[2:]) >= 2, "with files of the one before the last"


def test_two_checkpoints_in_a_row_have_no_file_in_common(
    touching: tuple[Losing, list[testing.Gate]], tmp_path: Path
) -> None:
    """All files of the newest are damaged where they are: the one before is sound, and counts."""
    made, gates = touching
    for gate in gates:
        assert gate.wait_reached(PATIENCE)
        made.take()
        if gate is not gates[-1]:
            gate.open()
    folders = sorted((tmp_path / "saved").glob("0*"))
    assert shared(*folders) == 0
    for file in folders[-1].glob("*.state"):
        with file.open("r+b") as opened:
            opened.seek(file.stat().st_size // 2)
            opened.write(b"damaged")
    made.lose(gates[-1])
    check_touched(made.job.wait(PATIENCE)["out"])
