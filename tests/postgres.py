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
needs_postgres = pytest.mark.skipif(not _SERVERS, reason="Debian's postgresql isn't here: ./dev programs")


@contextmanager
def postgres_server() -> Iterator[str]:
    """Starts a server that listens at a socket alone; gives how to reach it."""
    programs = _SERVERS[-1].parent
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    other = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []  # it refuses to run as root
    if other:
        shutil.chown(folder, "postgres")
        folder.chmod(0o755)

    def run(program: str, *arguments: str) -> None:
        subprocess.run([*other, str(programs / program), *arguments], check=True, stdout=subprocess.DEVNULL, cwd="/")

    try:
        run("initdb", "-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "-N")
        options = f"-c listen_addresses='' -c fsync=off -k {folder}"
        run("pg_ctl", "-D", f"{folder}/data", "-o", options, "-l", f"{folder}/log", "-w", "start")
        try:
            yield f"host={folder} user=postgres dbname=postgres"
        finally:
            run("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
