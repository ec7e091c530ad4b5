"""What a release writes: its version wherever one is named, and the section of the changelog."""

from pathlib import Path

import pytest

from tools.environment import ROOT, SetupError
from tools.release import NAMING, OPEN, renamed, version_of, write_section


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


def test_fragments_become_the_section_of_a_version(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "+a.fixed.md").write_text("`throttle` keeps its rate.\n")
    changelog = tmp_path / "CHANGELOG.md"
    start = "# Changelog\n\n<!-- towncrier release notes start -->\n"
    changelog.write_text(f"{start}\n{OPEN}### Added\n\n- Old.\n\n## [0.1.0] - 2026-01-01\n\n- First.\n")
    write_section(tmp_path, "0.2.0", "2026-01-31")
    text = changelog.read_text()
    assert text.startswith(f"{start}\n## [0.2.0] - 2026-01-31\n\n### Fixed\n\n- `throttle` keeps its rate.\n")
    assert "Unreleased" not in text
    assert text.index("- `throttle`") < text.index("- Old.") < text.index("## [0.1.0]")
    assert not list((tmp_path / "changes").glob("*.md"))
    with pytest.raises(SetupError, match="nothing is unreleased"):
        write_section(tmp_path, "0.3.0", "2026-02-01")
    with pytest.raises(SetupError, match="has a section"):
        write_section(tmp_path, "0.2.0", "2026-02-01")
