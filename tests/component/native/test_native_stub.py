"""The committed stub is what the extension says of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

import rayelastic

pytest.importorskip("nanobind", reason="the stub generator comes with the development tools")


def test_the_stub_is_up_to_date() -> None:
    from nanobind.stubgen import StubGen

    from rayelastic import _native

    generator = StubGen(module=_native, include_private=True)
    generator.put(_native)
    committed = Path(rayelastic.__file__).with_name("_native.pyi").read_text(encoding="utf-8")
    assert generator.get() == committed, "cmake --build <extension build folder> --target stub"
