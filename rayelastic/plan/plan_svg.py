"""A plan as a picture: the graph with its regions, and for each box its lane, threading model, queue and cost.

An SVG in text, for notebooks and pages; nothing in it is fetched or run. Its colours follow the reader's light or dark
mode. Knows nothing of who shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape

from rayelastic.plan.layout.groups import Detail, Group, detail_of, edges_between, grouped, shortened
from rayelastic.plan.layout.layered import layered
from rayelastic.plan.layout.placed import Box, Layout, Line
from rayelastic.plan.plan_parts import RegionPlan, ShownPlan
from rayelastic.plan.plan_text import counted, kind_text

BOX = (168.0, 58.0)  # pixels of a box
LETTERS = 23  # of a name that a box holds
SMALL = 27  # letters of the lines below it
HEAD = 18.0  # pixels of a line above the graph
FRAME = (8.0, 17.0)  # pixels around the boxes of a region: at the sides and below, above
LANES = ("built-in", "compiled", "vectorised", "python")
REGIONS = ("#8da0cb", "#66c2a5", "#fc8d62", "#e78ac3", "#a6d854", "#e5c494")  # ColorBrewer's Set2, for most eyes
QUEUE = 5  # slots that a drawn queue has
STYLE = (
    ".rel-plan{--rel-ink:#1b1f24;--rel-dim:#57606a;--rel-back:#fff;--rel-built-in:#dbe9f6;--rel-compiled:#d8f0dc;"
    "--rel-vectorised:#fdf1d0;--rel-python:#fbdcd6;--rel-unknown:#eee}"
    "@media (prefers-color-scheme:dark){.rel-plan{--rel-ink:#e6edf3;--rel-dim:#9da7b3;--rel-back:#0d1117;"
    "--rel-built-in:#1d3a57;--rel-compiled:#1d4429;--rel-vectorised:#4d3f12;--rel-python:#5a2a22;--rel-unknown:#30363d}}"
    ".rel-plan text{fill:var(--rel-ink)}.rel-plan .rel-dim{fill:var(--rel-dim)}"
    ".rel-plan .rel-line{fill:none;stroke:var(--rel-dim)}.rel-plan .rel-back{stroke-dasharray:5 3}"
    ".rel-plan .rel-box{stroke:var(--rel-dim)}"
)


@dataclass(frozen=True, slots=True)
class OperatorNote:
    """The text and marks of an operator's box besides its name.

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


def plan_layout(plan: ShownPlan, detail: Detail | None = None) -> tuple[tuple[Group, ...], Layout]:
    """Divide a plan into boxes and place them.

    Args:
        plan: what to place.
        detail: what a box is; None: an operator, in large plans those that are alike.
    """
    groups = grouped(plan, detail or detail_of(sum(len(planned.region.operators) for planned in plan.regions)))
    return groups, layered({group.name: BOX for group in groups}, edges_between(plan, groups))


def plan_svg(
    plan: ShownPlan, notes: Mapping[str, OperatorNote] | None = None, heads: Mapping[str, str] | None = None
) -> str:
    """Draw a plan. Operators that are alike share a box where there are many.

    Args:
        plan: what to draw.
        notes: of operators, by name.
        heads: of PEs, such as their threads, by id.
    """
    groups, layout = plan_layout(plan)
    noted = {group.name: _note(group, notes or {}) for group in groups}
    above = HEAD * (len(heads or {}) + 1)
    width = max(layout.width, 420.0)
    height = layout.height + above + HEAD
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="rel-plan" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" font-family="sans-serif" font-size="11" role="img">'
        ),
        f"<title>{escape(plan.topology)}</title><style>{STYLE}</style>",
        (
            '<defs><marker id="rel-end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill:var(--rel-dim)"/></marker></defs>'
        ),
        f'<rect width="{width:g}" height="{height:g}" style="fill:var(--rel-back)"/>',
    ]
    parts += [_text(12, 14 + HEAD * number, f"{pe}: {head}") for number, (pe, head) in enumerate((heads or {}).items())]
    parts.append(f'<g transform="translate(0 {above - HEAD / 2:g})">')
    parts += _frames(plan, groups, layout)
    parts += [_line(line) for line in layout.lines]
    colours = {o: number for number, planned in enumerate(plan.regions) for o in planned.region.operators}
    for group in groups:
        parts.append(_box(group, layout.boxes[group.name], noted[group.name], colours[group.operators[0]]))
    parts.append(f"</g>{''.join(_legend(noted.values(), layout, height))}</svg>")
    return "".join(parts)


def _note(group: Group, notes: Mapping[str, OperatorNote]) -> OperatorNote:
    """Return the note of a box: what its operators have in common, the fullest queue, their total cost."""
    found = [notes.get(name, OperatorNote()) for name in group.operators]
    if len(found) == 1:
        return found[0]
    lanes, models = {note.lane for note in found}, {note.model for note in found}
    return OperatorNote(
        lane=lanes.pop() if len(lanes) == 1 else "",
        model=models.pop() if len(models) == 1 else "several models",
        text=found[0].text and f"each like {found[0].text}",
        fill=max((note.fill for note in found if note.fill is not None), default=None),
        hot=sum(note.hot for note in found),
    )


