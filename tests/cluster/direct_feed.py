"""A source as whoever pushes sees it, without a job: an address, and what arrived is safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rayelastic.runtime.values.specs import IngestAddress


@dataclass
class Direct:
    """What is pushed there is taken, or the push has failed."""

    where: IngestAddress
    operator: str = "rows"

    def address(self) -> IngestAddress:
        return self.where

    def must_repeat(self, *_: Any) -> bool:
        return False

    def secure(self, *_: Any) -> bool:
        return True
