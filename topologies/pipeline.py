"""Pipeline benchmark: operators one behind the other (Middleware'19 Fig. 8(a); PLDI'17 5.2).

rayelastic run rayelastic.topologies.pipeline --operators 100 --flops 100 --payload 1024

All operators cost the same, or the costs are skewed.
"""

from __future__ import annotations

import rayelastic as rel
from rayelastic.topologies import shapes
from rayelastic.topologies.multiplications import costs_of, declare, report

__all__ = ["build", "report"]


def build(
    operators: int = 100, flops: int = 100, skewed: bool = False, payload: int = 128, tuples: int = 1_000_000
) -> rel.Topology:
    """Declare the topology.

    Args:
        operators: between source and sink.
        flops: multiplications of each for a tuple.
        skewed: instead: 10 % of 10,000, 30 % of 100, 60 % of 1, at random.
        payload: bytes of a tuple besides its number.
        tuples: that the source makes.
    """
    return declare("pipeline", shapes.pipeline(operators), costs_of(operators, flops, skewed), tuples, payload)