def _frames(plan: ShownPlan, groups: tuple[Group, ...], layout: Layout) -> Iterator[str]:
    """Yield a frame around each region, unless it would cover other boxes; stripes show regions, too."""
    taken: list[Box] = []
    for number, planned in enumerate(plan.regions):
        inside = {group.name for group in groups if set(group.operators) <= set(planned.region.operators)}
        if not inside:
            continue
        frame = _around([layout.boxes[name] for name in inside])
        others = (box for name, box in layout.boxes.items() if name not in inside)
        if not any(frame.overlaps(box) for box in (*others, *taken)):
            taken.append(frame)
            yield _frame(planned, frame, number)


def _around(boxes: list[Box]) -> Box:
    side, top = FRAME
    x, y = min(box.x for box in boxes) - side, min(box.y for box in boxes) - top
    right, low = max(box.x + box.width for box in boxes) + side, max(box.y + box.height for box in boxes) + side
    return Box(x, y, right - x, low - y)


def _frame(planned: RegionPlan, box: Box, number: int) -> str:
    region = planned.region
    colour = REGIONS[number % len(REGIONS)]
    pipelines = len(planned.pipelines)
    shape = (
        f", {counted(pipelines, 'pipeline')} x {counted(planned.replicas, 'replica')}" if planned.threads > 1 else ""
    )
    pes = ", ".join(dict.fromkeys(pe for pipeline in planned.pipelines for pe in pipeline.pes))
    title = f"{region.name} {kind_text(region)}{shape}; {pes}"
    text = shortened(title, max(8, int(box.width // 6)))
    return (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="8" fill="{colour}" '
        f'fill-opacity="0.14" stroke="{colour}"/><g><title>{escape(title)}</title>'
        f"{_text(box.x + 6, box.y + 12, text, dim=True)}</g>"
    )


def _line(line: Line) -> str:
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in line.points)
    back = " rel-back" if line.back else ""
    title = f"{line.origin} → {line.target}"
    return f'<path class="rel-line{back}" d="{path}" marker-end="url(#rel-end)"><title>{escape(title)}</title></path>'


def _box(group: Group, box: Box, note: OperatorNote, region: int) -> str:
    x, y = box.x, box.y
    text = ", ".join(part for part in (note.lane, note.model) if part)
    lane = note.lane if note.lane in LANES else "unknown"
    title = ", ".join(part for part in (group.title, text, note.text) if part)
    colour = REGIONS[region % len(REGIONS)]
    parts = []
    if len(group.operators) > 1:
        parts.append(
            f'<rect class="rel-box" x="{x + 4:g}" y="{y - 4:g}" width="{box.width:g}" height="{box.height:g}" rx="5" '
            'style="fill:var(--rel-back)"/>'
        )
    parts += [
        f"<g><title>{escape(title)}</title>",
        (
            f'<rect class="rel-box" x="{x:g}" y="{y:g}" width="{box.width:g}" height="{box.height:g}" rx="4" '
            f'style="fill:var(--rel-{lane})"/>'
        ),
        f'<rect x="{x:g}" y="{y + 3:g}" width="4" height="{box.height - 6:g}" fill="{colour}"/>',
        _text(x + 10, y + 16, shortened(group.title, LETTERS), bold=True),
        _text(x + 10, y + 30, shortened(text, SMALL), dim=True),
        _text(x + 10, y + 44, shortened(note.text, SMALL)),
    ]
    if note.hot > 0:
        burnt = round((box.width - 8) * min(1.0, note.hot), 1)
        parts.append(f'<rect x="{x + 6:g}" y="{y + box.height - 7:g}" width="{burnt:g}" height="4" fill="#d7301f"/>')
    if note.fill is not None:
        for slot in range(QUEUE):
            full = note.fill * QUEUE > slot
            parts.append(
                f'<rect x="{x + box.width - 8 - 5 * QUEUE + 5 * slot:g}" y="{y + 22:g}" width="4" height="9" '
                f'style="fill:var({"--rel-ink" if full else "--rel-back"});stroke:var(--rel-dim)" stroke-width="0.7"/>'
            )
    return "".join([*parts, "</g>"])


def _legend(notes: Iterable[OperatorNote], layout: Layout, height: float) -> Iterator[str]:
    """Yield the legend of the colours and marks that the picture has."""
    x, y = 12.0, height - 8
    shown = list(notes)
    for lane in LANES:
        if any(note.lane == lane for note in shown):
            yield (
                f'<rect class="rel-box" x="{x:g}" y="{y - 9:g}" width="10" height="10" rx="2" '
                f'style="fill:var(--rel-{lane})"/>{_text(x + 15, y, lane, dim=True)}'
            )
            x += 28 + 6.2 * len(lane)
    text = ["red: share of the cost"] if any(note.hot > 0 for note in shown) else []
    text += ["slots: queue"] if any(note.fill is not None for note in shown) else []
    text += ["stripe: region"] + (["dashed: feedback"] if any(line.back for line in layout.lines) else [])
    yield _text(x, y, "; ".join(text), dim=True)


def _text(x: float, y: float, text: str, *, bold: bool = False, dim: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    kind = ' class="rel-dim"' if dim else ""
    return f'<text x="{x:g}" y="{y:g}"{kind}{weight}>{escape(text)}</text>' if text else ""
