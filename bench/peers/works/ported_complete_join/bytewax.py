"""As Bytewax's join example writes it, over rows in memory in batches of 1,000."""

from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource


def declare(path: str, out: list[Any]) -> Dataflow:
    lines = Path(path).read_text().splitlines()
    flow = Dataflow("complete_join")
    rows = [(user, text.split(";")) for user, text in (line.split(" ", 1) for line in lines)]
    streams = [
        op.input(f"source {n}", flow, TestingSource([(user, parts[n]) for user, parts in rows], batch_size=1_000))
        for n in range(3)
    ]
    made = op.join("join", *streams)
    op.output("out", made, TestingSink(out))
    return flow


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted((int(user), *parts) for user, parts in raw)))
