"""A first guess: a short program that a person from another system writes before reading the API reference.

Each was written down before anybody looked at what runs: what it gives, or the word that its error must say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rayelastic

__all__ = ["CLICKS", "CLICKS_SCHEMA", "GUESSES", "Guess", "clicks", "guess", "lines", "rel"]

rel: Any = rayelastic  # guesses name what isn't there
CLICKS = [("ada", "home", 120), ("bob", "home", 80), ("ada", "cart", 300), ("eve", "home", 50)]
CLICKS_SCHEMA = {"user": str, "page": str, "ms": int}

Program = Callable[[Any, Path], Any]  # of a topology and a folder; what it returns is compared, else the sink "out"


@dataclass(frozen=True)
class Guess:
    """One program.

    Args:
        program: declares operators and perhaps runs them.
        origin: where its author comes from.
        gives: the right result; None: it is an error.
        says: what the error says, each of them.
    """

    program: Program
    origin: str
    gives: Any = None
    says: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """How the test is called."""
        return f"{self.origin}-{self.program.__name__}"


GUESSES: list[Guess] = []


def guess(origin: str, *, gives: Any = None, says: str | tuple[str, ...] = ()) -> Callable[[Program], Program]:
    """Take down a program."""

    def taken(program: Program) -> Program:
        GUESSES.append(Guess(program, origin, gives, (says,) if isinstance(says, str) else says))
        return program

    return taken


def clicks(t: Any) -> Any:
    """A stream of clicks."""
    return t.source(rel.rows(CLICKS, CLICKS_SCHEMA), name="clicks")


def lines(t: Any, *texts: str) -> Any:
    """A stream of lines."""
    return t.source(rel.rows([(text,) for text in texts], {"line": str}), name="lines")
