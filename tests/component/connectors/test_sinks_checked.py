"""`check_sink` on the sinks of the project whose rows appear with each checkpoint, by the calls of a user's object."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from rayelastic.connectors.output.record import Output
from rayelastic.testing import check_sink
from tests.component.connectors.test_sinks_by_epoch import CsvFolder, Folder, Growing, JsonFolder, Trial, batch

pytestmark = pytest.mark.edges


class OfWriter:
    """A writer behind the calls of an object; a checkpoint's manifest is a file."""

    kind: type[Trial] = Folder

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def initialize(self) -> None:
        self.trial = self.kind(self.folder)
        self.writer: Any = None
        self.restored = 0

    def commit(self, epoch: int) -> None:
        if self.writer is None:
            self.restored = epoch
        else:
            self.writer.commit(epoch)

    def abort(self) -> None:
        manifest = self.folder / f"{self.restored}.manifest"
        self.writer = self.trial.begun(Output(**json.loads(manifest.read_text())) if self.restored else None)

    def __call__(self, n: int) -> None:
        self.writer.write(batch(n, n + 1))

    def prepare(self, epoch: int) -> None:
        output = asdict(self.trial.prepare(self.writer, epoch))
        (self.folder / f"{epoch}.manifest").write_text(json.dumps(output))

    def shutdown(self) -> None:
        self.writer.close()


class OfCsv(OfWriter):
    kind = CsvFolder


class OfJson(OfWriter):
    kind = JsonFolder


class OfGrowing(OfWriter):
    kind = Growing


OWN = [OfJson, *(pytest.param(own, marks=pytest.mark.nightly) for own in (OfWriter, OfCsv, OfGrowing))]


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.kind.__name__)
def test_our_own_sinks_keep_the_protocol(own: type[OfWriter], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # the machine goes on, and 2,000 of them take most of the time

    def read(folder: Path) -> list[int]:
        return [row["n"] for row in own.kind(folder).seen()]

    assert check_sink(own, read, range(4)).exactly_once
