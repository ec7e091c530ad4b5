"""Methods of every stream that run it at once: for a first look. They run a copy, so the topology stays as it is."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import rayelastic as rel  # the facade, which loads what is above this layer when it is called
from rayelastic.connectors.call.declaration import call
from rayelastic.connectors.memory.declaration import CountSink
from rayelastic.connectors.memory.declaration import list as list_sink
from rayelastic.errors import ErrorCode, GraphError
from rayelastic.fluent.base import StreamBase, StreamT
from rayelastic.fluent.declarations import drafted
from rayelastic.graph.operators.columns import check_count
from rayelastic.graph.spec.declaration import declaring
from rayelastic.graph.spec.location import caller_location
from rayelastic.graph.spec.ports import operator_of, stream_name

_PERIOD = 0.05  # seconds between looks at the rows to show
_WIDEST = 60  # characters of a column


class ActionMethods(StreamBase[StreamT]):
    """What people call for a first look at a stream, instead of a sink and `rel.run`."""

    __slots__ = ()

    def collect(self) -> list[Any]:
        """Run what the stream needs in this process, and return its tuples.

        Other sinks of the topology don't run. For an endless source use `show`, or `sink` and `rel.start`.

        Raises:
            DeclarationError: As for ``rel.run``.
            JobFailedError: An operator raised.

        >>> import rayelastic as rel
        >>> numbers = rel.Topology("numbers").source(rel.rows([1, 2, 3]))
        >>> numbers.map(lambda n: n * 2).collect()
        [Record(value=2), Record(value=4), Record(value=6)]
        """
        topology, name = self._alone(list_sink())
        rows: list[Any] = rel.run(topology)[name]
        return rows

    def show(self, n: int = 20) -> None:
        """Run what the stream needs in this process until n tuples are there, and print them as a table.

        Other sinks of the topology don't run. A source may be endless.

        Args:
            n: How many at most.

        Raises:
            GraphError: An invalid number.
            DeclarationError: As for ``rel.run``.
            JobFailedError: An operator raised.

        >>> import rayelastic as rel
        >>> orders = rel.rows([("ada", 20.5), ("bob", 5.0)], {"user": str, "amount": float})
        >>> rel.Topology("orders").source(orders).show()
        user  amount
        ----  ------
        ada   20.5
        bob   5.0
        """
        with declaring(self._upstream.called, caller_location()):
            check_count(n, "show")
        rows: list[Sequence[Any]] = []
        topology, _ = self._alone(call(lambda t: rows.append(t) if len(rows) < n else None))
        job = rel.start(topology)
        try:
            while len(rows) < n:
                with contextlib.suppress(TimeoutError):
                    job.wait(timeout=_PERIOD)
                    break
        finally:
            job.close()
        sys.stdout.writelines(f"{line}\n" for line in _table(self.schema.names, rows[:n]))

    def _alone(self: Any, sink: Any) -> tuple[Any, str]:
        """Return a topology with what the stream needs and a sink, and the sink's name."""
        operators = self.topology.operators
        needed: set[str] = set()
        rest = [operator_of(stream) for stream in self.inputs]
        while rest:
            name = rest.pop()
            if name not in operators:
                problem, hint = f"it enters the feedback '{name}'", "Close it first, and call this on a later stream"
                raise GraphError(problem, location=caller_location(), hint=hint, code=ErrorCode.OPEN_FEEDBACK)
            if name not in needed:
                needed.add(name)
                rest += [operator_of(stream) for stream, _ in (*operators[name].edges, *operators[name].loop_edges)]
        topology = drafted(self.topology, {name: spec for name, spec in operators.items() if name in needed})
        name = self._at(topology, self.inputs, self.schema).sink(sink).name
        taken = {stream for spec in topology.operators.values() for stream, _ in (*spec.edges, *spec.loop_edges)}
        for spec in list(topology.operators.values()):
            for port in spec.outputs:
                if (stream := stream_name(spec.name, port.name)) not in taken and not port.optional:
                    self._at(topology, (stream,), port.schema).sink(CountSink())
        return topology, name


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Return the lines of a table."""
    cells = [names, [], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[at]) for line in cells if line) for at in range(len(names))]
    cells[1] = ["-" * width for width in widths]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _cell(value: Any) -> str:
    text = str(value).replace("\n", "\\n")
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
