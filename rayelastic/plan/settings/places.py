"""Settings that a JobConfig has in one of its objects: an error shows the whole call as it has to be written."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ParamSpec

from rayelastic.errors import ConfigError
from rayelastic.graph.words import CONFIG, missing
from rayelastic.plan.settings.checkpoint import Checkpoint
from rayelastic.plan.settings.elasticity import Elasticity
from rayelastic.plan.settings.network import Network
from rayelastic.plan.settings.threads import Threads

P = ParamSpec("P")
OBJECTS: dict[str, type[Any]] = {
    "threads": Threads,
    "elasticity": Elasticity,
    "network": Network,
    "checkpoint": Checkpoint,
}
SHORT = {"threads": "count", "elasticity": "algorithm"}  # the field that JobConfig(setting=value) without an object is
PLACES: dict[str, tuple[str, str]] = {  # {name: (setting of JobConfig, field of its object)}
    **{field.name: (setting, field.name) for setting, kind in OBJECTS.items() for field in fields(kind)},
    "threading": ("threads", "model"),
    "max_threads": ("threads", "max"),
    "pin_threads": ("threads", "pin"),
    "cpus_per_pe": ("threads", "ray_cpus"),
    "adaptation_period": ("elasticity", "thread_period"),
    "pins": ("pes", ""),
}


def with_places(init: Callable[P, None]) -> Callable[P, None]:
    """Return an `__init__` that names the place of settings it doesn't have.

    Args:
        init: `JobConfig.__init__`, whose parameters are keywords.

    Raises:
        ConfigError: from what it returns: a setting stands in an object, or there is none of this name.
    """
    known = [name for name in init.__annotations__ if name != "return"]

    @functools.wraps(init)
    def checked(*args: P.args, **settings: P.kwargs) -> None:
        if unknown := [name for name in settings if name not in known]:
            raise _misplaced(unknown, settings, known)
        init(*args, **settings)

    return checked


def _misplaced(unknown: list[str], settings: Mapping[str, Any], known: list[str]) -> ConfigError:
    for name in unknown:
        if name not in PLACES:
            problem, _, hint = missing("JobConfig", name, known, CONFIG).partition(". ")
            return ConfigError(problem, hint=hint)
    parts: dict[str, str] = {}
    for name in unknown:
        setting, field = PLACES[name]
        given = {SHORT[setting]: settings[setting]} if setting in SHORT and setting in settings else {}
        if field:
            same = {PLACES[one][1]: settings[one] for one in unknown if PLACES[one][0] == setting}
            shown = ", ".join(f"{one}={value!r}" for one, value in (given | same).items())
            parts[setting] = f"{setting}=rel.{OBJECTS[setting].__name__}({shown})"
        else:
            parts[setting] = f"{setting}={settings[name]!r}"
    shown = ", ".join(f"{name}={settings[name]!r}" for name in unknown)
    return ConfigError(
        f"JobConfig({shown}): no setting of this name", hint=f"Write JobConfig({', '.join(parts.values())})"
    )
