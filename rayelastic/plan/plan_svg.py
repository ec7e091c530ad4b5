"""A plan as a picture: the graph with its regions, and for each operator its lane, threading model, queue and cost.

An SVG in text, for notebooks and pages; nothing in it is fetched or run. Knows nothing of who shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from rayelastic.graph.spec.ports import operator_of
from rayelastic.plan.plan_parts import RegionPlan, ShownPlan
from rayelastic.plan.plan_text import counted, kind_text

__all__ = ["OperatorNote", "plan_svg"]

BOX = (150, 46)  # pixels of an operator
STEP = (190, 92)  # from one operator to the next, right and down
MARGIN = 28
LETTERS = 19  # of a name that a box holds
LANES = {"built-in": "#dbe9f6", "compiled": "#d8f0dc", "vectorised": "#fdf1d0", "python": "#fbdcd6"}
UNKNOWN_LANE = "#eeeeee"
REGIONS = (
    "#8da0cb",
    "#66c2a5",
    "#fc8d62",
    "#e78ac3",
    "#a6d854",
    "#e5c494",
)  # ColorBrewer's Set2, told apart by most eyes
QUEUE = 5  # slots that a drawn queue has


@dataclass(frozen=True, slots=True)
class OperatorNote:
    """What to write into the box of an operator beside its name.

    Args:
        lane: how it runs; empty if unknown.
        model: its threading model in force; empty if it doesn't run.
        text: a line, such as its rate.
        fill: share of its queue that is full; `None`: no queue is drawn.
        hot: share of the cost that is its own, 0..1: a bar at the bottom of the box.
    """

    lane: str = ""
    model: str = ""
    text: str = ""
    fill: float | None = None
    hot: float = 0.0


def plan_svg(
    plan: ShownPlan, notes: Mapping[str, OperatorNote] | None = None, heads: Mapping[str, str] | None = None
) -> str:
    """Draw a plan.

    Args:
        plan: what to draw.
        notes: of operators, by name.
        heads: of processing elements, such as their threads, by id.
    """
    edges = [(operator_of(stream), operator_of(end)) for stream, end in plan.edges]
    places = _places(plan, edges)
    width = 2 * MARGIN + (max((x for x, _ in places.values()), default=0) * STEP[0] + BOX[0])
    top = MARGIN + 16 * (len(heads or {}) + 1)
    height = top + MARGIN + max((y for _, y in places.values()), default=0) * STEP[1] + BOX[1]
    at = {name: (MARGIN + x * STEP[0], top + y * STEP[1]) for name, (x, y) in places.items()}
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="sans-serif" font-size="11" role="img">'
        ),
        f"<title>{escape(plan.topology)}</title>",
        (
            '<defs><marker id="rel-end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>'
        ),
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    parts += [
        _text(MARGIN, 18 + 16 * number, f"{pe}: {head}", "#333")
        for number, (pe, head) in enumerate((heads or {}).items())
    ]
    parts += [_region(planned, at, number) for number, planned in enumerate(plan.regions)]
    parts += [_edge(at[origin], at[target]) for origin, target in edges]
    parts += [_box(name, at[name], (notes or {}).get(name, OperatorNote())) for name in at]
    return "".join([*parts, "</svg>"])


def _places(plan: ShownPlan, edges: list[tuple[str, str]]) -> dict[str, tuple[int, int]]:
    """Column and row of each operator: the length of the longest way to it, and the first row that is free there."""
    order = [name for planned in plan.regions for name in planned.region.operators]
    columns = dict.fromkeys(order, 0)
    for _ in order:  # a loop has no longest way: it is left as it is after so many rounds
        changed = False
        for origin, target in edges:
            if columns[target] < columns[origin] + 1 <= len(order):
                columns[target], changed = columns[origin] + 1, True
        if not changed:
            break
    rows: dict[str, int] = {}
    taken: set[tuple[int, int]] = set()
    for name in sorted(order, key=lambda one: columns[one]):
        feeding = [rows[origin] for origin, target in edges if target == name and origin in rows]
        row = min(feeding, default=0)
        while (columns[name], row) in taken:
            row += 1
        rows[name] = row
        taken.add((columns[name], row))
    return {name: (columns[name], rows[name]) for name in order}


def _region(planned: RegionPlan, at: Mapping[str, tuple[int, int]], number: int) -> str:
    region = planned.region
    colour = REGIONS[number % len(REGIONS)]
    xs, ys = [at[name][0] for name in region.operators], [at[name][1] for name in region.operators]
    x, y = min(xs) - 12, min(ys) - 26
    width, height = max(xs) + BOX[0] + 12 - x, max(ys) + BOX[1] + 12 - y
    pipelines = len(planned.pipelines)
    shape = (
        f", {counted(pipelines, 'pipeline')} x {counted(planned.replicas, 'replica')}" if planned.threads > 1 else ""
    )
    pes = ", ".join(dict.fromkeys(pe for pipeline in planned.pipelines for pe in pipeline.pes))
    behind = "".join(
        f'<rect x="{x + 4 * copy}" y="{y - 4 * copy}" width="{width}" height="{height}" rx="8" fill="white" '
        f'stroke="{colour}"/>'
        for copy in range(min(planned.replicas, 4) - 1, 0, -1)
    )
    title = f"{region.name} {kind_text(region)}{shape}; {pes}"
    letters = max(8, width // 6)
    return (
        f'{behind}<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{colour}" fill-opacity="0.16" '
        f'stroke="{colour}"/><g><title>{escape(title)}</title>{_text(x + 6, y + 14, _cut(title, letters), "#333")}</g>'
    )


def _edge(origin: tuple[int, int], target: tuple[int, int]) -> str:
    x, y = origin[0] + BOX[0], origin[1] + BOX[1] // 2
    to_x, to_y = target[0] - 2, target[1] + BOX[1] // 2
    bend = max(20, abs(to_x - x) // 2)
    path = f"M{x} {y}C{x + bend} {y} {to_x - bend} {to_y} {to_x} {to_y}"
    return f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#rel-end)"/>'


def _box(name: str, at: tuple[int, int], note: OperatorNote) -> str:
    x, y = at
    width, height = BOX
    said = ", ".join(part for part in (note.lane, note.model) if part)
    parts = [
        f"<g><title>{escape(', '.join(part for part in (name, said, note.text) if part))}</title>",
        (
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" '
            f'fill="{LANES.get(note.lane, UNKNOWN_LANE)}" stroke="#555"/>'
        ),
        _text(x + 8, y + 15, _cut(name, LETTERS), "#000", bold=True),
        _text(x + 8, y + 28, _cut(said, LETTERS + 4), "#444"),
        _text(x + 8, y + 40, _cut(note.text, LETTERS + 4), "#444"),
    ]
    if note.hot > 0:
        burnt = round(width * min(1.0, note.hot))
        parts.append(f'<rect x="{x}" y="{y + height - 4}" width="{burnt}" height="4" fill="#d7301f"/>')
    if note.fill is not None:
        for slot in range(QUEUE):
            full = note.fill * QUEUE > slot
            parts.append(
                f'<rect x="{x + width - 8 - 5 * QUEUE + 5 * slot}" y="{y + 20}" width="4" height="9" '
                f'fill="{"#555" if full else "white"}" stroke="#555" stroke-width="0.7"/>'
            )
    return "".join([*parts, "</g>"])


def _text(x: int, y: int, text: str, colour: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" fill="{colour}"{weight}>{escape(text)}</text>' if text else ""


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"
