"""What the worker processes of a cluster print, as this process shows it: on standard error, which results never share.

Operators' prints appear as they are. Events of jobs go to the logger `rayelastic.events`, as those of a job in this
process do; a warning is also shown as a sentence. Lines of Ray's own daemons go to the logger of this module.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from rayelastic.runtime.watch.event_log import LOGGER

_log = logging.getLogger(__name__)
_events = logging.getLogger(LOGGER)

HEAD = '{"time": '  # how a line of an event begins
RAYLET = "raylet"  # Ray's daemon of a node; a loss that it reports is one that the job reports by the element's name


def lines_shown(lines: Iterable[str], pid: object) -> Iterator[str]:
    """Yield what a person should see of the lines of a process; log the rest.

    Args:
        lines: as Ray collected them.
        pid: of the process, or the name of one of Ray's own.

    >>> list(lines_shown(["printed", '{"time": "12:00", "level": "info", "event": "job starts", "job": "w"}'], 7))
    ['printed']
    >>> list(lines_shown(['{"time": "12:00", "level": "warning", "event": "lost", "job": "w", "pe": "pe0"}'], 7))
    ["warning: job 'w': lost, pe pe0"]
    >>> list(lines_shown(["A worker died or was killed"], "raylet"))
    []
    """
    for line in lines:
        if pid == RAYLET:
            _log.info("raylet: %s", line)
        elif (event := _event(line)) is None:
            yield line
        else:
            level = logging.getLevelNamesMapping().get(str(event.pop("level")).upper(), logging.INFO)
            _events.log(level, line)
            if level >= logging.WARNING:
                yield _sentence(logging.getLevelName(level).lower(), event)


def _event(line: str) -> dict[str, Any] | None:
    if not line.startswith(HEAD):
        return None
    try:
        event = json.loads(line)
    except ValueError:  # an operator printed it
        return None
    return event if isinstance(event, dict) and {"level", "event", "job"} <= set(event) else None


def _sentence(level: str, event: dict[str, Any]) -> str:
    rest = {name: value for name, value in event.items() if name not in ("time", "event", "job")}
    values = "".join(f", {name} {value}" for name, value in rest.items() if value not in (None, ""))
    return f"{level}: job {event['job']!r}: {event['event']}{values}"
