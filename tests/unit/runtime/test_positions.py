"""Positions of sources that are fed from outside: from wherever they are taken, the rest comes, and nothing twice."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rayelastic.connectors.pushed.accepted import KEPT_EPOCHS, Accepted, Partition
from rayelastic.connectors.pushed.frames import Epoch
from rayelastic.errors import SourceError, StateError
from tests.raising import raises

PARTS, ROWS = 3, 40


def accept(accepted: Accepted, epoch: Epoch, dice: random.Random) -> list[tuple[Epoch, int, int]]:
    """Pushes all partitions of an epoch, in pieces that interleave; the rows that are new, in their order."""
    pieces = [number for number in range(PARTS) for _ in range(ROWS // 10)]
    dice.shuffle(pieces)
    fed, at = [], dict.fromkeys(range(PARTS), 0)
    for number in pieces:
        part = accepted.partition(epoch, number)
        first, at[number] = at[number], at[number] + 10
        new = range(max(first, part.rows), at[number])
        accepted.log(part, len(new))
        part.rows = max(part.rows, at[number])
        fed += [(epoch, number, row) for row in new]
    for number in range(PARTS):
        accepted.partition(epoch, number).ended = ROWS
    accepted.end(epoch, dict.fromkeys(range(PARTS), ROWS))
    return fed


@pytest.mark.parametrize("given", range(0, 2 * PARTS * ROWS + 1, 7))
def test_what_was_given_is_known_wherever_the_checkpoint_is(given: int) -> None:
    dice = random.Random(given)
    accepted = Accepted("rows")
    fed = [row for number in range(2) for row in accept(accepted, Epoch("q", number), dice)]
    for before in range(0, given, 13):
        accepted.position(before)
    later = Accepted("rows")
    later.restore(accepted.position(given))
    committed = given // (PARTS * ROWS)  # epochs that nobody sends again
    again = [row for number in range(committed, 2) for row in accept(later, Epoch("q", number), dice)]
    assert sorted(fed[:given] + again, key=repr) == sorted(fed, key=repr)


def test_a_source_that_has_given_all_is_finished_and_wants_nothing() -> None:
    accepted = Accepted("rows")
    accept(accepted, Epoch(), random.Random(1))
    later, earlier = Accepted("rows"), Accepted("rows")
    earlier.restore(accepted.position(PARTS * ROWS - 1))
    later.restore(accepted.position(PARTS * ROWS))
    assert (earlier.finished, later.finished) == (False, True)


def test_of_a_repeat_after_a_restart_the_last_checksums_are_known() -> None:
    accepted = Accepted("rows")
    part: Partition = accepted.partition(Epoch(), 0)
    for first in range(0, 100, 10):
        accepted.log(part, 10)
        part.rows, part.checksums[first] = first + 10, (10, 1000 + first)
    later = Accepted("rows")
    later.restore(accepted.position(55))
    assert later.partition(Epoch(), 0).checksums == {first: (10, 1000 + first) for first in (10, 20, 30, 40)}


@pytest.mark.parametrize("damaged", [{}, [], {"finished": 0, "complete": {"q": "x"}, "partitions": []}, "text"])
def test_a_position_that_is_none_is_refused(damaged: Any) -> None:
    with raises(StateError, "damaged-position", "rows"):
        Accepted("rows").restore(damaged)


def test_the_last_epochs_of_a_query_may_come_again() -> None:
    accepted = Accepted("rows")
    for number in (5, 5 - KEPT_EPOCHS + 1, 5):
        accepted.partition(Epoch("q", number), 0)
    with raises(SourceError, "rejected-push", "rows"):
        accepted.partition(Epoch("q", 5 - KEPT_EPOCHS), 0)
    accepted.partition(Epoch("other", 0), 0)


@pytest.mark.parametrize(("given", "all_of_it"), [(PARTS * ROWS, True), (PARTS * ROWS - 1, False)])
def test_a_source_without_a_query_has_come_to_its_end_when_all_was_given(given: int, all_of_it: bool) -> None:
    accepted, later = Accepted("rows"), Accepted("rows")
    before = accepted.finished
    accept(accepted, Epoch("", 0), random.Random(1))
    assert (before, accepted.finished) == (False, True)
    later.restore(accepted.position(given))
    assert later.finished is all_of_it
