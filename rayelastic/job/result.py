"""The results of a finished job's sinks, as the user holds them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from rayelastic.connectors.memory.declaration import ListSink
from rayelastic.errors import JobCancelledError, JobFailedError
from rayelastic.graph.records.from_arrow import tuples_of
from rayelastic.graph.words import RESULT, missing
from rayelastic.runtime.ingest.external_source import DriverSink
from rayelastic.runtime.values.failure import Failure
from rayelastic.runtime.values.status import State
from rayelastic.watching import result_html

if TYPE_CHECKING:
    from rayelastic.graph.spec.operator_spec import OperatorSpec
    from rayelastic.runtime.values.status import JobMetrics, JobStatus, SinkResult


class JobResult(Mapping[str, Any]):
    """The results of a finished job's sinks, by operator name.

    Args:
        values: for each sink: a list, a table, a DataFrame, a path or a number of rows, as the sink says.
        metrics: the last counters.
        seconds: from start to end.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("numbers")
    >>> topology.source(rel.sequence(2)).sink(rel.list(), name="out")
    <sink out>
    >>> result = rel.run(topology)
    >>> result["out"], result.metrics.operator("out").tuples_in, result.late
    ([Sequence(value=0), Sequence(value=1)], 2, {})
    """

    def __init__(self, values: dict[str, Any], metrics: JobMetrics, seconds: float) -> None:
        self._values = values
        self.metrics = metrics
        self.seconds = seconds

    @property
    def late(self) -> dict[str, int]:
        """Late tuples that were dropped because `.late()` has no consumer, by operator.

        >>> import rayelastic as rel
        >>> topology = rel.Topology("late")
        >>> timed = topology.source(rel.rows([(0,), (99,), (3,)], {"at": int}), name="s").event_time("at", name="time")
        >>> timed.window(seconds=10).aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
        <sink out>
        >>> rel.run(topology).late
        {'counts': 1}
        """
        return self.metrics.dropped("late")

    def __getitem__(self, sink: str) -> Any:
        if sink not in self._values:
            close = difflib.get_close_matches(str(sink), self._values, n=1)
            meant = f"Did you mean {close[0]!r}? " if close else ""
            raise KeyError(f"no sink is called {sink!r}. {meant}The sinks are {', '.join(map(repr, self._values))}")
        return self._values[sink]

    if not TYPE_CHECKING:  # otherwise type checkers would accept every name

        def __getattr__(self, word: str) -> NoReturn:
            values = self.__dict__.get("_values", {})
            if word in values:
                raise AttributeError(f"a JobResult has its outputs by name: write result[{word!r}]".replace("'", '"'))
            if word.startswith("_"):
                raise AttributeError(f"a JobResult has no {word!r}")
            raise AttributeError(missing("a JobResult", word, dir(type(self)), RESULT))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _repr_html_(self) -> str:
        return result_html(self._values, self.seconds)

    def __repr__(self) -> str:
        late = f", late={self.late}" if self.late else ""
        return f"JobResult(sinks={list(self._values)}, seconds={self.seconds:.3f}{late})"


def sink_value(left: SinkResult, sink: OperatorSpec | None) -> Any:
    """Make a user's result from that of a sink.

    Args:
        left: The result of its PE.
        sink: Its declaration, if it is known.
    """
    if sink is not None and isinstance(sink.body, DriverSink):
        return sink.body.finish(left.rows, left.value)
    if sink is not None and isinstance(sink.body, ListSink):
        assert sink.input_schema is not None
        return tuples_of(left.value, sink.input_schema, sink.name)
    return left.value if left.value is not None else left.rows


def raise_failure(status: JobStatus) -> NoReturn:
    """Raise the error of a job that didn't finish.

    Raises:
        JobFailedError: it failed; what its function raised is the cause.
        JobCancelledError: it was cancelled.
    """
    if status.state is State.CANCELLED:
        raise JobCancelledError(status.name)
    failure = status.failure or Failure("it gave no reason")
    raise JobFailedError(
        failure.reason,
        job=status.name,
        operator=failure.operator,
        failing_tuple=failure.failing_tuple,
        traceback_text=failure.traceback,
        code=failure.code,
    ) from (failure.cause.error() if failure.cause is not None else None)
