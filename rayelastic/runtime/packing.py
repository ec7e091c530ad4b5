"""Exported state in files: compressed by LZ4 where that makes it smaller, else as it is.

A packed file begins with a magic of its own, which no export has, and the size of what is in it. Its digest is of what
the file has, so nothing is unpacked that isn't what was written; in unsigned snapshots anybody may have written that,
and asks for no more memory than LZ4 can have put into it.
"""

from __future__ import annotations

import struct

from rayelastic.errors import DamagedError

__all__ = ["packed", "unpacked"]

HEADER = struct.Struct("<8sQ")  # magic, bytes that are packed
MAGIC = b"RELPACK1"
CODEC = "lz4_raw"
WORTH = 0.9  # of the size: what isn't smaller is left as it is, and read without a copy
MOST_RATIO = 255  # of an LZ4 block


def packed(data: bytes) -> bytes:
    """What a file has of an export.

    >>> len(packed(b"a text" * 1000)) < 100
    True
    """
    import pyarrow as pa

    smaller: bytes = pa.Codec(CODEC).compress(data, asbytes=True)
    if HEADER.size + len(smaller) > WORTH * len(data):
        return data
    return HEADER.pack(MAGIC, len(data)) + smaller


def unpacked(data: bytes) -> bytes:
    """Return the export that is in a file.

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
        found: bytes = pa.Codec(CODEC).decompress(memoryview(data)[HEADER.size :], size, asbytes=True)
    except (OSError, ValueError, struct.error) as error:
        raise DamagedError(f"a file of state can't be unpacked: {error}", hint="Use an earlier snapshot") from None
    return found
