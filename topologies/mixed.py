"""Mixed benchmark: a source deals tuples out to pipelines, one sink takes them (Middleware'19 Fig. 8(c); PLDI'17 5.2).

rayelastic run rayelastic.topologies.mixed --paths 10 --operators 100

All operators cost the same, or the costs are skewed.
"""

from __future__ import annotations

import rayelastic as rel
from rayelastic.topologies import shapes
from rayelastic.topologies.multiplications import costs_of, declare, report

__all__ = ["build", "report"]


def build(
    paths: int = 10,
    operators: int = 50,
    flops: int = 100,
    skewed: bool = False,
    payload: int = 128,
    tuples: int = 1_000_000,
) -> rel.Topology:
    """Declare the topology.

    Args:
        paths: pipelines side by side.
        operators: of each.
        flops: multiplications of each for a tuple.
        skewed: instead: 10 % of 10,000, 30 % of 100, 60 % of 1, at random.
        payload: bytes of a tuple besides its number.
        tuples: that the source makes.
    """
    costs = costs_of(paths * operators, flops, skewed)
    return declare("mixed", shapes.mixed(paths, operators), costs, tuples, payload)
