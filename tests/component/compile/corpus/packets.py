"""Packets: headers, names, flags, flows, payloads."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from enum import IntEnum, IntFlag
from typing import NamedTuple

from corpus.event import Event

PRIVATE = ("10.", "192.168.", "127.")
PORTS = {22: "ssh", 53: "dns", 80: "http", 443: "https"}
MAGIC = {b"\x89PNG": "png", b"GIF8": "gif", b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip"}


class Protocol(IntEnum):
    ICMP = 1
    TCP = 6
    UDP = 17


class TcpFlags(IntFlag):
    FIN = 1
    SYN = 2
    RST = 4
    ACK = 16


class Flow(NamedTuple):
    source: str
    port: int
    bytes: int


class Label(NamedTuple):
    text: str
    depth: int


class Totals(NamedTuple):
    packets: int = 0
    bytes: int = 0
    syns: int = 0


def service(t: Event) -> str:
    return PORTS.get(t.size & 0xFFFF, "other")


def protocol(t: Event) -> str:
    if t.size == Protocol.TCP:
        return "tcp"
    if t.size == Protocol.UDP:
        return "udp"
    return "other"


def is_syn(t: Event) -> bool:
    return t.size & TcpFlags.SYN != 0 and not t.size & TcpFlags.ACK


def flag_names(t: Event) -> str:
    names = []
    for bit, name in ((1, "F"), (2, "S"), (4, "R"), (8, "P"), (16, "A")):
        if t.size & bit:
            names.append(name)
    return "".join(names)


def is_private(t: Event) -> bool:
    return t.tags.startswith(PRIVATE)


def is_global(t: Event) -> bool:
    try:
        return ipaddress.ip_address(t.tags).is_global
    except ValueError:
        return False


def address_number(t: Event) -> int:
    parts = t.tags.split(".")
    if len(parts) != 4:
        return 0
    number = 0
    for part in parts:
        if not part.isdigit():
            return 0
        number = number << 8 | int(part) & 0xFF
    return number


def dotted(t: Event) -> str:
    n = t.size & 0xFFFFFFFF
    return ".".join(str(n >> shift & 0xFF) for shift in (24, 16, 8, 0))


def subnet(t: Event) -> str:
    return t.tags.rpartition(".")[0] + ".0/24"


def labels(t: Event) -> Iterator[Label]:
    name = t.path.rstrip(".").lower()
    for depth, label in enumerate(reversed(name.split("."))):
        yield Label(label, depth)


def base_domain(t: Event) -> str:
    labels = t.path.rstrip(".").split(".")
    return ".".join(labels[-2:])


def longest_label(t: Event) -> int:
    return max(len(label) for label in t.path.split("."))


def file_type(t: Event) -> str:
    for magic, name in MAGIC.items():
        if t.payload.startswith(magic):
            return name
    return "data"


def header_length(t: Event) -> int:
    if not t.payload:
        return 0
    return (t.payload[0] & 0x0F) * 4


def total_length(t: Event) -> int:
    if len(t.payload) < 4:
        return -1
    return struct.unpack("!H", t.payload[2:4])[0]


def internet_checksum(t: Event) -> int:
    data = t.payload
    if len(data) % 2:
        data += b"\x00"
    total = 0
    for i in range(0, len(data), 2):
        total += (data[i] << 8) + data[i + 1]
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def printable(t: Event) -> str:
    return "".join(chr(b) if 32 <= b < 127 else "." for b in t.payload)


def question(t: Event) -> str:
    labels, i = [], 0
    while i < len(t.payload) and t.payload[i] != 0:
        size = t.payload[i]
        labels.append(t.payload[i + 1 : i + 1 + size].decode("ascii", "replace"))
        i += size + 1
    return ".".join(labels)


def flow(t: Event, s: Totals) -> Flow:
    s.packets += 1
    s.bytes += len(t.payload)
    if t.size & 2:
        s.syns += 1
    return Flow(t.tags, t.size & 0xFFFF, s.bytes)


def chunks(t: Event) -> Iterator[Label]:
    for i in range(0, len(t.payload), 4):
        yield Label(t.payload[i : i + 4].hex(), i // 4)
