"""Mutants of handshakes and of ingest's frames, in small; `./dev fuzz` sends 100,000 of each."""

import random

import pytest

from tests.fuzz import fuzz_handshakes, fuzz_ingest


@pytest.mark.parametrize("secure", [False, True])
def test_no_mutant_of_a_handshake_is_heard(secure: bool) -> None:
    counters = fuzz_handshakes(300, random.Random(1), secure=secure)
    assert sum(count for name, count in counters.items() if name != "accepted") > 250
    assert not counters["timeout"]
    assert not secure or counters["encryption"] > 20


def test_no_mutant_of_an_ingest_frame_counts_rows_that_were_not_sent() -> None:
    found = fuzz_ingest(300, random.Random(1))
    assert found["refused"] > 100
    assert 0 < found["rows"] <= 300 * 6
