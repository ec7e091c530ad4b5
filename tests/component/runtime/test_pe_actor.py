"""The shell of an element whose process has none: it has been cleared for another one, or waits for its first."""

from __future__ import annotations

import pickle

import pytest

from rayelastic.errors import PELostError
from rayelastic.on_ray.pe_actor import PEActor
from rayelastic.runtime.remote import Call
from tests.raising import raises


class Plain:
    """Hosted in place of an element."""

    left_behind = ()

    def __init__(self, spec: object, *, host: str) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def adaptations(self) -> tuple[()]:
        return ()


def test_who_calls_an_element_that_has_gone_from_its_process_hears_that() -> None:
    actor = PEActor(f"{__name__}:Plain", None)
    with raises(PELostError, "pe-lost") as told:
        actor.call(Call("adaptations"))
    assert isinstance(pickle.loads(pickle.dumps(told.value)), PELostError)
    actor._element = plain = Plain(None, host="")
    assert actor.call(Call("adaptations")) == ()
    actor.clear()
    assert plain.closed
    with pytest.raises(PELostError):
        actor.call(Call("adaptations"))
