"""The tutorial's commands, from the first to a job on three nodes, run as printed in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COUNTS = "  20 be\n  20 to\n"  # of the most frequent words; ties come in the order of the table

TIMEOUT = 200.0  # seconds for a command; the slowest takes 10 on a quiet machine


def test_the_tutorial_ends_with_a_job_on_three_nodes(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "get_started" / "tutorial.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "word_count.py").write_text(program)
    (tmp_path / "cluster").symlink_to(ROOT / "cluster")
    commands = re.findall(r"^```bash\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert sum(command.startswith("rayelastic submit") for command in commands) == 1
    assert commands[-1].startswith("python cluster/local.py 3 ")
    # A Ray that another test left would be joined otherwise; RAY_TMPDIR is where Ray notes the one to find.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    variables |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{variables['PATH']}",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    for command in commands:
        done = subprocess.run(
            ["bash", "-eu", "-c", command],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, command + done.stdout + done.stderr
        if "--top 2" in command:
            assert sorted(done.stdout.splitlines()[-2:]) == COUNTS.splitlines(), command + done.stdout
            assert command.startswith("python cluster/") or done.stdout.count("\n") == 2, command + done.stdout
