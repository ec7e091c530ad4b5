"""Twenty-two programs about JSON, results, settings, state and async functions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from tests.guesses.guess import CLICKS, clicks, guess, lines, rel


class Parsed(TypedDict):
    user: str
    ms: int


@dataclass
class Twice:
    user: str
    twice: int


async def doubled(number: int) -> int:
    return number * 2


def parse(line: Any) -> Parsed:
    found: Parsed = json.loads(line.line)
    return found


@guess("json", gives=[("ada", 120)])
def parse_to_a_typed_dict(t: Any, folder: Path) -> None:
    lines(t, '{"user": "ada", "ms": 120}').map(parse, name="parse").sink(rel.list(), name="out")


@guess("json", gives=[(3,)])
def read_a_path_of_json(t: Any, folder: Path) -> None:
    events = t.source(rel.rows([({"user": {"id": 3}},)], {"event": rel.Json}), name="in")
    events.map(lambda e: e.event["user"]["id"], name="id", schema=int).sink(rel.list(), name="out")


@guess("json", gives=['{"u": "ada"}', '{"u": "bob"}', '{"u": "ada"}', '{"u": "eve"}'])
def dump_to_text(t: Any, folder: Path) -> Any:
    clicks(t).map(lambda c: json.dumps({"u": c.user}), name="dump", schema=str).sink(rel.list(), name="out")
    return [c.value for c in rel.run(t)["out"]]


@guess("json", gives=[("ada", "tea"), ("ada", "milk")])
def items_of_a_parsed_list(t: Any, folder: Path) -> None:
    def items(line: Any) -> Any:
        order = json.loads(line.line)
        for item in order["items"]:
            yield {"user": order["user"], "item": item}

    orders = lines(t, '{"user": "ada", "items": ["tea", "milk"]}')
    orders.flat_map(items, name="items", schema={"user": str, "item": str}).sink(rel.list(), name="out")


@guess("results", says=("out", 'result["out"]'))
def an_output_as_an_attribute(t: Any, folder: Path) -> Any:
    clicks(t).sink(rel.list(), name="out")
    return rel.run(t).out


@guess("results", says=("to_pandas", "rel.arrow"))
def a_result_as_a_frame(t: Any, folder: Path) -> Any:
    clicks(t).sink(rel.list(), name="out")
    return rel.run(t).to_pandas()


@guess("results", gives={"user": "ada", "page": "home", "ms": 120})
def a_tuple_as_a_dict(t: Any, folder: Path) -> Any:
    clicks(t).sink(rel.list(), name="out")
    return rel.run(t)["out"][0]._asdict()


@guess("results", gives=[{"user": "ada", "ms": 120}, {"user": "ada", "ms": 300}])
def a_table_as_dicts(t: Any, folder: Path) -> Any:
    clicks(t).filter(lambda c: c.user == "ada", name="ada").select("user", "ms").sink(rel.arrow(), name="out")
    return rel.run(t)["out"].to_pylist()


@guess("results", gives={"slow": 2, "all": 4})
def two_outputs(t: Any, folder: Path) -> Any:
    stream = clicks(t)
    stream.filter(lambda c: c.ms > 100, name="is_slow").sink(rel.count(), name="slow")
    stream.sink(rel.count(), name="all")
    return dict(rel.run(t))


@guess("config", says=("run", "rel.run"))
def run_as_a_method(t: Any, folder: Path) -> Any:
    clicks(t).sink(rel.list(), name="out")
    return t.run()


@guess("config", gives=4)
def a_config_with_its_elasticity_off(t: Any, folder: Path) -> Any:
    clicks(t).sink(rel.count(), name="out")
    return rel.run(t, rel.JobConfig(elasticity="off"))["out"]


@guess("config", gives=4)
def throttle_by_position(t: Any, folder: Path) -> None:
    clicks(t).throttle(10_000, name="slow").sink(rel.count(), name="out")


@guess("config", says=("Dataflow", "rel.Topology"))
def a_dataflow(t: Any, folder: Path) -> Any:
    return rel.Dataflow("clicks")


@guess("config", gives="finished")
def start_and_wait(t: Any, folder: Path) -> Any:
    clicks(t).sink(rel.count(), name="out")
    job = rel.start(t)
    job.wait()
    return job.status.state.value


@guess("async", gives=[(240,), (160,), (600,), (100,)])
def an_async_function(t: Any, folder: Path) -> None:
    async def twice(c: Any) -> int:
        return await doubled(c.ms)

    clicks(t).map(twice, name="twice", concurrent=rel.concurrent(8)).sink(rel.list(), name="out")


@guess("async", gives=[("ada", 240), ("bob", 160), ("ada", 600), ("eve", 100)])
def an_async_function_that_returns_a_dict(t: Any, folder: Path) -> None:
    async def twice(c: Any) -> dict[str, Any]:
        return {"user": c.user, "ms": await doubled(c.ms)}

    clicks(t).map(twice, name="twice", schema={"user": str, "ms": int}).sink(rel.list(), name="out")


@guess("async", gives=[("ada", 240), ("bob", 160), ("ada", 600), ("eve", 100)])
def an_async_function_that_returns_a_dataclass(t: Any, folder: Path) -> None:
    async def twice(c: Any) -> Twice:
        return Twice(c.user, await doubled(c.ms))

    clicks(t).map(twice, name="twice").sink(rel.list(), name="out")


@guess("functions", says=("wrong", ".ms"))
def a_field_by_subscript(t: Any, folder: Path) -> None:
    clicks(t).map(lambda c: c["ms"] * 2, name="wrong")


@guess("functions", gives=[(1,), (3,)])
def skip_what_fails(t: Any, folder: Path) -> None:
    lines(t, "1", "two", "3").map(lambda t: int(t.line), name="int", schema=int, on_error="skip").sink(
        rel.list(), name="out"
    )


@guess("functions", gives=[(50, 137.5, 300)])
def least_mean_and_greatest(t: Any, folder: Path) -> None:
    clicks(t).aggregate(name="all", low=rel.min("ms"), mean=rel.mean("ms"), high=rel.max("ms")).sink(
        rel.list(), name="out"
    )


class Running(NamedTuple):
    total: int = 0


@guess("functions", gives=[("ada", 120), ("bob", 80), ("ada", 420), ("eve", 50)])
def a_running_sum_in_state(t: Any, folder: Path) -> None:
    def add(c: Any, s: Any) -> Any:
        s.total += c.ms
        return (c.user, s.total)

    clicks(t).key_by("user").map(add, name="sum", state=Running).sink(rel.list(), name="out")


@guess("functions", gives=[(user, len(page)) for user, page, _ in CLICKS])
def a_tuple_of_two_values(t: Any, folder: Path) -> None:
    clicks(t).map(lambda c: (c.user, len(c.page)), name="pair").sink(rel.list(), name="out")
