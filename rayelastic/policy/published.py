"""Where the papers' algorithms are: beside the product, in `papers`, loaded by name for a job that asks for them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from rayelastic.errors import ConfigError

__all__ = ["published"]


def published(module: str) -> ModuleType:
    """Return a module of the papers' algorithms.

    Args:
        module: its name in `rayelastic.papers`.

    Raises:
        ConfigError: the installation lacks them.

    >>> published("joker").PaperAdaptation.__name__
    'PaperAdaptation'
    """
    name = f"rayelastic.papers.{module}"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"The papers' algorithms aren't installed: {error}",
            hint=f"Install a rayelastic that has {name}, or choose 'multi-level' and 'elastic' instead of 'paper'",
        ) from None
