"""Runs compiled functions over plain buffers: Python tuples to records and back, the engine's services by shim.c."""

# ruff: noqa: DTZ001 -- functions as users write them

from __future__ import annotations

import ctypes
import datetime as dt
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from rayelastic.compile import OperatorCode
from rayelastic.compile.cache import loader
from rayelastic.compile.lanes.python_lane import per_run
from rayelastic.graph.records.schema import DataType, Schema
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest

MAP, FILTER, FLAT_MAP = FunctionKind.MAP, FunctionKind.FILTER, FunctionKind.FLAT_MAP
STOPPED = -(2**63)
SERVICES = ("rel_flush", "rel_finish", "rel_fail", "rel_allocate", "rel_keep_text", "rel_kept")
PROCESS = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p
)

_CODES = {
    DataType.BOOL: "?", DataType.INT8: "b", DataType.UINT8: "B", DataType.INT16: "h", DataType.UINT16: "H",
    DataType.INT32: "i", DataType.UINT32: "I", DataType.INT64: "q", DataType.UINT64: "Q", DataType.FLOAT16: "e",
    DataType.FLOAT32: "f", DataType.FLOAT64: "d", DataType.DATE32: "i", DataType.DATE64: "q", DataType.TIME32: "i",
    DataType.TIME64: "q", DataType.TIMESTAMP: "q", DataType.DURATION: "q",
}  # fmt: skip


