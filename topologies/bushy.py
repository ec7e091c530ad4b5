"""Bushy benchmark: a tree that doubles at each level and joins again, 82 operators (Middleware'19 Fig. 8(d), Fig. 12).

rayelastic run rayelastic.topologies.bushy --flops 1 --payload 16384

All operators cost the same, or the costs are skewed.
"""

from __future__ import annotations

import rayelastic as rel
from rayelastic.topologies import shapes
from rayelastic.topologies.multiplications import costs_of, declare, report

__all__ = ["build", "report"]


def build(
    depth: int = shapes.BUSHY_DEPTH,
    flops: int = 100,
    skewed: bool = False,
    payload: int = 128,
    tuples: int = 1_000_000,
) -> rel.Topology:
    """Declare the topology.

    Args:
        depth: levels of the spreading tree.
        flops: multiplications of each operator for a tuple.
        skewed: instead: 10 % of 10,000, 30 % of 100, 60 % of 1, at random.
        payload: bytes of a tuple besides its number.
        tuples: that the source makes.
    """
    shape = shapes.bushy(depth)
    return declare("bushy", shape, costs_of(len(shape) - 1, flops, skewed), tuples, payload)
