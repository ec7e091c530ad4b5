"""Files of Ray that must be this user's alone: the cluster's token, and the folder of a cluster that we start.

Who reads the token runs code as its owner. Ray writes it with the mode that the umask leaves, usually 0644, and makes
its folders of logs and sockets writable by everybody. Must not know a cluster.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
import tempfile
from pathlib import Path

_log = logging.getLogger(__name__)

SOCKET_BYTES = 107  # the longest path of a Unix socket
SESSION_BYTES = 70  # of it: what Ray appends, such as session_2026-11-30_10-10-51_123456_1234567/sockets/plasma_store


def token_file() -> Path:
    """Return the path of the token: that of RAY_AUTH_TOKEN_PATH, else Ray's default."""
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    return Path(named).expanduser() if named else _token_folder() / "auth_token"


def token_problem() -> str:
    """Return who else can read or replace the token; empty: nobody, or there is none."""
    file = token_file()
    with contextlib.suppress(OSError):
        status, folder = file.stat(), file.parent.stat()
        is_open = folder.st_mode & (stat.S_IXGRP | stat.S_IXOTH)
        if is_open and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return f"{file} has mode {stat.S_IMODE(status.st_mode):04o}: other users of this host may read it"
        if folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not folder.st_mode & stat.S_ISVTX:
            return f"{file.parent} has mode {stat.S_IMODE(folder.st_mode):04o}: other users may replace the token there"
        if status.st_uid not in (os.geteuid(), 0):
            return f"{file} belongs to user {status.st_uid}"
    return ""


def guard_token(*, starts: bool = False) -> str:
    """Make the token this user's alone where it is ours; warn and return what remains open, if anything.

    Args:
        starts: Whether Ray may make a token next: its folder is made before, for this user alone.
    """
    file, before = token_file(), token_problem()
    with contextlib.suppress(OSError):
        if file.parent == _token_folder():
            if starts:
                file.parent.mkdir(mode=0o700, exist_ok=True)
            _make_private(file.parent, 0o700)
        _make_private(file, 0o600)
    problem = token_problem()
    if problem:
        _log.warning("%s. Who has it can run code on the cluster: chmod 600 it, or use another one", problem)
    elif before:
        _log.warning("%s. Its mode is 0600 now; replace it if others may have read it", before)
    return problem


def private_folder() -> str:
    """Return the folder for Ray of a cluster that we start, inside one of mode 0700; empty: Ray's own, which is open.

    Ray makes its folder writable by everybody, so that what protects it is the one around it. It is below RAY_TMPDIR,
    else the folder for temporary files, else /tmp if its sockets would have too long a path.
    """
    name = f"rayelastic-{os.geteuid()}"
    for parent in (os.environ.get("RAY_TMPDIR") or tempfile.gettempdir(), "/tmp"):
        folder = Path(parent) / name
        if len(os.fsencode(folder / "ray")) + SESSION_BYTES > SOCKET_BYTES:
            continue
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                _make_private(folder, 0o700)
                return str(folder / "ray")
    _log.warning("other users of this host can read the logs of Ray: no folder %s of ours can be made", name)
    return ""


def _token_folder() -> Path:
    return Path.home() / ".ray"


def _make_private(path: Path, mode: int) -> None:
    """Take from others what they may do with a file or folder of ours."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid == os.geteuid() and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
