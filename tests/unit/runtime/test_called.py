"""What a function, or an object that takes part in checkpoints, is told of tuples and epochs."""

from __future__ import annotations

from typing import Any

from rayelastic.connectors.call.declaration import CallSink
from rayelastic.connectors.call.writer import Called
from rayelastic.connectors.output.record import BlobStore, Output

STORE: BlobStore = None  # type: ignore[assignment]


def test_numbers_go_on_and_an_epoch_begins_behind_each_checkpoint() -> None:
    got: list[tuple[Any, int, int]] = []
    called = Called(CallSink(lambda *seen: got.append(seen), numbered=True), None)
    called.run("ab")
    assert called.prepare(1, STORE) == Output("", 2, epoch=1)
    called.run("c")
    assert got == [("a", 1, 0), ("b", 1, 1), ("c", 2, 2)]


def test_another_run_goes_on_behind_its_checkpoint() -> None:
    got: list[tuple[Any, int, int]] = []
    called = Called(CallSink(lambda *seen: got.append(seen), numbered=True), Output("", 7, epoch=3))
    called.run("a")
    assert got == [("a", 4, 7)]
    assert called.prepare(4, STORE) == Output("", 8, epoch=4)


class Keeps:
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, t: Any, /) -> None:
        self.asked.append(t)

    def prepare(self, epoch: int, /) -> None:
        self.asked.append(("prepare", epoch))

    def commit(self, epoch: int, /) -> None:
        self.asked.append(("commit", epoch))

    def abort(self) -> None:
        self.asked.append("abort")


def test_an_object_drops_what_nobody_committed_before_its_first_tuple_and_shows_the_rest_at_the_end() -> None:
    keeps = Keeps()
    called = Called(CallSink(keeps), None)
    called.run("a")
    called.prepare(1, STORE)
    called.commit(1)
    called.run("b")
    called.close()
    assert keeps.asked == ["abort", "a", ("prepare", 1), ("commit", 1), "b", ("prepare", 2), ("commit", 2)]


def test_an_object_hears_again_of_the_checkpoint_that_another_run_goes_on_from() -> None:
    keeps = Keeps()
    called = Called(CallSink(keeps), Output("", 7, epoch=3))
    called.close()
    assert keeps.asked == [("commit", 3), "abort", ("prepare", 4), ("commit", 4)]
