"""What got slower: two tables of `./dev bench micro`, which keeps one for each commit in bench/results.

    ./dev bench compare                 the last two that were kept
    ./dev bench compare OLD.json [NEW.json]

A row is slower, or faster, where the medians differ by more than `--least` and the rounds of the two don't overlap.
Rates, and what has to be at least something (targets.py), are better when they are higher, all else when it is lower.
What the machine itself was worth is the limit that was measured beside: its change is shown, and taken off. The exit
status says whether anything got slower.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any

from bench.harness import Row, arguments_of
from bench.micro.targets import TARGETS

RESULTS = Path(__file__).resolve().parent / "results"
LEAST = 0.05  # relative difference that counts


class Change(Enum):
    """What became of a row."""

    SLOWER = "SLOWER"
    FASTER = "faster"
    SAME = "same"
    GONE = "gone"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Compared:
    """One row of two tables.

    Args:
        key: of the row.
        change: what became of it.
        speed: new by old, above 1: faster; 1 where one is missing.
        machine: the same of the limits.
    """

    key: str
    change: Change
    speed: float = 1.0
    machine: float = 1.0

    def __str__(self) -> str:
        if self.change in (Change.GONE, Change.NEW):
            return f"{self.key:48} {self.change.value}"
        return f"{self.key:48} {self.change.value:7} {self.speed:6.2f} times as fast; the limit {self.machine:.2f}"


def compared(old: Sequence[Row], new: Sequence[Row], least: float = LEAST) -> list[Compared]:
    """Each row of ours, in the order of the new table, then those that are gone."""
    before = {row.key: row for row in old if row.ours}
    after = {row.key: row for row in new if row.ours}
    found = [
        _one(before[key], row, least) if key in before else Compared(key, Change.NEW) for key, row in after.items()
    ]
    return [*found, *(Compared(key, Change.GONE) for key in before if key not in after)]


def _one(old: Row, new: Row, least: float) -> Compared:
    rising = new.unit.endswith("/s") or (new.key in TARGETS and TARGETS[new.key].least is not None)
    machine = _speed(old.limit_value, new.limit_value, rising)
    if old.is_disturbed or new.is_disturbed:
        machine = 1.0
    speed = _speed(old.value, new.value, rising)
    rounds = [_speed(one, other, rising) / machine for one in old.ours for other in new.ours]
    change = Change.SAME
    if speed / machine < 1 - least and max(rounds) < 1:
        change = Change.SLOWER
    elif speed / machine > 1 + least and min(rounds) > 1:
        change = Change.FASTER
    return Compared(new.key, change, speed, machine)


def _speed(old: float | None, new: float | None, rising: bool) -> float:
    if not old or not new:
        return 1.0
    return new / old if rising else old / new


def rows(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """Return the machine and the rows of a table that was kept."""
    kept = json.loads(path.read_text())
    names = [field.name for field in fields(Row)]
    return kept["machine"], [Row(**{name: row[name] for name in names}) for row in kept["rows"]]


def main(arguments: Sequence[str]) -> int:
    parser = arguments_of("compare", __doc__)
    parser.add_argument(
        "tables", nargs="*", type=Path, metavar="TABLE", help="the older first; the last two by default"
    )
    parser.add_argument("--least", type=float, default=LEAST, help=f"relative difference that counts ({LEAST:g})")
    parser.add_argument("--all", action="store_true", help="also what stayed the same")
    options = parser.parse_args(arguments)
    history = sorted(RESULTS.glob("micro-*.json"), key=lambda path: path.stat().st_mtime)
    named = options.tables or history[-2:]
    if len(named) == 1:
        named = [*named, *[path for path in history if path.resolve() != named[0].resolve()][-1:]]
    if len(named) != 2:
        parser.error("two tables are needed; ./dev bench micro keeps one for each commit in bench/results")
    (machine, old), (other, new) = (rows(path) for path in named)
    print(f"{machine['commit']} of {machine['date']} -> {other['commit']} of {other['date']}")
    if machine["CPU"] != other["CPU"]:
        print(f"another machine: {machine['CPU']}, {other['CPU']}; only what is beside its limit says something")
    found = compared(old, new, options.least)
    for one in found:
        if options.all or one.change is not Change.SAME:
            print(one)
    slower = sum(one.change is Change.SLOWER for one in found)
    print(f"{len(found)} rows: {slower} slower, {sum(one.change is Change.FASTER for one in found)} faster")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
