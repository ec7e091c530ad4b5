"""Synthetic traffic like that of a corporate network: harmless DNS for the most, and some threats.

Clients ask for names made of words, some repeatedly. Infected clients ask for names that an algorithm generated. One
client tunnels data in names, and one sends a burst. There are also TCP, IPv6, ARP and damaged packets. Knows no
topology.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import NamedTuple

from rayelastic.topologies.pcap import MICROSECONDS, Packet

START = 1_760_000_000 * MICROSECONDS
SYLLABLES = (
    "ma",
    "ter",
    "lin",
    "con",
    "ver",
    "sto",
    "der",
    "pen",
    "ing",
    "and",
    "ron",
    "tel",
    "ser",
    "ca",
    "home",
    "port",
)
TOPS = ("com", "net", "org", "co.uk", "de")
A, NULL, TXT, AAAA = 1, 10, 16, 28  # DNS types


class Marked(NamedTuple):
    """What is hidden in the traffic."""

    generated: frozenset[bytes]  # domains
    tunnel: bytes  # domain
    burst: bytes  # address


def network(count: int, seed: int = 0) -> tuple[list[Packet], Marked]:
    """Packets in the order of their times, and what is to be found in them."""
    chance = random.Random(seed)
    words = sorted({"".join(chance.choices(SYLLABLES, k=3)) for _ in range(300)})
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    generated = ["".join(chance.choices(letters, k=chance.randrange(14, 24))) for _ in range(40)]
    tunnel, flood = "exfil.example.net", bytes([10, 0, 9, 9])
    packets = list(_packets(chance, count, words, generated, tunnel, flood))
    asked = {f"{label}.com".encode() for label in generated if any(f"{label}".encode() in p.data for p in packets)}
    return packets, Marked(frozenset(asked), b"example.net", flood)


def _packets(
    chance: random.Random, count: int, words: list[str], generated: list[str], tunnel: str, flood: bytes
) -> Iterator[Packet]:
    clock = START
    server = bytes([10, 0, 0, 53])
    while count > 0:
        clock += chance.randrange(1, 4000)
        client = bytes([10, 0, chance.randrange(3), chance.randrange(1, 60)])
        kind = chance.random()
        made: list[bytes] = []
        if kind < 0.55:
            name = f"www.{chance.choice(words)}.{chance.choice(TOPS)}"
            made = [query(client, server, name, A), query(client, server, name, A, response=True)]
        elif kind < 0.60:
            client = bytes([10, 0, 3, chance.randrange(1, 4)])
            made = [query(client, server, f"{chance.choice(generated)}.com", A)]
        elif kind < 0.70:
            data = "".join(chance.choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=50))
            made = [query(bytes([10, 0, 4, 4]), server, f"{data}.{tunnel}", chance.choice((NULL, TXT)))]
        elif kind < 0.80:
            big = clock % (8 * MICROSECONDS) > 7 * MICROSECONDS
            sender = flood if big or kind < 0.73 else client
            made = [ethernet(ipv4(sender, server, 6, bytes(1400 if big else 40)))]
        elif kind < 0.90:
            made = [
                ethernet(
                    ipv6(client, udp(chance.randrange(1024, 60000), 53, message(chance.choice(words), AAAA))), 0x86DD
                )
            ]
        else:
            made = [chance.choice((bytes(60), ethernet(bytes([0x45]) + bytes(7)), ethernet(b"\0" * 28, 0x0806)))]
        for number, frame in enumerate(made[:count]):
            yield Packet(clock + number * 500, len(frame), frame)
        count -= len(made)
        clock += 500 * (len(made) - 1)


def message(name: str, kind: int, response: bool = False) -> bytes:
    """Return a DNS message with one question and no answer."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return (
        struct.pack(">HHHHHH", 7, 0x8180 if response else 0x0100, 1, 0, 0, 0) + labels + struct.pack(">BHH", 0, kind, 1)
    )


def query(client: bytes, server: bytes, name: str, kind: int, response: bool = False) -> bytes:
    """Return a DNS message in UDP, IPv4 and Ethernet."""
    data = message(name, kind, response)
    if response:
        return ethernet(ipv4(server, client, 17, udp(53, 40000, data)))
    return ethernet(ipv4(client, server, 17, udp(40000, 53, data)))


def udp(source: int, target: int, data: bytes) -> bytes:
    """Return a UDP datagram without checksum."""
    return struct.pack(">HHHH", source, target, len(data) + 8, 0) + data


def ipv4(source: bytes, target: bytes, protocol: int, data: bytes) -> bytes:
    """Return an IPv4 packet without checksum."""
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(data), 0, 0, 64, protocol, 0) + source + target + data


def ipv6(client: bytes, data: bytes) -> bytes:
    """Return an IPv6 packet with a destination-options header, of addresses that end in the client's."""
    prefix = bytes.fromhex("20010db8") + bytes(8)
    body = bytes([17, 0, 1, 4, 0, 0, 0, 0]) + data
    return struct.pack(">IHBB", 6 << 28, len(body), 60, 64) + prefix + client + prefix + bytes([0, 0, 0, 53]) + body


def ethernet(data: bytes, kind: int = 0x0800) -> bytes:
    """Return an Ethernet frame."""
    return bytes(range(12)) + struct.pack(">H", kind) + data
