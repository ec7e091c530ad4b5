"""Actions on a job in the web UI: each is confirmed, and logged in the audit log.

The first request returns a code and what would happen. The action happens when the code comes back in time, and only
if the plan is still the same. So if two viewers rescale at once, the second is rejected.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.plan.plan_text import counted
from rayelastic.web.history import History
from rayelastic.web.watched import Watched

PATIENCE = 60.0  # seconds for which a code is good
MOST_ASKED = 100  # codes that are kept


class StaleError(ConfigError):
    """The code is unknown or too old, or the plan has changed since then."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An action that waits for its confirmation.

    Args:
        name: 'rescale', 'snapshot', 'savepoint', 'leave', 'drain', 'cancel', 'pause' or 'resume'.
        text: what would happen.
        epoch: of the plan in force at the request.
        until: the last moment to confirm it, in seconds, monotonic.
        do: carries it out; blocks.
    """

    name: str
    text: str
    epoch: int
    until: float
    do: Callable[[], object]


class Actions:
    """The actions on one job.

    Args:
        job: the job.
        history: has the plan in force.
        clock: seconds, monotonic.
    """

    def __init__(self, job: Watched, history: History, clock: Callable[[], float] = time.monotonic) -> None:
        self._job = job
        self._history = history
        self._clock = clock
        self._asked: dict[str, Asked] = {}

    def ask(self, wanted: Mapping[str, Any]) -> tuple[str, Asked]:
        """Check a request, and return the code that confirms it.

        Args:
            wanted: 'action' and its arguments: 'region' and 'replicas', 'folder', or 'node'.

        Raises:
            ConfigError: it is impossible; the message says why.
        """
        name, job = str(wanted.get("action")), self._job
        simple = {
            "drain": (f"Stop the sources of job {job.name}; tuples in flight arrive", lambda: job.cancel(drain=True)),
            "cancel": (f"End job {job.name} at once; tuples in flight are lost", lambda: job.cancel(drain=False)),
            "pause": (f"Pause elasticity of job {job.name}", job.pause_elasticity),
            "resume": (f"Resume elasticity of job {job.name}", job.resume_elasticity),
        }
        if name == "rescale":
            asked = self._rescale(str(wanted.get("region", "")), wanted.get("replicas"))
        elif name in ("snapshot", "savepoint"):
            asked = self._save(wanted.get("folder"), stops=name == "savepoint")
        elif name == "leave":
            asked = self._leave(str(wanted.get("node", "")))
        elif name in simple:
            asked = self._made(name, *simple[name])
        else:
            names = ", ".join(["rescale", "snapshot", "savepoint", "leave", *simple])
            raise ConfigError(f"no action {name!r}", hint=f"Choose one of {names}", code=ErrorCode.UNKNOWN_CHOICE)
        code = secrets.token_urlsafe(12)
        self._asked[code] = asked
        while len(self._asked) > MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        return code, asked

    def confirm(self, code: object) -> Asked:
        """Return what a code confirms, once.

        Raises:
            StaleError: the code is unknown or too old, or the plan has changed.
        """
        asked = self._asked.pop(code, None) if isinstance(code, str) else None
        if asked is None or self._clock() > asked.until:
            raise StaleError("this confirmation is unknown, or too old", hint="Ask again")
        if asked.epoch != self._history.plan.epoch:
            raise StaleError("the plan has changed since you asked", hint="Look at the new plan, and ask again")
        return asked

    def _rescale(self, region: str, replicas: object) -> Asked:
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise ConfigError(
                f"{replicas!r} replicas", hint="Pass a whole number, 1 or more", code=ErrorCode.OUT_OF_RANGE
            )
        planned = self._history.plan.region(region)
        self._history.plan.with_replicas(region, replicas)  # raises if that is impossible
        wanted = counted(replicas, "replica")
        text = f"Rescale region {region} of job {self._job.name} to {wanted}, instead of {planned.replicas}"
        return self._made("rescale", text, lambda: self._job.rescale(region, replicas))

    def _save(self, folder: object, *, stops: bool) -> Asked:
        if not isinstance(folder, str) or not folder.strip():
            raise ConfigError(
                "no folder for the savepoint",
                hint="Pass a new folder, such as /tmp/words-1",
                code=ErrorCode.MISSING_ARGUMENT,
            )
        job = self._job
        if stops:
            return self._made(
                "savepoint", f"Stop job {job.name} and save its state in {folder}", lambda: job.stop(folder)
            )
        text = f"Save the state of job {job.name} in {folder}; the job continues"
        return self._made("snapshot", text, lambda: job.snapshot(folder))

    def _leave(self, node: str) -> Asked:
        if not node:
            raise ConfigError(
                "no node to leave",
                hint="Pass its name from the table of PEs",
                code=ErrorCode.MISSING_ARGUMENT,
            )
        text = f"Move job {self._job.name} off node {node} for good: it restores from a checkpoint elsewhere"
        return self._made("leave", text, lambda: self._job.leave(node))

    def _made(self, name: str, text: str, do: Callable[[], object]) -> Asked:
        return Asked(name, text, self._history.plan.epoch, self._clock() + PATIENCE, do)
