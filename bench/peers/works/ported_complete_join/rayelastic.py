"""The port, examples/ported/complete_join.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import rayelastic as rel
from examples.ported import complete_join


def prepare(path: str) -> Callable[[], list[Any]]:
    lines = Path(path).read_text().splitlines()
    users = [(int(user), text.split(";")) for user, text in (line.split(" ", 1) for line in lines)]
    names = [complete_join.Name(user, parts[0]) for user, parts in users]
    emails = [complete_join.Email(user, parts[1]) for user, parts in users]
    phones = [complete_join.Phone(user, parts[2]) for user, parts in users]

    def run() -> list[Any]:
        out: list[Any] = rel.run(complete_join.build(names, emails, phones))["out"]
        return out

    return run


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(tuple, raw))))
