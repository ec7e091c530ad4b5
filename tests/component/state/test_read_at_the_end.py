"""Keyed state of a job that ends while it is read: whoever asks hears of which operator, and where it can be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

import rayelastic as rel
from rayelastic import testing
from rayelastic.errors import StateError
from rayelastic.job import Job, LocalControl, prepare
from rayelastic.runtime.element.host import InProcessHandle, InProcessHost
from rayelastic.runtime.job.coordinator import Coordinator
from rayelastic.runtime.remote import Call, Remote, perform
from rayelastic.runtime.values.specs import PESpec

if TYPE_CHECKING:
    from rayelastic.runtime.element.api import ElementApi

PATIENCE = 60.0
ROWS = [(n % 3, n) for n in range(300)]


class EndsFirst(InProcessHandle):
    """Of an element that has ended when somebody's question comes to it."""

    def within(self, timeout: float) -> ElementApi:
        def answer(call: Call) -> Any:
            if call.method == "read_state":
                self._element.stop(False)
            return perform(self._element, call)

        return cast("ElementApi", Remote(answer))


class Host(InProcessHost):
    def start_pe(self, spec: PESpec) -> InProcessHandle:
        return EndsFirst(super().start_pe(spec)._element)


def test_an_element_that_has_ended_when_the_question_comes() -> None:
    gate = testing.Gate()
    topology = rel.Topology("ends")
    rows = topology.source(testing.script([*ROWS, gate], {"key": int, "n": int}), name="rows")
    rows.key_by("key").aggregate(name="counts", n=rel.count()).sink(rel.list(), name="out")
    job = Job("ends", LocalControl(Coordinator(prepare(topology), Host())), topology)
    job._start()
    try:
        assert gate.wait_reached(PATIENCE)
        for _ in range(2):  # the second time the job may have heard of it, or not yet
            with pytest.raises(StateError) as told:
                job.state("counts").get(1)
            assert told.value.operator == "counts"
    finally:
        gate.open()
        job.close()
