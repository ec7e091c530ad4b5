"""Which replica has which keys: consistent hashing over a fixed number of partitions (Joker section 3.3; J12, J16).

The 64-bit hash of a key belongs to one of 271 partitions, each a contiguous range of hashes, so that the state of a
partition is exported as one range. Partitions belong to replicas; when their number changes, only as many partitions
move as must for the loads to differ by one at most. Knows no keys and no hash function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

__all__ = ["PARTITIONS", "HashRing", "Move"]

PARTITIONS = 271  # Joker's released source; a prime
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

    >>> two = HashRing.of(1).resized(2)
    >>> two.loads()
    [136, 135]
    >>> len(HashRing.of(1).moves_to(two))
    135
    """

    owners: tuple[int, ...]

    @classmethod
    def of(cls, replicas: int) -> Self:
        """Give each replica a contiguous share of the partitions, equal to one partition.

        Raises:
            ValueError: not between 1 and the number of partitions.
        """
        _check_replicas(replicas)
        return cls(tuple(partition * replicas // PARTITIONS for partition in range(PARTITIONS)))

    @property
    def replicas(self) -> int:
        """The number of replicas."""
        return max(self.owners) + 1

    def resized(self, replicas: int) -> Self:
        """Return the ring for another number of replicas, balanced to one partition, with the fewest moves.

        Raises:
            ValueError: not between 1 and the number of partitions.
        """
        _check_replicas(replicas)
        held: list[list[int]] = [[] for _ in range(max(replicas, self.replicas))]
        for partition, owner in enumerate(self.owners):
            held[owner].append(partition)
        small, larger = divmod(PARTITIONS, replicas)
        # The larger shares go to those that hold most already: whatever is above a share has to move.
        ranked = sorted(range(replicas), key=lambda replica: (-len(held[replica]), replica))
        shares = {replica: small + (place < larger) for place, replica in enumerate(ranked)}
        owners = list(self.owners)
        homeless = [p for replica, mine in enumerate(held) for p in mine[shares.get(replica, 0) :]]
        for replica in range(replicas):
            for _ in range(shares[replica] - len(held[replica])):
                owners[homeless.pop()] = replica
        return type(self)(tuple(owners))

    def moves_to(self, other: HashRing) -> tuple[Move, ...]:
        """List the partitions that belong to another replica in `other`."""
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
        return self.owners[partition_of(key_hash)]


def _check_replicas(replicas: int) -> None:
    if not 1 <= replicas <= PARTITIONS:
        raise ValueError(f"{replicas} replicas for {PARTITIONS} partitions")


def partition_of(key_hash: int) -> int:
    """Return the partition of a 64-bit hash, by multiplication rather than remainder, so that ranges are contiguous.

    >>> partition_of(0), partition_of(2**64 - 1)
    (0, 270)
    """
    return key_hash * PARTITIONS >> 64


def range_of(partition: int) -> tuple[int, int]:
    """Return the first and the last 64-bit hash of a partition, both included, as keyed state is exported.

    >>> range_of(0)[0], range_of(270)[1] == 2**64 - 1
    (0, True)
    """
    return -(-partition * _HASHES // PARTITIONS), -(-(partition + 1) * _HASHES // PARTITIONS) - 1
