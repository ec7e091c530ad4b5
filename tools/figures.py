"""The figures of docs/concepts and ARCHITECTURE.md, written to docs/pictures: `python -m tools.figures`.

Graphs come from the planner, everything else from a few boxes and arrows. Each figure has its own background and
follows the reader's light or dark mode, so that it is readable everywhere.
"""

from __future__ import annotations

import re
import sys
from html import escape
from itertools import accumulate
from pathlib import Path

import rayelastic as rel
from rayelastic.plan.plan_svg import OperatorNote, plan_svg

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
STYLE = (
    ".f{--ink:#1b1f24;--dim:#57606a;--back:#fff;--blue:#dbe9f6;--green:#d8f0dc;--yellow:#fdf1d0;--red:#fbdcd6}"
    "@media (prefers-color-scheme:dark){.f{--ink:#e6edf3;--dim:#9da7b3;--back:#0d1117;--blue:#1d3a57;"
    "--green:#1d4429;--yellow:#4d3f12;--red:#5a2a22}}"
    ".f text{fill:var(--ink)}.f .dim{fill:var(--dim)}.f .line{fill:none;stroke:var(--dim);stroke-width:1.5}"
)
LETTERS = 13  # pixels of a font
USUAL_CLICKS = (1, 4, 3, 12, 2, 25)  # seconds, in the order of arrival: those of the page on windows
LATENESS = 5  # seconds


