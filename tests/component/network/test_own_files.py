"""What Ray leaves open on a host of several users is closed before it holds anything: its token, its folder."""

from __future__ import annotations

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayelastic.on_ray.own_files import SESSION_BYTES, guard_token, private_folder, token_problem
from tests.neighbour import STRANGER, as_root, stranger

LONGEST_SESSION = "session_2026-11-30_10-10-51_123456_4194304/sockets/plasma_store.1"  # of Ray 2.60, pid_max of Linux


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    return tmp_path


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a path that leaves room for those of sockets, and that others may enter; pytest's has neither."""
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def token_in(folder: Path, mode: int) -> Path:
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    (folder / "auth_token").write_text("secret")
    (folder / "auth_token").chmod(mode)
    return folder / "auth_token"


def test_an_open_token_of_ours_is_closed_and_warned_of(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = token_in(home / ".ray", 0o644)
    assert "other users of this host may read it" in token_problem()
    assert guard_token() == ""
    assert (mode_of(token), mode_of(token.parent)) == (0o600, 0o700)
    (said,) = caplog.messages
    assert f"{token} has mode 0644" in said
    assert "Its mode is 0600 now; replace it" in said
    assert guard_token() == ""
    assert len(caplog.messages) == 1


def test_the_folder_of_a_token_to_come_is_made_before(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert guard_token(starts=True) == ""
    assert mode_of(home / ".ray") == 0o700
    token = home / ".ray" / "auth_token"
    token.write_text("secret")
    token.chmod(0o644)  # as Ray writes it
    assert guard_token() == ""
    assert mode_of(token) == 0o600
    assert caplog.messages == [], "nobody else could read it: its folder was closed before"


def test_only_a_token_is_changed_where_the_user_named_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    token = token_in(tmp_path / "shared", 0o640)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    assert guard_token(starts=True) == ""
    assert (mode_of(token), mode_of(token.parent)) == (0o600, 0o755)
    token.parent.chmod(0o777)
    assert "other users may replace the token there" in guard_token()


@as_root
def test_an_open_token_of_somebody_else_is_warned_of(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = token_in(home / ".ray", 0o644)
    os.chown(token, STRANGER, STRANGER)
    assert f"belongs to user {STRANGER}" in guard_token()
    assert mode_of(token) == 0o644
    assert "Who has it can run code on the cluster" in caplog.text


def test_rays_folder_lies_in_one_that_is_ours_alone(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(short))
    folder = Path(private_folder())
    assert folder.parent == short / f"rayelastic-{os.geteuid()}"
    assert mode_of(folder.parent) == 0o700
    folder.parent.chmod(0o777)
    assert Path(private_folder()) == folder
    assert mode_of(folder.parent) == 0o700


def test_sockets_below_a_long_path_go_to_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("n" * 60)
    long.mkdir()
    monkeypatch.setenv("RAY_TMPDIR", str(long))
    folder = private_folder()
    assert folder == f"/tmp/rayelastic-{os.geteuid()}/ray"
    assert len(f"/{LONGEST_SESSION}") <= SESSION_BYTES
    deep = tmp_path / ("s" * (106 - len(str(tmp_path))))
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(deep))  # 107 bytes: the bound is the system's
    with socket.socket(socket.AF_UNIX) as bound, pytest.raises(OSError, match="too long"):
        bound.bind(f"{deep}s")


@as_root
def test_a_folder_that_somebody_else_put_there_is_not_used(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(short))
    squat = short / f"rayelastic-{os.geteuid()}"
    squat.mkdir()
    os.chown(squat, STRANGER, STRANGER)
    assert private_folder() == f"/tmp/rayelastic-{os.geteuid()}/ray"
    squat.rmdir()
    squat.symlink_to(tmp_path)
    assert private_folder() == f"/tmp/rayelastic-{os.geteuid()}/ray"


@as_root
def test_another_user_reads_neither(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(short))
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    token = token_in(short / ".ray", 0o644)
    assert stranger("cat", str(token)).stdout == "secret"
    guard_token()
    assert "Permission denied" in stranger("cat", str(token)).stderr
