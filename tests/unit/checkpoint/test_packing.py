"""Files of state are packed where that pays, and unpacked to what they were; nothing else comes out of damaged ones."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayelastic.errors import DamagedError
from rayelastic.runtime.checkpoint.packing import MAGIC, MOST_RATIO, packed, unpacked
from tests.raising import raises

EXPORT = b"RELKEYS1" + bytes(5000) + b"a text that comes again" * 100


@given(st.binary(max_size=2000), st.integers(1, 50))
def test_what_is_packed_comes_out(part: bytes, times: int) -> None:
    data = b"RELKEYS1" + part * times
    assert unpacked(packed(data)) == data


def test_only_what_becomes_smaller_is_packed() -> None:
    assert packed(EXPORT).startswith(MAGIC)
    assert len(packed(EXPORT)) < len(EXPORT) / 10
    noise = b"RELKEYS1" + random.Random(1).randbytes(5000)
    assert packed(noise) is noise
    assert unpacked(noise) is noise


def test_all_zeros_are_within_the_bound() -> None:
    data = b"RELKEYS1" + bytes(10 << 20)
    assert unpacked(packed(data)) == data


@given(st.data())
def test_a_damaged_file_is_an_error_or_other_bytes_of_the_size_it_says(data: st.DataObject) -> None:
    file = bytearray(packed(EXPORT))
    for _ in range(data.draw(st.integers(1, 4))):
        file[data.draw(st.integers(len(MAGIC), len(file) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        found = unpacked(bytes(file[: data.draw(st.integers(len(MAGIC), len(file)))]))
    except DamagedError:
        return
    assert len(found) == struct.unpack_from("<8xQ", file)[0]


@pytest.mark.parametrize("size", [1 << 62, 1 << 40, 0])
def test_a_file_that_says_another_size_is_refused(size: int) -> None:
    file = packed(EXPORT)
    with raises(DamagedError, "damaged-state"):
        unpacked(MAGIC + struct.pack("<Q", size) + file[16:])


def test_what_says_that_it_is_too_large_isnt_even_tried() -> None:
    file = packed(EXPORT)
    most = MOST_RATIO * len(file)
    assert len(unpacked(MAGIC + struct.pack("<Q", most) + file[16:])) == most
    with raises(DamagedError, "damaged-state", str(most + 1), str(len(file))):
        unpacked(MAGIC + struct.pack("<Q", most + 1) + file[16:])
