"""A key is called hot if it has more of the tuples than even keys would have in as small a sample."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from rayelastic.runtime.values.hot_key import HotKey

SKEW = 0.5  # of a replica's even share: what a key must have to be the reason for an uneven replica
SEEDS = range(200)


def counted(keys: list[int]) -> HotKey:
    key, most = Counter(keys).most_common(1)[0]
    return HotKey(str(key), most / len(keys), len(keys))


@pytest.mark.parametrize("looks", [16, 64, 500])
@pytest.mark.parametrize("replicas", [2, 4])
@pytest.mark.parametrize("keys", [32, 997])
def test_even_keys_are_never_hot(keys: int, replicas: int, looks: int) -> None:
    """Nor in bursts, in which each key comes once before the first comes again."""
    for seed in SEEDS:
        dice = random.Random(seed)
        drawn = counted([dice.randrange(keys) for _ in range(looks)])
        burst = counted([number % keys for number in range(looks)])
        assert max(drawn.sure_share, burst.sure_share) < SKEW / replicas, (seed, drawn)


@pytest.mark.parametrize("share", [0.4, 0.6, 0.9])
@pytest.mark.parametrize("replicas", [2, 4, 8])
def test_a_key_with_much_of_the_tuples_is_hot(share: float, replicas: int) -> None:
    for seed in SEEDS:
        dice = random.Random(seed)
        drawn = counted([-1 if dice.random() < share else dice.randrange(997) for _ in range(500)])
        assert drawn.sure_share > SKEW / replicas, (seed, drawn)


def test_a_share_of_nothing_is_not_sure() -> None:
    assert HotKey("", 0.0, 0).sure_share == 0.0
