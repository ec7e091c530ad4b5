"""Per-run callables of functions with side outputs, or that continue after tuples on which they raise.

The engine calls `call(0, run[, states])` and receives a result for each output port. If failing tuples are diverted, a
list of (number of the tuple in its run, error) follows; if they are dropped, their number. What the function emitted
for a failing tuple before it raised is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rayelastic.compile.code.operator_code import OperatorCode, View
from rayelastic.compile.lanes.frames import frame_of, run_of
from rayelastic.compile.lanes.ports_lane import Router
from rayelastic.compile.lanes.python_lane import error_text, marked
from rayelastic.compile.reading.signatures import annotated_library
from rayelastic.graph.spec.dead_letters import OnError
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.ports import OutputPort
from rayelastic.graph.spec.requests import FunctionKind

Check = Callable[[object], None]


def tolerant(
    code: OperatorCode, ports: Sequence[OutputPort], on_error: OnError, checks: Sequence[Check]
) -> Callable[..., list[Any]]:
    """Return the per-run callable.

    Args:
        code: A Python or vectorised function.
        ports: Its output ports, without that of diverted tuples.
        on_error: What happens to a tuple on which the function raises.
        checks: For each port, a function that raises for an invalid record.
    """
    if code.lane is Lane.VECTORISED:
        return _of_runs(code, ports, on_error)
    return _of_tuples(code, Router([port.name for port in ports]), on_error, checks)


def _of_tuples(code: OperatorCode, router: Router, on_error: OnError, checks: Sequence[Check]) -> Callable[..., Any]:
    function, kind, tolerates = code.function, code.kind, on_error is not OnError.FAIL

    def call(_: int, tuples: Sequence[Any], states: Sequence[Any] | None = None) -> list[Any]:
        lists: list[list[Any]] = [[] for _ in checks]
        letters: list[tuple[int, str]] = []
        for index, item in enumerate(tuples):
            try:
                made = function(item) if states is None else function(item, states[index])
                if kind is FunctionKind.FILTER:
                    given: Any = (item,) if made else ()
                elif kind is FunctionKind.MAP:
                    given = (made,)
                else:
                    given = () if made is None else made
                sorted_items = router.sort(given)
                if tolerates:
                    for check, values in zip(checks, sorted_items, strict=True):
                        for value in values:
                            check(value)
            except Exception as error:
                if not tolerates:
                    marked(error, index)
                    raise
                letters.append((index, error_text(error)))
                continue
            for into, values in zip(lists, sorted_items, strict=True):
                into.extend(values)
        return [*lists, *_told(letters, on_error)]

    return call


def _told(letters: list[tuple[int, str]], on_error: OnError) -> list[Any]:
    """Return what the engine receives about tuples on which the function raised."""
    if on_error is OnError.FAIL:
        return []
    return [letters if on_error is OnError.DIVERT else len(letters)]


def _of_runs(code: OperatorCode, ports: Sequence[OutputPort], on_error: OnError) -> Callable[..., Any]:
    library = annotated_library(code.function)
    router = Router([port.name for port in ports])

    def by_port(made: Any, run: Any) -> list[Any]:
        if code.kind is FunctionKind.FILTER:
            return [_kept(run, run_of(made, library, ports[0].schema), code.view)]
        if len(ports) == 1:
            return [run_of(made, library, ports[0].schema)]
        if not isinstance(made, Mapping):
            raise TypeError(f"expected {{output port: run}}, got {type(made).__name__}")
        runs: list[Any] = [None] * len(ports)
        for port, one in made.items():
            number = router.number(port)
            runs[number] = run_of(one, library, ports[number].schema)
        return runs

    def parts(run: Any, first: int, letters: list[tuple[int, str]]) -> Iterator[list[Any]]:
        """Yield the function's results on the run, or on its halves where it raises."""
        try:
            made = by_port(code.function(frame_of(run, library)), run)
        except Exception as error:
            if on_error is OnError.FAIL:
                raise
            if len(run) == 1:
                letters.append((first, error_text(error)))
                return
            half = len(run) // 2
            yield from parts(run[:half], first, letters)
            yield from parts(run[half:], first + half, letters)
        else:
            yield made

    def call(_: int, run: Any) -> list[Any]:
        letters: list[tuple[int, str]] = []
        pieces = list(parts(run, 0, letters))
        joined = [_joined([piece[k] for piece in pieces], port, code.view) for k, port in enumerate(ports)]
        return [*joined, *_told(letters, on_error)]

    return call


def _kept(run: Any, mask: Any, view: View) -> Any:
    if view is View.NUMPY:
        import numpy as np

        return run[np.asarray(mask, dtype=bool)]
    import pyarrow as pa

    return run.filter(mask if isinstance(mask, pa.Array) else pa.array(mask))


def _joined(runs: list[Any], port: OutputPort, view: View) -> Any:
    """Join several runs into one."""
    given = [run for run in runs if run is not None]
    if len(given) <= 1:
        return given[0] if given else None
    if view is View.ARROW:
        import pyarrow as pa

        batches = [pa.RecordBatch.from_pydict(run) if isinstance(run, Mapping) else run for run in given]
        batches = pa.Table.from_batches(batches).combine_chunks().to_batches()
        return batches[0] if batches else None
    import numpy as np

    if isinstance(given[0], Mapping):
        return {name: np.concatenate([np.asarray(run[name]) for run in given]) for name in port.schema.names}
    return np.concatenate([np.asarray(run) for run in given])
