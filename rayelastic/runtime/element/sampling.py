"""The samples of a PE, made from the native scheduler's counters."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rayelastic.graph.records.time_info import TICKS_PER_SECOND
from rayelastic.graph.spec.ports import LATE
from rayelastic.runtime.values.operator_table import NUMBERS, OperatorTable
from rayelastic.runtime.values.status import BAD_ROW, FAILED, PESample
from rayelastic.runtime.watch.event_log import tell
from rayelastic.runtime.watch.machine_load import memory_in_use, resident_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rayelastic import _native
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.values.hot_key import HotKey
    from rayelastic.runtime.values.specs import PESpec

_NOT_NATIVE = ("errors", "channels", "lag", "behind_seconds")  # numbers that the scheduler doesn't count
_NATIVE = tuple(name for name in NUMBERS.names or () if name not in _NOT_NATIVE)
SHORT, AMPLE = 0.8, 0.7  # shares of the memory in use: of a warning, and below which the next one may follow
LARGEST = 3  # states that a warning names
_DROPPED = ("skipped", "untaken")  # native counters of dropped tuples


class ElementSampling:
    """Makes the samples of one PE; constant parts are looked up once.

    Args:
        spec: The PE.
        ids: {operator: its number in the scheduler}.
    """

    def __init__(self, spec: PESpec, ids: Mapping[str, int]) -> None:
        self._job, self._pe = spec.job, spec.pe
        self._is_short = False  # of memory, as a warning has said
        self._with_late: set[str] = set()  # operators whose late tuples have been reported
        self._specs = {operator.name: operator for operator in spec.operators}
        self._names = tuple(ids)
        self._ids = np.array(list(ids.values()), dtype=np.intp)
        self._rows = {name: row for row, name in enumerate(ids)}
        lanes = {name: getattr(operator.body, "lane", None) for name, operator in self._specs.items()}
        ticks = (TICKS_PER_SECOND.get(spec.time_units.get(name, ""), math.nan) for name in ids)
        self._ticks = np.array(list(ticks), dtype=np.float64)
        self._lanes = tuple(lane.value if (lane := lanes.get(name)) is not None else "" for name in ids)

    def sample(
        self,
        native: _native.Sample,
        *,
        seconds: float,
        failed: str | None,
        links: dict[str, dict[str, Any]],
        port: dict[str, int],
        latencies: Mapping[str, tuple[int, ...]],
        numbers: Mapping[str, Mapping[str, float]],
        bad_rows: Mapping[str, int],
        hot_keys: Mapping[str, HotKey],
    ) -> PESample:
        """Make a sample.

        Args:
            native: The scheduler's sample.
            seconds: Time since the start.
            failed: The operator that failed.
            links: The counters of each link.
            port: The counters of the data port.
            latencies: {sink: its marks by latency}.
            numbers: {field: {operator: value}} of what the scheduler doesn't count.
            bad_rows: {source: rows that it dropped because they aren't of its schema}.
            hot_keys: {region: its most frequent key}.
        """
        counted = {name: np.frombuffer(column) for name, column in native.columns.items()}
        table = np.zeros(len(self._names), NUMBERS)
        for name in _NATIVE:
            table[name] = counted[name][self._ids]
        table["watermark"] /= self._ticks
        for field, values in {**numbers, "errors": {} if failed is None else {failed: 1.0}}.items():
            for name, value in values.items():
                if (row := self._rows.get(name)) is not None:
                    table[field][row] = value
        more: dict[int, dict[str, Any]] = {}
        for name, marks in latencies.items():
            self._note(more, name, latency=marks)
        drops = sum(counted[name][self._ids] for name in _DROPPED)
        lossy = {self._names[row] for row in np.flatnonzero(drops)}
        for name in lossy | {name for name, count in bad_rows.items() if count and name in self._rows}:
            number = int(self._ids[self._rows[name]])
            untaken, skipped = native.operators[number].untaken, int(counted["skipped"][number])
            dropped = _dropped(self._specs.get(name), untaken, skipped, bad_rows.get(name, 0))
            self._note(more, name, dropped=dropped)
            if LATE in dropped and name not in self._with_late:
                self._with_late.add(name)
                tell(
                    "late tuples dropped",
                    job=self._job,
                    pe=self._pe,
                    level=logging.WARNING,
                    operator=name,
                    count=dropped[LATE],
                )
        return PESample(
            pe=self._pe,
            seconds=seconds,
            threads=native.thread_count,
            gil_wait_seconds=native.gil_wait_seconds,
            operators=OperatorTable(self._names, self._lanes, table, more),
            links=links,
            port=port,
            threads_stuck=native.stuck,
            rss_bytes=resident_bytes(),
            memory_share=self._memory_share(table),
            cpu_seconds=native.engine_cpu_seconds + float(counted["cpu_seconds"].sum()),
            hot_keys=hot_keys,
        )

    def _memory_share(self, table: NDArray[np.void]) -> float:
        """Return the share of the memory in use; warn when there is little left, and name the largest states."""
        memory = memory_in_use()
        if memory.share >= SHORT and not self._is_short:
            states = {name: int(table["state_bytes"][row]) for name, row in self._rows.items()}
            largest = sorted((name for name in states if states[name]), key=lambda name: -states[name])[:LARGEST]
            tell(
                "memory is short",
                job=self._job,
                pe=self._pe,
                level=logging.WARNING,
                used=f"{memory.share:.0%} of the {memory.where}'s {memory.limit:,} bytes",
                process=resident_bytes(),
                states={name: states[name] for name in largest},
            )
        self._is_short = memory.share >= (AMPLE if self._is_short else SHORT)
        return memory.share

    def _note(self, more: dict[int, dict[str, Any]], name: str, **fields: Any) -> None:
        if (row := self._rows.get(name)) is not None:
            more.setdefault(row, {}).update(fields)


def _dropped(spec: OperatorSpec | None, untaken: Sequence[int], skipped: int, bad_rows: int) -> dict[str, int]:
    """Return the numbers of dropped tuples, by reason.

    Args:
        spec: The operator.
        untaken: Tuples of its output ports 1, 2, ... without a consumer, by port.
        skipped: Tuples on which it failed.
        bad_rows: Rows that aren't of its schema.
    """
    ports = [] if spec is None else [port.name for port in spec.outputs[1:]]
    counts = dict(zip(ports, untaken, strict=False)) | {FAILED: skipped, BAD_ROW: bad_rows}
    return {reason: count for reason, count in counts.items() if count}
