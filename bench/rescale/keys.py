"""Which keys a change moves: the hash of whole numbers of native_sched/include/rayelastic/record/hash.hpp."""

from __future__ import annotations

from rayelastic.plan.hash_ring import HashRing, partition_of

FIRST, SECOND, THIRD = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB, 0x8EBC6AF09C88C6E3
WORD = (1 << 64) - 1


def hash_of(key: int) -> int:
    """Return the hash of a 64-bit whole number as a key: of its eight bytes."""
    head = 8 | (key & 0xFFFFFFFF) << 32
    state = _mix(head ^ FIRST, (key >> 32) ^ SECOND)
    return _mix(state ^ head, THIRD)


def moved_partitions(before: int, after: int) -> set[int]:
    """Return the partitions that go to another replica between two numbers of replicas."""
    moves = HashRing.of(before).moves(HashRing.of(after))
    return {partition for partitions in moves.values() for partition in partitions}


def partition(key: int) -> int:
    """Return the partition of a key."""
    return partition_of(hash_of(key))


def _mix(a: int, b: int) -> int:
    product = a * b
    return (product ^ product >> 64) & WORD
