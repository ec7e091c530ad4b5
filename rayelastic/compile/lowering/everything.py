"""Imports every module that registers operations of text, times, containers and records with Numba."""

# ruff: noqa: F401

from __future__ import annotations

from rayelastic.compile.lowering.base import optional
from rayelastic.compile.lowering.containers import dict_loops, undecided_dicts
from rayelastic.compile.lowering.passes import members
from rayelastic.compile.lowering.records import inside, json_paths
from rayelastic.compile.lowering.text import case, codecs, compare, form, lists, numbers, parts, search, split
from rayelastic.compile.lowering.times import moments, operators
