"""The address to which a client pushes the rows of a fed source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayelastic.runtime.port.data_port import derive_secret
from rayelastic.runtime.values.specs import IngestAddress

if TYPE_CHECKING:
    from rayelastic.runtime.port.data_port import PortAddress
    from rayelastic.runtime.values.specs import PESpec


def ingest_address(spec: PESpec, address: PortAddress, source: str, *, complete: bool) -> IngestAddress:
    """Return the address of a source, with a secret for it alone.

    Args:
        spec: The PE that hosts it.
        address: That element's address.
        source: The operator.
        complete: Whether it has all of its rows.
    """
    channel = f"ingest:{source}"
    return IngestAddress(
        address=address,
        job_id=spec.job_id,
        pe=spec.pe,
        channel=channel,
        secret=derive_secret(spec.secret, channel),
        epoch=spec.epoch,
        complete=complete,
    )
