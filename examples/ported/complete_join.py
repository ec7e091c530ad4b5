"""Three streams joined by key, in whatever order they come: a tuple for each user that all three have.

After the join example of Bytewax. `python examples/ported/complete_join.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import rayelastic as rel


class Name(NamedTuple):
    """Of a user."""

    user: int
    name: str


class Email(NamedTuple):
    """Of a user."""

    user: int
    email: str


class Phone(NamedTuple):
    """Of a user."""

    user: int
    phone: str


def build(names: Sequence[Name], emails: Sequence[Email], phones: Sequence[Phone]) -> rel.Topology:
    """Return the topology."""
    topology = rel.Topology("complete_join")
    of_name = topology.source(rel.rows(list(names), schema=Name), name="names").key_by("user")
    of_email = topology.source(rel.rows(list(emails), schema=Email), name="emails").key_by("user")
    of_phone = topology.source(rel.rows(list(phones), schema=Phone), name="phones").key_by("user")
    both = of_name.join(of_email, name="names_and_emails", how="inner")
    both.key_by("user").join(of_phone, name="complete", how="inner").sink(rel.list(), name="out")
    return topology


if __name__ == "__main__":
    people = [Name(1, "Ann"), Name(2, "Bob")]
    for one in rel.run(build(people, [Email(2, "bob@x.org"), Email(1, "ann@x.org")], [Phone(1, "555")]))["out"]:
        print(one)
