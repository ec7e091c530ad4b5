"""What an sdist may have: the repository's files, and nothing that happens to lie beside them."""

from __future__ import annotations

from tools.wheels import strangers

TRACKED = ["pyproject.toml", "topologies/vwap.py", "rayelastic/topologies"]


def test_what_git_knows_may_be_in_it_also_by_a_link() -> None:
    names = ["pyproject.toml", "topologies/vwap.py", "rayelastic/topologies/vwap.py", "PKG-INFO"]
    assert strangers([f"rayelastic-1.0/{name}" for name in names], TRACKED) == []


def test_what_is_installed_in_the_environment_is_a_stranger() -> None:
    names = ["pyproject.toml", ".venv/lib/python3.11/site-packages/rayelastic/_native.so", "rayelastic/new.py"]
    found = [".venv/lib/python3.11/site-packages/rayelastic/_native.so", "rayelastic/new.py"]
    assert strangers([f"rayelastic-1.0/{name}" for name in names], TRACKED) == found
