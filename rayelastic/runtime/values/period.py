"""What a job counted between two readings: samples whose counters cover that time alone; gauges are the later ones.

A rate or share, for people or for policies, is such a counter divided by the seconds of its sample. Must not know who
reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rayelastic.runtime.values.metrics import Kind, Scope, declared
from rayelastic.runtime.values.operator_table import NUMBERS, OperatorTable
from rayelastic.runtime.values.status import JobMetrics, OperatorSample, PESample

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHORTEST = 1e-9  # seconds between two readings
_OF_OPERATOR = [one.source for one in declared(OperatorSample, Scope.OPERATOR) if one.kind is Kind.COUNTER]
_GAUGES = [column for column, name in enumerate(NUMBERS.names or ()) if name not in _OF_OPERATOR]
_OF_PE = [one.source for one in declared(PESample, Scope.PE) if one.kind is Kind.COUNTER]
_GAUGES_OF_LINK = ("unconsumed_bytes",)


def job_period(before: JobMetrics | None, now: JobMetrics) -> JobMetrics:
    """Return what a job counted since an earlier reading; None: since its start.

    >>> def after(seconds, tuples, queued):
    ...     counts = OperatorSample("counts", "dynamic", tuples, 0, queued)
    ...     return JobMetrics("words", seconds, (PESample("pe0", seconds, 2, 0.0, (counts,)),))
    >>> period = job_period(after(1.0, 100, 7), after(3.0, 500, 5))
    >>> period.operator("counts").tuples_in, period.operator("counts").queued, period.pes[0].seconds
    (400, 5, 2.0)
    """
    if before is None:
        return now
    earlier = {pe.pe: pe for pe in before.pes}
    seconds = max(now.seconds - before.seconds, SHORTEST)
    pes = tuple(pe_period(earlier.get(pe.pe), pe) for pe in now.pes)
    return replace(now, seconds=seconds, pes=pes, earlier={})


def pe_period(before: PESample | None, now: PESample) -> PESample:
    """Return what a PE counted since an earlier reading; None, or one of a PE that it replaced: since its start."""
    if before is None or now.seconds < before.seconds:
        return now
    counters: dict[str, Any] = {name: max(0, getattr(now, name) - getattr(before, name)) for name in _OF_PE}
    return replace(
        now,
        seconds=max(now.seconds - before.seconds, SHORTEST),
        operators=_operators(OperatorTable.of(before.operators), OperatorTable.of(now.operators)),
        links={link: _link(before.links.get(link, {}), counted) for link, counted in now.links.items()},
        **counters,
    )


def _operators(before: OperatorTable, now: OperatorTable) -> OperatorTable:
    later = _matrix(now.numbers)
    numbers = np.maximum(later - _matrix(before.ordered(now.names)), 0)  # a PE that restarted counts from 0
    numbers[:, _GAUGES] = later[:, _GAUGES]
    earlier = {before.names[row]: fields for row, fields in before.more.items()}
    more = {row: _more(earlier.get(now.names[row], {}), fields) for row, fields in now.more.items()}
    return OperatorTable(now.names, now.lanes, numbers.reshape(-1).view(NUMBERS), more)


def _matrix(numbers: NDArray[np.void]) -> NDArray[np.float64]:
    return np.ascontiguousarray(numbers).view(np.float64).reshape(-1, len(NUMBERS.names or ()))


def _more(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    marks = now.get("latency", ())
    earlier = before.get("latency") or (0,) * len(marks)
    dropped = before.get("dropped", {})
    return {
        "latency": tuple(max(0, count - then) for count, then in zip(marks, earlier, strict=True)),
        "dropped": {reason: count - dropped.get(reason, 0) for reason, count in now.get("dropped", {}).items()},
    }


def _link(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value if name in _GAUGES_OF_LINK or not isinstance(value, int | float) else value - before.get(name, 0)
        for name, value in now.items()
    }
