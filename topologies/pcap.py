"""Captures of packets in the pcap format: reading them for a source, writing them for what is made up.

Both byte orders, micro- and nanoseconds, gzipped or not. A capture is read into memory. Knows no protocol.
"""

from __future__ import annotations

import gzip
import struct
import warnings
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import rayelastic as rel

LINK_NULL, LINK_ETHERNET, LINK_RAW, LINK_COOKED = 0, 1, 101, 113  # https://www.tcpdump.org/linktypes.html
LINKS = (LINK_NULL, LINK_ETHERNET, LINK_RAW, LINK_COOKED)
FORMATS = {  # the first four bytes: byte order, and ticks of a second
    b"\xd4\xc3\xb2\xa1": ("<", 1_000_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1_000_000_000),
    b"\xa1\xb2\x3c\x4d": (">", 1_000_000_000),
}
NEXT_GENERATION = b"\x0a\x0d\x0d\x0a"
MICROSECONDS = 1_000_000
HEADER_BYTES, RECORD_BYTES = 24, 16
LONGEST_PACKET = 262_144  # bytes; what tcpdump captures at most
LINK_BITS = 0xFFFF  # of the field of the link type; the others say whether packets end with a checksum


class Packet(NamedTuple):
    """A captured packet."""

    time: int  # microseconds since 1970
    size: int  # bytes on the wire; more than were captured, if the capture cut it
    data: bytes  # from the link layer on


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture.

    Args:
        link: the link layer's number.
        packets: in the order in which they were captured.
    """

    link: int
    packets: tuple[Packet, ...]


def read(path: str, operator: str = "packets") -> Capture:
    """Read a capture; one that was cut off in its last packet ends before it, with a warning that says so.

    Args:
        path: of the file.
        operator: for the message.

    Raises:
        SourceError: no such file, no pcap, of a link layer that isn't known, or damaged: with the place.
    """
    try:
        data = Path(path).expanduser().read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        packed = isinstance(error, EOFError | zlib.error | gzip.BadGzipFile)
        raise rel.errors.SourceError(
            f"{path!r} is damaged (gzip): {error}" if packed else f"{path!r} can't be read: {error}",
            operator=operator,
            hint="Get an undamaged copy" if packed else "Check the path",
        ) from error
    if data[:4] == NEXT_GENERATION:
        raise rel.errors.SourceError(
            f"{path!r} is pcapng, not pcap", operator=operator, hint="Convert it: editcap -F pcap IN OUT"
        )
    if data[:4] not in FORMATS or len(data) < HEADER_BYTES:
        raise rel.errors.SourceError(
            f"{path!r} is no capture", operator=operator, hint="Give a file that tcpdump -w or Wireshark wrote"
        )
    order, ticks = FORMATS[data[:4]]
    link = struct.unpack_from(f"{order}I", data, 20)[0] & LINK_BITS
    if link not in LINKS:
        raise rel.errors.SourceError(
            f"{path!r} is of link type {link}", operator=operator, hint="Capture on Ethernet, or on 'any'"
        )
    try:
        return Capture(link, tuple(_packets(data, order, ticks, path)))
    except rel.errors.SourceError as error:
        raise error.at(operator, "") from None


def _packets(data: bytes, order: str, ticks: int, path: str) -> Iterator[Packet]:
    record = struct.Struct(f"{order}IIII")
    at, number = HEADER_BYTES, 0
    while at + RECORD_BYTES <= len(data):
        seconds, parts, kept, size = record.unpack_from(data, at)
        left = len(data) - at
        if kept > LONGEST_PACKET:
            raise rel.errors.SourceError(
                f"{path!r} is damaged: packet {number + 1:,}, at byte {at:,}, says that it has {kept:,} bytes; "
                f"{number:,} packets are before it, {left:,} bytes left from there on",
                hint=f"Get an undamaged copy, or read what is before it: head -c {at} FILE",
            )
        if RECORD_BYTES + kept > left:
            break
        at += RECORD_BYTES
        yield Packet(seconds * MICROSECONDS + parts * MICROSECONDS // ticks, size, data[at : at + kept])
        at, number = at + kept, number + 1
    if at < len(data):
        told = f"{path!r} is cut off in packet {number + 1:,}: {number:,} are read, {len(data) - at:,} bytes are left"
        warnings.warn(told, RuntimeWarning, stacklevel=3)


def write(path: Path, packets: Iterable[Packet], link: int = LINK_ETHERNET) -> None:
    """Write a capture, little-endian with microseconds."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, LONGEST_PACKET, link))
        for packet in packets:
            seconds, parts = divmod(packet.time, MICROSECONDS)
            file.write(struct.pack("<IIII", seconds, parts, len(packet.data), packet.size) + packet.data)
