"""What can be done to a job from the page: each is asked twice, and told in the audit log.

The first question gives a code and says what would happen; only who sends the code back, in time and while the plan is
still the one that was looked at, has it done. So of two viewers who rescale at once the second is refused.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rayelastic.errors import ConfigError
from rayelastic.web.history import History
from rayelastic.web.watched import Watched

__all__ = ["Actions", "Asked", "StaleError"]

PATIENCE = 60.0  # seconds for which a code is good
MOST_ASKED = 100  # codes that are kept


class StaleError(ConfigError):
    """The code is unknown or too old, or the plan has changed since it was given."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Something that somebody has asked for once.

    Args:
        name: 'rescale', 'savepoint', 'drain' or 'cancel'.
        text: what would happen.
        epoch: of the plan that was looked at.
        until: seconds, monotonic, up to which it may be confirmed.
        do: does it; blocks.
    """

    name: str
    text: str
    epoch: int
    until: float
    do: Callable[[], object]


class Actions:
    """The actions on one job.

    Args:
        job: what they are done to.
        history: tells the plan in force.
        clock: seconds, monotonic.
    """

    def __init__(self, job: Watched, history: History, clock: Callable[[], float] = time.monotonic) -> None:
        self._job = job
        self._history = history
        self._clock = clock
        self._asked: dict[str, Asked] = {}

    def ask(self, wanted: Mapping[str, Any]) -> tuple[str, Asked]:
        """Checks what somebody wants, and gives the code that confirms it.

        Args:
            wanted: 'action', and for 'rescale' 'region' and 'replicas', for 'savepoint' 'folder'.

        Raises:
            ConfigError: it can't be done; says why.
        """
        name, job = wanted.get("action"), self._job
        if name == "rescale":
            region, replicas = str(wanted.get("region", "")), wanted.get("replicas")
            if not isinstance(replicas, int) or isinstance(replicas, bool):
                raise ConfigError(f"{replicas!r} replicas", way_out="Give a whole number, 1 or more")
            planned = self._history.plan.region(region)
            self._history.plan.with_replicas(region, replicas)  # refuses what can't be
            text = f"Give region {region} of job {job.name} {replicas} replicas, instead of {planned.replicas}"
            asked = self._made("rescale", text, lambda: job.rescale(region, replicas))
        elif name == "savepoint":
            folder = wanted.get("folder")
            if not isinstance(folder, str) or not folder.strip():
                raise ConfigError("no folder for the savepoint", way_out="Give a new folder, such as /tmp/words-1")
            text = f"Stop job {job.name} and save its state in {folder}"
            asked = self._made("savepoint", text, lambda: job.stop(folder))
        elif name == "drain":
            text = f"Stop the sources of job {job.name}; what they sent arrives"
            asked = self._made("drain", text, lambda: job.cancel(drain=True))
        elif name == "cancel":
            text = f"End job {job.name} at once; what is on its way is lost"
            asked = self._made("cancel", text, lambda: job.cancel(drain=False))
        else:
            raise ConfigError(f"no action {name!r}", way_out="Choose rescale, savepoint, drain or cancel")
        code = secrets.token_urlsafe(12)
        self._asked[code] = asked
        while len(self._asked) > MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        return code, asked

    def confirm(self, code: object) -> Asked:
        """Gives what the code was given for, once.

        Raises:
            StaleError: it is unknown, too old, or the plan has changed meanwhile.
        """
        asked = self._asked.pop(code, None) if isinstance(code, str) else None
        if asked is None or self._clock() > asked.until:
            raise StaleError("nobody has asked for this, or too long ago", way_out="Ask again")
        if asked.epoch != self._history.plan.epoch:
            raise StaleError("the plan has changed since you looked at it", way_out="Look at it, and ask again")
        return asked

    def _made(self, name: str, text: str, do: Callable[[], object]) -> Asked:
        return Asked(name, text, self._history.plan.epoch, self._clock() + PATIENCE, do)
