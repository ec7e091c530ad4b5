"""The reference is whole: every public name has a docstring, and is in it."""

from __future__ import annotations

import rayelastic
from tools.reference import reference, undocumented


def test_every_public_name_is_documented_and_listed() -> None:
    assert list(undocumented()) == []
    text = reference()
    missing = [name for name in rayelastic.__all__ if f"### `{name}" not in text and name not in ("errors", "spark")]
    assert missing == []
    for method in ("Stream.map", "KeyedStream.map", "Job.stop", "Topology.source"):
        assert f"#### `{method}(" in text
