"""A goal for elasticity in the words of users: how long tuples may be under way."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.errors import ConfigError

__all__ = ["SHORTEST", "Latency"]

SHORTEST = 0.001  # seconds: what a profiler, marks and a plan can be about


@dataclass(frozen=True, slots=True)
class Latency:
    """How long tuples may be under way from a source to a sink, which an elastic job gets more replicas for.

    Marks that sources put into their streams tell it (`OperatorSample.latency_quantile`). Where they take longer,
    replicas are made for a lower utilisation than `JobConfig(region_target=)`, step by step, and for a higher one again
    once they take less than half of it for long.

    Args:
        p99: seconds that 99 of 100 marks stay below, 0.001 or more.

    Raises:
        ConfigError: no such time.

    >>> Latency(p99=0.2)
    Latency(p99=0.2)
    >>> Latency(p99=0)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: Latency(p99=0). Give seconds, 0.001 or more
    """

    p99: float

    def __post_init__(self) -> None:
        p99: object = self.p99
        if not isinstance(p99, int | float) or isinstance(p99, bool) or not SHORTEST <= p99 < float("inf"):
            raise ConfigError(f"Latency(p99={p99!r})", way_out=f"Give seconds, {SHORTEST:g} or more")
