"""Partitions of a pushed source are splits: what the operators downstream are told of them."""

from __future__ import annotations

import pytest

from rayelastic.connectors.pushed.partition_splits import PartitionSplits

pytestmark = pytest.mark.edges


class Marks(list[tuple[int, str]]):
    """A feeder that keeps the marks."""

    def mark_split(self, split: int, change: str) -> None:
        self.append((split, change))


def test_partitions_that_havent_begun_hold_the_watermark_back() -> None:
    marks = Marks()
    splits = PartitionSplits(marks, time_ordered=False)
    splits.begin(0, has_ended=False)
    for partition in (0, 0):
        splits.continue_with(partition)
    splits.end(0)
    assert marks == [(0, "waits"), (1, "open"), (1, "now"), (1, "end")]
    splits.finish()
    assert marks[-1] == (0, "end")


def test_in_time_order_only_those_of_lower_numbers_do() -> None:
    marks = Marks()
    splits = PartitionSplits(marks, time_ordered=True)
    splits.begin(0, has_ended=False)
    assert marks == [(1, "open"), (0, "end")]
    splits.begin(2, has_ended=False)  # its task was faster than that of 1
    assert marks[2:] == [(3, "open"), (0, "waits")]
    splits.begin(1, has_ended=False)
    assert marks[4:] == [(2, "open"), (0, "end")]


def test_a_partition_that_comes_again_stays_ended() -> None:
    """Of a task that ran twice, or of a job that recovered."""
    marks = Marks()
    splits = PartitionSplits(marks, time_ordered=True)
    splits.begin(0, has_ended=True)
    splits.end(0)
    assert (1, "open") not in marks
    assert marks[-1] == (1, "end")
