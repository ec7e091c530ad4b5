"""What the elasticity of the papers is run with: what rel.Elasticity(paper=...) says, checked."""

from __future__ import annotations

from dataclasses import dataclass

from rayelastic.errors import ConfigError


def is_number(value: object) -> bool:
    """Whether this is an int or a float, and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class PaperElasticity:
    """Set the parameters of elasticity='paper': of Middleware'19, and of PLDI'17 for its threads.

    Args:
        satisfaction_factor: Sf, 0 to 1 (Middleware'19 section 3.3). Throughput has to grow by this share of the growth
            of threads for queues to stay as they are. 0: they always stay.
        history: Remember the thread counts for which a placement of queues held (Fig. 6(b)).
        sensitivity: SENS, above 0 and below 1: the relative difference of throughput that makes a trend.
        host_cpu: Share of the host's CPUs, above 0 and at most 1, above which no thread is added (PLDI'17 4.2.3).

    Raises:
        ConfigError: a value is out of range.

    >>> PaperElasticity(satisfaction_factor=0.2).history
    True
    >>> PaperElasticity(sensitivity=0)
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: PaperElasticity(sensitivity=0). ... [invalid-setting]
    """

    satisfaction_factor: float = 0.6
    history: bool = True
    sensitivity: float = 0.05
    host_cpu: float = 0.8

    def __post_init__(self) -> None:
        def refuse(name: str, hint: str) -> ConfigError:
            return ConfigError(f"PaperElasticity({name}={getattr(self, name)!r})", hint=hint)

        if not (is_number(self.satisfaction_factor) and 0 <= self.satisfaction_factor <= 1):
            raise refuse("satisfaction_factor", "Give a share from 0 to 1; the paper's is 0.6")
        if not isinstance(self.history, bool):
            raise refuse("history", "Give True or False")
        if not (is_number(self.sensitivity) and 0 < self.sensitivity < 1):
            raise refuse("sensitivity", "Give a share above 0 and below 1, such as 0.05")
        if not (is_number(self.host_cpu) and 0 < self.host_cpu <= 1):
            raise refuse("host_cpu", "Give a share above 0 and at most 1, such as 0.8")
