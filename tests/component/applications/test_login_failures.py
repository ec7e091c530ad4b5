"""Login failures of a real log and of one that is made up, against plain Python with regular expressions."""

from __future__ import annotations

import calendar
import re
from collections import defaultdict, deque
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.topologies import login_failures
from tests.component.operators.running import CONFIGS

MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
FORM = re.compile(rf"({MONTHS}) ([ \d]\d|\d ) (\d\d):(\d\d):(\d\d) ([^ ]*) ?(.*)", re.DOTALL)
Attempts = list[tuple[str, int, int, str, int]]


def reference(lines: Iterable[str], attempts: int, seconds: int, year: int = 2025) -> tuple[Attempts, int]:
    windows: defaultdict[str, deque[tuple[int, str, int]]] = defaultdict(lambda: deque(maxlen=attempts))
    found: Attempts = []
    others = 0
    for line in lines:
        form = FORM.fullmatch(line)
        if form is None or len(line) < 18:
            others += 1
            continue
        month, day, *clock, _, rest = form.groups()
        service, _, message = rest.partition(": ")
        if "sshd" not in service or "authentication failure" not in message:
            continue
        time = calendar.timegm((year, MONTHS.split("|").index(month) + 1, int(day), *map(int, clock), 0, 0, 0))
        value = {name: re.search(rf" {name}=([^ ]*)", message) for name in ("rhost", "user")}
        rhost, user = (one.group(1) if one else "" for one in value.values())
        more = re.match(r"PAM (\d+) ", message)
        window = windows[rhost]
        window.append((time, user, int(more.group(1)) if more else 1))
        took = window[-1][0] - window[0][0]
        if len(window) == attempts and 0 <= took <= seconds:
            found.append((rhost, window[0][0], took, user, sum(count for _, _, count in window)))
    return found, others


def found(result: rel.JobResult, output: Path) -> tuple[Attempts, int]:
    rows = parquet.read_table(output).to_pylist()
    return [tuple(row.values()) for row in rows], result["other_forms"]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_a_real_log(ssh_log: Path, tmp_path: Path, config: rel.JobConfig) -> None:
    result = rel.run(login_failures.build(str(ssh_log), str(tmp_path / "out")), config)
    expected = reference(ssh_log.read_text().splitlines(), 5, 60)
    assert len(expected[0]) > 50
    assert found(result, tmp_path / "out") == expected


@pytest.mark.parametrize("seed", [1, 2])
def test_logs_that_nobody_has_seen(tmp_path: Path, seed: int) -> None:
    lines = list(login_failures.synthetic(20_000, seed))
    log = tmp_path / "auth.log"
    log.write_text("\n".join(lines) + "\n")
    result = rel.run(login_failures.build(str(log), str(tmp_path / "out"), attempts=3, seconds=5))
    expected = reference(lines, 3, 5)
    assert len(expected[0]) > 100
    assert expected[1] > 100
    assert found(result, tmp_path / "out") == expected


def test_one_line_starts_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "out")
    assert main(["run", "rayelastic.topologies.login_failures", "--lines", "5000", "--output", output, "--quiet"]) == 0
    assert "attempts of" in capsys.readouterr().out
