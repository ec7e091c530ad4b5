"""Runs a program that may remember something several times over its tuples, compiled and in plain Python.

Both have a module of their own, executed anew for each; what random numbers are drawn begins with the same seed. What
raises in Python, and what compiled code leaves to Python, is left out. Knows nothing of how programs are made.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime as dt
import random
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from rayelastic.compile import Compiler
from rayelastic.compile.cache.code_cache import CodeCache
from rayelastic.errors import RayelasticError
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest
from tests.component.compile.harness import Runner
from tests.oracle.compare import Difference, cells, shown
from tests.oracle.program import Program

__all__ = ["repeated"]

ROUNDS = 2
ROWS = 12
Rows = list[tuple[Any, ...]]
Found = tuple[str, str, list[Difference]]


def repeated(program: Program, name: str, rows: Rows, shim: ctypes.CDLL, cache: CodeCache) -> Found:
    """Lane, reason and differences of a program over tuples; of several runs where something is patched."""
    phases = (False,) if program.patch is None else program.patch.phases
    lane, reason = "python", ""
    for phase in phases:
        with _patched(program, active=phase):
            try:
                lane, reason, found = _once(program, name, rows[:ROWS], shim, cache, patched=phase)
            except RayelasticError as error:
                lane, reason, found = "python", str(error), []
            except Exception as error:
                lane, reason, found = "error", "", [Difference("error", (), "", f"{type(error).__name__}: {error}")]
        if found:
            return lane, reason, found
    return lane, reason, []


@contextlib.contextmanager
def _patched(program: Program, *, active: bool) -> Iterator[None]:
    if program.patch is None or not active:
        yield
        return
    with mock.patch(program.patch.member, eval(program.patch.fake)):  # noqa: S307
        yield


def _once(program: Program, name: str, rows: Rows, shim: ctypes.CDLL, cache: CodeCache, *, patched: bool) -> Found:
    names = program.module(name)
    output = Schema.of(names["OUTPUT"])
    request = FunctionRequest(
        "op", FunctionKind(program.kind), names["f"], Schema.of(names["Row"]), output=output, location="made.py:1"
    )
    code = Compiler(cache).compile(request)
    if code.lane is not Lane.COMPILED:
        return "python", code.reason, []
    if program.patch is not None and program.patch.moves and not patched:
        return "compiled", "", [Difference("value", (), "another each time", "compiled to machine code")]
    runner, rows = Runner(shim, code), _good(program, name, rows)
    for at in _refused(runner, rows)[::-1]:
        del rows[at]
    ours = _rounds(rows, lambda some: runner(some, capacity=len(some) + 200).items, names.get("change", _nothing))
    return "compiled", "", _difference(program, name, rows, ours)


def _nothing() -> None:
    """Changes nothing between two rounds."""


def _difference(program: Program, name: str, rows: Rows, given: list[Any]) -> list[Difference]:
    wanted = _in_python(program, name, rows, changes=True)
    zones = [one.format.partition(":")[2] for one in Schema.of(program.module(name)["OUTPUT"]).fields]
    texts = [[shown([_normal(cell, zones) for cell in one]) for one in many] for many in (wanted, given)]
    if texts[0] == texts[1]:
        return []
    still = _in_python(program, name, rows, changes=False)
    kind = "frozen" if [shown([_normal(cell, zones) for cell in one]) for one in still] == texts[1] else "value"
    parts = next(((a, b) for a, b in zip(*texts, strict=True) if a != b), (texts[0], texts[1]))
    return [Difference(kind, tuple(rows), str(parts[0])[:400], str(parts[1])[:400])]


def _normal(item: tuple[Any, ...], zones: list[str]) -> tuple[Any, ...]:
    """What a record of these fields holds of a tuple: an instant, whatever zone it is written in."""
    return tuple(
        cell.astimezone(dt.UTC) if isinstance(cell, dt.datetime) and zone and cell.tzinfo is not None else cell
        for cell, zone in zip(item, zones, strict=True)
    )


def _good(program: Program, name: str, rows: Rows) -> Rows:
    """Tuples on which the function doesn't raise, whatever it has seen before, and whose result its output holds."""
    names = program.module(name)
    fields = Schema.of(names["OUTPUT"]).fields
    good: Rows = []
    for _ in range(ROUNDS):
        good = []
        _seeded()
        for row in rows:
            try:
                items = _called(program, names, row)
                fits = all(
                    _holds(field.format, cell) for item in items for field, cell in zip(fields, item, strict=True)
                )
            except Exception:
                continue
            if fits or program.kind == "filter":
                good.append(row)
    return good


def _holds(form: str, cell: Any) -> bool:
    zoned = isinstance(cell, dt.datetime) and cell.tzinfo is not None
    if form.startswith("ts"):
        return zoned == bool(form.partition(":")[2])
    return not zoned and (form != "ttu" or getattr(cell, "tzinfo", None) is None)


def _called(program: Program, names: dict[str, Any], row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    made = names["f"](names["Row"]._make(row))
    if program.kind == "filter":
        return [row] if made else []
    return [cells(item) for item in made] if program.kind == "flat_map" else [cells(made)]


def _in_python(program: Program, name: str, rows: Rows, *, changes: bool) -> list[Any]:
    """What plain Python gives, round by round."""
    names = program.module(f"{name}-plain")

    def run(some: Rows) -> list[Any]:
        return [item for row in some for item in _called(program, names, row)]

    return _rounds(rows, run, names.get("change", _nothing) if changes else _nothing)


def _rounds(rows: Rows, run: Callable[[Rows], list[Any]], change: Callable[[], Any]) -> list[Any]:
    given = []
    for number in range(ROUNDS):
        if number:
            change()
        _seeded()
        given.append(run(rows))
    return given


def _refused(runner: Runner, rows: Rows) -> list[int]:
    """The numbers of the tuples that compiled code leaves to Python."""
    return [at for at, row in enumerate(rows) if runner([row], capacity=200).failed is not None]


def _seeded() -> None:
    random.seed(7)
    np.random.seed(7)  # noqa: NPY002
