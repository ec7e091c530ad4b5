"""The port, examples/ported/complete_join.py."""

from pathlib import Path
from typing import Any

from bench.peers.ported import Build, running
from examples.ported import complete_join


def topology(path: str) -> Build:
    lines = Path(path).read_text().splitlines()
    users = [(int(user), text.split(";")) for user, text in (line.split(" ", 1) for line in lines)]
    names = [complete_join.Name(user, parts[0]) for user, parts in users]
    emails = [complete_join.Email(user, parts[1]) for user, parts in users]
    phones = [complete_join.Phone(user, parts[2]) for user, parts in users]
    return lambda: complete_join.build(names, emails, phones)


prepare = running(topology)


def result(raw: list[Any]) -> dict[int, Any]:
    return dict(enumerate(sorted(map(tuple, raw))))
