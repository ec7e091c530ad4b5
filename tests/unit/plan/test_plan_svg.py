"""A plan as a picture: well-formed, everything in it, nothing on top of each other, whatever names there are."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET

import pytest

from rayelastic.plan.exec_plan import ExecPlan, Pipeline, RegionPlan
from rayelastic.plan.plan_svg import LETTERS, OperatorNote, plan_svg
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


def boxes(svg: str) -> list[tuple[int, int, int, int]]:
    found = [one for one in ET.fromstring(svg).iter(f"{SVG}rect") if one.get("rx") == "4"]
    return [tuple(int(one.get(name, "0")) for name in ("x", "y", "width", "height")) for one in found]  # type: ignore[misc]


@pytest.mark.parametrize(
    "edges",
    [
        [("a", "b"), ("b", "c")],
        [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "d")],
        [("a", "c"), ("b", "c"), ("c", "d"), ("c", "e"), ("c", "f")],
        [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")],
    ],
    ids=["chain", "diamond", "fan", "loop"],
)
def test_boxes_are_apart_and_inside(edges: list[tuple[str, str]]) -> None:
    svg = plan_svg(plan(edges))
    root = ET.fromstring(svg)
    placed = boxes(svg)
    assert len(placed) == len({name for edge in edges for name in edge})
    for (x, y, width, height), (u, v, _, _) in itertools.combinations(placed, 2):
        assert abs(x - u) >= width or abs(y - v) >= height
    assert all(x + w <= int(root.get("width", "0")) and y + h <= int(root.get("height", "0")) for x, y, w, h in placed)
    assert len(list(root.iter(f"{SVG}path"))) == len(edges) + 1


def test_edges_go_from_the_side_of_a_box_to_the_side_of_the_next() -> None:
    svg = plan_svg(plan([("a", "b"), ("a", "c")]))
    paths = [one.get("d", "") for one in ET.fromstring(svg).iter(f"{SVG}path") if one.get("marker-end")]
    ends = {tuple(int(number) for number in (*path[1:].split("C")[0].split(), *path.split()[-2:])) for path in paths}
    (ax, ay, width, height), *others = boxes(svg)
    middle = height // 2
    assert ends == {(ax + width, ay + middle, x - 2, y + middle) for x, y, _, _ in others}


@pytest.mark.parametrize("letters", [LETTERS - 1, LETTERS, LETTERS + 1, 40])
def test_names_fit_their_boxes(letters: int) -> None:
    name = "n" * letters
    shown = [one.text or "" for one in ET.fromstring(plan_svg(plan([("a", name)]))).iter(f"{SVG}text")]
    assert (name if letters <= LETTERS else "n" * (LETTERS - 1) + "…") in shown


def test_names_cant_break_out() -> None:
    name = '<script>alert("1")&'
    svg = plan_svg(plan([("a", name)]), {name: OperatorNote("python", "dynamic", "<b>", 0.5, 0.3)}, {"pe0": "<i>"})
    assert "<script" not in svg
    assert name in "".join(ET.fromstring(svg).itertext())


def test_replicas_queues_and_costs_are_drawn() -> None:
    one, three = plan_svg(plan([("a", "b")])), plan_svg(plan([("a", "b")], replicas=3))
    assert "1 pipeline x 3 replicas" in three
    assert three.count('rx="8"') == one.count('rx="8"') + 4
    noted = plan_svg(plan([("a", "b")]), {"b": OperatorNote("compiled", "dynamic", "5k/s", 0.4, 0.5)})
    assert noted.count('height="9"') == 5
    assert 'width="75" height="4"' in noted
    assert "5k/s" in noted


def test_a_plan_shows_itself() -> None:
    assert plan([("a", "b")])._repr_html_().startswith("<svg")
