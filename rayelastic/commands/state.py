"""`rayelastic snapshot | stop | state`, and `--restore` of those that start jobs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayelastic import job as jobs
from rayelastic.errors import ConfigError
from rayelastic.plain_values import as_json
from rayelastic.plan.checkpoint import Checkpoint
from rayelastic.runtime.saved.restoring import LATEST
from rayelastic.runtime.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["add_restore", "add_state_commands", "checkpointed", "restored"]

LIMIT = 20  # keys that are shown where none is named


def add_state_commands(add: Callable[..., argparse.ArgumentParser]) -> list[argparse.ArgumentParser]:
    """Adds the commands; all of them take --json and --address."""
    snapshot = add("snapshot", help="save a job on Ray, which goes on: a savepoint that other jobs can go on from")
    snapshot.add_argument("job")
    snapshot.add_argument("path", help="a folder that every node sees, or a URI such as s3://bucket/folder")
    snapshot.set_defaults(command=_snapshot)
    stop = add("stop", help="stop a job on Ray where it is, saved for a later one to go on")
    stop.add_argument("job")
    stop.add_argument("--snapshot", required=True, metavar="PATH", help="as of rayelastic snapshot")
    stop.set_defaults(command=_stop)
    state = add("state", help="show what an operator of a job on Ray keeps by key, while it runs")
    state.add_argument("job")
    state.add_argument("operator")
    state.add_argument(
        "key",
        nargs="*",
        help="the values of its key fields: null is None, a text may be in double quotes (default: some keys)",
    )
    state.add_argument("--limit", type=int, default=LIMIT, help=f"how many keys, if none is named (default: {LIMIT})")
    state.set_defaults(command=_state)
    for command in (snapshot, stop):
        _add_key_file(command)
    return [snapshot, stop, state]


def add_restore(command: argparse.ArgumentParser) -> None:
    """Adds --restore and --checkpoint to a command that starts a job."""
    command.add_argument(
        "--restore",
        metavar="PATH",
        help="restore a snapshot, or the newest checkpoint there; 'latest': that at --checkpoint, or the start if none "
        "was ever complete",
    )
    command.add_argument("--checkpoint", metavar="PATH", help="keep checkpoints there, for `--restore latest`")
    _add_key_file(command)


def restored(options: argparse.Namespace) -> Snapshot | str | None:
    """What --restore names."""
    return options.restore if options.restore in (None, LATEST) else Snapshot(options.restore, _key(options))


def checkpointed(options: argparse.Namespace) -> Checkpoint | None:
    """What --checkpoint names."""
    location = getattr(options, "checkpoint", None)
    return None if location is None else Checkpoint(location, key=_key(options))


def _add_key_file(command: argparse.ArgumentParser) -> None:
    command.add_argument("--key-file", type=Path, metavar="FILE", help="secret bytes that sign snapshots")


def _key(options: argparse.Namespace) -> bytes | None:
    if options.key_file is None:
        return None
    try:
        key: bytes = options.key_file.read_bytes()
    except OSError as error:
        raise ConfigError(f"--key-file can't be read: {error}", way_out="Name a file of 16 bytes or more") from None
    return key


def _snapshot(options: argparse.Namespace) -> int:
    saved = jobs.attach(options.job, address=options.address).snapshot(Snapshot(options.path, _key(options)))
    _tell(options, {"job": options.job, "location": saved.location}, f"job {options.job} is saved in {saved.location}")
    return 0


def _stop(options: argparse.Namespace) -> int:
    saved = jobs.attach(options.job, address=options.address).begin_stop(Snapshot(options.snapshot, _key(options)))
    told = {"job": options.job, "location": saved.location}
    _tell(options, told, f"job {options.job} ends, and is saved in {saved.location}")
    return 0


def _state(options: argparse.Namespace) -> int:
    state = jobs.attach(options.job, address=options.address).state(options.operator)
    if options.key:
        key, nothing = state.key_of(options.key), object()
        value = state.get(key, nothing)
        if value is nothing:
            raise ConfigError(f"operator {options.operator!r} has nothing of {' '.join(options.key)!r}")
        found = [(key[0] if len(key) == 1 else key, value)]
    else:
        found = list(state.items(options.limit))
    lines = "\n".join(f"{_shown(key)}: {_shown(value)}" for key, value in found)
    told = [{"key": key, "value": value._asdict() if hasattr(value, "_asdict") else value} for key, value in found]
    _tell(options, told, lines)
    return 0


def _shown(value: Any) -> str:
    if hasattr(value, "_asdict"):
        return ", ".join(f"{name}={one!r}" for name, one in value._asdict().items())
    return str(value)


def _tell(options: argparse.Namespace, told: Any, words: str) -> None:
    print(as_json(told) if options.json else words)
