"""Makes programs at random. Each operator is interpreted as it is added: only what the guide promises matters."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.random_topologies.flow import QUIRKS
from tests.random_topologies.functions import BASE, adapter
from tests.random_topologies.plain import PlainSteps
from tests.random_topologies.program import Program
from tests.random_topologies.timed import TimedSteps
from tests.random_topologies.typed import TypedMaker

TYPED = 5  # one program in so many is about types


def program(seed: int, number: int) -> Program:
    """The program of a number."""
    assert not QUIRKS
    chance = random.Random(f"{seed}:{number}")
    maker = TypedMaker(chance) if number % TYPED == 0 else Maker(chance)
    maker.make()
    return Program(tuple(maker.nodes))


class Maker(PlainSteps, TimedSteps):
    """Graphs of all operators over tuples of one schema."""

    def make(self) -> None:
        for _ in range(self.chance.choice([1, 1, 2, 2, 3])):
            self.source(BASE, self.rows())
        for _ in range(self.chance.randint(3, 9)):
            self.step()

    def rows(self) -> list[Any]:
        chance = self.chance
        at, disorder = chance.randrange(5), chance.choice([0, 0, 3, 9, 20])
        rows = []
        for j in range(chance.choice([0, 1, chance.randrange(12), chance.randrange(81), chance.randrange(81)])):
            at += chance.choice([0, 0, 1, 1, 2, 7])
            rows.append((
                chance.choice(["a", "b", "c", "longer than twelve", None]), chance.randrange(3), j,
                chance.choice([None, -3, 0, 1, 2, 4, 9]), chance.choice([None, -1.5, 0.0, 0.5, 4.0]),
                chance.choice([None, "", "a", "b", "twelve bytes", "more than twelve bytes"]),
                max(0, at - chance.randrange(disorder + 1)),
            ))  # fmt: skip
        return rows

    def step(self) -> None:
        """Add one operator that some stream is fit for."""
        for _ in range(40):
            stream = self.chance.choice(list(self.flows)[-6:] + list(self.flows)[:2])
            if self.flows[stream].schema != BASE:
                if self.chance.random() < 0.5 and len(self.flows[stream].schema) > 0:
                    self.adapt(stream)
                    return
                continue
            if self.chance.choice(STEPS)(self, stream):
                return

    def adapt(self, stream: str) -> None:
        name = adapter(self.flows[stream].schema)
        self.add(
            "map", [stream], f'{{0}}.map({name}, name="{{n}}", schema=BASE, lane=LANE)', fn=name, uses=("BASE", name)
        )


STEPS: list[Callable[[Maker, str], bool]] = [
    Maker.filter, Maker.map, Maker.flat_map, Maker.stateful, Maker.scan, Maker.reduce, Maker.reduce, Maker.combine,
    Maker.aggregate, Maker.aggregate, Maker.deduplicate, *[Maker.event_time] * 8, Maker.union, Maker.union, Maker.merge,
    Maker.merge, Maker.split, Maker.stage, Maker.count, Maker.window, Maker.window, Maker.window, Maker.window,
    Maker.gather, Maker.gather, Maker.gather, Maker.process, Maker.process, Maker.match, Maker.match, *[Maker.join] * 6,
    Maker.enrich,
]  # fmt: skip

__all__ = ["Maker", "program"]
