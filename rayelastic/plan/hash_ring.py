"""Which replica has which keys: consistent hashing over a fixed number of partitions (Joker section 3.3; J12, J16).

The 64-bit hash of a key belongs to one of 4,096 partitions. Each is a contiguous range of hashes, so that the state of
a partition is exported as one range. Partitions belong to replicas. The ring of n + 1 replicas is that of n replicas,
each of which passes some partitions to the new one. So a ring follows from three numbers or so: replicas, partitions,
shares. Nobody has to send or store who owns which partition. Between any two numbers of replicas, as few partitions
move as keep the numbers of partitions within one of each other. Scaling in again restores the former ring. Knows no
keys and no hash function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rayelastic.errors.invariants import invariant

PARTITIONS = 4096  # of a new job: 200 replicas carry what 195 would, evenly
FORMER_PARTITIONS = 271  # Joker's released source; of plans that don't say how many they have
MAX_REPLICAS = 16  # Joker's released source
_HASHES = 1 << 64

Runs = Sequence[tuple[int, int]]  # of partitions: the first and the last of each run


@dataclass(frozen=True, slots=True)
class HashRing:
    """The replica of each partition, as an immutable value of a few bytes.

    Args:
        replicas: between 1 and the number of partitions.
        partitions: fixed for the life of a job.
        shares: partitions of each replica; empty: as many as every other.

    >>> HashRing.of(3).loads()
    [1366, 1365, 1365]
    >>> [(ends, len(moved)) for ends, moved in HashRing.of(1).moves(HashRing.of(2)).items()]
    [((0, 1), 2048)]
    """

    replicas: int
    partitions: int = PARTITIONS
    shares: tuple[int, ...] = ()

    @staticmethod
    def of(replicas: int, partitions: int = PARTITIONS) -> HashRing:
        """Return the ring of a number of replicas.

        Raises:
            ValueError: a number of replicas that there can't be.
        """
        if not 1 <= replicas <= partitions:
            raise ValueError(f"{replicas} replicas for {partitions} partitions")
        return HashRing(replicas, partitions)

    def sharing(self, shares: Sequence[int]) -> HashRing:
        """Return the ring in which replicas have other numbers of partitions; those with too many lose their last ones.

        Args:
            shares: partitions of each replica.

        Raises:
            ValueError: they aren't all partitions, or a replica has none.

        >>> HashRing.of(2).sharing((3000, 1096)).loads()
        [3000, 1096]
        >>> HashRing.of(2).sharing((3000, 1096)).moves(HashRing.of(2).sharing((2998, 1098)))
        {(0, 1): [1096, 1097]}
        """
        if len(shares) != self.replicas or sum(shares) != self.partitions or min(shares) < 1:
            raise ValueError(f"shares of {tuple(shares)} for {self.replicas} replicas and {self.partitions} partitions")
        even = replace(self, shares=())
        return even if list(shares) == even.loads() else replace(self, shares=tuple(shares))

    @property
    def owners(self) -> tuple[int, ...]:
        """The replica of each partition."""
        return _owners(self.replicas, self.partitions, self.shares)

    def moves(self, other: HashRing) -> dict[tuple[int, int], list[int]]:
        """Return {(replica, its replica in `other`): the partitions that change from one to the other, ascending}."""
        found: dict[tuple[int, int], list[int]] = {}
        for partition, ends in enumerate(zip(self.owners, other.owners, strict=True)):
            if ends[0] != ends[1]:
                found.setdefault(ends, []).append(partition)
        return found

    def loads(self) -> list[int]:
        """Count the partitions of each replica."""
        small, larger = divmod(self.partitions, self.replicas)
        return list(self.shares) or [small + (replica < larger) for replica in range(self.replicas)]

    def owner_of(self, key_hash: int) -> int:
        """Return the replica of a key by the 64-bit hash of the key."""
        return self.owners[partition_of(key_hash, self.partitions)]


@lru_cache(maxsize=128)
def _owners(replicas: int, partitions: int, shares: tuple[int, ...]) -> tuple[int, ...]:
    held = _even(replicas, partitions)
    if shares:
        over = [max(0, len(mine) - share) for mine, share in zip(held, shares, strict=True)]
        pairs = zip(held, over, strict=True)
        given = sorted((p for mine, much in pairs for p in mine[len(mine) - much :]), reverse=True)
        for number, share in enumerate(shares):
            if over[number]:
                del held[number][share:]
            elif (lacks := share - len(held[number])) > 0:
                held[number] += given[:lacks]
                del given[:lacks]
    owners = [-1] * partitions
    for replica, mine in enumerate(held):
        for partition in mine:
            owners[partition] = replica
    ring = HashRing(replicas, partitions, shares)
    invariant([len(mine) for mine in held] == ring.loads() and min(owners) == 0, "each replica has its share", shares)
    return tuple(owners)


def _even(replicas: int, partitions: int) -> list[list[int]]:
    """Return the partitions of each replica, ascending, as many of each as of every other.

    The ring grows by one: the new replica takes the smaller share, the first ones of those above theirs (capacity +-1,
    J12). Loads never grow with the number of the replica, so the larger shares stay with the lowest numbers.
    """
    held = [list(range(partitions))]
    for number in range(2, replicas + 1):
        small, larger = divmod(partitions, number)
        taken: list[int] = []
        for replica, mine in enumerate(held):
            above = len(mine) - small - (replica < larger)
            taken += mine[:above]
            del mine[:above]
        held.append(sorted(taken))
    return held


def partition_of(key_hash: int, partitions: int = PARTITIONS) -> int:
    """Return the partition of a 64-bit hash, by multiplication rather than remainder, so that ranges are contiguous.

    >>> partition_of(0), partition_of(2**64 - 1)
    (0, 4095)
    """
    return key_hash * partitions >> 64


def range_of(partition: int, partitions: int = PARTITIONS) -> tuple[int, int]:
    """Return the first and the last 64-bit hash of a partition, both included, as keyed state is exported.

    >>> range_of(0)[0], range_of(4095)[1] == 2**64 - 1
    (0, True)
    """
    low, high = -(-partition * _HASHES // partitions), -(-(partition + 1) * _HASHES // partitions) - 1
    invariant(partition_of(low, partitions) == partition_of(high, partitions) == partition, "a range is a partition's")
    return low, high


def key_ranges(moved: Iterable[int], partitions: int) -> Iterator[tuple[int, int]]:
    """Give the hash ranges of partitions, neighbours joined, in order.

    >>> [(low == range_of(3)[0], high == range_of(4)[1]) for low, high in key_ranges([4, 3], PARTITIONS)]
    [(True, True)]
    """
    for first, last in runs_of(moved):
        yield range_of(first, partitions)[0], range_of(last, partitions)[1]


def runs_of(partitions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Give partitions as runs, (first, last), in order: what is sent of them.

    >>> list(runs_of([4, 3, 9]))
    [(3, 4), (9, 9)]
    """
    numbers = sorted(partitions)
    ends = [at for at in range(1, len(numbers)) if numbers[at] != numbers[at - 1] + 1]
    for first, end in zip([0, *ends], [*ends, len(numbers)], strict=True):
        if first < end:
            yield numbers[first], numbers[end - 1]


def partitions_in(runs: Runs) -> list[int]:
    """Return the partitions of runs.

    >>> partitions_in([(3, 4), (9, 9)])
    [3, 4, 9]
    """
    return [partition for first, last in runs for partition in range(first, last + 1)]
