"""Where a source was among its files, as snapshots have it."""

from __future__ import annotations

import pytest

from rayelastic.connectors.files.bad_rows import Files


@pytest.mark.parametrize(
    ("saved", "again"),
    [([0, 0], 10), ([1, 4], 6), ([1, 10], 0), ([2, 4], 10), ([-1, 4], 10), ([1, 11], 10), ([1, -1], 10), (None, 10)],
)
def test_a_place_that_cant_be_is_the_beginning(saved: object, again: int) -> None:
    assert Files(2).seek(10, saved) == again
