"""The corpus: what compiles gives what CPython gives on rows that are hard, and what doesn't compile is known by name.

The gate looks at every eighth function, since each is compiled anew; nightly at all.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import corpus
import pytest
from corpus.event import Event
from corpus.rows import rows
from harness import FILTER, FLAT_MAP, MAP, Records, Runner, decoded

from rayelastic.errors import LaneError

ROWS = rows(200)
REFUSED_AT_MOST = 0.1  # of the rows, by a function that counts as compiled
SAMPLE = 8  # the gate looks at one of so many
LEAST_COMPILED = 187  # of 200; only rises


class Case(NamedTuple):
    name: str
    function: Callable[..., Any]
    kind: Any
    options: dict[str, Any]


def cases() -> Iterator[Case]:
    for theme in sorted(module.name for module in pkgutil.iter_modules(corpus.__path__)):
        module = importlib.import_module(f"corpus.{theme}")
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            parameters = list(inspect.signature(function).parameters.values())
            if not parameters or parameters[0].annotation != "Event":
                continue
            kind = FLAT_MAP if inspect.isgeneratorfunction(function) else MAP
            if function.__annotations__["return"] == "bool":
                kind = FILTER
            is_keyed = len(parameters) == 2 and parameters[1].default is inspect.Parameter.empty
            state = {"keys": ("user",), "state": vars(module)[parameters[1].annotation]} if is_keyed else {}
            yield Case(f"{theme}.{name}", function, kind, state)


CASES = list(cases())

# Run in Python so far. Take out what compiles now.
IN_PYTHON = frozenset(
    """
    finance.signed finance.fee_by_rule geo.within iot.unpacked log_parsing.parse_access packets.is_global
    packets.total_length recommendation.common recommendation.hashed_variant time_bucketing.daily
    web_analytics.host web_analytics.plain_path web_analytics.event_name
    """.split()  # noqa: SIM905
)


def in_record(schema: Any, values: Any) -> tuple[Any, ...] | None:
    """What a record holds of Python's result; None if it doesn't fit."""
    row = values if isinstance(values, tuple) else (values,)
    try:
        kept = Records(schema, [row])
        return decoded(schema, kept.buffer.tobytes()[: schema.record_size])[0]
    except (struct.error, AttributeError, TypeError, OverflowError, UnicodeEncodeError):
        return None


def python_items(code: Any, row: tuple[Any, ...], state: Any = None) -> list[Any]:
    """What Python gives for a row: records, or the exception."""
    item = Event._make(row)
    try:
        made = code.function(item) if state is None else code.function(item, state)
        if code.kind is FLAT_MAP:
            return [in_record(code.output_schema, each) for each in made or ()]
        if code.kind is FILTER:
            return [row] if made else []
        return [in_record(code.output_schema, made)]
    except Exception as error:
        return [error]


def behind_failures(runner: Runner) -> tuple[list[Any], list[int]]:
    """All that comes out, going on behind each row that fails, and the numbers of those."""
    out: list[Any] = []
    failed: list[int] = []
    at = 0
    while at < len(ROWS):
        outcome = runner(ROWS[at:])
        if outcome.failed is None:
            return out + outcome.items, failed
        if outcome.failed > 0:
            out += runner(ROWS[at : at + outcome.failed]).items
        failed.append(at + outcome.failed)
        at += outcome.failed + 1
    return out, failed


def check_plain(runner: Runner) -> int:
    given, failed = behind_failures(runner)
    wanted, refused = [], 0
    for number, row in enumerate(ROWS):
        items = python_items(runner.code, row)
        if number in failed:
            refused += not any(isinstance(each, Exception) or each is None for each in items)
            continue
        assert not any(isinstance(each, Exception) for each in items), (number, items, row)
        wanted += items
    assert list(map(repr, given)) == list(map(repr, wanted))
    return refused


def check_keyed(runner: Runner) -> None:
    """A row that fails is left out from the start: nothing is known of the state behind it."""
    left = list(ROWS)
    while (outcome := runner(left, keys=[row[2] for row in left])).failed is not None:
        left.pop(outcome.failed)
    states: dict[str, Any] = {}
    wanted = []
    for row in left:
        wanted += python_items(runner.code, row, states.setdefault(row[2], mutable(runner.code)))
    assert list(map(repr, outcome.items)) == list(map(repr, wanted))
    assert len(left) > len(ROWS) / 2


def mutable(code: Any) -> Any:
    from rayelastic.compile.code.state import MutableState

    return MutableState(**dict(zip(code.state_schema.names, tuple(code.state()), strict=True)))


def check(compiled: Callable[..., Runner], case: Case) -> None:
    if case.name in IN_PYTHON:
        with pytest.raises(LaneError):  # else it compiles now: take it out of the list
            compiled(case.function, Event, case.kind, **case.options)
        return
    runner = compiled(case.function, Event, case.kind, **case.options)
    if case.options:
        check_keyed(runner)
        return
    refused = check_plain(runner)
    assert refused <= REFUSED_AT_MOST * len(ROWS), f"{refused} of {len(ROWS)} rows refused"


@pytest.mark.parametrize("case", CASES[::SAMPLE], ids=lambda case: case.name)
def test_a_sample_gives_what_cpython_gives(compiled: Any, case: str) -> None:
    check(compiled, case)  # type: ignore[arg-type]


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_gives_what_cpython_gives(compiled: Any, case: str) -> None:
    check(compiled, case)  # type: ignore[arg-type]


def test_the_share_that_compiles_only_rises() -> None:
    assert len(CASES) == 200
    assert {case.name for case in CASES} >= IN_PYTHON
    assert len(CASES) - len(IN_PYTHON) >= LEAST_COMPILED
