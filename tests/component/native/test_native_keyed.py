"""Keyed state of Python operators: any value per key, owned by the table, exported and imported by hash range."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections import Counter
from typing import Any, NamedTuple

import pytest

from rayelastic import _native
from rayelastic.compile.code.operator_code import Flags
from rayelastic.compile.lanes.python_lane import per_run
from rayelastic.graph.spec.requests import FunctionKind

ALL = (1 << 64) - 1


class Word(NamedTuple):
    word: str | None
    n: int


ROWS = [Word(None if n % 11 == 0 else f"key {n % 7} " + "x" * (n % 7 * 5), n) for n in range(3000)]


class Tally:
    """A value that pickles by reference to this class and isn't a record."""

    alive: weakref.WeakSet[Tally] = weakref.WeakSet()

    def __init__(self) -> None:
        self.seen: list[int] = []
        Tally.alive.add(self)


def tally(t: Word, s: Tally) -> tuple[str | None, int]:
    s.seen.append(t.n)
    return t.word, len(s.seen)


def tally_operator(make: Any, state: _native.KeyedState) -> _native.Operator:
    function = per_run(tally, FunctionKind.MAP, keyed=True)
    return make.python("tally", function, Word, Word, Flags.ONE_TO_ONE | Flags.KEYED, keyed=state)


@pytest.mark.parametrize("model", ["manual", "dynamic", "dedicated"])
def test_each_key_has_its_own_value(pipelines: Any, make: Any, model: str) -> None:
    state = _native.KeyedState.objects(make.native(Word), ["word"], Tally)
    got: list[Any] = []
    assert (
        pipelines.run(make.rows(ROWS, Word), tally_operator(make, state), make.into(got, Word), model=model, threads=2)
        is None
    )
    counts: Counter[str | None] = Counter()
    for row, made in zip(ROWS, got, strict=True):
        counts[row.word] += 1
        assert made == (row.word, counts[row.word])
    assert state.size == len(counts)


def test_export_and_import_by_hash_range(pipelines: Any, make: Any) -> None:
    state = _native.KeyedState.objects(make.native(Word), ["word"], Tally)
    half = ALL // 2
    assert pipelines.run(make.rows(ROWS, Word), tally_operator(make, state), make.into([], Word)) is None
    low, high = state.export(0, half), state.export(half + 1, ALL)
    other = _native.KeyedState.objects(make.native(Word), ["word"], Tally)
    moved = other.import_(low)
    assert moved + other.import_(high) == other.size == state.size
    with pytest.raises(ValueError, match="here already"):
        other.import_(low)
    for damaged in (b"\x80\x05N.", low[:-1], low + b"x", b"RELKEYS1" + low[8:]):
        with pytest.raises(_native.StateError, match="exported state"):
            _native.KeyedState.objects(make.native(Word), ["word"], Tally).import_(damaged)
    assert state.remove(0, half) == moved
    assert state.size == other.size - moved

    got: list[Any] = []
    assert pipelines.run(make.rows(ROWS[:100], Word), tally_operator(make, other), make.into(got, Word)) is None
    before = Counter(row.word for row in ROWS)
    assert all(row.n > before[row.word] for row in got)


def test_values_live_as_long_as_the_table(pipelines: Any, make: Any) -> None:
    Tally.alive = weakref.WeakSet()
    state = _native.KeyedState.objects(make.native(Word), ["word"], Tally)
    assert pipelines.run(make.rows(ROWS, Word), tally_operator(make, state), make.into([], Word)) is None
    assert len(Tally.alive) == state.size
    pipelines.schedulers.clear()
    del state
    gc.collect()
    assert len(Tally.alive) == 0


def test_a_factory_that_raises_names_the_tuple(pipelines: Any, make: Any) -> None:
    made: list[int] = []

    def factory() -> list[int]:
        if len(made) == 3:
            raise LookupError("no more")
        made.append(1)
        return []

    state = _native.KeyedState.objects(make.native(Word), ["n"], factory)
    function = per_run(lambda t, s: t, FunctionKind.MAP, keyed=True)
    operator = make.python("keep", function, Word, Word, Flags.ONE_TO_ONE | Flags.KEYED, keyed=state)
    failure = pipelines.run(make.rows(ROWS, Word), operator, make.into([], Word))
    assert failure is not None
    assert failure.record == ROWS[3]
    assert type(failure.exception) is LookupError


def test_what_does_not_go_together_is_refused(make: Any) -> None:
    schema = make.native(Word)
    objects = _native.KeyedState.objects(schema, ["n"], list)
    records = _native.KeyedState(schema, ["n"], schema, bytes(schema.record_size))
    with pytest.raises(ValueError, match="nothing"):
        _native.KeyedState.objects(schema, ["nothing"], list)
    with pytest.raises(ValueError, match="operator 'f'.*view='tuples'"):
        _native.Operator.python("f", len, schema, schema, view="numpy", keyed=objects)
    with pytest.raises(ValueError, match="operator 'f'.*KeyedState.objects"):
        _native.Operator.python("f", len, schema, schema, keyed=records)
    with pytest.raises(ValueError, match="operator 'f'.*REL_KEYED"):
        _native.Operator.python("f", len, schema, schema, flags=Flags.KEYED)
    with pytest.raises(ValueError, match="operator 'f'"):
        _native.Operator.compiled("f", 1, Flags.KEYED, schema, schema, objects)


def test_a_live_operator_is_held_while_its_values_move_in_chunks(pipelines: Any, make: Any) -> None:
    state = _native.KeyedState.objects(make.native(Word), ["word"], Tally)
    operator = tally_operator(make, state)
    assert operator.state is not None
    got: list[Any] = []
    scheduler = pipelines.start(
        make.rows(itertools.cycle(ROWS), Word), operator, make.into(got, Word), threads=2, model="dynamic"
    )
    moved = _native.KeyedState.objects(make.native(Word), ["word"], Tally)
    keys = len({row.word for row in ROWS})
    while state.size < keys:
        scheduler.wait(0.001)
    scheduler.hold([0, 1, 2], drain=True)
    sample = scheduler.sample().operators
    assert sample[0].tuples_out == sample[2].tuples_in == len(got)
    keys_of_all = operator.state.select([(0, ALL)])
    at, chunks = 0, 0
    while chunks == 0 or at:
        chunk, at = operator.state.export_chunk(keys_of_all, at, max_bytes=1)
        assert moved.import_(chunk) == 1
        chunks += 1
    assert moved.size == keys == operator.state.remove()
    moved_counts = Counter(row.word for row in got)
    scheduler.release()
    while scheduler.sample().operators[2].tuples_in < sample[2].tuples_in + len(ROWS):
        scheduler.wait(0.001)
    scheduler.stop()
    assert Counter(row.word for row in got)[None] > moved_counts[None]
    fresh = got[sum(moved_counts.values())]
    assert fresh.n == 1  # its state had gone


def test_who_does_not_come_to_a_safe_point_is_named(pipelines: Any, make: Any) -> None:
    inside, go = threading.Event(), threading.Event()

    def stuck(run: list[Word]) -> None:
        inside.set()
        assert go.wait(60)

    operator = _native.Operator.python("stuck", stuck, make.native(Word), None, Word, flags=Flags.SINK)
    scheduler = pipelines.start(make.rows(ROWS, Word), operator)
    assert inside.wait(60)
    with pytest.raises(TimeoutError, match="operator 'stuck'"):
        scheduler.hold([1], timeout=0.001)
    go.set()
    assert scheduler.wait(60)
