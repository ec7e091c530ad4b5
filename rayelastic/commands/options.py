"""Options that several commands share, and how they print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rayelastic.commands.plain_values import as_json
from rayelastic.errors import ConfigError, ErrorCode

F = TypeVar("F", bound=Callable[..., Any])

JOB = click.argument("job")


def address(function: F) -> F:
    """Add --address: the Ray cluster."""
    text = "The Ray cluster (default: the one that is found, or a new local one)."
    return click.option("--address", help=text)(function)


def owner(function: F) -> F:
    """Add --owner: whose job it is."""
    return click.option("--owner", metavar="USER", help="Who started the job, if not you.")(function)


def as_programs(function: F) -> F:
    """Add --json: print JSON."""
    return click.option("--json", "as_json_", is_flag=True, help="Print JSON.")(function)


def key_file(function: F) -> F:
    """Add --key-file: what signs snapshots."""
    kind = click.Path(path_type=Path)
    return click.option("--key-file", type=kind, metavar="FILE", help="Secret bytes that sign snapshots.")(function)


def key_of(path: Path | None) -> bytes | None:
    """Read the bytes of --key-file.

    Raises:
        ConfigError: the file isn't readable.
    """
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"--key-file can't be read: {error}", hint="Name a file of 16 bytes or more", code=ErrorCode.BAD_SIGNING_KEY
        ) from None


def show(value: Any, text: str, *, as_json_: bool) -> None:
    """Print a value as JSON, or its text for people."""
    print(as_json(value) if as_json_ else text, flush=True)
