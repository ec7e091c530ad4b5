"""The hash ring: balanced, minimal moves, ranges that cover all hashes (J12, J16)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayelastic.plan.hash_ring import PARTITIONS, HashRing, key_ranges, partition_of, range_of

counts = st.integers(1, PARTITIONS)


@given(counts)
def test_every_replica_has_its_share(replicas: int) -> None:
    loads = HashRing.of(replicas).loads()
    assert len(loads) == replicas
    assert max(loads) - min(loads) <= 1


@given(counts, counts)
def test_resizing_moves_no_more_than_it_must(few: int, many: int) -> None:
    """Whoever is there before and after keeps as much as a balanced ring leaves it; between others nothing moves."""
    few, many = sorted((few, many))
    small, large = HashRing.of(few), HashRing.of(many)
    moves = small.moves(large)
    small_share, larger = divmod(PARTITIONS, many)
    kept = few * small_share + min(few, larger)
    assert len(moves) == PARTITIONS - kept
    assert all(m.source < few <= m.target and small.owners[m.partition] == m.source for m in moves)
    assert {(m.partition, m.target, m.source) for m in moves} == {
        (m.partition, m.source, m.target) for m in large.moves(small)
    }


def test_resizing_to_the_same_number_moves_nothing() -> None:
    assert HashRing.of(7).moves(HashRing.of(7)) == ()


@given(st.sets(st.integers(0, PARTITIONS - 1)))
def test_key_ranges_are_the_hashes_of_the_partitions(moved: set[int]) -> None:
    ranges = list(key_ranges(moved))
    assert sum(high - low + 1 for low, high in ranges) == sum(high - low + 1 for low, high in map(range_of, moved))
    assert all(partition_of(low) in moved and partition_of(high) in moved for low, high in ranges)
    assert all(before[1] + 1 < after[0] for before, after in itertools.pairwise(ranges))


def test_ranges_cover_all_hashes_once() -> None:
    end = -1
    for partition in range(PARTITIONS):
        low, high = range_of(partition)
        assert low == end + 1
        assert partition_of(low) == partition_of(high) == partition
        end = high
    assert end == 2**64 - 1


@given(st.integers(0, 2**64 - 1), counts)
def test_a_key_goes_where_its_partition_is(key_hash: int, replicas: int) -> None:
    partition = partition_of(key_hash)
    low, high = range_of(partition)
    assert low <= key_hash <= high
    ring = HashRing.of(replicas)
    assert ring.owner_of(key_hash) == ring.owners[partition]


@pytest.mark.parametrize("replicas", [0, -1, PARTITIONS + 1])
def test_a_number_of_replicas_that_cant_be(replicas: int) -> None:
    with pytest.raises(ValueError, match=f"{replicas} replicas for 271 partitions"):
        HashRing.of(replicas)
