"""Checks whether an operator emits the same under all conditions of the runtime."""

from __future__ import annotations

import inspect
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rayelastic.errors import LaneError
from rayelastic.fluent.stream import Stream
from rayelastic.job import start
from rayelastic.plan.config import JobConfig
from rayelastic.plan.plan_text import counted
from rayelastic.plan.settings.elasticity import Algorithm
from rayelastic.plan.settings.threads import ThreadingModel, Threads
from rayelastic.runtime.values.snapshot import Snapshot
from rayelastic.testing.collect import SINK, SOURCE, collect, topology_of
from rayelastic.testing.script import Gate, script

THREADS = (1, 2, 8)
LANES = ("python", "compiled")
TIGHT_RECORDS = 2  # of a queue that is always full
LOOK = 0.001  # seconds between two checks of a source's progress
PATIENCE = 60.0  # seconds for work that takes milliseconds on an idle machine


class VerificationError(AssertionError):
    """An operator gave something else under one condition than under another; the message says which and what.

    >>> raise VerificationError("with 8 threads: 2 rows, with 1 thread: 3 rows")
    Traceback (most recent call last):
    rayelastic.testing.verify.VerificationError: with 8 threads: 2 rows, with 1 thread: 3 rows
    """


@dataclass(frozen=True, slots=True)
class Report:
    """The tested conditions, and their common output.

    Args:
        conditions: in words.
        output: what the operator gave, under all of them.

    >>> Report(conditions=("1 thread", "2 threads"), output=((1,),)).output
    ((1,),)
    """

    conditions: tuple[str, ...]
    output: tuple[tuple[Any, ...], ...]


def verify_operator(
    declare: Callable[..., Stream],
    rows: Iterable[Any],
    schema: object,
    *,
    ordered: bool = True,
    snapshots: int = 8,
    lanes: Sequence[str] = LANES,
) -> Report:
    """Check that an operator emits the same however it is run.

    The conditions are each threading model, 1, 2 and 8 threads, full queues, several PEs, and each
    execution mode. Another is a stop with a savepoint and a restore, after each of some steps.

    Args:
        declare: Receives the stream of the rows, and returns the one to compare. If it has a parameter `lane`, it is
            called with each of `lanes`, except unsupported ones.
        rows: Tuples of the schema.
        schema: The schema of the rows, see Schema.of.
        ordered: Whether the order of the output counts; False if streams are merged.
        snapshots: The number of stops with a savepoint and restore, spread evenly over the rows; 0: none.
        lanes: The execution modes to try.

    Returns:
        The tested conditions and the output.

    Raises:
        VerificationError: The output differs under one condition, which the message names.
        StateError: Its state can't be saved; pass snapshots=0 if that is intended.

    >>> def even(stream, lane):
    ...     return stream.filter(lambda t: t.n % 2 == 0, name="even", lane=lane)
    >>> verify_operator(even, [(1,), (2,)], {"n": int}, snapshots=2).output
    ((2,),)
    """
    tuples = [*rows]
    conditions: list[str] = []
    reference: list[tuple[Any, ...]] | None = None

    def compare(condition: str, output: list[tuple[Any, ...]]) -> None:
        nonlocal reference
        if reference is None:
            reference = output
        difference = _difference(reference, output, ordered)
        if difference:
            raise VerificationError(f"{condition}: {difference}; as expected {conditions[0]}")
        conditions.append(condition)

    for lane, declared in _lanes(declare, schema, lanes):
        for condition, config in _configs():
            compare(f"{lane}{condition}", collect(declared, tuples, schema, config))
        for cut in _cuts(len(tuples), snapshots):
            compare(f"{lane}restored after {counted(cut, 'row')}", _interrupted(declared, tuples, schema, cut))
    assert reference is not None
    return Report(tuple(conditions), tuple(reference))


def _lanes(
    declare: Callable[..., Stream], schema: object, lanes: Sequence[str]
) -> Iterator[tuple[str, Callable[[Stream], Stream]]]:
    if "lane" not in inspect.signature(declare).parameters:
        yield "", declare
        return
    has_mode = False
    for lane in lanes:

        def declared(stream: Stream, lane: str = lane) -> Stream:
            return declare(stream, lane=lane)

        try:
            topology_of(declared, script([], schema))
        except LaneError:
            continue
        has_mode = True
        yield f"{lane} lane, ", declared
    if not has_mode:
        raise VerificationError(f"it can be had in none of the lanes {', '.join(lanes)}")


def _configs() -> Iterator[tuple[str, JobConfig]]:
    fixed = Algorithm.OFF
    yield "manual", JobConfig(threads=Threads(count=1, model=ThreadingModel.MANUAL), elasticity=fixed)
    for model in (ThreadingModel.DYNAMIC, ThreadingModel.DEDICATED):
        for threads in THREADS:
            yield (
                f"{model.value}, {counted(threads, 'thread')}",
                JobConfig(threads=Threads(count=threads, model=model), elasticity=fixed),
            )
    for threads in THREADS:
        yield (
            f"full queues, {counted(threads, 'thread')}",
            JobConfig(
                threads=Threads(
                    count=threads, model=ThreadingModel.DYNAMIC, queue_records=TIGHT_RECORDS, run_records=1
                ),
                elasticity=fixed,
            ),
        )


def _cuts(rows: int, snapshots: int) -> list[int]:
    if snapshots <= 0:
        return []
    return sorted({round(step * rows / max(1, snapshots - 1)) for step in range(snapshots)})


def _interrupted(
    declare: Callable[[Stream], Stream], rows: list[Any], schema: object, cut: int
) -> list[tuple[Any, ...]]:
    """Return the output when the job is stopped after `cut` rows, and another one restores it."""
    job = start(topology_of(declare, script([*rows[:cut], Gate()], schema)), JobConfig(elasticity=Algorithm.OFF))
    try:
        deadline = time.monotonic() + PATIENCE
        while job.metrics().operator(SOURCE).tuples_out < cut:
            if time.monotonic() > deadline:
                raise VerificationError(f"the first {counted(cut, 'row')} couldn't be taken within {PATIENCE:g} s")
            if job.status.state.is_final:
                job.wait()
            time.sleep(LOOK)
        with tempfile.TemporaryDirectory() as folder:
            snapshot = Snapshot(f"{folder}/snapshot", key=secrets.token_bytes(32))
            first = [tuple(row) for row in job.stop(snapshot)[SINK]]
            return first + collect(declare, rows, schema, restore=snapshot)
    finally:
        job.close()


def _difference(expected: list[Any], output: list[Any], ordered: bool) -> str:
    if not ordered:
        missing, more = Counter(expected) - Counter(output), Counter(output) - Counter(expected)
        said = [f"{word} {next(iter(some))!r}" for word, some in (("lacks", missing), ("has", more)) if some]
        return " and ".join(said)
    for number, (one, other) in enumerate(zip(expected, output, strict=False)):
        if one != other:
            return f"row {number} is {other!r}, not {one!r}"
    return "" if len(expected) == len(output) else f"{counted(len(output), 'row')}, not {len(expected)}"
