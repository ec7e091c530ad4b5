"""Several jobs on one simulated host: whoever comes late gets a fair share too, and then all stay as they are."""

import pytest

from bench.plant.neighbours import FAIR, neighbours


@pytest.mark.parametrize(("cores", "jobs", "apart"), [(4, 2, 0), (16, 2, 60), (16, 4, 60)])
def test_each_job_has_a_fair_share_and_stays_settled(cores: int, jobs: int, apart: int) -> None:
    found = neighbours(cores, jobs, apart)
    assert len(found) == jobs
    assert min(one.share for one in found) >= FAIR, found
    assert [one.changes for one in found] == [0] * jobs
    assert sum(one.threads for one in found) >= cores - jobs  # each has a source's thread too


def test_one_job_alone_has_the_host_for_itself() -> None:
    (alone,) = neighbours(16, 1)
    assert alone.threads > 8
    assert alone.share >= 0.95


def test_who_comes_late_to_few_cores_has_a_fair_share_but_for_chance() -> None:
    """Of 24 seeds 4 end at 0.77 to 0.80: two threads with one queue beside two with 29 settle too early."""
    least = [min(one.share for one in neighbours(4, 2, 60, seed=seed)) for seed in range(1, 7)]
    assert sum(share >= FAIR for share in least) >= 5, least
    assert min(least) >= 0.75