class Records:
    """Python tuples as records; keeps the long texts alive."""

    def __init__(self, schema: Schema, rows: list[tuple[Any, ...]]) -> None:
        self.schema = schema
        self.count = len(rows)
        self._texts: list[Any] = []
        self.buffer = np.zeros(max(1, len(rows)) * schema.record_size, dtype=np.uint8)
        for index, row in enumerate(rows):
            self._write(index * schema.record_size, row)

    @property
    def address(self) -> int:
        return self.buffer.ctypes.data

    def _write(self, at: int, row: tuple[Any, ...]) -> None:
        for f, value in zip(self.schema.fields, row, strict=True):
            if value is None:
                continue
            if f.nullable:
                self.buffer[at + self.schema.validity_offset + f.validity // 8] |= 1 << f.validity % 8
            raw = self._text(value) if f.type.is_text else struct.pack("<" + _CODES[f.type], stored(f, value))
            self.buffer[at + f.offset : at + f.offset + len(raw)] = np.frombuffer(raw, dtype=np.uint8)

    def _text(self, value: str | bytes) -> bytes:
        raw = value.encode() if isinstance(value, str) else value
        if len(raw) <= 12:
            return struct.pack("<I12s", len(raw), raw)
        block = ctypes.create_string_buffer(raw, len(raw))  # no byte behind the text
        self._texts.append(block)
        return struct.pack("<I4sQ", len(raw), raw[:4], ctypes.addressof(block))


EPOCH = dt.datetime(1970, 1, 1)
IN_UTC = EPOCH.replace(tzinfo=dt.UTC)
UNITS = {"s": 1_000_000, "m": 1_000, "u": 1}


def stored(f: Any, value: Any) -> Any:
    micro = dt.timedelta(microseconds=1)
    if f.type is DataType.DATE32:
        return (value - EPOCH.date()).days
    if f.type is DataType.DATE64:
        return (value - EPOCH.date()).days * 86_400_000
    if f.type is DataType.TIMESTAMP:
        return (value - (EPOCH if value.tzinfo is None else IN_UTC)) // micro // UNITS[f.format[2]]
    if f.type is DataType.DURATION:
        return value // micro // UNITS[f.format[2]]
    if f.type in (DataType.TIME32, DataType.TIME64):
        return (dt.datetime.combine(EPOCH.date(), value) - EPOCH) // micro // UNITS[f.format[2]]
    return value


def seen(f: Any, value: Any) -> Any:
    if f.type is DataType.DATE32:
        return EPOCH.date() + dt.timedelta(days=value)
    if f.type is DataType.DATE64:
        return EPOCH.date() + dt.timedelta(milliseconds=value)
    if f.type is DataType.TIMESTAMP:
        since, zone = dt.timedelta(microseconds=value * UNITS[f.format[2]]), f.format.partition(":")[2]
        return (IN_UTC + since).astimezone(dt.UTC if zone == "UTC" else ZoneInfo(zone)) if zone else EPOCH + since
    if f.type is DataType.DURATION:
        return dt.timedelta(microseconds=value * UNITS[f.format[2]])
    if f.type in (DataType.TIME32, DataType.TIME64):
        return (EPOCH + dt.timedelta(microseconds=value * UNITS[f.format[2]])).time()
    return value


def decoded(schema: Schema, raw: bytes) -> list[tuple[Any, ...]]:
    rows = []
    for at in range(0, len(raw), schema.record_size):
        row = []  # type: ignore[var-annotated]
        for f in schema.fields:
            if f.nullable and not raw[at + schema.validity_offset + f.validity // 8] >> f.validity % 8 & 1:
                row.append(None)  # type: ignore[arg-type]
            elif f.type.is_text:
                (size,) = struct.unpack_from("<I", raw, at + f.offset)
                if size <= 12:
                    text = raw[at + f.offset + 4 : at + f.offset + 4 + size]
                    assert not any(raw[at + f.offset + 4 + size : at + f.offset + 16]), (
                        "unused inline bytes must be zero"
                    )
                else:
                    text = ctypes.string_at(struct.unpack_from("<Q", raw, at + f.offset + 8)[0], size)
                    assert text[:4] == raw[at + f.offset + 4 : at + f.offset + 8]
                row.append(text.decode() if f.type is DataType.STRING else text)
            else:
                row.append(seen(f, struct.unpack_from("<" + _CODES[f.type], raw, at + f.offset)[0]))
        rows.append(tuple(row))
    return rows


@dataclass
class Outcome:
    """What a call gave: the tuples, or the index at which it failed."""

    items: list[tuple[Any, ...]]
    failed: int | None = None
    stopped: bool = False
    flushes: int = 0
    states: dict[Any, tuple[Any, ...]] = field(default_factory=dict)


def built_shim(folder: Path) -> Path:
    """The engine services of shim.c as a library in a folder."""
    library = folder / "shim.so"
    source = Path(__file__).parent / "shim.c"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def opened_shim(path: Path) -> ctypes.CDLL:
    """The shim that was built from shim.c."""
    loaded = ctypes.CDLL(str(path))
    loaded.shim_open.restype = loaded.shim_collected.restype = ctypes.c_void_p
    loaded.shim_bytes.restype = loaded.shim_flushes.restype = loaded.shim_blocks.restype = ctypes.c_int64
    loaded.shim_open.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    return loaded


class Runner:
    """A compiled operator linked against the shim.

    Args:
        again: gives the outcome of the same call in a process that never compiled, as text; None: that isn't looked at.
    """

    def __init__(
        self, shim: ctypes.CDLL, code: OperatorCode, again: Callable[[Any, dict[str, Any]], str] | None = None
    ) -> None:
        assert code.machine is not None, code.reason
        self._again = again
        loader.register_symbols(
            loader.engine_symbols()
            | {name: ctypes.cast(getattr(shim, name), ctypes.c_void_p).value or 0 for name in SERVICES}
        )
        self._owner, address = loader._link(code.machine)
        self.process = PROCESS(address)
        self.shim, self.code = shim, code

    def __call__(self, rows: list[tuple[Any, ...]], **options: Any) -> Outcome:
        """Runs it here and in the second process; see `_run` for the options."""
        outcome = self._run(rows, **options)
        if self._again is not None:
            assert self._again(rows, options) == repr(outcome), "the process that never compiled gives something else"
        return outcome

    def _run(
        self,
        rows: list[tuple[Any, ...]],
        *,
        keys: list[Any] | None = None,
        capacity: int | None = None,
        stop_after: int = 2**62,
        in_place: bool = False,
    ) -> Outcome:
        source, output = Records(self.code.input_schema, rows), self.code.output_schema
        capacity = max(capacity or 0, len(rows), 1)
        out = source.buffer if in_place else np.full(capacity * output.record_size, 0xAA, dtype=np.uint8)
        context = ctypes.c_void_p(self.shim.shim_open(ctypes.c_void_p(out.ctypes.data), output.record_size, stop_after))
        states: dict[Any, Any] = {}
        slots = None
        if keys is not None:
            for key in keys:
                states.setdefault(
                    key, ctypes.create_string_buffer(self.code.state_initial, len(self.code.state_initial))
                )
            slots = (ctypes.c_void_p * max(1, len(keys)))(*(ctypes.addressof(states[key]) for key in keys))
        try:
            left = self.process(source.address, len(rows), out.ctypes.data, capacity, slots, context)
            if left == STOPPED:
                return Outcome([], stopped=True)
            if left < 0:
                return Outcome([], failed=-1 - left)
            collected = (
                ctypes.string_at(self.shim.shim_collected(context) or 0, self.shim.shim_bytes(context))
                if (self.shim.shim_bytes(context))
                else b""
            )
            raw = collected + out.tobytes()[: left * output.record_size]
            final = {k: decoded(self.code.state_schema, v.raw)[0] for k, v in states.items()} if states else {}  # type: ignore[arg-type]
            return Outcome(decoded(output, raw), flushes=self.shim.shim_flushes(context), states=final)
        finally:
            self.shim.shim_close(context)


def python_result(code: OperatorCode, rows: list[tuple[Any, ...]], keys: list[Any] | None = None) -> Outcome:
    """The same by the python lane."""
    tuples = [code.input_schema.tuple_type._make(row) for row in rows]  # type: ignore[attr-defined]
    states: dict[Any, Any] = {}
    run = per_run(code.function, code.kind, keyed=code.state is not None)
    try:
        if keys is None:
            made = run(tuples)
        else:
            for key in keys:
                states.setdefault(key, code.state())  # type: ignore[misc]
            made = run(tuples, [states[key] for key in keys])
    except Exception as error:
        return Outcome([], failed=error.rel_index)  # type: ignore[attr-defined]
    if code.kind is FILTER:
        made = [t for t, keep in zip(tuples, made, strict=True) if keep]
    return Outcome(
        [tuple(item) if isinstance(item, tuple) else (item,) for item in made],
        states={key: tuple(state) for key, state in states.items()},
    )


def same_as_python(runner: Runner, row: tuple[Any, ...]) -> None:
    """Compiled and Python's function give the same of a row, to the letter (-0.0, nan), or both refuse it."""
    ours, wanted = runner([row]), python_result(runner.code, [row])
    if (ours.failed, repr(ours.items)) != (wanted.failed, repr(wanted.items)):
        raise AssertionError(f"{row}: {ours} where Python gives {wanted}")


def request(function: Any, schema: Any, kind: FunctionKind = MAP, **options: Any) -> FunctionRequest:
    return FunctionRequest("op", kind, function, Schema.of(schema), location="test.py:1", **options)
