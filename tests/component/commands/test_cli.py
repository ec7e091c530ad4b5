"""The command line in this process: `plan` and `run`, and what is said of mistakes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from rayelastic.cli import COMMANDS, main
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.progress import progress_line, remarks, summary_line
from rayelastic.runtime.values.status import JobMetrics, OperatorSample, PESample
from rayelastic.topologies import word_count

ROOT = Path(__file__).resolve().parents[3]
WORD_COUNT = str(word_count.__file__)


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "text.txt"
    path.write_text("to be or not to be\n" * 10)
    return str(path)


def test_plan_starts_nothing_and_tells_lanes(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out"
    assert main(["plan", WORD_COUNT, "--input", text, "--output", str(output), "--pes", "2"]) == 0
    shown = capsys.readouterr().out
    assert "words" in shown
    assert "compiled" in shown
    assert "2 PEs" in shown
    assert not output.exists()


def test_run_prints_the_report(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out"
    assert main(["run", WORD_COUNT, "--input", text, "--output", str(output), "--top", "1", "--threads", "2"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0] == f"counted {text}:"
    assert shown.out.splitlines()[-1].split() == ["be", "20"]
    assert f"60 words, 4 distinct; all counts: {output}" in shown.out
    assert "counts" in shown.err, "the progress line"
    assert "elasticity: no change in this time; --journal" in shown.err
    assert "standard library" not in shown.out
    assert main(["run", WORD_COUNT, "--output", str(output), "--top", "1", "--quiet"]) == 0
    shown = capsys.readouterr()
    assert "counted the sources of Python's standard library (--input" in shown.out
    assert "elasticity" not in shown.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "missing.py"], "there is no topology file missing.py"),
        (["run", "no.such.module"], "there is no topology module 'no.such.module'"),
        (["run", WORD_COUNT, "--input", "missing.txt"], "operator 'lines'"),
        (["plan", WORD_COUNT, "--pes", "9"], "regions to distribute"),
        (["rum", WORD_COUNT], "Did you mean 'run'"),
        (["run", WORD_COUNT, "--tpo", "2"], "Usage: rayelastic run"),
        (["run", WORD_COUNT, "--tpo", "2"], "--top"),
    ],
)
def test_mistakes_are_told_in_one_line_with_status_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told


def test_a_result_as_json_has_the_report_and_the_counters(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--input", text, "--output", str(tmp_path / "out")]
    assert main(["run", WORD_COUNT, *where, "--quiet", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["job"], shown["state"]) == ("word_count", "finished")
    assert "60 words" in shown["report"]
    assert shown["metrics"]["pes"][0]["operators"]


def test_every_command_has_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert main([name, "--help"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"Usage: rayelastic {name} ")
        assert ("--json" in shown) == (name != "completion")


def test_a_failing_job_has_status_1_and_shows_the_users_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fails.py"
    file.write_text(
        "import rayelastic as rel\n"
        "def inverse(t):\n"
        "    return 1 // (t.value - 5)\n"
        "def build(count: int = 10):\n"
        "    topology = rel.Topology('fails')\n"
        "    numbers = topology.source(rel.sequence(count), name='numbers')\n"
        "    numbers.map(inverse, name='inverse', schema=int).sink(rel.count(), name='out')\n"
        "    return topology\n"
    )
    assert main(["run", str(file), "--quiet"]) == 1
    told = capsys.readouterr().err
    assert "operator 'inverse'" in told
    assert "value=5" in told
    assert "return 1 // (t.value - 5)" in told
    assert main(["run", str(file), "--quiet", "--count", "5"]) == 0


def test_ctrl_c_stops_a_running_job(tmp_path: Path) -> None:
    file = tmp_path / "endless.py"
    file.write_text(
        "import rayelastic as rel\n"
        "def build():\n"
        "    topology = rel.Topology('endless')\n"
        "    numbers = topology.source(rel.generate(lambda n: n, None, schema={'n': int}), name='numbers')\n"
        "    numbers.sink(rel.count(), name='out')\n"
        "    return topology\n"
    )
    command = [sys.executable, "-m", "rayelastic.cli", "run", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "numbers" in process.stderr.readline()  # the first progress line: it runs
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped" in told
    assert "Traceback" not in told


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"rayelastic \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_a_plan_as_json_is_the_plan(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", WORD_COUNT, "--input", text, "--json"]) == 0
    plan = ExecPlan.from_dict(json.loads(capsys.readouterr().out))
    assert [name for names in plan.pes.values() for name in names] == ["lines", "words", "counts", "out"]


def test_the_last_line_of_progress_tells_total_seconds_and_average() -> None:
    operators = tuple(OperatorSample(f"step{n}", "manual", 1_000, 1_000, 0, cpu_seconds=n) for n in range(12))
    now = JobMetrics("words", 4.0, (PESample("pe0", 4.0, 1, 0.0, operators),))
    line = summary_line(now)
    assert line.startswith("  4.0 s  ")
    assert "step11 1k (250/s on average)" in line
    assert line.endswith("and 4 cheaper ones")
    assert "step0 " not in line


class Samples(tuple[OperatorSample, ...]):
    """Counts how often all are read."""

    __slots__ = ()
    reads: ClassVar[list[int]] = []

    def __iter__(self) -> Iterator[OperatorSample]:
        self.reads.append(len(self))
        return super().__iter__()


def test_lines_of_many_operators_read_all_counters_a_few_times() -> None:
    """Of thousands, once for each operator takes minutes."""
    operators = Samples(OperatorSample(f"step{n}", "manual", 1_000, 1_000, 0) for n in range(100))
    now = JobMetrics("words", 4.0, (PESample("pe0", 4.0, 1, 0.0, operators),))
    Samples.reads.clear()
    assert summary_line(now)
    assert progress_line(now, now)
    assert remarks(now) == []
    assert now.dropped("late") == {}
    assert len(Samples.reads) < 10


def test_a_line_of_progress_tells_the_rate_since_the_last_one() -> None:
    def after(seconds: float, tuples: int) -> JobMetrics:
        return JobMetrics(
            "words", seconds, (PESample("pe0", seconds, 1, 0.0, (OperatorSample("a", "manual", tuples, 0, 0),)),)
        )

    assert "a 3k (400/s)" in progress_line(after(5.0, 1_000), after(10.0, 3_000))
    assert "a 1k (200/s)" in progress_line(None, after(5.0, 1_000))
