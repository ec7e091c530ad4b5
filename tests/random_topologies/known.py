"""Differences that are known, each with its reason. Empty where the engine does what the guide says.

Where the interpreter does the same for the moment (flow.QUIRKS), and nothing differs any more, a difference is known.
"""

from __future__ import annotations

KNOWN: dict[str, str] = {}

__all__ = ["KNOWN"]
