"""What `topology.explain()` prints: the regions and why, and for each operator its execution mode and why."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rayelastic.graph.operators.joins.build_first import Waiting, sources_that_wait
from rayelastic.graph.operators.joins.by_key import RIGHT
from rayelastic.graph.spec.operator_spec import OperatorSpec
from rayelastic.graph.spec.order import Graph, memory_of
from rayelastic.graph.spec.ports import operator_of
from rayelastic.graph.spec.unread import mark_unread
from rayelastic.plan.exec_plan import ExecPlan
from rayelastic.plan.plan_text import WIDTH, counted, kind_text
from rayelastic.plan.regions import Region, RegionKind
from rayelastic.reasons import Code, Reason

_WHY = {
    RegionKind.SOURCE: Code.SOURCE_ALONE,
    RegionKind.DATA_PARALLEL: Code.SPLIT_BY_KEY,
    RegionKind.PIPELINE: Code.SPLIT_ONLY,
    RegionKind.LOOP: Code.LOOP_TOGETHER,
    RegionKind.STAGE: Code.CHANNELS,
}


@dataclass(frozen=True, slots=True)
class OperatorInfo:
    """What the declaration of an operator says about it.

    Args:
        kind: such as 'map' or 'sink'.
        lane: the execution mode. It is a value of Lane.
        reason: of that mode. If its code remembers something, also why it has one replica.
        location: 'file.py:12' of the declaration. It is empty if unknown.
        refusal: the code and values of why it isn't compiled, if that was tried.
    """

    kind: str
    lane: str
    reason: str
    location: str
    refusal: Mapping[str, Any] | None = None


def describe(operators: Mapping[str, OperatorSpec]) -> dict[str, OperatorInfo]:
    """Return the kind, execution mode, reason and location of each operator."""
    return {
        name: OperatorInfo(
            spec.kind,
            spec.lane.value,
            f"{spec.reason}; {memory_of(spec)}: one replica" if spec.remembers else spec.reason,
            spec.location,
            spec.body.refusal,
        )
        for name, spec in operators.items()
    }


def explain(graph: Graph, plan: ExecPlan) -> str:
    """Write down regions, operators, lanes and reasons, in at most 80 columns where names allow it.

    Args:
        graph: the topology.
        plan: what was planned for it.
    """
    specs = graph.operators
    parts = counted(len(specs), "operator"), counted(len(plan.regions), "region")
    lines = [f"topology '{graph.name}': {' in '.join(parts)} in {counted(len(plan.pes), 'PE')}"]
    waiting, marked = sources_that_wait(specs), mark_unread(specs)
    infos = describe(specs)
    columns = [(name, info.kind, info.lane) for name, info in infos.items()]
    names, kinds, lanes = (min(28, max((len(c[i]) for c in columns), default=0)) for i in range(3))
    for planned in plan.regions:
        region = planned.region
        where = ", ".join(dict.fromkeys(pe for p in planned.pipelines for pe in p.pes))
        lines += ["", *_wrapped(f"{region.name}  {kind_text(region)}: {_how(graph, plan, region)}; in {where}", 4)]
        for name in region.operators:
            info = infos[name]
            head = f"    {name:<{names}}  {info.kind:<{kinds}}  {info.lane:<{lanes}}  "
            room = WIDTH - len(head)
            if room < 24:
                lines += [head.rstrip(), *_wrapped(" " * 8 + info.reason, 8)]
            else:
                lines += _wrapped(head + info.reason, len(head))
        lines += _notes(marked, region, waiting)
    return "\n".join(lines) + "\n"


def _how(graph: Graph, plan: ExecPlan, region: Region) -> Reason:
    """Say how a region can be parallelised, which order its replicas keep, and whether the program sets that."""
    if region.kind is not RegionKind.STATELESS:
        return _WHY[region.kind]()
    set_by = [spec.ordered for spec in map(graph.operators.__getitem__, region.operators) if spec.ordered is not None]
    by = f"ordered={not region.any_order}" if set_by else "the default"
    if region.any_order:
        return Code.SPLIT_ANY_ORDER(by=by)
    united = plan.united(region.operators[0])
    meet = any(plan.region_of(operator_of(stream)).region.kind is RegionKind.DATA_PARALLEL for stream, _ in united)
    return (Code.SPLIT_MEETING if meet or len(united) > 1 else Code.SPLIT_IN_TURN)(by=by)


def _notes(specs: Mapping[str, OperatorSpec], region: Region, waiting: Sequence[Waiting]) -> list[str]:
    own = [specs[name] for name in region.operators]
    python = [spec.name for spec in own if spec.lane.needs_python and not spec.remembers]
    notes: list[str] = []
    notes += dict.fromkeys(f"keeps one replica: {why}" for why in region.fixed.values() if _is_news(why))
    if python and region.why_fixed() is None:
        notes.append(f"{', '.join(python)} need{'s' if len(python) == 1 else ''} Python: grows by more processes")
    for name in region.operators:
        waits = [one for one in waiting if one.join == name]
        side = ("right" if waits[0].port == RIGHT else "left") if waits else ""
        if unread := specs[name].unread:
            notes.append(f"{name} doesn't decode {', '.join(unread)}: nobody reads them")
        notes += [f"{name} {note}" for note in specs[name].body.notes(side, [one.source for one in waits])]
    return [line for note in notes for line in _wrapped(f"    note: {note}", 10)]


def _is_news(why: Reason) -> bool:
    """Return whether the operator's own line doesn't show it."""
    return why.code not in (Code.ONE_SINK, Code.REMEMBERS)


def _wrapped(text: str, indent: int) -> list[str]:
    lead = text[: len(text) - len(text.lstrip())]
    # Only the first line keeps the runs of spaces that align its columns.
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=" " * max(indent, len(lead)), break_long_words=False, break_on_hyphens=False
    )
