"""A clock for functions that take theirs as an argument."""

from __future__ import annotations


class FakeClock:
    """Seconds that pass only by its methods.

    Args:
        now: where it starts, in seconds.

    >>> clock = FakeClock()
    >>> clock.advance(2.5)
    >>> clock.sleep(1)
    >>> clock(), clock.nanoseconds()
    (3.5, 3500000000)
    """

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def __call__(self) -> float:
        """Return the seconds, as time.monotonic() does."""
        return self._now

    def nanoseconds(self) -> int:
        """Return the same in nanoseconds, as time.monotonic_ns() does."""
        return round(self._now * 1e9)

    def advance(self, seconds: float) -> None:
        """Let time pass by `seconds`.

        Raises:
            ValueError: `seconds` is negative.
        """
        if seconds < 0:
            raise ValueError(f"a clock can't advance by {seconds} s")
        self._now += seconds

    def sleep(self, seconds: float) -> None:
        """Advance by `seconds` at once; a function under test calls it in place of time.sleep."""
        self.advance(seconds)
