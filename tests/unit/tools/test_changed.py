"""What counts as changed, in a repository of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.changed import base, changed

AUTHOR = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]


def test_changed_since_main_committed_or_not(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "old.py").write_text("1")
    commit(tmp_path)
    assert base(tmp_path, "") == "HEAD"
    git(tmp_path, "checkout", "-q", "-b", "branch")
    (tmp_path / "committed.py").write_text("1")
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", "main")
    (tmp_path / "of_others.py").write_text("1")
    commit(tmp_path)
    git(tmp_path, "checkout", "-q", "branch")
    (tmp_path / "old.py").write_text("2")
    (tmp_path / "new.py").write_text("1")
    assert set(changed(tmp_path, base(tmp_path, ""))) == {Path("committed.py"), Path("old.py"), Path("new.py")}
    assert set(changed(tmp_path, base(tmp_path, "HEAD"))) == {Path("old.py"), Path("new.py")}


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, *AUTHOR, "commit", "-q", "-m", "one")


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True)
