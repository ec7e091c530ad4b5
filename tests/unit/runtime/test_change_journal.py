"""What a coordinator writes down of its changes, and what the next one reads: the same, at every line."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayelastic.errors import JobExistsError
from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.plan_change import plan_change
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.runtime.journal import ChangeJournal, OpenChange, OpenStop, SavedAt

REGION = Region("r1", RegionKind.DATA_PARALLEL, ("count",), ("word",))
PLAN = ExecPlan("words", (RegionPlan(REGION, (Pipeline(("count",), ("pe0",)),)),))
CHANGE = plan_change(PLAN, PLAN.with_replicas("r1", 2, ("pe0", "pe1")))
BATCHES = sum(-(-len(moves.partitions) // 40) for part in CHANGE.regions for moves in part.moved)


class Store:
    """Lines in memory; with `alone`, those before don't count."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.alone: list[bool] = []
        self.taken = False
        self.closed = False

    def lines(self) -> list[str]:
        first = max((number for number, alone in enumerate(self.alone) if alone), default=0)
        return self.told[first:]

    def append(self, line: str, *, alone: bool) -> None:
        if self.taken:
            raise JobExistsError("another coordinator was there")
        self.told.append(line)
        self.alone.append(alone)

    def close(self) -> None:
        self.closed = True


def known(journal: ChangeJournal) -> tuple[object, ...]:
    return journal.plan, journal.open_change, journal.over, journal.incarnation


WRITES: list[Callable[[ChangeJournal], object]] = [
    lambda journal: journal.end(PLAN),
    lambda journal: journal.started(),
    lambda journal: journal.begin(CHANGE, 40),
    lambda journal: journal.moved(1),
    lambda journal: journal.moved(2),
    lambda journal: journal.undo(0),
    lambda journal: journal.undo(2),
    lambda journal: journal.end(CHANGE.old),
    lambda journal: journal.begin(CHANGE, 7),
    lambda journal: journal.end(CHANGE.new),
    lambda journal: journal.ends_job("failed", "it was lost"),
]


def test_the_next_one_knows_at_every_line_what_this_one_does() -> None:
    store = Store()
    journal, alone = ChangeJournal(store), ChangeJournal()
    told = []
    for write in WRITES:
        write(journal)
        write(alone)
        assert known(ChangeJournal(store)) == known(journal) == known(alone)
        told.append(known(journal))
    assert told == [
        (PLAN, None, None, 0),
        (PLAN, None, None, 1),
        (PLAN, OpenChange(CHANGE, 40), None, 1),
        (PLAN, OpenChange(CHANGE, 40, 1), None, 1),
        (PLAN, OpenChange(CHANGE, 40, 2), None, 1),
        (PLAN, OpenChange(CHANGE, 40, 2, 0), None, 1),
        (PLAN, OpenChange(CHANGE, 40, 2, 2), None, 1),
        (PLAN, None, None, 1),
        (PLAN, OpenChange(CHANGE, 7), None, 1),
        (CHANGE.new, None, None, 1),
        (CHANGE.new, None, ("failed", "it was lost"), 1),
    ]
    assert [json.loads(line)["kind"] for line, alone in zip(store.told, store.alone, strict=True) if alone] == 3 * [
        "end"
    ]


def test_lines_are_what_earlier_and_later_releases_read() -> None:
    store = Store()
    journal = ChangeJournal(store)
    journal.started()
    journal.begin(CHANGE, 40)
    journal.moved(1)
    journal.undo(0)
    journal.end(PLAN)
    journal.ends_job("failed", "why")
    old, new = CHANGE.old.to_record(), CHANGE.new.to_record()
    assert [json.loads(line) for line in store.told] == [
        {"kind": "started", "incarnation": 1},
        {"kind": "begin", "old": old, "new": new, "batch": 40},
        {"kind": "moved", "count": 1},
        {"kind": "undo", "count": 0},
        {"kind": "end", "plan": old, "incarnation": 1},
        {"kind": "over", "state": "failed", "reason": "why"},
    ]


def test_the_next_one_knows_of_a_stop_and_of_what_was_left() -> None:
    store = Store()
    journal = ChangeJournal(store)
    told = []
    for write in (
        lambda: journal.end(PLAN),
        lambda: journal.stops("/saved"),
        lambda: journal.resumes(),
        lambda: journal.saved(),
        lambda: journal.stops("/saved"),
        lambda: journal.saved(),
        lambda: journal.ends_job("finished", "", {"out": {"rows": 3}}),
    ):
        write()  # type: ignore[no-untyped-call]
        assert ChangeJournal(store).open_stop == journal.open_stop
        told.append(journal.open_stop)
    assert told == [None, OpenStop("/saved"), None, None, OpenStop("/saved"), *2 * [OpenStop("/saved", saved=True)]]
    assert ChangeJournal(store).results == {"out": {"rows": 3}}
    assert ChangeJournal(store).over == ("finished", "")


def test_the_next_one_knows_that_elasticity_is_paused() -> None:
    store = Store()
    journal, told = ChangeJournal(store), []
    for write in (
        lambda: journal.end(PLAN),
        lambda: journal.pauses(True),
        lambda: journal.begin(CHANGE, 40),
        lambda: journal.end(CHANGE.new),  # whatever was before doesn't count
        lambda: journal.pauses(False),
        lambda: journal.end(PLAN),
    ):
        write()  # type: ignore[no-untyped-call]
        assert ChangeJournal(store).paused == journal.paused
        told.append(journal.paused)
    assert told == [False, True, True, True, False, False]


