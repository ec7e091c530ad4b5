"""`rayelastic snapshot | stop | state`, and the options of commands that start a job from what was saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rayelastic import job as jobs
from rayelastic.commands.options import JOB, address, as_programs, key_file, key_of, owner, show
from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.runtime.checkpoint.restore import LATEST
from rayelastic.runtime.values.snapshot import Snapshot

LIMIT = 20  # keys that are shown if none is named
F = TypeVar("F", bound=Callable[..., Any])


def restore_options(function: F) -> F:
    """Add --restore, --checkpoint and --key-file to a command that starts a job."""
    text = (
        "Restore a snapshot, or the newest checkpoint there. 'latest': that at --checkpoint, or start from the "
        "beginning if none was ever complete."
    )
    function = key_file(function)
    function = click.option("--checkpoint", metavar="PATH", help="Keep checkpoints there, for `--restore latest`.")(
        function
    )
    return click.option("--restore", metavar="PATH", help=text)(function)


def restored(restore: str | None, key: Path | None) -> Snapshot | str | None:
    """Return what --restore names."""
    return restore if restore in (None, LATEST) else Snapshot(str(restore), key_of(key))


def checkpointed(location: str | None, key: Path | None) -> Checkpoint | None:
    """Return what --checkpoint names."""
    return None if location is None else Checkpoint(location, key=key_of(key))


@click.command
@JOB
@click.argument("path")
@key_file
@address
@owner
@as_programs
def snapshot(
    job: str, path: str, key_file: Path | None, address: str | None, owner: str | None, as_json_: bool
) -> None:
    """Save a savepoint at PATH: a folder that every node sees, or a URI such as s3://bucket/folder."""
    _save(job, jobs.attach(job, address=address, owner=owner).snapshot, Snapshot(path, key_of(key_file)), as_json_)


@click.command
@JOB
@click.option(
    "--snapshot", "path", required=True, metavar="PATH", help="Where to save it, as in `rayelastic snapshot`."
)
@key_file
@address
@owner
@as_programs
def stop(job: str, path: str, key_file: Path | None, address: str | None, owner: str | None, as_json_: bool) -> None:
    """Stop a job with a savepoint, from which another job starts. `rayelastic cancel` stops without one."""
    _save(job, jobs.attach(job, address=address, owner=owner).begin_stop, Snapshot(path, key_of(key_file)), as_json_)


def _save(job: str, save: Callable[[Snapshot], Snapshot], where: Snapshot, as_json_: bool) -> None:
    saved = save(where).location
    show({"job": job, "location": saved}, f"job {job}: savepoint in {saved}", as_json_=as_json_)


@click.command
@JOB
@click.argument("operator")
@click.argument("key", nargs=-1)
@click.option("--limit", default=LIMIT, show_default=True, help="How many keys to show if none is named.")
@address
@as_programs
def state(job: str, operator: str, key: tuple[str, ...], limit: int, address: str | None, as_json_: bool) -> None:
    """Show the state of KEY, or of some keys. A None is `null`; a text may be in double quotes."""
    kept = jobs.view(job, address=address).state(operator)
    if key:
        wanted, nothing = kept.key_of(list(key)), object()
        value = kept.get(wanted, nothing)
        if value is nothing:
            raise ConfigError(
                f"operator {operator!r} has no state for key {' '.join(key)!r}", code=ErrorCode.UNKNOWN_KEY
            )
        found = [(wanted[0] if len(wanted) == 1 else wanted, value)]
    else:
        found = list(kept.items(limit))
    lines = "\n".join(f"{_shown(one)}: {_shown(value)}" for one, value in found)
    values = [{"key": one, "value": value._asdict() if hasattr(value, "_asdict") else value} for one, value in found]
    show(values, lines, as_json_=as_json_)


def _shown(value: Any) -> str:
    if hasattr(value, "_asdict"):
        return ", ".join(f"{name}={one!r}" for name, one in value._asdict().items())
    return str(value)
