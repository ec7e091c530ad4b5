"""Another rule for the interval of checkpoints, with a setting of its own, costs two files: planted into a copy."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import rayelastic
from rayelastic import _native

ROOT = Path(rayelastic.__file__).parents[1]
CHANGES = {
    "plan/settings/checkpoint.py": (
        "    every: float = EVERY\n",
        "    every: float = EVERY\n    longest: float = 600.0\n",
    ),
    "runtime/checkpoint/protocol.py": ("min(LONGEST_WAIT, ", "min(self.settings.longest, "),
}
PROGRAM = """
import rayelastic as rel

topology = rel.Topology("planted")
topology.source(rel.sequence(10**12)).sink(rel.count(), name="out")
checkpoint = rel.Checkpoint("saved", every=600.0, longest=0.01)
job = rel.start(topology, rel.JobConfig(checkpoint=checkpoint))
while job.status.checkpoints.taken < 3:
    assert not job.status.state.is_final, job.status
job.close()
"""


def test_a_planted_rule_for_the_interval_costs_two_files(tmp_path: Path) -> None:
    package = tmp_path / "rayelastic"
    shutil.copytree(ROOT / "rayelastic", package, ignore=shutil.ignore_patterns("__pycache__"))
    extension = Path(_native.__file__)
    (package / extension.name).symlink_to(extension)
    for name, (before, after) in CHANGES.items():
        text = (package / name).read_text()
        assert before in text
        (package / name).write_text(text.replace(before, after))
    # -S: the editable package isn't to be found, only what it depends on
    paths = [str(tmp_path), *(path for path in sys.path if "packages" in path)]
    ran = subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(paths), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
