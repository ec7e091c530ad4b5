"""The README's first example runs as printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_first_example_runs(tmp_path: Path) -> None:
    text = README.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 1
    program = tmp_path / "example.py"
    program.write_text(blocks[0])
    done = subprocess.run(
        [sys.executable, str(program)], cwd=README.parent, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "compiled" in done.stdout
    most = max(text.split(), key=text.split().count)
    assert f"{{'word': '{most}', 'n': {text.split().count(most)}}}" in done.stdout


def test_marked_commands_are_there() -> None:
    for name, command in (("main", "./dev demo"), ("tests", "./dev test")):
        assert f"<!-- newcomer: {name} -->\n```bash\n{command}\n```" in README.read_text()


def test_it_names_every_command() -> None:
    command = [sys.executable, "-m", "rayelastic", "--help"]
    wide = os.environ | {"COLUMNS": "1000"}
    shown = subprocess.run(command, env=wide, capture_output=True, text=True, check=True).stdout
    (commands,) = re.findall(r"^usage: rayelastic .*?(\w+ \| .*) \.\.\.$", shown, re.MULTILINE)
    assert f"From the shell: `rayelastic {commands}`" in README.read_text()
