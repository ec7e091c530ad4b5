"""What a failure says of itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rayelastic.errors import ErrorCode
from rayelastic.runtime.element.failures import explain_failure
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
