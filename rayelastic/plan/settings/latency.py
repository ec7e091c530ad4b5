"""A goal for elasticity in the words of users: how long tuples may be under way."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.errors import ConfigError

SHORTEST = 0.001  # seconds: what a profiler, marks and a plan can be about


@dataclass(frozen=True, slots=True)
class Latency:
    """Set a latency target from source to sink, for which an elastic job adds replicas.

    Markers that sources put into their streams measure it (`OperatorSample.latency_quantile`). If they take longer, the
    job sizes replicas for a lower utilisation than `rel.Elasticity(region_target=)`, step by step. If they take less
    than half of the target for long, it sizes them for a higher one again.

    Args:
        p99: Seconds that 99 of 100 latency markers stay below, 0.001 or more.

    Raises:
        ConfigError: no such time.

    >>> Latency(p99=0.2)
    Latency(p99=0.2)
    >>> Latency(p99=0)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: Latency(p99=0). Give seconds, 0.001 or more [invalid-setting]
    """

    p99: float

    def __post_init__(self) -> None:
        p99: object = self.p99
        if not isinstance(p99, int | float) or isinstance(p99, bool) or not SHORTEST <= p99 < float("inf"):
            raise ConfigError(f"Latency(p99={p99!r})", hint=f"Give seconds, {SHORTEST:g} or more")
