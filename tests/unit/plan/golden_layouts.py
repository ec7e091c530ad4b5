"""Where boxes and lines of graphs lie, and pictures of plans, written down.

After a change that is meant, `python -m tests.unit.plan.golden_layouts` writes them anew; look at the pictures then.
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.layout.layered import layered
from rayelastic.plan.plan_svg import OperatorNote, plan_svg
from rayelastic.plan.regions import Region, RegionKind

FOLDER = Path(__file__).parent / "golden"
LAYOUTS = FOLDER / "layouts.json"
SEEDS = range(16)


def layout_of(seed: int) -> dict[str, object]:
    """A random graph with boxes of many sizes, as drawn: whole and half pixels; some nodes are joined to none."""
    dice = random.Random(seed)
    nodes = [f"n{number}" for number in range(3 + 2 * seed)]
    nodes += [f"alone{number}" for number in range(seed % 4)]
    sizes = {node: (float(dice.randrange(40, 160)), float(dice.randrange(20, 90))) for node in nodes}
    joined = nodes[: 3 + 2 * seed]
    edges = [
        (nodes[dice.randrange(max(0, at - 6), at)], node) for at, node in enumerate(nodes) if at and node in joined
    ]
    edges += [(dice.choice(joined), dice.choice(joined)) for _ in range(seed)]
    drawn = layered(sizes, edges)
    return {
        "size": [round(drawn.width, 1), round(drawn.height, 1)],
        "boxes": {node: [round(box.x, 1), round(box.y, 1), box.width, box.height] for node, box in drawn.boxes.items()},
        "lines": [
            [line.origin, line.target, line.back, [[round(x, 1), round(y, 1)] for x, y in line.points]]
            for line in drawn.lines
        ],
    }


def plan() -> ExecPlan:
    """A source, a region of two pipelines with three replicas, and two sinks; over three elements."""
    regions = (
        RegionPlan(Region("r0", RegionKind.PIPELINE, ("read",)), (Pipeline(("read",), ("pe0",)),)),
        RegionPlan(
            Region("r1", RegionKind.DATA_PARALLEL, ("parse", "count", "rank"), ("word",)),
            (Pipeline(("parse", "count"), ("pe0", "pe1", "pe2")), Pipeline(("rank",), ("pe0", "pe1", "pe2"))),
        ),
        RegionPlan(
            Region("r2", RegionKind.PIPELINE, ("a name that is too long for its box", "out")),
            (Pipeline(("a name that is too long for its box", "out"), ("pe0",)),),
        ),
    )
    edges = [("read", "parse"), ("parse", "count"), ("count", "rank"), ("rank", "out"), ("count", "out")]
    edges += [("read", "a name that is too long for its box")]
    return ExecPlan("golden", regions, tuple(edges))


NOTES = {
    "read": OperatorNote("built-in", "manual", "1M/s"),
    "parse": OperatorNote("compiled", "dynamic", "1M/s", 0.25, 0.5),
    "count": OperatorNote("python", "dynamic", "900k/s", 1.0, 1.0),
    "rank": OperatorNote("vectorised", "dedicated", "", 0.05, 0.0),
}


def pictures() -> dict[str, str]:
    """{file: picture}; a line for each element, so that differences are read. Without its colours."""
    made = {
        "plain.svg": plan_svg(plan()),
        "noted.svg": plan_svg(plan(), NOTES, {"pe0": "2 threads", "pe1": "1 thread"}),
    }
    return {name: re.sub("<style>.*?</style>", "", svg).replace("><", ">\n<") + "\n" for name, svg in made.items()}


def main() -> None:
    LAYOUTS.write_text(
        json.dumps({str(seed): layout_of(seed) for seed in SEEDS}, separators=(",", ":")).replace("},", "},\n") + "\n"
    )
    for name, svg in pictures().items():
        (FOLDER / name).write_text(svg)
    sys.stdout.write(f"{FOLDER}: {len(SEEDS)} layouts, {len(pictures())} pictures\n")


if __name__ == "__main__":
    main()
