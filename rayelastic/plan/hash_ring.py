"""Which replica has which keys: consistent hashing over a fixed number of partitions (Joker section 3.3; J12, J16).

The 64-bit hash of a key belongs to one of 271 partitions. Each is a contiguous range of hashes, so that the state of a
partition is exported as one range. Partitions belong to replicas. The ring of n + 1 replicas is that of n replicas,
each of which passes some partitions to the new one. So a ring depends on the number of replicas alone. Between any two
numbers of replicas, as few partitions move as keep the numbers of partitions within one of each other. Scaling in
again restores the former ring. Knows no keys and no hash function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rayelastic.errors.invariants import invariant

__all__ = ["MAX_REPLICAS", "PARTITIONS", "HashRing", "Move", "key_ranges", "partition_of", "range_of"]

PARTITIONS = 271  # Joker's released source; a prime
MAX_REPLICAS = 16  # Joker's released source, for 271 partitions
_HASHES = 1 << 64


@dataclass(frozen=True, slots=True)
class Move:
    """A partition that changes its replica."""

    partition: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class HashRing:
    """The replica of each partition, as an immutable value.

    Args:
        owners: replica number of each partition.

    >>> HashRing.of(2).loads()
    [136, 135]
    >>> len(HashRing.moves(HashRing.of(1), HashRing.of(2)))
    135
    """

    owners: tuple[int, ...]

    @staticmethod
    def of(replicas: int, partitions: int = PARTITIONS) -> HashRing:
        """Return the ring of a number of replicas.

        Args:
            replicas: between 1 and the number of partitions.
            partitions: fixed for the life of a job.

        Raises:
            ValueError: a number of replicas that there can't be.
        """
        if not 1 <= replicas <= partitions:
            raise ValueError(f"{replicas} replicas for {partitions} partitions")
        return HashRing(_owners(replicas, partitions))

    def sharing(self, shares: Sequence[int]) -> HashRing:
        """Return the ring in which replicas have other numbers of partitions; those with too many lose their last ones.

        Args:
            shares: partitions of each replica.

        Raises:
            ValueError: they aren't all partitions, or a replica has none.

        >>> HashRing.of(2).sharing((200, 71)).loads()
        [200, 71]
        >>> len(HashRing.moves(HashRing.of(2).sharing((200, 71)), HashRing.of(2).sharing((190, 81))))
        10
        """
        if len(shares) != self.replicas or sum(shares) != len(self.owners) or min(shares) < 1:
            raise ValueError(
                f"shares of {tuple(shares)} for {self.replicas} replicas and {len(self.owners)} partitions"
            )
        owners, over = list(self.owners), [had - has for had, has in zip(self.loads(), shares, strict=True)]
        given = []
        for partition in reversed(range(len(owners))):
            if over[owners[partition]] > 0:
                over[owners[partition]] -= 1
                given.append(partition)
        takers = [replica for replica, wanted in enumerate(over) for _ in range(-wanted)]
        for partition, taker in zip(given, takers, strict=True):
            owners[partition] = taker
        ring = HashRing(tuple(owners))
        invariant(ring.loads() == list(shares), "each replica has its share", shares)
        return ring

    @property
    def replicas(self) -> int:
        """The number of replicas."""
        return max(self.owners) + 1

    def moves(self, other: HashRing) -> tuple[Move, ...]:
        """List the partitions that belong to another replica in `other`, by number."""
        pairs = zip(self.owners, other.owners, strict=True)
        return tuple(Move(p, mine, theirs) for p, (mine, theirs) in enumerate(pairs) if mine != theirs)

    def loads(self) -> list[int]:
        """Count the partitions of each replica."""
        counts = [0] * self.replicas
        for owner in self.owners:
            counts[owner] += 1
        return counts

    def owner_of(self, key_hash: int) -> int:
        """Return the replica of a key by the 64-bit hash of the key."""
        return self.owners[partition_of(key_hash, len(self.owners))]


@lru_cache(maxsize=1024)
def _owners(replicas: int, partitions: int) -> tuple[int, ...]:
    """Grow the ring by one: the new replica takes the smaller share, from those above theirs (capacity +-1, J12).

    Loads never grow with the number of the replica, so the larger shares stay with the lowest numbers.
    """
    if replicas == 1:
        return (0,) * partitions
    for fewer in range(2, replicas):  # fill the cache from below, so that the recursion stays flat
        _owners(fewer, partitions)
    owners = list(_owners(replicas - 1, partitions))
    small, larger = divmod(partitions, replicas)
    above = [-small - (replica < larger) for replica in range(replicas - 1)]
    for owner in owners:
        above[owner] += 1
    for partition, owner in enumerate(owners):
        if above[owner]:
            above[owner] -= 1
            owners[partition] = replicas - 1
    loads = HashRing(tuple(owners)).loads()
    invariant(len(loads) == replicas and max(loads) - min(loads) <= 1, "replicas have equal shares", loads)
    return tuple(owners)


def partition_of(key_hash: int, partitions: int = PARTITIONS) -> int:
    """Return the partition of a 64-bit hash, by multiplication rather than remainder, so that ranges are contiguous.

    >>> partition_of(0), partition_of(2**64 - 1)
    (0, 270)
    """
    return key_hash * partitions >> 64


def range_of(partition: int, partitions: int = PARTITIONS) -> tuple[int, int]:
    """Return the first and the last 64-bit hash of a partition, both included, as keyed state is exported.

    >>> range_of(0)[0], range_of(270)[1] == 2**64 - 1
    (0, True)
    """
    low, high = -(-partition * _HASHES // partitions), -(-(partition + 1) * _HASHES // partitions) - 1
    invariant(partition_of(low, partitions) == partition_of(high, partitions) == partition, "a range is a partition's")
    return low, high


def key_ranges(moved: Iterable[int], partitions: int = PARTITIONS) -> Iterator[tuple[int, int]]:
    """Give the hash ranges of partitions, neighbours joined, in order.

    >>> [(low == range_of(3)[0], high == range_of(4)[1]) for low, high in key_ranges([4, 3])]
    [(True, True)]
    """
    first = last = None
    for partition in sorted(moved):
        if last is not None and first is not None and partition != last + 1:
            yield range_of(first, partitions)[0], range_of(last, partitions)[1]
            first = None
        first = partition if first is None else first
        last = partition
    if first is not None and last is not None:
        yield range_of(first, partitions)[0], range_of(last, partitions)[1]
