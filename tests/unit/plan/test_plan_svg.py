"""A plan as a picture: well-formed, everything in it, nothing on top of each other, whatever names there are."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.layout.groups import Detail, grouped
from rayelastic.plan.layout.layered import layered
from rayelastic.plan.layout.placed import Box, Layout
from rayelastic.plan.plan_svg import BOX, LETTERS, OperatorNote, plan_layout, plan_svg
from rayelastic.plan.regions import Region, RegionKind

SVG = "{http://www.w3.org/2000/svg}"


def plan(edges: list[tuple[str, str]], replicas: int = 1) -> ExecPlan:
    names = list(dict.fromkeys(name for edge in edges for name in edge))
    pes = tuple(f"pe{number}" for number in range(replicas))
    regions = tuple(
        RegionPlan(Region(f"r{i}", RegionKind.DATA_PARALLEL, (name,), ("k",)), (Pipeline((name,), pes),))
        for i, name in enumerate(names)
    )
    return ExecPlan("graph", regions, tuple(edges))


def boxes(svg: str) -> list[Box]:
    found = [one for one in ET.fromstring(svg).iter(f"{SVG}rect") if one.get("rx") == "4"]
    return [Box(*(float(one.get(name, "0")) for name in ("x", "y", "width", "height"))) for one in found]


def check(layout: Layout) -> None:
    """No two boxes overlap, no line crosses a box, all is inside; lines are level or upright, from box to box."""
    placed = list(layout.boxes.values())
    assert not any(one.overlaps(other) for one, other in itertools.combinations(placed, 2))
    assert not any(line.crosses(box) for line in layout.lines for box in placed)
    assert all(box.x >= 0 and box.x + box.width <= layout.width for box in placed)
    assert all(box.y >= 0 and box.y + box.height <= layout.height for box in placed)
    for line in layout.lines:
        assert all(0 <= x <= layout.width and 0 <= y <= layout.height for x, y in line.points)
        assert all(x == u or abs(y - v) < 0.02 for (x, y), (u, v) in itertools.pairwise(line.points))
        right, left = (line.target, line.origin) if line.back else (line.origin, line.target)
        start, end = sorted((line.points[0], line.points[-1]))
        box, other = layout.boxes[right], layout.boxes[left]
        assert start[0] == box.x + box.width
        assert box.y <= start[1] <= box.y + box.height
        assert end[0] == other.x
        assert other.y <= end[1] <= other.y + other.height


@pytest.mark.parametrize(
    "edges",
    [
        [("a", "b"), ("b", "c")],
        [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "d")],
        [("a", "c"), ("b", "c"), ("c", "d"), ("c", "e"), ("c", "f")],
        [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")],
        [("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")],
    ],
    ids=["chain", "diamond", "fan", "loop", "complete"],
)
def test_boxes_are_apart_and_lines_beside_them(edges: list[tuple[str, str]]) -> None:
    groups, layout = plan_layout(plan(edges))
    assert len(groups) == len({name for edge in edges for name in edge})
    assert {(line.origin, line.target) for line in layout.lines} == set(edges)
    check(layout)
    svg = plan_svg(plan(edges))
    assert len(boxes(svg)) == len(groups)
    assert len(list(ET.fromstring(svg).iter(f"{SVG}path"))) == len(edges) + 1


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)), min_size=1, max_size=60))
def test_whatever_the_graph(pairs: list[tuple[int, int]]) -> None:
    edges = [(f"n{a}", f"n{b}") for a, b in pairs]
    names = dict.fromkeys(name for edge in edges for name in edge)
    check(layered(dict.fromkeys(names, (100.0, 40.0)), edges))


@pytest.mark.parametrize("branches", [8, 55])
def test_branches_that_are_alike_share_boxes(branches: int) -> None:
    edges = [("source", f"split{n}") for n in range(branches)]
    for step in range(6):
        edges += [(f"{'split' if step == 0 else f's{step}_'}{n}", f"s{step + 1}_{n}") for n in range(branches)]
    edges += [(f"s6_{n}", "out") for n in range(branches)]
    whole = plan(edges)
    groups, layout = plan_layout(whole, Detail.OPERATORS)
    assert len(groups) == 7 * branches + 2
    check(layout)
    groups, layout = plan_layout(whole, Detail.ALIKE)
    check(layout)
    assert len(groups) == 9
    assert sum(group.title.endswith(f"x {branches}") for group in groups) == 7
    first = next(group for group in groups if group.detail is Detail.ALIKE)
    opened = grouped(whole, Detail.ALIKE, {first.name})
    assert len(opened) == 8 + branches
    assert sorted(o for group in opened for o in group.operators) == sorted(o for g in groups for o in g.operators)


@pytest.mark.parametrize(("branches", "behind"), [(5, 0), (60, 1)])
def test_a_box_of_several_operators_shows_another_behind_it(branches: int, behind: int) -> None:
    edges = [edge for n in range(branches) for edge in [("source", f"part{n}"), (f"part{n}", "out")]]
    assert plan_svg(plan(edges)).count('rx="5"') == behind


@pytest.mark.parametrize(("other", "shown"), [("compiled", "compiled, manual"), ("python", "manual")])
def test_a_box_of_several_operators_says_what_they_have_in_common(other: str, shown: str) -> None:
    edges = [edge for n in range(60) for edge in [("source", f"part{n}"), (f"part{n}", "out")]]
    notes = {f"part{n}": OperatorNote(other if n == 7 else "compiled", "manual") for n in range(60)}
    titles = [one.text or "" for one in ET.fromstring(plan_svg(plan(edges), notes)).iter(f"{SVG}title")]
    assert [title.rpartition(" x 60, ")[2] for title in titles if " x 60" in title] == [shown]


@pytest.mark.parametrize("letters", [LETTERS - 1, LETTERS, LETTERS + 1, 40])
def test_names_fit_their_boxes(letters: int) -> None:
    name = "n" * (letters - 1) + "z"
    shown = [one.text or "" for one in ET.fromstring(plan_svg(plan([("a", name)]))).iter(f"{SVG}text")]
    half = (LETTERS - 1) // 2
    assert (name if letters <= LETTERS else "n" * half + "…" + "n" * (half - 1) + "z") in shown


def test_names_cant_break_out() -> None:
    name = '<script>alert("1")&'
    svg = plan_svg(plan([("a", name)]), {name: OperatorNote("python", "dynamic", "<b>", 0.5, 0.3)}, {"pe0": "<i>"})
    assert "<script" not in svg
    assert name in "".join(ET.fromstring(svg).itertext())


def test_replicas_queues_and_costs_are_drawn() -> None:
    assert "1 pipeline x 3 replicas" in plan_svg(plan([("a", "b")], replicas=3))
    noted = plan_svg(plan([("a", "b")]), {"b": OperatorNote("compiled", "dynamic", "5k/s", 0.4, 0.5)})
    assert noted.count('height="9"') == 5
    assert f'width="{(BOX[0] - 8) / 2:g}" height="4"' in noted
    assert "5k/s" in noted


def test_the_frame_of_a_region_covers_no_other_operator() -> None:
    names = ("a", "b", "c", "d")
    regions = tuple(
        RegionPlan(Region(f"r{i}", RegionKind.PIPELINE, members), (Pipeline(members, ("pe0",)),))
        for i, members in enumerate([("a", "c"), ("b",), ("d",)])
    )
    svg = plan_svg(ExecPlan("graph", regions, (("a", "b"), ("b", "c"), ("c", "d"))))
    titles = [one.text or "" for one in ET.fromstring(svg).iter(f"{SVG}text")]
    assert len(boxes(svg)) == len(names)
    assert not any(title.startswith("r0") for title in titles)
    assert any(title.startswith("r1") for title in titles)


def test_the_picture_follows_dark_mode_and_explains_its_colours() -> None:
    svg = plan_svg(plan([("a", "b")]), {"b": OperatorNote("compiled", "dynamic", "5k/s", 0.4, 0.5)})
    assert "prefers-color-scheme:dark" in svg
    assert 'fill="white"' not in svg
    text = "".join(ET.fromstring(svg).itertext())
    assert all(word in text for word in ("compiled", "share of the cost", "queue", "region"))


def test_a_plan_shows_itself() -> None:
    assert "<svg" in plan([("a", "b")])._repr_html_()
