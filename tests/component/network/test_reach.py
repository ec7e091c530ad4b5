"""How PEs reach each other: who of an element takes a connection, and the links that stay."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator

import pytest

from rayelastic import JobConfig
from rayelastic.errors import LinkError
from rayelastic.plan.plan_parts import PlanLink
from rayelastic.runtime.element.host import InProcessHost
from rayelastic.runtime.element.reach import links
from rayelastic.runtime.element.reach.dialling import Dialler
from rayelastic.runtime.element.reach.entrance import Entrance
from rayelastic.runtime.element.reach.links import StandingLinks
from rayelastic.runtime.port.data_port import Hello
from rayelastic.runtime.values.specs import PESpec
from tests.raising import raises

SECRET = secrets.token_bytes(32)
HOST = "127.0.0.1"
PATIENCE = 30.0
WORDS = PlanLink("words", "counts", "pe0", "pe1")
LINES = PlanLink("lines", "counts", "pe2", "pe1")


def spec(pe: str, links_in: tuple[PlanLink, ...] = (), links_out: tuple[PlanLink, ...] = ()) -> PESpec:
    return PESpec(pe, "job", "id", SECRET, (), links_in, links_out, JobConfig())


class Taker:
    """Takes connections of one channel."""

    def __init__(self, channel: str) -> None:
        self.channel = channel
        self.took: list[str] = []

    def arrives(self, connection: socket.socket, hello: Hello) -> bool:
        if hello.channel != self.channel:
            return False
        self.took.append(hello.sender)
        connection.sendall(b"!")
        connection.close()
        return True


@pytest.fixture
def takers() -> tuple[Taker, ...]:
    return Taker("a"), Taker("b"), Taker("a")


@pytest.fixture
def entrance(takers: tuple[Taker, ...]) -> Iterator[Entrance]:
    made = Entrance(spec("pe1"), HOST, tuple(one.arrives for one in takers))
    assert made.address is None, "nobody is let in before it is opened"
    assert made.counters == {}
    made.open()
    yield made
    made.close()


def answer(entrance: Entrance, channel: str, epoch: int = 0) -> bytes:
    """What comes back by a connection, until it is closed."""
    address = entrance.address
    assert address is not None
    with Dialler(spec("pe0")).channel(channel, "pe1", address, epoch) as connection:
        connection.settimeout(PATIENCE)
        return connection.recv(9)


def test_a_connection_goes_to_the_first_that_takes_it(entrance: Entrance, takers: tuple[Taker, ...]) -> None:
    assert [answer(entrance, channel) for channel in "aba"] == [b"!"] * 3
    assert [one.took for one in takers] == [["pe0", "pe0"], ["pe0"], []]


def test_a_connection_that_nobody_takes_is_closed_and_counted(entrance: Entrance, takers: tuple[Taker, ...]) -> None:
    assert answer(entrance, "c") == b""
    assert entrance.counters["channel"] == 1
    assert [one.took for one in takers] == [[], [], []]


def test_links_of_older_epochs_are_refused(entrance: Entrance) -> None:
    entrance.advance(3)
    assert answer(entrance, "a", epoch=3) == b"!"
    with pytest.raises(LinkError):
        answer(entrance, "a", epoch=2)


def test_nobody_is_let_in_once_it_is_closed(entrance: Entrance) -> None:
    entrance.close()
    entrance.close()
    with pytest.raises(LinkError):
        answer(entrance, "a")


def test_nobody_is_let_in_by_an_element_that_is_closed() -> None:
    element = InProcessHost().start_pe(spec("pe1", (WORDS,)))
    address = element.within(PATIENCE).open()
    assert address is not None
    socket.create_connection((address.host, address.port)).close()
    element.kill()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.host, address.port))


@pytest.fixture
def standing() -> Iterator[tuple[StandingLinks, Entrance]]:
    """The links of pe1, to which `words` of pe0 and `lines` of pe2 are to come."""
    receiver = spec("pe1", (WORDS, LINES))
    made = StandingLinks(receiver, Dialler(receiver).link)
    entrance = Entrance(receiver, HOST, (made.arrives,))
    entrance.open()
    yield made, entrance
    made.close()
    entrance.close()


def sending(pe: str, link: PlanLink, entrance: Entrance) -> StandingLinks:
    sender = spec(pe, links_out=(link,))
    made = StandingLinks(sender, Dialler(sender).link)
    made.connect({"pe1": entrance.address})
    return made


def test_links_are_awaited_and_each_comes_once(standing: tuple[StandingLinks, Entrance]) -> None:
    receiving, entrance = standing
    made = [sending("pe0", WORDS, entrance), sending("pe2", LINES, entrance)]
    receiving.wait_arrived()
    assert set(receiving.by_name) == {WORDS.name, LINES.name}
    assert [list(one.by_name) for one in made] == [[WORDS.name], [LINES.name]]
    made.append(sending("pe0", WORDS, entrance))
    while not entrance.counters["channel"]:
        assert entrance.counters["accepted"] == 2
    for one in made:
        one.close()


def test_a_link_of_somebody_else_is_none_that_is_awaited(
    standing: tuple[StandingLinks, Entrance], monkeypatch: pytest.MonkeyPatch
) -> None:
    receiving, entrance = standing
    made = sending("pe2", WORDS, entrance)
    while not entrance.counters["channel"]:
        assert not entrance.counters["accepted"]
    assert receiving.by_name == {}
    monkeypatch.setattr(links, "ARRIVAL_TIMEOUT", 0.0)
    with raises(LinkError, "link-timeout"):
        receiving.wait_arrived()
    made.close()


def test_a_link_to_an_element_without_a_port() -> None:
    sender = spec("pe0", links_out=(WORDS,))
    with raises(LinkError, "link-failed"):
        StandingLinks(sender, Dialler(sender).link).connect({"pe1": None})
