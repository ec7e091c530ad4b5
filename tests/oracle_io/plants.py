"""Faults that are planted to see whether the oracle finds them: each was in the readers once, or is of the same kind."""

# ruff: noqa: E501  (tables of values, and times without a zone)

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from unittest import mock

from rayelastic import _native
from rayelastic.connectors.csv import conversion as csv_columns
from rayelastic.connectors.csv import inference as csv_files
from rayelastic.connectors.json import shapes as json_types
from rayelastic.connectors.json import values as json_values


@contextlib.contextmanager
def _json_floats() -> Iterator[None]:
    """JSON as pyarrow reads it: whole numbers beyond 64 bits, or beside fractions, become the nearest float."""

    def add_whole(self: json_types.Shape, value: str, row: int) -> None:
        if len(value) > 4000 or not -(1 << 63) <= int(value) < 1 << 63:
            self.beyond = self.beyond or (value, row)

    with (
        mock.patch.object(json_types.Shape, "_add_whole", add_whole),
        mock.patch.object(_native, "has_long_whole_number", return_value=False),
        mock.patch.object(json_values, "is_inexact", return_value=False),
    ):
        yield


@contextlib.contextmanager
def _csv_floats() -> Iterator[None]:
    """CSV whose columns of whole numbers and fractions are floats, whatever these hold."""
    with (
        mock.patch.object(csv_files, "is_inexact", return_value=False),
        mock.patch.object(csv_columns, "is_inexact", return_value=False),
    ):
        yield


@contextlib.contextmanager
def _padded() -> Iterator[None]:
    """Digits with leading zeros are numbers."""
    with (
        mock.patch.object(csv_files, "is_padded", return_value=False),
        mock.patch.object(csv_columns, "is_padded", return_value=False),
    ):
        yield


PLANTS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "json-floats": _json_floats,
    "csv-floats": _csv_floats,
    "leading-zeros": _padded,
}
