"""What a release writes: its version wherever one is named, and the section of the changelog."""

import pytest

from tools.environment import ROOT, SetupError
from tools.release import CHANGELOG, NAMING, OPEN, renamed, version_of, with_section


def test_every_file_that_names_the_version_gets_the_new_one() -> None:
    old = version_of((ROOT / "pyproject.toml").read_text())
    for path in NAMING:
        assert "999.8.7" in renamed((ROOT / path).read_text(), old, "999.8.7"), path


def test_a_version_is_not_found_within_another() -> None:
    assert renamed("rayelastic-0.1.0-cp311.whl 10.1.0 0.1.01 0.1.0.", "0.1.0", "0.2.0") == (
        "rayelastic-0.2.0-cp311.whl 10.1.0 0.1.01 0.2.0."
    )
    with pytest.raises(SetupError, match="should name version"):
        renamed("10.1.0", "0.1.0", "0.2.0")


def test_what_is_unreleased_becomes_a_section() -> None:
    before = "# Changes\n\n## [Unreleased]\n\n### Added\n\n- New.\n\n## [0.1.0] - 2026-01-01\n\n- First.\n"
    after = with_section(before, "0.2.0", "2026-01-31")
    assert after == before.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-01-31\n")
    with pytest.raises(SetupError, match="nothing that it is unreleased"):
        with_section(after, "0.3.0", "2026-02-01")
    with pytest.raises(SetupError, match="has a section"):
        with_section(after, "0.2.0", "2026-02-01")
    ours = (ROOT / CHANGELOG).read_text().replace(OPEN, f"{OPEN}\n- New.\n", 1)  # right behind a release it has nothing
    assert with_section(ours, "999.8.7", "2026-01-31").count("## [999.8.7]") == 1
