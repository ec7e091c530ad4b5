"""An engine's constants from the table that `bench/micro` keeps as JSON.

A row that is absent leaves the constant as it was, and is named in the result; so old tables stay readable. Reads no
files: it is given what was parsed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.plant.constants import ENGINE, PerformanceConstants

__all__ = ["Calibration", "calibrated"]

RUN = 64  # tuples of the runs in which bench/micro measures hops
SMALL, LARGE = 16, 128  # bytes of record between which the cost per byte is taken
PAYLOAD = 16384  # bytes
NS_PER_US = 1000.0

Rows = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Constants, and where they come from.

    Args:
        constants: those to use.
        measured: fields that were measured.
        kept: fields that rows could have given and that stayed as they were.
    """

    constants: PerformanceConstants
    measured: tuple[str, ...]
    kept: tuple[str, ...]


def calibrated(table: Mapping[str, Any], constants: PerformanceConstants = ENGINE) -> Calibration:
    """Return constants with those replaced that a table tells.

    Args:
        table: {"rows": [{"key", "ours": [values of the rounds]}, ...]} as `bench/micro` writes it; a `constants` entry
            {field: value} beats the rows.
        constants: what isn't measured comes from here.

    Raises:
        ValueError: a field that there isn't, or a value that isn't a number.

    >>> rows = [{"key": "hop.manual.64", "ours": [32.0, 30.0, 90.0]}, {"key": "wake.p50", "ours": [50.0]}]
    >>> found = calibrated({"rows": rows})
    >>> found.constants.call, found.constants.wake, found.measured
    (0.5, 50000.0, ('call', 'wake'))
    """
    rows = _medians(table)
    found: dict[str, float] = {}
    for name, formula in _FORMULAS.items():
        try:
            found[name] = max(0.0, formula(rows))
        except KeyError:
            continue
    for name, value in table.get("constants", {}).items():
        if not isinstance(getattr(constants, name, None), int | float) or not isinstance(value, int | float):
            raise ValueError(f"constants: {name}={value!r} is no constant of an engine with a number")
        found[name] = value
    kept = tuple(name for name in _FORMULAS if name not in found)
    return Calibration(replace(constants, **found), tuple(found), kept)  # type: ignore[arg-type]


def _medians(table: Mapping[str, Any]) -> Rows:
    found = {}
    for row in table.get("rows", ()):
        values = row.get("ours") or row.get("limit") or []
        if row.get("key") and values:
            found[row["key"]] = statistics.median(values)
    return found


def _per_byte(rows: Rows) -> float:
    return (rows[f"hop.record.{LARGE}.{RUN}"] - rows[f"hop.record.{SMALL}.{RUN}"]) / (LARGE - SMALL)


_FORMULAS: dict[str, Callable[[Rows], float]] = {
    "call": lambda rows: rows[f"hop.manual.{RUN}"] / RUN,
    "hop": lambda rows: rows[f"hop.record.{SMALL}.{RUN}"] - SMALL * _per_byte(rows),
    "hop_per_byte": _per_byte,
    "copy_per_byte": lambda rows: (
        (rows[f"hop.copied.{PAYLOAD}.{RUN}"] - rows[f"hop.payload.{PAYLOAD}.{RUN}"]) / PAYLOAD
    ),
    "visit": lambda rows: rows["find.1000"],
    "lock": lambda rows: rows["limit.cas"],
    "wake": lambda rows: NS_PER_US * rows["wake.p50"],
}
