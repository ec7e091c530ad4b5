"""What a failure says of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rayelastic.errors import ErrorCode, SinkError
from rayelastic.runtime.element.failures import completion_failure, explain_failure, sink_failure
from rayelastic.runtime.values.failure import MOST_REASON, MOST_TRACEBACK, Failure


def test_texts_of_users_are_bounded_where_they_arise() -> None:
    long = "start" + "q" * 10_000_000 + "end"
    failure = Failure(long, "op", long, long)
    assert failure.failing_tuple is not None
    for text, most in ((failure.reason, MOST_REASON), (failure.failing_tuple, MOST_REASON)):
        assert most < len(text) < most + 100
        assert text.startswith("startq")
        assert text.endswith("qend")
        assert "characters left out" in text
    assert MOST_TRACEBACK < len(failure.traceback) < MOST_TRACEBACK + 100
    assert Failure("plain", "op", "t", "trace") == Failure("plain", "op", "t", "trace")
    assert Failure("plain").failing_tuple is None


@pytest.mark.parametrize(
    ("message", "lost"),
    [("the connection to 'pe1' was reset", True), ("a->b: a tuple has more text than can go by a link", False)],
)
def test_a_link_is_lost_unless_a_tuple_was_too_large_for_it(message: str, lost: bool) -> None:
    native: Any = SimpleNamespace(operator="a->b@pe0>pe1", record=None, exception=None, message=message)
    assert explain_failure(native, {}) == Failure(message, "a->b@pe0>pe1", lost_link=lost, code=ErrorCode.LINK_FAILED)


@pytest.mark.parametrize("wrap", [sink_failure, completion_failure])
def test_a_failure_names_its_operator_once(wrap: Any) -> None:
    failure = wrap(SinkError("the disk is full", operator="out", hint="Free some space"))
    assert failure.operator == "out"
    assert failure.reason.removeprefix("a sink could not be completed: ") == "the disk is full. Free some space"
    assert Failure("operator 'rows': its push failed", "rows") == Failure("its push failed", "rows")
    assert Failure("operator 'rows': its push failed", "other").reason == "operator 'rows': its push failed"
