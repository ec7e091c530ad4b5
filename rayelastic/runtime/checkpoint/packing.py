"""Exported state in files: compressed by LZ4 if that makes it smaller, otherwise unchanged.

A packed file begins with its own magic, which no export has, and the unpacked size. Its digest is of the file's
content, so nothing else is unpacked. Unsigned snapshots may have been written by anybody: a file can't request more
memory than LZ4 can have compressed into it.
"""

from __future__ import annotations

import struct

from rayelastic.errors import DamagedError
from rayelastic.errors.invariants import invariant

HEADER = struct.Struct("<8sQ")  # magic, unpacked size
MAGIC = b"RELPACK1"
CODEC = "lz4_raw"
WORTH = 0.9  # of the size: otherwise the data stays unpacked, and is read without a copy
MOST_RATIO = 255  # of an LZ4 block


def packed(data: bytes) -> bytes:
    """Return the file's content for an export.

    >>> len(packed(b"a text" * 1000)) < 100
    True
    """
    import pyarrow as pa

    smaller: bytes = pa.Codec(CODEC).compress(data, asbytes=True)
    if HEADER.size + len(smaller) > WORTH * len(data):
        return data
    stored = HEADER.pack(MAGIC, len(data)) + smaller
    invariant(len(data) <= MOST_RATIO * len(stored), "a reader accepts the ratio", len(data), len(stored))
    invariant(lambda: unpacked(stored) == data, "what is packed can be unpacked", len(data))
    return stored


def unpacked(data: bytes) -> bytes:
    """Return the export in a file.

    Raises:
        DamagedError: it isn't what `packed` makes.

    >>> unpacked(packed(b"a text" * 1000)) == b"a text" * 1000
    True
    """
    import pyarrow as pa

    if not data.startswith(MAGIC):
        return data
    try:
        _, size = HEADER.unpack_from(data)
        if size > MOST_RATIO * len(data):
            raise ValueError(f"{size} bytes in {len(data)}")
        export: bytes = pa.Codec(CODEC).decompress(memoryview(data)[HEADER.size :], size, asbytes=True)
    except (OSError, ValueError, struct.error) as error:
        raise DamagedError(f"a file of state can't be unpacked: {error}", hint="Use an earlier snapshot") from None
    return export
