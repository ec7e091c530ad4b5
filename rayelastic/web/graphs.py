"""The graph of a job as the web UI draws it: boxes and lines with their places, in JSON values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ConfigError, ErrorCode
from rayelastic.plan.layout.groups import Detail, detail_of, edges_between, grouped
from rayelastic.plan.layout.layered import layered
from rayelastic.plan.plan_svg import BOX
from rayelastic.plan.plan_text import kind_text

if TYPE_CHECKING:
    from rayelastic.plan.exec_plan import ExecPlan


def graph(
    plan: ExecPlan, places: Mapping[str, int], lanes: Mapping[str, str], detail: str, opened: Sequence[str]
) -> dict[str, Any]:
    """Place the boxes of a plan.

    Args:
        plan: in force at the time that is shown.
        places: {operator: its row in the tables of frames}.
        lanes: {operator: its execution mode}, where it is known.
        detail: a value of Detail; empty: what suits the size.
        opened: boxes that are open.

    Raises:
        ConfigError: there is no such detail.
    """
    try:
        chosen = Detail(detail) if detail else detail_of(len(places))
    except ValueError:
        names = ", ".join(one.value for one in Detail)
        raise ConfigError(
            f"no detail {detail!r}", hint=f"Choose one of {names}", code=ErrorCode.UNKNOWN_CHOICE
        ) from None
    groups = grouped(plan, chosen, frozenset(opened))
    drawn = layered({group.name: BOX for group in groups}, edges_between(plan, groups))
    number = {group.name: at for at, group in enumerate(groups)}
    regions_at = {planned.region.name: at for at, planned in enumerate(plan.regions)}
    boxes = []
    for group in groups:
        first, box = plan.region_of(group.operators[0]), drawn.boxes[group.name]
        found = {lanes.get(name, "") for name in group.operators}
        boxes.append(
            {
                "name": group.name,
                "title": group.title,
                "kind": group.detail.value,
                "rows": [places[name] for name in group.operators if name in places],
                "region": regions_at[first.region.name],
                "lane": found.pop() if len(found) == 1 else "",
                "at": [box.x, box.y, box.width, box.height],
            }
        )
    lines = [
        {
            "ends": [number[line.origin], number[line.target]],
            "points": [[round(x, 1), round(y, 1)] for x, y in line.points],
            "back": line.back,
        }
        for line in drawn.lines
    ]
    regions = [
        {
            "name": planned.region.name,
            "kind": kind_text(planned.region),
            "replicas": planned.replicas,
            "scalable": planned.region.kind.is_replicable,
            "pes": list(dict.fromkeys(pe for pipeline in planned.pipelines for pe in pipeline.pes)),
        }
        for planned in plan.regions
    ]
    return {
        "detail": chosen.value,
        "epoch": plan.epoch,
        "width": drawn.width,
        "height": drawn.height,
        "boxes": boxes,
        "lines": lines,
        "regions": regions,
        "opened": list(opened),
    }
