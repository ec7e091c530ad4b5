"""A source that somebody outside feeds: the driver has it push its rows into the data port of a processing element.

Spark's DataFrames arrive that way (rayelastic/spark). The processing element knows only that rows come in, numbered.
What the driver holds (a Spark session, a DataFrame) can't be shipped, so such descriptions say themselves what goes to
the processing element in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from rayelastic.graph.edges.pushed import IngestSource
    from rayelastic.graph.spec.operator_spec import SinkDescription
    from rayelastic.runtime.ingest.feed import Feed


@runtime_checkable
class ExternalSource(Protocol):
    """A source description whose rows the driver has pushed."""

    def push(self, feed: Feed) -> dict[int, int]:
        """Push every row and returns when all were acknowledged; called again when the job has gone back.

        Args:
            feed: where to push to.

        Returns:
            The number of rows of each partition, by its number.
        """
        ...

    def cancel(self) -> None:
        """Make a running `push` end early; called from another thread."""
        ...

    def for_pe(self) -> IngestSource:
        """What goes to the processing element in its place."""
        ...


@runtime_checkable
class DriverSink(Protocol):
    """A sink description whose last step the driver does."""

    def for_pe(self) -> SinkDescription:
        """What goes to the processing element in its place."""
        ...

    def finish(self, rows: int, value: Any) -> Any:
        """Make the result that the user gets of what the processing element's sink left."""
        ...
