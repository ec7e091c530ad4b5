"""`rayelastic demo`: the list, an application in terminals of two sizes, and plain lines where there is no terminal."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from rich.console import Console

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.demo import APPLICATIONS, lines, show
from rayelastic.runtime.values.adaptation import read_journal
from rayelastic.topologies import load_step, vwap
from rayelastic.web.events import event_of

ROOT = Path(__file__).resolve().parents[3]
JOURNAL = Path(__file__).parents[1] / "policy" / "journals" / "two_cores.jsonl"
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def test_it_lists_the_applications(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in APPLICATIONS)
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize("name", APPLICATIONS)
def test_applications_are_there_with_their_page(name: str) -> None:
    module = importlib.import_module(f"rayelastic.topologies.{name}")
    assert set(APPLICATIONS[name].options) <= set(inspect.signature(module.build).parameters)
    assert f"rayelastic.topologies.{name}" in (ROOT / "docs" / "applications.md").read_text()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_a_terminal_shows_it_live(width: int, height: int, tmp_path: Path) -> None:
    written = io.StringIO()
    console = Console(file=written, width=width, height=height, force_terminal=True, legacy_windows=False)
    job = rel.start(vwap.build(None, str(tmp_path / "out"), days=20))
    show(job, console)
    job.close()
    shown = ESCAPE.sub("", written.getvalue())
    last = shown[shown.rindex("vwap  finished") :].rstrip("\n").split("\n")  # the picture that stays
    assert len(last) <= height
    assert all(len(line) <= width for line in last)
    text = "\n".join(last)
    assert "threads" in text
    assert "pre_vwap" in text
    assert ("r0  source" if width == 200 else "graph  events") in text


def test_a_file_gets_plain_lines(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)  # as where ./dev runs it: the shell that reads has it not on PATH
    assert main(["demo", "vwap", "--days", "3", "--output", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "vwap: 9 operators" in shown
    assert re.search(r"^ +\d+\.\d s  \d thread", shown, re.MULTILINE)
    assert "vwap  finished" in shown
    assert "bargains among" in shown
    for line in shown[shown.index("next:") :].splitlines()[1:]:  # each works as it is printed
        program, demo, *rest = shlex.split(line, comments=True)
        assert Path(program).samefile(Path(sys.executable).parent / "rayelastic"), line
        assert demo == "demo"
        assert set(rest) - {"--web"} <= set(APPLICATIONS), line


@pytest.mark.edges
def test_lines_say_what_changed_and_why() -> None:
    job = rel.start(load_step.build(0.1, 50, 0.1, 50))
    job.wait()
    done = next(one for one in read_journal(JOURNAL)[1] if one.changed)
    job._adapted = (done,)
    shown = list(lines(job))
    event = event_of(done)
    assert event.title in shown[1]
    assert shown[2] == f"          why: {event.reason}"


@pytest.mark.edges
def test_a_demo_as_json_is_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    step = ["--before", "0.1", "--rate", "50", "--after", "0.1", "--peak", "50"]
    assert main(["demo", "load_step", *step, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["report"].partition(" ")[0]) == ("finished", "10")
    assert main(["demo", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == list(APPLICATIONS)
