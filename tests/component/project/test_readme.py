"""The README: its example prints what it shows, its commands are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rayelastic.cli import COMMANDS

README = Path(__file__).resolve().parents[3] / "README.md"


def test_first_example_runs(tmp_path: Path) -> None:
    [(program, output)] = re.findall(r"```python\n(.*?)```\n\n```output\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "example.py").write_text(program)
    command = [sys.executable, "example.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (0, output), done.stderr


def test_it_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 120


def test_marked_commands_are_there() -> None:
    for name, command in (("main", "./dev demo"), ("tests", "./dev test")):
        assert f"<!-- newcomer: {name} -->\n```bash\n{command}\n```" in README.read_text()


def test_it_names_every_command() -> None:
    assert f"From the shell: `rayelastic {' | '.join(COMMANDS)}`" in README.read_text()
