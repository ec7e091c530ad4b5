"""A journal of adaptations, decided once more: what a controller was told to forget it forgets there, too."""

from __future__ import annotations

import json
from pathlib import Path

from rayelastic.runtime.loops.elasticity import replay

RECORDED = Path(__file__).parents[2] / "component" / "policy" / "journals" / "two_cores.jsonl"


def test_a_controller_that_begins_anew_decides_as_at_first(tmp_path: Path) -> None:
    setting, *passes = RECORDED.read_text().splitlines()
    afresh = [json.dumps(json.loads(passes[0]) | {"fresh": True}), *passes[1:]]
    twice = tmp_path / "twice.jsonl"
    twice.write_text("\n".join([setting, *passes, *afresh]) + "\n")
    decided = [decision.as_dict() for _, decision in replay(twice)]
    assert decided == [json.loads(line)["decision"] for line in passes] * 2
