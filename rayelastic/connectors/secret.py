"""Passwords and keys that stay where they are: a description names them, and the process that uses one reads it."""

from __future__ import annotations

import builtins
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

from rayelastic.errors import ConfigError, DeclarationError, ErrorCode
from rayelastic.graph.records.shown import shown

SHORTEST = 4  # characters; a shorter text isn't replaced in messages, as it is in many words

_read: set[str] = set()  # what secrets of this process were


@dataclass(frozen=True, slots=True)
class Secret:
    """A password or key that is read where it is used. Made by `secret`; it has the name of a place, never a value.

    Args:
        variable: A variable of the environment.
        file: A file.
        call: A function that returns it.
    """

    variable: str = ""
    file: str = ""
    call: Callable[[], str] | None = field(default=None, repr=False)

    def __format__(self, spec: str) -> str:
        """Raise ConfigError: as a part of a text it would have to be read here."""
        raise ConfigError(
            f"{self!r} can't be a part of a text",
            hint="Pass the secret by itself, or make the text where it is needed, from secret.read()",
            code=ErrorCode.WRONG_TYPE,
        )

    def read(self) -> str:
        """Return the secret, as it is now in this process.

        Raises:
            ConfigError: It isn't there.
        """
        value: object = None
        try:
            if self.call is not None:
                value = self.call()
            elif self.file:
                value = Path(self.file).read_text(encoding="utf-8").removesuffix("\n")
            else:
                value = os.environ.get(self.variable)
        except Exception as error:  # of the user's function; its text may have the secret
            raise self._missing(f"reading it failed: {type(error).__name__}") from None
        if value is None and self.variable:
            raise self._missing("the variable isn't set")
        if not isinstance(value, str):
            raise self._missing(f"it is of type {type(value).__name__}")
        if not value:
            raise self._missing("it is empty")
        if len(value) >= SHORTEST:
            _read.add(value)
        return value

    def _missing(self, why: str) -> ConfigError:
        where = "in the environment of" if self.variable else "on the host of" if self.file else "in"
        return ConfigError(
            f"{self!r} can't be read in process {os.getpid()} of host {socket.gethostname()}: {why}",
            hint=f"Put it {where} each process that runs the operator",
            code=ErrorCode.UNREADABLE_SECRET,
        )


def secret(variable: str = "", *, file: str = "", call: Callable[[], str] | None = None) -> Secret:
    """Name a password or key that each process reads where it uses it.

    A topology, its checkpoints, journals, plans and logs have the name alone. The secret is read again for each
    connection, so it may change while the job runs. Functions can capture it and call `read()`.

    Args:
        variable: A variable in the environment of the processes that use it.
        file: A file on their hosts; a newline at its end isn't part of the secret.
        call: A function that returns it, for example from a vault.

    Raises:
        ConfigError: Not exactly one of them is passed. In a process that lacks the secret, when the operator starts.

    >>> import rayelastic as rel
    >>> rel.postgres("host=db.example dbname=shop user=jobs", "totals", password=rel.secret("SHOP_PASSWORD")).password
    Secret(variable='SHOP_PASSWORD', file='')
    """
    given: list[tuple[object, bool]] = [  # a value, and whether it is of the right type
        (variable, isinstance(variable, str)),
        (file, isinstance(file, str | os.PathLike)),
        (call, builtins.callable(call)),
    ]
    given = [(value, is_right) for value, is_right in given if value not in ("", None)]
    if len(given) != 1 or not given[0][1]:
        raise ConfigError(
            "rel.secret needs one place: the name of a variable, file= or call=",
            hint="Write rel.secret('DB_PASSWORD'), rel.secret(file='/run/secrets/db') or rel.secret(call=read_it)",
            code=ErrorCode.CONFLICTING_ARGUMENTS if len(given) > 1 else ErrorCode.WRONG_TYPE,
        )
    return Secret(variable, os.fspath(file), call)


@overload
def read_as(error: type[DeclarationError], value: str | Secret) -> str: ...


@overload
def read_as(error: type[DeclarationError], value: str | Secret | None) -> str | None: ...


def read_as(error: type[DeclarationError], value: str | Secret | None) -> str | None:
    """Return a value, or the secret that it names.

    Raises:
        DeclarationError: It can't be read; of the class that was passed.
    """
    if not isinstance(value, Secret):
        return value
    try:
        return value.read()
    except ConfigError as problem:
        raise error(problem.problem, hint=problem.hint, code=problem.code) from None


def read_all(error: type[DeclarationError], settings: Mapping[str, str | Secret]) -> dict[str, str]:
    """Return settings with the secrets that they name."""
    return {name: read_as(error, value) for name, value in settings.items()}


def without_secrets(text: str) -> str:
    """Return the text of somebody's error without the secrets that this process has read.

    >>> _read.add("pa55word")
    >>> without_secrets('invalid option "pa55word"')
    'invalid option "***"'
    """
    for value in sorted(_read, key=len, reverse=True):
        text = text.replace(value, "***")
    return text


def check_secret(name: str, value: object, error: type[DeclarationError]) -> None:
    """Raise an error of a class unless a value is a secret or None."""
    if value is not None and not isinstance(value, Secret):
        raise error(
            f"{name}={shown(type(value).__name__)} is no secret",  # the value may be the password
            hint=f"Pass {name}=rel.secret('{name.upper()}'), which reads it where it is used",
            code=ErrorCode.WRONG_TYPE,
        )
