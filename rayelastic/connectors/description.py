"""What declarations of connectors share."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from rayelastic.graph.records.data_type import DataType

__all__ = ["OBJECTS", "TREES", "Choosy"]


OBJECTS = frozenset({DataType.OBJECT})
TREES = frozenset({DataType.LIST, DataType.STRUCT, DataType.MAP})


@runtime_checkable
class Choosy(Protocol):
    """A sink that can't write fields of some types."""

    refuses: ClassVar[frozenset[DataType]]
