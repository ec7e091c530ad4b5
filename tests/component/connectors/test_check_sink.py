"""`check_sink` passes what keeps the protocol, and names the first rule that another one breaks."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rayelastic.errors import SinkError
from rayelastic.testing import VerificationError, check_sink
from tests.component.connectors.ledger import Amount, Ledger, read
from tests.raising import raises

pytestmark = pytest.mark.edges

ROWS = [Amount(n) for n in range(8)]
AMOUNTS = range(8)


class DropsNothing(Ledger):  # type: ignore[misc]
    def abort(self) -> None:
        """Leaves what was prepared."""


class ShowsWhatIsPrepared(Ledger):  # type: ignore[misc]
    def prepare(self, epoch: int) -> None:
        super().prepare(epoch)
        self.commit(epoch)


class CommitsOneNumber(Ledger):  # type: ignore[misc]
    def commit(self, epoch: int) -> None:
        file = self.folder / f"{epoch}.prepared"
        if file.exists():
            file.rename(file.with_suffix(".json"))


class CommitsOnce(Ledger):  # type: ignore[misc]
    def commit(self, epoch: int) -> None:
        (self.folder / f"{epoch}.prepared").rename(self.folder / f"{epoch}.json")


class KeepsWhatItPrepared(Ledger):  # type: ignore[misc]
    amounts: list[int]

    def prepare(self, epoch: int) -> None:
        before = self.amounts
        super().prepare(epoch)
        self.amounts = before


class CommitsEverything(Ledger):  # type: ignore[misc]
    def commit(self, epoch: int) -> None:
        super().commit(1_000_000)


class PreparesInMemory(Ledger):  # type: ignore[misc]
    amounts: list[int]

    def prepare(self, epoch: int) -> None:
        self.prepared, self.amounts = self.amounts, []

    def commit(self, epoch: int) -> None:
        super().prepare(epoch)
        super().commit(epoch)


class WritesInTwoSteps(Ledger):  # type: ignore[misc]
    """Loses what is between the two, where it dies there."""

    def commit(self, epoch: int) -> None:
        for file in self.folder.glob("*.prepared"):
            if int(file.stem) <= epoch:
                text = file.read_text()
                file.unlink()
                file.with_suffix(".json").write_text(text)


class WritesAtOnce(Ledger):  # type: ignore[misc]
    def __call__(self, t: Any) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{t.amount}.json").write_text(f"[{t.amount}]")


class Locked(Ledger):  # type: ignore[misc]
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.lock = threading.Lock()


BROKEN = {
    DropsNothing: r"after commit\(2\) readers see 0 2 times. History: abort\(\), rows 0 to 1, prepare\(1\), the ",
    ShowsWhatIsPrepared: r"after prepare\(1\) readers see 0, whose checkpoint isn't complete",
    CommitsOneNumber: r"after commit\(3\) readers don't see 2. History \(a checkpoint is abandoned\)",
    CommitsOnce: r"commit\(1\) raised FileNotFoundError",
    KeepsWhatItPrepared: r"after commit\(2\) readers see 0 2 times",
    CommitsEverything: "whose checkpoint isn't complete",
    PreparesInMemory: "readers don't see",
    WritesInTwoSteps: r"readers don't see .* commit\(1\), the process is killed, commit\(1\)",
    WritesAtOnce: "after row 0 readers see 0, whose checkpoint isn't complete",
    Locked: "it can't be sent to another process: TypeError: cannot pickle",
}


def test_the_ledger_of_the_guide_keeps_it() -> None:
    report = check_sink(Ledger, read, ROWS, AMOUNTS)
    assert report.exactly_once
    assert report.histories > 150


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_what_breaks_a_rule_is_named(kind: Any) -> None:
    with pytest.raises(VerificationError, match=BROKEN[kind]):
        check_sink(kind, read, ROWS, AMOUNTS)


class Appends:
    """Writes a batch of rows to a file; twice what comes again."""

    flushes: ClassVar[bool] = True

    def __init__(self, folder: Path) -> None:
        self.file, self.batch = folder / "rows", list[int]()

    def __call__(self, t: Any) -> None:
        self.batch.append(t.amount)
        if len(self.batch) == 3:
            self.write()

    def write(self) -> None:
        with self.file.open("a") as file:
            file.writelines(f"{amount}\n" for amount in self.batch)
        self.batch = []

    def shutdown(self) -> None:
        """Has nothing to close."""


class Flushes(Appends):
    def flush(self) -> None:
        self.write()


def lines(folder: Path) -> list[int]:
    file = folder / "rows"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def test_a_batch_that_is_flushed_is_there_at_least_once() -> None:
    assert not check_sink(Flushes, lines, ROWS, AMOUNTS).exactly_once
    with pytest.raises(VerificationError, match="at the end readers don't see 6"):
        check_sink(Appends, lines, ROWS, AMOUNTS)


def test_an_object_that_no_job_would_take_is_rejected() -> None:
    class Closes(Ledger):  # type: ignore[misc]
        def close(self) -> None:
            """Is never called."""

    with raises(SinkError, "unknown-method"):
        check_sink(Closes, read, ROWS, AMOUNTS)


def test_rows_have_to_differ() -> None:
    with pytest.raises(ValueError, match="needs different rows"):
        check_sink(Ledger, read, [Amount(1), Amount(1)], [1, 1])
