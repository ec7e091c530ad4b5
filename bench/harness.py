"""How benchmarks measure: sides that take turns, and rows of ours beside a limit with one value a round, as JSON."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

MOST_SPREAD = 2.0  # of a limit's rounds, most by least; a quiet machine stays below 1.3


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured, beside its limit: the same done with the least that the machine needs.

    `key` is stable: targets and histories go by it. Without `limit` there is none; without `ours` the row is a limit.
    """

    key: str
    what: str
    unit: str
    ours: list[float]
    limit: list[float]
    limit_what: str = ""
    note: str = ""

    @classmethod
    def read(cls, line: str) -> Row | None:
        """Return the row of a line of output; nothing for any other line."""
        try:
            values: dict[str, Any] = json.loads(line)
            return cls(**values)
        except (ValueError, TypeError):
            return None

    def print(self) -> None:
        print(json.dumps(asdict(self)), flush=True)

    @property
    def value(self) -> float | None:
        """Ours, the median."""
        return statistics.median(self.ours) if self.ours else None

    @property
    def limit_value(self) -> float | None:
        return statistics.median(self.limit) if self.limit else None

    @property
    def is_disturbed(self) -> bool:
        """The limit differed so much from round to round that nothing can be said against it."""
        return bool(self.limit) and max(self.limit) > MOST_SPREAD * min(self.limit)

    @property
    def ratio(self) -> float | None:
        """Ours by the limit: the median of the rounds, since what disturbs a round meets both sides."""
        return self._paired(lambda ours, limit: ours / limit if limit else float("inf"))

    @property
    def difference(self) -> float | None:
        return self._paired(lambda ours, limit: ours - limit)

    def _paired(self, of: Callable[[float, float], float]) -> float | None:
        if not self.ours or not self.limit:
            return None
        return statistics.median(of(*pair) for pair in zip(self.ours, self.limit, strict=True))


def alternated(rounds: int, sides: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Return what each side gave, round by round: they take turns, so that what disturbs a round meets all of them.

    >>> alternated(2, {"ours": lambda: 1.0, "limit": lambda: 2.0})
    {'ours': [1.0, 1.0], 'limit': [2.0, 2.0]}
    """
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, measure in sides.items():
            found[name].append(measure())
    return found


def medians(found: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the median of each side."""
    return {name: statistics.median(rounds) for name, rounds in found.items()}


def compared(
    key: str,
    what: str,
    unit: str,
    rounds: int,
    ours: Callable[[], float],
    limit: Callable[[], float],
    limit_what: str,
) -> Row:
    """Return the row of both sides, the limit first in each round."""
    found = alternated(rounds, {"limit": limit, "ours": ours})
    return Row(key, what, unit, found["ours"], found["limit"], limit_what)


def processor_time(work: Callable[[], object]) -> float:
    """Return seconds of the whole process: neighbours on the machine count less than by the clock."""
    started = time.process_time()
    work()
    return time.process_time() - started


def seconds(work: Callable[[], object]) -> float:
    """Return seconds by the clock."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def arguments_of(name: str, description: str | None) -> argparse.ArgumentParser:
    """Return the parser of `./dev bench NAME`, whose help is the text of its module."""
    formatter = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"./dev bench {name}", description=description, formatter_class=formatter)


def settings(**defaults: float) -> dict[str, Any]:
    """Return the program's arguments `name=number` over the defaults, whole where those are; as native programs do."""
    found = dict(defaults)
    for argument in sys.argv[1:]:
        name, _, number = argument.partition("=")
        if name not in found or not number:
            sys.exit(f"expected one of {' '.join(f'{known}=' for known in found)}, not {argument!r}")
        found[name] = type(defaults[name])(float(number))
    return found
