"""Every public name has a docstring; `./dev docs` fails if one isn't in the reference."""

from __future__ import annotations

from pathlib import Path

import rayelastic
from tools.site import broken_links, not_in_reference, public, undocumented


def test_every_public_name_is_documented() -> None:
    assert list(undocumented()) == []
    names = dict(public())
    assert {f"rayelastic.{name}" for name in rayelastic.__all__ if name not in ("errors", "spark")} <= set(names)
    assert {"rayelastic.spark.stream", "rayelastic.testing.collect", "rayelastic.errors.GraphError"} <= set(names)


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "reference").mkdir()
    entries = " ".join(f'<dt id="{name}">' for name, _ in public() if name != "rayelastic.JobConfig")
    (tmp_path / "reference" / "index.html").write_text(entries)
    (tmp_path / "a.html").write_text(
        '<h1 id="top"><a href="reference/index.html#rayelastic.run"> <a href="b.html"> <a href="#top"> <a href="#end">'
        '<a href="https://example.org/none"> <img src="gone.png">'
    )
    assert sorted(broken_links(tmp_path)) == ["a.html: #end", "a.html: b.html", "a.html: gone.png"]
    assert list(not_in_reference(tmp_path)) == ["rayelastic.JobConfig"]
