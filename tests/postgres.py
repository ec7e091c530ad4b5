"""A PostgreSQL server of the tests' own: Debian's package (`./dev programs`), in a folder that goes with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
_AS_OTHER = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []  # it refuses to run as root
needs_postgres = pytest.mark.skipif(not _SERVERS, reason="Debian's postgresql isn't here: ./dev programs")


@contextmanager
def postgres_server(password: str = "") -> Iterator[str]:
    """Starts a server that listens at a socket alone; gives how to reach it but for its password."""
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    if _AS_OTHER:
        shutil.chown(folder, "postgres")
        folder.chmod(0o755)
    try:
        asks: list[str] = []
        if password:
            (folder / "password").write_text(password)
            asks = ["-A", "scram-sha-256", "--pwfile", f"{folder}/password"]
        _run("initdb", "-D", f"{folder}/data", "-U", "postgres", "-N", *(asks or ["-A", "trust"]))
        _start(folder)
        try:
            yield f"host={folder} user=postgres dbname=postgres"
        finally:
            _run("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def restart(server: str) -> None:
    """Ends a server as a crash would, with all of its connections, and starts it again."""
    folder = server.split()[0].removeprefix("host=")
    _run("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "-l", f"{folder}/log", "-w", "restart")


@contextmanager
def away(server: str) -> Iterator[None]:
    """Ends a server as a crash would, with all of its connections, and starts it again behind the block."""
    folder = server.split()[0].removeprefix("host=")
    _run("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "-w", "stop")
    try:
        yield
    finally:
        _start(folder)


def _start(folder: Path | str) -> None:
    options = f"-c listen_addresses='' -c fsync=off -k {folder}"
    _run("pg_ctl", "-D", f"{folder}/data", "-o", options, "-l", f"{folder}/log", "-w", "start")


def _run(program: str, *arguments: str) -> None:
    command = [*_AS_OTHER, str(_SERVERS[-1].parent / program), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")
