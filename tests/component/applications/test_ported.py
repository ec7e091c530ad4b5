"""Programs of other systems, ported: each gives what its original does, or a reference made another way."""

from __future__ import annotations

import rayelastic as rel
from examples.ported import http_enrichment


def test_http_enrichment() -> None:
    with http_enrichment.service() as port:
        known = rel.run(http_enrichment.build(port))["out"]
    assert known == [(number, f"all about {number}") for number in range(200)]
