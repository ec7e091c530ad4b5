"""Whoever has a release that no test has run with is told, before anything starts."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from rayelastic.on_ray.connect import range_of, warn_of_release


@pytest.fixture(autouse=True)
def not_warned_yet() -> Iterator[None]:
    warn_of_release.cache_clear()
    yield
    warn_of_release.cache_clear()


def install(folder: Path, package: str, release: str) -> None:
    """Puts metadata of a release where an installer does."""
    metadata = folder / f"{package}-{release}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {release}\n")


@pytest.mark.parametrize("package", ["ray", "pyspark"])
def test_a_release_that_no_test_has_run_with_is_told_once(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    install(tmp_path, package, "1.2.3")
    monkeypatch.syspath_prepend(str(tmp_path))
    with caplog.at_level(logging.WARNING):
        said = warn_of_release(package)
        warn_of_release(package)
    told = f"{package} 1.2.3 is installed, which no test has run with"
    assert said == f"{told}: pip install '{package}{range_of(package)}'"
    assert [record.getMessage() for record in caplog.records] == [said]


@pytest.mark.parametrize("package", ["ray", "pyspark", "numba"])
def test_of_a_release_in_its_range_nothing_is_said(package: str) -> None:
    assert range_of(package)
    if find_spec(package) is None:
        pytest.skip(f"{package} isn't installed")
    assert warn_of_release(package) == ""
