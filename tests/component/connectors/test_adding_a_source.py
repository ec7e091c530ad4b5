"""A source is a folder and its lines in the registry: CONTRIBUTING's example is added, stopped and restored."""

from __future__ import annotations

import importlib
import re
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rayelastic as rel
from rayelastic import connectors
from rayelastic.connectors import registry
from rayelastic.errors import ErrorCode, StateError
from rayelastic.runtime.checkpoint.files import SnapshotFolder
from rayelastic.runtime.element import hosted
from rayelastic.runtime.operators.native_schema import native_schema

PATIENCE = 60.0
A_WHILE = 0.001  # seconds a number, so that the job is stopped before the end
COUNT = 5_000  # numbers of a file
MOST_FILES = 3
EXAMPLE = re.compile(r"`(rayelastic/connectors/[a-z_/]+\.py)`[^`]*.*?```\w+\n(.*?)```", re.DOTALL)


@pytest.fixture
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The registry with the source of CONTRIBUTING.md."""
    text = Path("CONTRIBUTING.md").read_text()
    section = text[text.index("## Adding a source") :].split("\n## ")[0]
    files = dict(EXAMPLE.findall(section.replace("/NAME/", "/numbers/")))
    assert 2 <= len(files) <= MOST_FILES, "files that a source with seek touches, without tests and docs"
    added = files.pop("rayelastic/connectors/registry.py")
    for path, content in files.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    folder = str(tmp_path / "rayelastic/connectors")
    monkeypatch.setattr(connectors, "__path__", [*connectors.__path__, folder])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    extended = ModuleType("extended")
    exec(_applied(Path(registry.__file__).read_text(), added), extended.__dict__)
    monkeypatch.setattr(hosted, "source_operator", extended.source_operator)
    importlib.invalidate_caches()
    return extended


def _applied(text: str, diff: str) -> str:
    """A module with the added lines of a diff: imports at its head, others after the line that they follow."""
    head, at = [], ""
    for line in diff.splitlines():
        if line.startswith("+from"):
            head.append(line[1:])
        elif line.startswith("+"):
            found = re.search(rf"^{re.escape(at.split(' ')[0])}\b.* = [\[{{].*$", text, re.MULTILINE)
            assert found is not None, at
            text = text[: found.end()] + f"\n{line[1:]}" + text[found.end() :]
        else:
            at = line[1:]
    return text.replace("from rayelastic.", "\n".join([*head, "from rayelastic."]), 1)


def test_a_source_of_a_folder_of_its_own_is_stopped_and_restored(numbers: Any, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.bin" for number in range(2)]
    for number, file in enumerate(files):
        np.arange(number * COUNT, (number + 1) * COUNT, dtype="<i8").tofile(file)
    arrived, stopped = threading.Event(), threading.Event()

    def wait(t: Any) -> int:
        if t.value == COUNT + 500:
            arrived.set()
        if arrived.is_set():
            stopped.wait(A_WHILE)
        return int(t.value)

    def topology() -> rel.Topology:
        made = rel.Topology("numbers")
        values = made.source(numbers.numbers(files), name="numbers")
        values.map(wait, name="wait", schema={"value": int}, lane="python").sink(rel.list(), name="out")
        return made

    job = rel.start(topology(), rel.JobConfig(threads=rel.Threads(model="dynamic", queue_records=256)))
    assert arrived.wait(PATIENCE)
    before = job.stop(tmp_path / "saved")["out"]
    stopped.set()
    position = SnapshotFolder(rel.Snapshot(tmp_path / "saved")).manifest().positions["numbers"]
    assert COUNT + 500 <= len(before) == position < 2 * COUNT
    after = rel.run(topology(), restore=tmp_path / "saved")["out"]
    assert [t.value for t in before + after] == list(range(2 * COUNT))

    spec = topology().operators["numbers"]
    source = numbers.source_operator(spec, native_schema(spec.body.schema))  # type: ignore[attr-defined]
    assert source.seek(position, None) == 0, "it reads nothing again"
    files[0].write_bytes(files[0].read_bytes()[::-1])
    with pytest.raises(StateError) as error:
        rel.run(topology(), restore=tmp_path / "saved")
    assert error.value.code is ErrorCode.CHANGED_INPUT
