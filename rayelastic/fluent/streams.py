"""Several streams of one operator, by the names of its output ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, NoReturn, TypeVar

from rayelastic.errors import ErrorCode, GraphError
from rayelastic.graph.spec.location import caller_location

StreamT = TypeVar("StreamT")


class Streams(Generic[StreamT]):
    """The streams of an operator with several outputs, by port: `streams.late`, `streams["late"]`, or by number.

    >>> import rayelastic as rel
    >>> topology = rel.Topology("parity")
    >>> numbers = topology.source(rel.rows([(1,), (2,)], schema={"n": int}), name="numbers")
    >>> parts = numbers.split(name="parts", even=lambda t: t.n % 2 == 0)
    >>> parts
    <streams of parts: even, rest>
    >>> parts.even.sink(rel.list(), name="even"), parts["rest"].sink(rel.list(), name="odd")
    (<sink even>, <sink odd>)
    >>> [tuple(t) for t in rel.run(topology)["odd"]]
    [(1,)]
    """

    __slots__ = ("_name", "_streams")

    def __init__(self, name: str, streams: Mapping[str, StreamT]) -> None:
        self._name = name
        self._streams = dict(streams)

    def __getitem__(self, port: str | int) -> StreamT:
        if isinstance(port, int) and 0 <= port < len(self):
            return list(self)[port]
        if not isinstance(port, str) or port not in self._streams:
            self._refuse(port)
        return self._streams[port]

    def __getattr__(self, port: str) -> StreamT:
        if port.startswith("__"):
            raise AttributeError(port)
        return self[port]

    def __iter__(self) -> Iterator[StreamT]:
        return iter(self._streams.values())

    def __len__(self) -> int:
        return len(self._streams)

    def __repr__(self) -> str:
        return f"<streams of {self._name}: {', '.join(self._streams)}>"

    def _refuse(self, port: object) -> NoReturn:
        raise GraphError(
            f"it has no output port {port!r}",
            operator=self._name,
            location=caller_location(),
            hint=f"Its output ports are {', '.join(self._streams)}",
            code=ErrorCode.UNKNOWN_PORT,
        )