class Drawing:
    """A picture of boxes, arrows and words; all places in pixels from the left upper corner."""

    def __init__(self, title: str, width: float, height: float) -> None:
        self.title, self.width, self.height = title, width, height
        self.parts: list[str] = []

    def box(self, x: float, y: float, width: float, height: float, words: str = "", fill: str = "back") -> None:
        """Draw a box with words, one line each, in its middle."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" '
            f'style="fill:var(--{fill});stroke:var(--dim)"/>'
        )
        lines = words.splitlines()
        for number, line in enumerate(lines):
            self.words(x + width / 2, y + height / 2 + 5 + (number - (len(lines) - 1) / 2) * 17, line)

    def words(
        self, x: float, y: float, line: str, anchor: str = "middle", dim: bool = False, bold: bool = False
    ) -> None:
        kind = ' class="dim"' if dim else ""
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{kind}{weight}>{escape(line)}</text>')

    def line(self, *points: tuple[float, float], dashed: bool = False, arrow: bool = False) -> None:
        way = " ".join(f"{x:g},{y:g}" for x, y in points)
        more = (' stroke-dasharray="5 3"' if dashed else "") + (' marker-end="url(#end)"' if arrow else "")
        self.parts.append(f'<polyline class="line" points="{way}"{more}/>')

    def arrow(self, *points: tuple[float, float], dashed: bool = False) -> None:
        self.line(*points, dashed=dashed, arrow=True)

    def dot(self, x: float, y: float, fill: str = "ink", radius: float = 5) -> None:
        style = f"fill:var(--{fill});stroke:var(--dim)"
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" style="{style}"/>')

    def svg(self) -> str:
        """Write it down."""
        return "\n".join(
            [
                (
                    f'<svg xmlns="http://www.w3.org/2000/svg" class="f" viewBox="0 0 {self.width:g} {self.height:g}" '
                    f'width="{self.width:g}" height="{self.height:g}" font-family="sans-serif" '
                    f'font-size="{LETTERS}" role="img">'
                ),
                f"<title>{escape(self.title)}</title><style>{STYLE}</style>",
                (
                    '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
                    'orient="auto"><path d="M0 0L8 4L0 8z" style="fill:var(--dim)"/></marker></defs>'
                ),
                f'<rect width="{self.width:g}" height="{self.height:g}" style="fill:var(--back)"/>',
                *self.parts,
                "</svg>\n",
            ]
        )


def figures() -> dict[str, str]:
    """Draw all: {name of the file: its text}."""
    return {
        "topology.svg": plan_of(word_count()),
        "regions.svg": regions_of(orders()).svg(),
        "execution_modes.svg": execution_modes().svg(),
        "event_time.svg": event_time().svg(),
        "state.svg": state().svg(),
        "fault_tolerance.svg": fault_tolerance().svg(),
        "elasticity.svg": elasticity().svg(),
        "replication.svg": replication().svg(),
        "architecture.svg": architecture().svg(),
    }


def plan_of(topology: rel.Topology) -> str:
    """Draw a topology as notebooks show it, with the lane of each operator."""
    notes = {name: OperatorNote(spec.lane.value, text=spec.kind) for name, spec in topology.operators.items()}
    return re.sub("><", ">\n<", plan_svg(topology.plan(), notes)) + "\n"


def regions_of(topology: rel.Topology) -> Drawing:
    """Draw the regions of a chain of operators, each with what the planner says of it."""
    planned = topology.plan().regions
    count = len(topology.operators)
    drawing = Drawing("The regions of a topology", count * 128 + 20, 150)
    x, fills = 14.0, ("back", "green", "blue", "back")
    places: list[float] = []
    for one, fill in zip((part.region for part in planned), fills, strict=True):
        width = len(one.operators) * 128 - 12
        drawing.box(x, 34, width, 72, fill=fill)
        by = f" by {', '.join(one.keys)}" if one.keys else ""
        drawing.words(x + width / 2, 24, f"{one.name}: {one.kind.value}{by}")
        can = {"data-parallel": "replicas by key", "stateless": "replicas in turns"}.get(one.kind.value, "one replica")
        drawing.words(x + width / 2, 126, can, dim=True)
        for place, operator in enumerate(one.operators):
            left = x + 10 + place * 128
            drawing.box(left, 50, 96, 40, f"{operator}\n{topology.operators[operator].kind}", "yellow")
            places.append(left)
        x += width + 12
    for left in places[:-1]:  # over the frames
        drawing.arrow((left + 96, 70), (left + 127, 70))
    return drawing


def word_count() -> rel.Topology:
    """Return the topology of docs/concepts/topology.md."""
    topology = rel.Topology("word_count")
    lines = topology.source(rel.rows([("to be or not to be",)], schema={"line": str}), name="lines")
    words = lines.flat_map(lambda t: [(word,) for word in t.line.split()], name="words", schema={"word": str})
    words.key_by("word").aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    return topology


def orders() -> rel.Topology:
    """Return the topology of docs/concepts/regions.md."""
    topology = rel.Topology("orders")
    lines = topology.source(rel.rows([("ann 7",)], schema={"line": str}), name="lines")
    order = {"user": str, "cents": int}
    parsed = lines.map(lambda t: (t.line.split()[0], int(t.line.split()[1])), name="parse", schema=order)
    asked = parsed.map(lambda t: (t.user, t.cents * 2), name="ask", schema=order, lane="python")
    totals = asked.key_by("user").aggregate(name="totals", emit="update", cents=rel.sum("cents"))
    totals.filter(lambda t: t.cents > 10, name="large").sink(rel.list(), name="out")
    return topology


def execution_modes() -> Drawing:
    drawing = Drawing("One run of tuples in the three execution modes", 760, 250)
    drawing.words(110, 28, "a run: the queued tuples", dim=True)
    drawing.words(470, 28, "one call of the operator", dim=True)
    rows = (
        ("compiled", "machine code loops over the run", "green", "GIL: never"),
        ("vectorised", "one call with a NumPy or Arrow batch", "yellow", "GIL: once a run"),
        ("python", "", "red", "GIL: once a run,\nheld for all tuples"),
    )
    for number, (mode, words, fill, gil) in enumerate(rows):
        y = 46 + number * 66
        for cell in range(6):
            drawing.box(40 + cell * 22, y + 8, 18, 26, fill="blue")
        drawing.arrow((176, y + 21), (228, y + 21))
        drawing.words(236, y + 2, mode, anchor="start", bold=True)
        if words:
            drawing.box(236, y + 8, 330, 28, words, fill)
        for cell in range(6 if not words else 0):
            drawing.box(236 + cell * 56, y + 8, 50, 28, "fn(t)", fill)
        for line, part in enumerate(gil.splitlines()):
            drawing.words(584, y + 27 + line * 17, part, anchor="start")
    return drawing


def event_time() -> Drawing:
    drawing = Drawing("Event times, the watermark and the windows of 10 seconds", 720, 350)
    left, bottom, scale, step = 70, 300, 9.0, 95

    def at(time: float) -> float:
        return bottom - time * scale

    for start, fill in ((0, "blue"), (10, "green"), (20, "blue")):
        drawing.box(left, at(start + 10), 610, 10 * scale, fill=fill)
        drawing.words(left - 10, at(start) + 5, str(start), anchor="end", dim=True)
        drawing.words(left + 8, at(start + 10) + 18, f"window {start}-{start + 10}", anchor="start", dim=True)
    drawing.words(left - 10, at(30) + 5, "30", anchor="end", dim=True)
    drawing.words(20, 20, "event time, seconds", anchor="start", dim=True)
    drawing.words(left + 610, bottom + 40, "arrival", anchor="end", dim=True)
    watermarks = [latest - LATENESS for latest in accumulate(USUAL_CLICKS, max)]
    places = [left + 60 + number * step for number in range(len(USUAL_CLICKS))]
    way: list[tuple[float, float]] = []
    for x, watermark in zip(places, watermarks, strict=True):
        y = at(max(watermark, 0))
        way += [(x, way[-1][1]), (x, y)] if way else [(x, y)]
    way.append((left + 610, way[-1][1]))
    drawing.line(*way, dashed=True)
    drawing.words(left + 515, way[-1][1] - 8, "watermark", anchor="end")
    for x, time in zip(places, USUAL_CLICKS, strict=True):
        drawing.dot(x, at(time))
        drawing.words(x + 10, at(time) - 6, str(time), anchor="start", bold=True)
        drawing.words(x, bottom + 22, f"{places.index(x) + 1}.", dim=True)
    drawing.words(places[4] + 10, at(2) - 26, "out of order, not late")
    drawing.words(places[5] - 14, at(25) - 26, "the watermark passes 10 and 20:", anchor="end")
    drawing.words(places[5] - 14, at(25) - 9, "both windows are emitted", anchor="end")
    return drawing


def state() -> Drawing:
    drawing = Drawing("Keys belong to partitions, and partitions to replicas", 740, 270)
    drawing.words(70, 28, "key", dim=True)
    drawing.words(300, 28, "partition: hash of the key, 4,096 in all", dim=True)
    drawing.words(610, 28, "replica: state of its keys", dim=True)
    keys = (("ann", 0, 2890), ("bob", 1, 3051), ("eve", 2, 642), ("dan", 3, 107))
    for name, row, partition in keys:
        y = 46 + row * 52
        drawing.box(30, y, 80, 34, name, "blue")
        drawing.arrow((110, y + 17), (228, y + 17))
        drawing.box(230, y, 140, 34, f"partition {partition}", "yellow")
        replica = 0 if row < 2 else 1
        drawing.arrow((370, y + 17), (468, 88 + replica * 104 + (y - 46 - replica * 104 - 26) / 4))
    for replica, (span, held) in enumerate((("2,048 partitions", "ann, bob"), ("2,048 partitions", "eve, dan"))):
        words = f"replica {replica}: a worker process\n{span}\nstate of {held}"
        drawing.box(470, 48 + replica * 104, 250, 82, words, "green")
    return drawing


def fault_tolerance() -> Drawing:
    drawing = Drawing("A checkpoint barrier passes through the operators", 780, 300)
    for number, (name, fill) in enumerate((("source", "blue"), ("operator", "green"), ("sink", "yellow"))):
        x = 20 + number * 310
        drawing.box(x, 70, 120, 60, name, fill)
        drawing.arrow((x + 60, 130), (x + 60, 214), dashed=True)
    drawing.arrow((140, 100), (328, 100))
    drawing.arrow((450, 100), (638, 100))
    for start, barrier, behind, ahead in ((150, 2, "red", "blue"), (462, 4, "blue", "yellow")):
        for cell in range(6):
            x = start + cell * 28
            if cell == barrier:
                drawing.box(x + 5, 72, 8, 56, fill="ink")
            else:
                drawing.dot(x + 9, 88, ahead if cell > barrier else behind, 7)
    drawing.words(211, 58, "barrier 7")
    drawing.words(583, 58, "barrier 6")
    drawing.words(390, 28, "tuples flow to the right and never overtake a barrier", dim=True)
    drawing.box(20, 216, 740, 62, "", "back")
    for number, words in enumerate(("position read", "copy of the state", "output prepared")):
        drawing.words(80 + number * 310, 240, words)
    drawing.words(390, 266, "checkpoint: local disk, shared folder or object store", dim=True)
    return drawing


def elasticity() -> Drawing:
    drawing = Drawing("Elasticity on three levels", 780, 350)
    drawing.box(10, 10, 760, 330)
    drawing.words(24, 34, "3  replicas and worker processes, over the nodes of a cluster", anchor="start", bold=True)
    drawing.words(756, 34, "every 2 s", anchor="end", dim=True)
    drawing.box(24, 52, 510, 274, "", "blue")
    drawing.words(38, 76, "2  threads of a worker process", anchor="start", bold=True)
    drawing.words(520, 76, "every 1 s", anchor="end", dim=True)
    for thread in range(3):
        drawing.box(38 + thread * 162, 90, 152, 34, f"thread {thread + 1}", "yellow")
    drawing.box(38, 140, 482, 172, "", "back")
    drawing.words(52, 164, "1  queues between operators", anchor="start", bold=True)
    drawing.words(506, 164, "every 1 s", anchor="end", dim=True)
    for number, name in enumerate(("source", "parse", "count")):
        drawing.box(52 + number * 164, 206, 110, 46, name, "green")
    drawing.arrow((162, 229), (214, 229))
    for slot in range(4):
        drawing.box(329 + slot * 10, 219, 9, 20, fill="red" if slot > 1 else "back")
    drawing.line((326, 229), (329, 229))
    drawing.arrow((369, 229), (378, 229))
    drawing.words(188, 276, "no queue:", dim=True)
    drawing.words(188, 294, "the same thread goes on", dim=True)
    drawing.words(404, 276, "a queue:", dim=True)
    drawing.words(404, 294, "another thread may take over", dim=True)
    for replica in range(2):
        words = f"worker process {replica + 2}\n\nanother replica\nwith its own threads\nand queues"
        drawing.box(556, 52 + replica * 141, 200, 133, words, "blue")
    return drawing


def replication() -> Drawing:
    drawing = Drawing("How tuples reach the replicas of a region", 780, 400)
    rows = (
        (30, "a data-parallel region: by key", "router\nhash of the key", ("ann, bob", "eve, dan"), "downstream"),
        (
            230,
            "a stateless region: in turns",
            "router\nnext with room",
            ("turns 1, 3", "turns 2, 4"),
            "downstream\nturns 1, 2, 3, 4",
        ),
    )
    for y, title, router, replicas, after in rows:
        drawing.words(20, y, title, anchor="start", bold=True)
        drawing.box(20, y + 50, 100, 54, "upstream", "blue")
        drawing.arrow((120, y + 77), (168, y + 77))
        drawing.box(170, y + 50, 140, 54, router, "yellow")
        for number, words in enumerate(replicas):
            top = y + 16 + number * 72
            drawing.arrow((310, y + 77), (408, top + 25))
            drawing.box(410, top, 140, 52, f"replica {number}\n{words}", "green")
            drawing.arrow((550, top + 25), (628, y + 77))
        drawing.box(630, y + 50, 130, 54, after, "blue")
    return drawing


def architecture() -> Drawing:
    """Draw the processes of a job on Ray: the driver, the coordinator, and PEs on two nodes."""
    drawing = Drawing("The processes of a job, and what flows between them", 780, 372)
    drawing.box(10, 30, 170, 150)
    drawing.words(95, 22, "driver", bold=True)
    for place, (layer, role) in enumerate(
        (("fluent, graph", "declare"), ("compile", "machine code"), ("plan", "regions, PEs"))
    ):
        drawing.box(20, 40 + place * 46, 150, 38, f"{layer}\n{role}", "blue")
    drawing.box(270, 30, 250, 150)
    drawing.words(395, 22, "coordinator (one actor)", bold=True)
    drawing.box(280, 40, 230, 38, "plan in force, states, journal", "green")
    drawing.box(280, 86, 230, 38, "policy: pipelines and replicas", "yellow")
    drawing.box(280, 132, 230, 38, "checkpoints, recovery, rescaling", "green")
    drawing.box(610, 58, 160, 38, "web UI, top, metrics", "blue")
    drawing.box(610, 122, 160, 38, "checkpoint storage", "blue")
    drawing.arrow((180, 105), (268, 105))
    drawing.words(224, 97, "plan, code", dim=True)
    drawing.arrow((520, 77), (608, 77))
    drawing.words(564, 69, "status", dim=True)
    drawing.arrow((520, 141), (608, 141))
    drawing.words(564, 133, "manifest", dim=True)
    for left, name in ((110, "PE on node A (an actor)"), (410, "PE on node B (an actor)")):
        drawing.box(left, 244, 250, 92)
        drawing.words(left + 125, 356, name, bold=True)
        drawing.box(left + 10, 254, 230, 32, "policy: threads and queues", "yellow")
        drawing.box(left + 10, 294, 230, 34, "native scheduler: operators, state", "red")
    for x, middle in ((330, 270), (460, 520)):
        drawing.arrow((x, 180), (middle, 242))
    drawing.words(395, 208, "commands, barriers", dim=True)
    drawing.words(395, 225, "counters", dim=True)
    drawing.arrow((360, 311), (408, 311))
    drawing.words(385, 303, "link", dim=True)
    drawing.arrow((20, 311), (108, 311))
    drawing.words(60, 303, "sources", dim=True)
    drawing.arrow((660, 311), (760, 311))
    drawing.words(712, 303, "sinks", dim=True)
    drawing.arrow((640, 242), (690, 162), dashed=True)
    drawing.words(680, 216, "state", anchor="start", dim=True)
    return drawing


def main() -> int:
    """Write the figures; those that are as they were stay untouched."""
    for name, text in figures().items():
        path = PICTURES / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(path.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