class Model:
    """What a job has under way, line by line."""

    def __init__(self) -> None:
        self.change: OpenChange | None = None
        self.stop: OpenStop | None = None
        self.renewing = False
        self.saved: list[SavedAt] = []

    def write(self, kind: str, journal: ChangeJournal) -> None:
        """Write a line that may follow."""
        match kind, self.change:
            case "begin", None:
                journal.begin(CHANGE, 40)
                self.change = OpenChange(CHANGE, 40)
            case "moved", OpenChange(undoing=None, moved=moved) if moved < BATCHES:
                journal.moved(moved + 1)
                self.change = OpenChange(CHANGE, 40, moved + 1)
            case "undo", OpenChange(undoing=undoing, moved=moved) if (undoing or 0) < moved:
                journal.undo(0 if undoing is None else undoing + 1)
                self.change = OpenChange(CHANGE, 40, moved, 0 if undoing is None else undoing + 1)
            case "end", _:
                journal.end(PLAN)
                self.change, self.renewing = None, False
            case "secret", _:
                journal.renews(b"another")
                self.renewing = True
            case "stop", _:
                journal.stops("/saved")
                self.stop = OpenStop("/saved")
            case "resumes", _:
                journal.resumes()
                self.stop = None
            case "checkpoint", _:
                self.saved.append(SavedAt(len(self.saved) + 1, "there"))
                journal.checkpointed(self.saved[-1], PLAN, 2)
                self.stop = None  # it was that of the checkpoint
            case "without", _ if len(journal.checkpoints) > 1:
                journal.without(journal.checkpoints[-1], PLAN)
            case "paused", _:
                journal.pauses(not journal.paused)
            case _:
                pass


KINDS = ["begin", "moved", "undo", "end", "secret", "stop", "resumes", "checkpoint", "without", "paused"]


@given(st.lists(st.sampled_from(KINDS), max_size=20))
def test_only_its_own_end_ends_what_is_under_way(kinds: list[str]) -> None:
    store, model = Store(), Model()
    journal = ChangeJournal(store)
    journal.end(PLAN)
    for kind in kinds:
        model.write(kind, journal)
        for reader in (journal, ChangeJournal(store)):  # and the coordinator after a crash
            assert reader.open_change == model.change
            assert reader.open_stop == model.stop
            assert reader.renewing is model.renewing
            assert (reader.paused, reader.secret) == (journal.paused, journal.secret)
            assert reader.checkpoints == journal.checkpoints


def test_incarnations_grow_whatever_lines_are_left() -> None:
    store = Store()
    assert [ChangeJournal(store).started() for _ in range(3)] == [1, 2, 3]
    journal = ChangeJournal(store)
    journal.end(PLAN)
    assert ChangeJournal(store).incarnation == 3
    ChangeJournal(store).started()
    journal.end(PLAN)  # an earlier one's
    store.alone[-1] = False
    assert ChangeJournal(store).started() == 5


def test_nothing_is_under_way_without_a_beginning() -> None:
    store = Store()
    journal = ChangeJournal(store)
    journal.moved(1)
    journal.undo(1)
    assert known(journal) == known(ChangeJournal(store)) == (None, None, None, 0)


def test_a_job_that_is_over_has_its_last_plan() -> None:
    store = Store()
    journal = ChangeJournal(store)
    journal.end(PLAN)
    journal.ends_job("cancelled", "")
    journal.end(CHANGE.new)
    assert len(store.told) == 2
    assert known(ChangeJournal(store)) == (PLAN, None, ("cancelled", ""), 0)


def test_what_could_not_be_written_has_not_happened() -> None:
    store = Store()
    journal = ChangeJournal(store)
    journal.begin(CHANGE, 40)
    store.taken = True
    for write in (lambda: journal.moved(1), lambda: journal.end(PLAN), journal.started, lambda: journal.undo(0)):
        with pytest.raises(JobExistsError):
            write()
    assert known(journal) == (PLAN, OpenChange(CHANGE, 40), None, 0)


def test_another_can_have_the_store() -> None:
    store = Store()
    ChangeJournal(store).close()
    assert store.closed
    ChangeJournal().close()


def test_when_the_job_began_is_known_whatever_lines_are_left() -> None:
    store = Store()
    journal = ChangeJournal(store)
    assert journal.began is None
    journal.end(PLAN, began=5.0)
    journal.begin(CHANGE, 40)
    journal.end(CHANGE.new)
    journal.checkpointed(SavedAt(1, "there"), CHANGE.new, 1)
    assert ChangeJournal(store).began == journal.began == 5.0


def test_a_checkpoint_that_could_not_be_noted_is_told_and_left_out() -> None:
    store = Store()
    journal = ChangeJournal(store)
    journal.end(PLAN)
    store.taken = True
    with pytest.raises(JobExistsError):
        journal.checkpointed(SavedAt(1, "first"), PLAN, 1)
    store.taken = False
    assert journal.checkpointed(SavedAt(2, "second"), PLAN, 1) == (SavedAt(1, "first"),)
    assert journal.checkpoints == (SavedAt(2, "second"),)
