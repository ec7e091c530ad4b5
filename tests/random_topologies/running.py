"""Runs programs by the engine, under conditions drawn for each."""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import GraphError
from tests.component.checkpoint.test_checkpoints import Losing
from tests.random_topologies.program import Program

PATIENCE = 60.0  # seconds
LOSSES = 10  # one program in so many loses an element
Rows = dict[str, list[tuple[Any, ...]]]


class RejectedError(Exception):
    """The engine rejects the declaration."""


@dataclass(frozen=True, slots=True)
class Condition:
    """How a program is run.

    Args:
        lane: of functions.
        config: JobConfig, as text.
        cut: how many rows of the first source come before an element is lost; None: none is lost.
    """

    lane: str
    config: str
    cut: int | None = None

    def __str__(self) -> str:
        lost = f", an element lost behind {self.cut} rows" if self.cut is not None else ""
        return f"lane={self.lane!r}, {self.config}{lost}"


def conditions(seed: int, number: int, program: Program) -> list[Condition]:
    """Those that a program is run under: one in each lane, and a loss for one program in ten."""
    chance = random.Random(f"conditions {seed}:{number}")
    made = [Condition("auto", _config(chance, program)), Condition("python", _config(chance, program))]
    if number % LOSSES == 3:
        rows = len(program.sources[0].options["rows"])
        made.append(Condition("auto", _config(chance, program, elements=True), chance.randrange(rows + 1)))
    return made


def _config(chance: random.Random, program: Program, *, elements: bool = False) -> str:
    threads, options = [f"count={chance.choice([1, 2, 4])}"], ['elasticity="off"']
    model = chance.choice(["manual", "dynamic", "dynamic", "dedicated", ""])
    if model:
        threads.append(f'model="{model}"')
    if chance.random() < 0.3:
        threads += ["queue_records=8", "run_records=2"]
    if elements or chance.random() < 0.3:
        names = [node.name for node in program.nodes if node.kind != "union"]
        pins = {name: chance.randrange(3) for name in chance.sample(names, min(len(names), 4))}
        options.append(f"pes={pins}")
    options.insert(0, f"threads=rel.Threads({', '.join(threads)})")
    return f"rel.JobConfig({', '.join(options)})"


def declared(program: Program, lane: str, source: Callable[[str, Any, list[Any]], Any], name: str) -> rel.Topology:
    topology = rel.Topology("random")
    rows = {node.name: node.options["rows"] for node in program.sources}
    module = program.module(name)
    try:
        streams = module["declare"](lambda n, schema: topology.source(source(n, schema, rows[n]), name=n), lane)
    except GraphError as error:
        raise RejectedError(str(error)) from error
    for stream, made in streams.items():
        made.sink(rel.list(), name=f"out_{stream}")
    return topology


def run(program: Program, condition: Condition, name: str = "random-topology") -> Rows:
    """What the engine makes of it, by stream."""
    config: rel.JobConfig = eval(condition.config, {"rel": rel})  # noqa: S307  (its own text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if condition.cut is not None:
            result = _run_with_a_loss(program, condition, config, name)
        else:
            topology = declared(program, condition.lane, lambda _, schema, rows: rel.rows(rows, schema=schema), name)
            job = rel.start(topology, config)
            try:
                result = job.wait(PATIENCE)
            finally:
                job.close()
    return {stream: [tuple(t) for t in result[f"out_{stream}"]] for stream in program.streams}


def _run_with_a_loss(program: Program, condition: Condition, config: rel.JobConfig, name: str) -> Any:
    gate, first, cut = testing.Gate(), program.sources[0].name, condition.cut

    def source(name: str, schema: Any, rows: list[Any]) -> Any:
        steps = [*rows[:cut], gate, *rows[cut:]] if name == first else rows
        return testing.script(steps, schema)

    topology = declared(program, condition.lane, source, name)
    with tempfile.TemporaryDirectory() as folder:
        config = replace(config, checkpoint=rel.Checkpoint(Path(folder) / "checkpoints", every=600.0))
        losing = Losing(topology, config)
        try:
            if not gate.wait_reached(PATIENCE):
                raise TimeoutError("the source didn't come to its gate")
            losing.take()
            losing.lose(gate)
            return losing.job.wait(PATIENCE)
        finally:
            gate.open()
            losing.job.close()


def canonical(value: Any) -> Any:
    """A value that equals others as it should: True isn't 1, and 1.50 is 1.5."""
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        return ("float", float(f"{value:.12g}"))  # sums depend on the order in their last bits
    if isinstance(value, tuple | list):
        return tuple(canonical(one) for one in value)
    return value
