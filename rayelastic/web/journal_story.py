"""The history of a job from the files that `rel.Elasticity(journal=...)` wrote: the same web UI, without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_parts import Pipeline, RegionPlan
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.plan.settings.threads import ThreadingModel
from rayelastic.runtime.values.adaptation import Adaptation, Setting, read_journal
from rayelastic.runtime.values.region_adaptation import RegionAdaptation, is_region_journal, read_region_journal
from rayelastic.web.events import event_of
from rayelastic.web.frames import COLUMNS, Frame, replica_series
from rayelastic.web.history import History

if TYPE_CHECKING:
    from rayelastic.policy.element.observation import Observation

MODELS = (ThreadingModel.MANUAL, ThreadingModel.DYNAMIC, ThreadingModel.DEDICATED)
AT = {name: number for number, name in enumerate(COLUMNS)}


def story(paths: Sequence[Path]) -> History:
    """Read the journals of one job.

    Args:
        paths: files of its PEs, and that of its regions if there is one.

    Raises:
        ConfigError: one of them is no journal, or of a version that can't be read.
    """
    regions: list[RegionAdaptation] = []
    elements: list[tuple[Setting, tuple[Adaptation, ...]]] = []
    for path in paths:
        if is_region_journal(path):
            regions += read_region_journal(path)
        else:
            elements.append(read_journal(path))
    if not regions and not any(passes for _, passes in elements):
        raise ConfigError(
            f"no adaptation is in {', '.join(map(str, paths))}",
            hint="Pass a file of rel.Elasticity(journal=)",
            code=ErrorCode.NOT_A_JOURNAL,
        )
    name = paths[0].stem
    plan = regions[0].observation.plan if regions else _plan(name, elements)
    history = History(plan)
    history.state = "from a journal"
    passes: list[Adaptation | RegionAdaptation] = [*regions, *(one for _, found in elements for one in found)]
    last: dict[str, Observation] = {}
    for done in sorted(passes, key=lambda one: one.observation.time):
        if isinstance(done, RegionAdaptation):
            history.set_plan(done.in_force, done.observation.time)
        else:
            last[done.pe] = done.observation
            history.add(_frame(done.observation.time, last, history))
        history.add_events([event_of(done)])
    return history


def _plan(name: str, elements: Sequence[tuple[Setting, tuple[Adaptation, ...]]]) -> ExecPlan:
    """Return a plan from the journals: a region for each PE, and the edges that they name."""
    regions: list[RegionPlan] = []
    edges: dict[tuple[str, str], None] = {}
    placed: set[str] = set()
    for number, (setting, passes) in enumerate(elements):
        own = tuple(name for name in setting.upstream if name not in placed)
        placed.update(own)
        pe = passes[0].pe if passes else f"pe{number}"
        if own:
            region = Region(f"r{number}", RegionKind.PIPELINE, own)
            regions.append(RegionPlan(region, (Pipeline(own, (pe,)),)))
        edges |= {(origin, target): None for target, feeding in setting.upstream.items() for origin in feeding}
    known = tuple((a, b) for a, b in edges if a.partition("/")[0] in placed and b.partition("/")[0] in placed)
    return ExecPlan(name, tuple(regions), known)


def _frame(seconds: float, last: dict[str, Observation], history: History) -> Frame:
    table = np.zeros((len(history.places), len(COLUMNS)), dtype=np.float32)
    table[:, AT["watermark"]] = -np.inf  # passes don't have them
    samples = sum(seen.samples for seen in last.values()) or 1
    throughput, queues = 0.0, 0
    for seen in last.values():
        for one in seen.operators:
            row = history.places.get(one.name)
            if row is None:
                continue
            table[row, AT["rate_in"]] += one.rate
            table[row, AT["rate_out"]] += one.rate if one.given is None else one.given
            table[row, AT["cost"]] += one.samples / samples
            table[row, AT["fill"]] = max(table[row, AT["fill"]], one.queue_fill)
            table[row, AT["model"]] = MODELS.index(one.model)
            table[row, AT["hosts"]] += 1
            queues += one.model is ThreadingModel.DYNAMIC
            throughput += 0.0 if one.switchable or not _is_source(one.name, history) else one.rate
    series: dict[str, float | None] = {
        "throughput": throughput,
        "threads": float(sum(seen.thread_count for seen in last.values())),
        "queues": float(queues),
        "cpu": sum(seen.cpus_used for seen in last.values()),
        **replica_series(history.plan),
    }
    pes = tuple(
        {
            "pe": pe,
            "threads": seen.thread_count,
            "stuck": seen.thread_stuck,
            "rss": 0,
            "gil": round(seen.token_wait, 3),
        }
        for pe, seen in last.items()
    )
    return Frame(seconds, table, series, pes)


def _is_source(name: str, history: History) -> bool:
    return all(end.partition("/")[0] != name for _, end in history.plan.edges)
