"""Checks of single settings: each raises a ConfigError that shows the setting as the user wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from rayelastic.errors import ConfigError

E = TypeVar("E", bound=Enum)


def check_whole(shown: str, value: object, least: int = 1) -> None:
    """Raise unless the value is a whole number that isn't too small.

    Args:
        shown: The setting with its value, such as 'JobConfig(pes=0)'.
        value: The value.
        least: The smallest valid value.

    Raises:
        ConfigError: it isn't.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{shown}: no whole number", hint=f"Give a whole number, {least} or more")
    if value < least:
        raise ConfigError(f"{shown}: too small", hint=f"Give a whole number, {least} or more")


def check_seconds(shown: str, value: object, least: float) -> None:
    """Raise unless the value is a finite number of seconds.

    Args:
        shown: The setting with its value.
        value: The value.
        least: The smallest valid value, seconds.

    Raises:
        ConfigError: it isn't, or is smaller.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < float("inf"):
        raise ConfigError(shown, hint=f"Give seconds, {least:g} or more")


def check_share(shown: str, value: object) -> None:
    """Raise unless the value is above 0 and below 1.

    Args:
        shown: The setting with its value.
        value: The value.

    Raises:
        ConfigError: it isn't.
    """
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1:
        raise ConfigError(shown, hint="Give a share above 0 and below 1, such as 0.8")


def check_flags(settings: object, names: Iterable[str]) -> None:
    """Raise unless the fields of these names are booleans.

    Args:
        settings: An object of settings.
        names: Names of its fields.

    Raises:
        ConfigError: one isn't.
    """
    for name in names:
        if not isinstance(value := getattr(settings, name), bool):
            raise ConfigError(f"{type(settings).__name__}({name}={value!r})", hint="Give True or False")


def member(kind: type[E], value: object, shown: str, operator: str | None = None) -> E:
    """Return the member of an enum that a value names.

    Args:
        kind: The enum.
        value: A member, or the value of one.
        shown: The setting with its value.
        operator: The operator that the setting is about; None: all.

    Raises:
        ConfigError: it names none; the hint lists them.
    """
    try:
        return kind(value)
    except ValueError:
        raise ConfigError(shown, operator=operator, hint=f"Choose {choices(one.value for one in kind)}") from None


def choices(values: Iterable[str]) -> str:
    """Return values as a choice in words.

    >>> choices(["manual", "dynamic", "dedicated"])
    "'manual', 'dynamic' or 'dedicated'"
    """
    *others, last = map(repr, values)
    return f"{', '.join(others)} or {last}" if others else last
