"""What a failure says of itself."""

from __future__ import annotations

from rayelastic.runtime.values.status import MOST_REASON, MOST_TRACEBACK, Failure


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
