"""Data-parallel benchmark: tuples are dealt out to workers, one sink takes them (Middleware'19 Fig. 8(b), PLDI'17 5.2).

rayelastic run rayelastic.topologies.data_parallel --width 100 --flops 10000

All workers cost the same, or the costs are skewed.
"""

from __future__ import annotations

import rayelastic as rel
from rayelastic.topologies import shapes
from rayelastic.topologies.multiplications import costs_of, declare, report

__all__ = ["build", "report"]


def build(
    width: int = 50, flops: int = 100, skewed: bool = False, payload: int = 128, tuples: int = 1_000_000
) -> rel.Topology:
    """Declare the topology.

    Args:
        width: workers.
        flops: multiplications of each for a tuple.
        skewed: instead: 10 % of 10,000, 30 % of 100, 60 % of 1, at random.
        payload: bytes of a tuple besides its number.
        tuples: that the source makes.
    """
    return declare("data_parallel", shapes.data_parallel(width), costs_of(width, flops, skewed), tuples, payload)
