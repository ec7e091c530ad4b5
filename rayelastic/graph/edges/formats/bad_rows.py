"""The rows of files that aren't of the schema of their source, as a source of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.dead_letters import ERRORS, OnError
from rayelastic.graph.spec.operator_spec import Lane

__all__ = ["BadRows", "RowFiles", "side_sources"]


class RowFiles(Protocol):
    """A source of rows of files, some of which may not be of its schema."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        ...

    @property
    def on_bad_row(self) -> OnError:
        """What happens to such rows."""
        ...

    @property
    def name(self) -> str:
        """The operator."""
        ...

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        ...


@dataclass(frozen=True, slots=True)
class BadRows:
    """The rows of files that aren't of the schema of a source, which leaves them out; the files are read again."""

    of: RowFiles
    name: str  # of that source
    schema: Schema = Schema.of({"file": str, "row": int, "text": str, "error": str, "operator": str}, name="BadRow")  # noqa: RUF009
    lane: Lane = Lane.BUILT_IN
    reason: str = "rows that don't fit the schema"

    def check(self, operator: str) -> None:
        """Raise SourceError if a file is gone."""
        self.of.check(operator)


def side_sources(source: RowFiles) -> dict[str, BadRows]:
    """Return what else is read of the files of a source, by port."""
    return {ERRORS: BadRows(source, source.name)} if source.on_bad_row is OnError.DIVERT else {}
