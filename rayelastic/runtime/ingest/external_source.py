"""A source that is fed from outside: the driver makes it push its rows into the data port of a PE.

Spark's DataFrames arrive that way (rayelastic/spark). The PE only sees numbered rows. The driver's
objects, such as a Spark session or a DataFrame, can't be shipped. So such a description returns a replacement for the
PE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rayelastic.connectors.pushed.declaration import IngestSource
    from rayelastic.graph.spec.operator_spec import SinkDescription
    from rayelastic.runtime.ingest.feed import Feed


@runtime_checkable
class ExternalSource(Protocol):
    """A source description whose rows the driver has pushed."""

    def push(self, feed: Feed) -> dict[int, int]:
        """Push every row and return when all were acknowledged; called again when the job has recovered.

        Args:
            feed: The destination.

        Returns:
            The number of rows of each partition, by its number.
        """
        ...

    def cancel(self) -> None:
        """Make a running `push` end early; called from another thread."""
        ...

    def for_pe(self) -> IngestSource:
        """Return the description for the PE."""
        ...


@runtime_checkable
class DriverSink(Protocol):
    """A sink description whose last step runs on the driver."""

    def for_pe(self) -> SinkDescription:
        """Return the description for the PE."""
        ...

    def finish(self, rows: int, value: Any) -> Any:
        """Make the user's result from that of the PE's sink."""
        ...
