"""Bounds of replicas that depend on the time of day: what users know of their load before it comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, tzinfo
from zoneinfo import ZoneInfo

from rayelastic.errors import ConfigError
from rayelastic.plan.settings.bounds import Bounds, checked_pair


@dataclass(frozen=True, slots=True)
class Schedule:
    """Bounds of the replicas of a region that change at times of the day, every day.

    `JobConfig(replicas={"ask": rel.Schedule({"08:00": (4, 16), "20:00": (1, 4)})})` has four replicas ready
    when the load comes at eight, and scales in at eight in the evening.

    Args:
        bounds: {time of day, as HH:MM: (fewest, most) replicas from then on, or one number for both}.
        zone: Time zone of these times, such as 'Europe/Berlin'.

    Raises:
        ConfigError: no time of day, no such zone, or nothing that there can be.

    >>> day = Schedule({"20:00": 1, "08:00": (4, 16)})
    >>> [day.at(datetime.fromisoformat(f"2026-11-24T{clock}+00:00")) for clock in ("07:59", "08:00", "20:01")]
    [(1, 1), (4, 16), (1, 1)]
    >>> day.span
    (1, 16)
    >>> Schedule({"8 am": 4})
    Traceback (most recent call last):
    rayelastic.errors.ConfigError: Schedule(...): '8 am' is no time of day. ... [invalid-setting]
    """

    bounds: Mapping[str, int | tuple[int, int]]
    zone: str = "UTC"

    def __post_init__(self) -> None:
        given: object = self.bounds
        if not isinstance(given, Mapping) or not given:
            raise ConfigError(f"Schedule({given!r})", hint="Give {time of day: (fewest, most)}")
        for at, value in given.items():
            _time_of(at)
            checked_pair(value, f"Schedule({{{at!r}: {value!r}}})", None)
        _zone_of(self.zone)

    @property
    def span(self) -> Bounds:
        """The fewest and the most replicas of the whole day."""
        pairs = [pair for _, pair in self._by_time()]
        return min(fewest for fewest, _ in pairs), max(most for _, most in pairs)

    def at(self, now: datetime) -> Bounds:
        """Return the bounds at a time.

        Args:
            now: with its zone.
        """
        day, clock = self._by_time(), now.astimezone(_zone_of(self.zone)).time()
        passed = [pair for begins, pair in day if begins <= clock]
        return passed[-1] if passed else day[-1][1]

    def _by_time(self) -> list[tuple[time, Bounds]]:
        pairs = ((_time_of(at), checked_pair(value, "Schedule", None)) for at, value in self.bounds.items())
        return sorted(pairs, key=lambda one: one[0])


def _time_of(text: object) -> time:
    try:
        return datetime.strptime(str(text), "%H:%M").time()  # noqa: DTZ007  (a time of day has none)
    except ValueError:
        raise ConfigError(
            f"Schedule(...): {text!r} is no time of day", hint="Give hours and minutes, such as '08:00'"
        ) from None


def _zone_of(name: object) -> tzinfo:
    if name == "UTC":  # wherever the machine has no names of zones
        return UTC
    try:
        return ZoneInfo(str(name))
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise ConfigError(
            f"Schedule(zone={name!r}): no such zone on this machine",
            hint="Give one such as 'UTC' or 'Europe/Berlin'; pip install tzdata brings them to a machine without",
        ) from None
