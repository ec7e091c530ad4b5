"""cluster/launcher.yaml run as its first lines say: `ray up`, `ray submit`, `ray down` over machines reached by ssh."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import machines

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "cluster" / "launcher.yaml"
WHEEL = "./dev wheels --machine x86_64"
COMMAND_TIMEOUT = 1500.0  # seconds; three machines each install a gigabyte

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.netns,
    pytest.mark.nightly,
    pytest.mark.skipif(bool(machines.missing()), reason=machines.missing() or "everything is there"),
]


def commands() -> list[str]:
    """What the first lines of the file tell to type."""
    return re.findall(r"^#   (\S.*?)(?:  +#.*)?$", FILE.read_text(), re.MULTILINE)


@pytest.mark.timeout(4 * COMMAND_TIMEOUT)
def test_the_launchers_file_brings_a_cluster_up_runs_a_job_and_takes_it_down(tmp_path: Path) -> None:
    first, *typed = commands()
    assert first == WHEEL
    made = [
        sys.executable,
        "-m",
        "tools.wheels",
        "--machine",
        "x86_64",
        "--python",
        "3.11",
        "--output",
        "build/machines/dist",
    ]
    subprocess.run(made, cwd=ROOT, check=True, timeout=COMMAND_TIMEOUT)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(ROOT / "build/machines/dist", tmp_path / "dist")
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    key = home / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    with machines.Machines(3, key.with_suffix(".pub")) as made_of:
        names = {"HEAD_HOST": 1, "WORKER_HOST_1": 2, "WORKER_HOST_2": 3}
        text = FILE.read_text().replace("~/.ssh/id_ed25519", str(key))  # ssh asks the system where home is, not HOME
        for name, number in names.items():
            text = text.replace(name, made_of.address(number))
        (tmp_path / "cluster").mkdir()
        (tmp_path / "cluster" / FILE.name).write_text(text)
        here = f"cd {tmp_path}; export HOME={home} PATH={Path(sys.executable).parent}:$PATH RAY_USAGE_STATS_ENABLED=0"
        said = {}
        for command in typed:
            done = made_of.run(
                0, ["bash", "-ec", f"{here}\n{command}"], env={"RAY_ADDRESS": ""}, timeout=COMMAND_TIMEOUT
            )
            said[command] = done.stdout + done.stderr
            assert done.returncode == 0, f"{command}\n{said[command]}"
        (counted,) = [output for command, output in said.items() if command.startswith("ray submit ")]
        assert re.search(r"\d+ words", counted), counted
        for number in names.values():
            # A worker looks for its head for a minute before it ends.
            made_of.run(number, ["timeout", "150", "pidwait", "raylet|gcs_server"])
            left = made_of.run(number, ["pgrep", "--list-name", "raylet|gcs_server"])
            assert left.stdout == "", f"machine {number}"
