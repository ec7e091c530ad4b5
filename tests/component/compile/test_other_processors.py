"""Code that a driver compiled for its own processor is compiled again where another one runs it, and that is told."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from rayelastic.compile import Compiler
from rayelastic.compile.loading import load
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest

TOLD = "'double' was compiled for another processor than that of "


def test_code_for_another_processor_is_not_run(caplog: pytest.LogCaptureFixture) -> None:
    request = FunctionRequest("double", FunctionKind.MAP, lambda t: 2 * t.value, Schema.of(int))
    code = Compiler().compile(request)
    assert code.machine is not None
    foreign = replace(code, machine=replace(code.machine, target="riscv64 other", image=b"other code", key="other"))
    with caplog.at_level(logging.INFO):
        assert load(code).address != 0
        assert TOLD not in caplog.text
        assert load(foreign).address != 0
        assert TOLD in caplog.text
