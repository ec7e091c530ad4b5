"""The hash ring: balanced, minimal moves, ranges that cover all hashes (J12, J16)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayelastic.plan.hash_ring import PARTITIONS, HashRing, partition_of, range_of

counts = st.integers(1, PARTITIONS)


@given(counts)
def test_every_replica_has_its_share(replicas: int) -> None:
    loads = HashRing.of(replicas).loads()
    assert len(loads) == replicas
    assert max(loads) - min(loads) <= 1


@given(st.lists(st.integers(1, 40), min_size=2, max_size=8))
def test_resizing_moves_no_more_than_it_must(sizes: list[int]) -> None:
    ring = HashRing.of(sizes[0])
    for size in sizes[1:]:
        before, after = ring.loads(), ring.resized(size)
        loads = after.loads()
        assert len(loads) == size
        assert max(loads) - min(loads) <= 1
        moves = ring.moves_to(after)
        # A balanced ring gives `larger` replicas one partition more: those that hold most already, to move the least.
        small, larger = divmod(PARTITIONS, size)
        held = sorted((before[r] if r < len(before) else 0 for r in range(size)), reverse=True)
        kept = sum(min(h, small + (i < larger)) for i, h in enumerate(held))
        assert len(moves) == PARTITIONS - kept
        assert all(ring.owners[m.partition] == m.source != m.target == after.owners[m.partition] for m in moves)
        ring = after


@pytest.mark.parametrize("replicas", range(1, 16))
def test_growing_by_one_only_gives_to_the_new_one(replicas: int) -> None:
    ring = HashRing.of(replicas)
    assert {m.target for m in ring.moves_to(ring.resized(replicas + 1))} == {replicas}
    assert {m.source for m in ring.resized(replicas + 1).moves_to(ring.resized(replicas + 1).resized(replicas))} == {
        replicas
    }


def test_resizing_to_the_same_number_moves_nothing() -> None:
    ring = HashRing.of(7)
    assert ring.resized(7) == ring


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
