"""Pipelines of native operators for the tests here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from rayelastic import _native
from rayelastic.compile.code.operator_code import Flags
from rayelastic.graph.records.schema import Schema
from rayelastic.runtime.operators.native_schema import native_schema

PATIENCE = 60.0  # seconds for what takes milliseconds on an idle machine


class Pipelines:
    """Makes schedulers and stops them at the end of the test."""

    def __init__(self) -> None:
        self.schedulers: list[_native.Scheduler] = []

    def start(
        self, *chain: _native.Operator, threads: int = 1, model: str = "manual", **options: Any
    ) -> _native.Scheduler:
        """A running chain of operators, each with this threading model."""
        scheduler = _native.Scheduler(**options)
        self.schedulers.append(scheduler)
        ids = [scheduler.add(operator, model) for operator in chain]
        for origin, target in zip(ids, ids[1:], strict=False):
            scheduler.connect(origin, target)
        scheduler.start(threads)
        return scheduler

    def run(
        self, *chain: _native.Operator, threads: int = 1, model: str = "manual", **options: Any
    ) -> _native.OperatorFailure | None:
        """Runs a chain to its end and gives its failure."""
        scheduler = self.start(*chain, threads=threads, model=model, **options)
        assert scheduler.wait(PATIENCE), scheduler.sample()
        failure = scheduler.failure()
        scheduler.stop()
        return failure

    def close(self) -> None:
        for scheduler in self.schedulers:
            scheduler.stop()


@pytest.fixture
def pipelines() -> Iterator[Pipelines]:
    made = Pipelines()
    yield made
    made.close()


def rows_source(rows: Iterable[Any], schema: object, name: str = "rows") -> _native.Operator:
    return _native.Operator.python(
        name, lambda: iter(rows), None, native_schema(Schema.of(schema)), flags=Flags.SOURCE | Flags.NEEDS_TOKEN
    )


def list_sink(into: list[Any], schema: object, name: str = "list") -> _native.Operator:
    declared = Schema.of(schema)
    return _native.Operator.python(
        name, into.extend, native_schema(declared), None, declared.tuple_type, flags=Flags.SINK
    )


def python_operator(
    name: str,
    function: Callable[..., Any],
    input_schema: object,
    output_schema: object,
    flags: int = 0,
    **more: Any,
) -> _native.Operator:
    given, made = Schema.of(input_schema), Schema.of(output_schema)
    return _native.Operator.python(
        name, function, native_schema(given), native_schema(made), given.tuple_type, flags=flags, **more
    )


@pytest.fixture
def make() -> Any:
    """The makers of operators, as attributes."""

    class Make:
        rows = staticmethod(rows_source)
        into = staticmethod(list_sink)
        python = staticmethod(python_operator)
        native = staticmethod(lambda schema: native_schema(Schema.of(schema)))

    return Make
