"""Tables of exceptions as Python from 3.12 on has them, whatever Python this is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple

import pytest

from rayelastic.compile.lowering.passes.try_blocks import _joined


class Entry(NamedTuple):
    start: int
    end: int
    target: int
    depth: int


def code_of(*names: str) -> SimpleNamespace:
    """Byte code of two bytes an instruction."""
    table = {2 * at: SimpleNamespace(opname=name) for at, name in enumerate(names)}
    return SimpleNamespace(table=table, ordered_offsets=list(table))


@pytest.mark.parametrize("begin", ["BUILD_LIST", "BUILD_MAP", "BUILD_SET"])
def test_a_comprehension_in_two_pieces_becomes_one(begin: str) -> None:
    code = code_of(begin, "STORE_FAST", "NOP", "JUMP_BACKWARD", "LOAD_FAST", "RETURN_VALUE", "RERAISE")
    first, second = Entry(0, 4, 12, 1), Entry(8, 10, 12, 1)
    assert _joined(code, [first, second]) == [Entry(0, 10, 12, 1)]


@pytest.mark.parametrize(
    ("names", "second"),
    [
        (("LOAD_FAST", "STORE_FAST", "NOP", "JUMP_BACKWARD", "LOAD_FAST"), Entry(8, 10, 12, 1)),  # no comprehension
        (
            ("BUILD_LIST", "STORE_FAST", "NOP", "LOAD_FAST", "LOAD_FAST"),
            Entry(8, 10, 12, 1),
        ),  # more than a jump between
        (("BUILD_LIST", "STORE_FAST", "NOP", "JUMP_BACKWARD", "LOAD_FAST"), Entry(8, 10, 14, 1)),  # goes elsewhere
        (("BUILD_LIST", "STORE_FAST", "NOP", "JUMP_BACKWARD", "LOAD_FAST"), Entry(8, 10, 12, 2)),  # keeps more
    ],
)
def test_others_stay_as_they_are(names: tuple[str, ...], second: Entry) -> None:
    entries = [Entry(0, 4, 12, 1), second]
    assert _joined(code_of(*names), entries) == entries
