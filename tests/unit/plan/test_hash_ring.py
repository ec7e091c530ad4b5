"""The hash ring: balanced, minimal moves, ranges that cover all hashes (J12, J16)."""

from __future__ import annotations

import hashlib
import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayelastic.plan.hash_ring import (
    FORMER_PARTITIONS,
    PARTITIONS,
    HashRing,
    key_ranges,
    partition_of,
    partitions_in,
    range_of,
    runs_of,
)

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
    assert sum(map(len, moves.values())) == PARTITIONS - kept
    for (source, target), partitions in moves.items():
        assert source < few <= target
        assert {small.owners[partition] for partition in partitions} == {source}
    assert {ends[::-1]: partitions for ends, partitions in moves.items()} == large.moves(small)


def test_resizing_to_the_same_number_moves_nothing() -> None:
    assert HashRing.of(7).moves(HashRing.of(7)) == {}


@given(st.sets(st.integers(0, PARTITIONS - 1)))
def test_key_ranges_are_the_hashes_of_the_partitions(moved: set[int]) -> None:
    ranges = list(key_ranges(moved, PARTITIONS))
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
    with pytest.raises(ValueError, match=f"{replicas} replicas for 4096 partitions"):
        HashRing.of(replicas)


def test_rings_of_former_jobs_stay_as_they_were() -> None:
    """Their checkpoints name no owners: another ring would look for keys where they aren't."""
    assert FORMER_PARTITIONS == 271
    rings = [HashRing.of(replicas, FORMER_PARTITIONS) for replicas in range(1, FORMER_PARTITIONS + 1)]
    assert hashlib.sha256("".join(repr(ring.owners) for ring in rings).encode()).hexdigest()[:16] == "9958991263e5dfcd"
    shared = rings[2].sharing((200, 51, 20))
    assert hashlib.sha256(repr(shared.owners).encode()).hexdigest()[:16] == "9d6b74c1f924bddf"


@given(st.sets(st.integers(0, PARTITIONS - 1)))
def test_partitions_are_sent_as_runs(moved: set[int]) -> None:
    assert partitions_in(list(runs_of(moved))) == sorted(moved)


def test_what_is_sent_of_a_ring_and_of_its_moves_is_small() -> None:
    assert len(pickle.dumps(HashRing.of(200))) < 200
    for few, many in ((8, 16), (100, 101), (199, 200)):
        moves = HashRing.of(few).moves(HashRing.of(many))
        assert sum(len(list(runs_of(moved))) for moved in moves.values()) <= 2 * len(moves)


@pytest.mark.parametrize(("replicas", "evenness"), [(16, 1.0), (64, 1.0), (200, 0.975)])
def test_many_replicas_carry_nearly_as_many_times_as_much(replicas: int, evenness: float) -> None:
    assert PARTITIONS / max(HashRing.of(replicas).loads()) / replicas >= evenness
