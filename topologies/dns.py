"""What is read off packets: IP datagrams, the questions in DNS messages, and what is odd about a name.

Functions of one tuple, for the compiled lane. Wire formats: RFC 791, 8200, 768 and 1035. Knows no topology.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rayelastic.topologies.pcap import LINK_COOKED, LINK_ETHERNET, LINK_NULL

IPV4, IPV6, VLAN, PROVIDER_VLAN = 0x0800, 0x86DD, 0x8100, 0x88A8  # EtherTypes
TCP, UDP, HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS = 6, 17, 0, 43, 60  # protocol numbers
DNS_PORT = 53
LONGEST_LABEL, LONGEST_NAME = 63, 255  # bytes; RFC 1035 2.3.4

# Pairs of letters that make up most of English words, by frequency.
PAIRS = """
    th he in er an re nd at on nt ha es st en ed to it ou ea hi is or ti as te et ng of al de se le sa si ar ve ra ld ur
    me co ne ro ma ri li ic la el ce ta ll io ch us om no ca ec ss di tr pe sh mo op po so ac ho ee ie ni pa ap ad em wa
    be we ir ol ly il ge ai id im ut am lo ow un ag ke wi mi sp up ts fo do pr bo ba vi go ga ot bl cl su pl mp rs ct ay
"""
_PAIRS = frozenset(PAIRS.split())
COMMON_PAIRS = bytes(chr(97 + at // 26) + chr(97 + at % 26) in _PAIRS for at in range(26 * 26))
VOWELS, DIGITS, PLAIN = b"aeiouy", b"0123456789", b"abcdefghijklmnopqrstuvwxyz0123456789-."


class Datagram(NamedTuple):
    """An IP datagram; ports are 0 where there are none, the payload is that of UDP."""

    time: int
    source: bytes
    target: bytes
    source_port: int
    target_port: int
    size: int
    payload: bytes


class Question(NamedTuple):
    """A DNS message, by its first question."""

    time: int
    client: bytes
    response: bool
    name: bytes
    kind: int
    code: int


def ip_start(data: bytes, link: int) -> int:
    """Where the IP header begins behind a link layer; -1 if it is another protocol's."""
    if link in (LINK_ETHERNET, LINK_COOKED):
        at = 12 if link == LINK_ETHERNET else 14
        while at + 2 <= len(data) and (data[at] << 8 | data[at + 1]) in (VLAN, PROVIDER_VLAN):
            at += 4
        if at + 2 > len(data) or (data[at] << 8 | data[at + 1]) not in (IPV4, IPV6):
            return -1
        at += 2
    else:
        at = 4 if link == LINK_NULL else 0
    return at if at < len(data) and data[at] >> 4 in (4, 6) else -1


def datagrams(link: int) -> Callable[[Any], Iterator[Datagram]]:
    """Yield the function from a packet to its IP datagram, if it is one."""

    def datagram(t: Any) -> Iterator[Datagram]:
        data = t.data
        at = ip_start(data, link)
        if at >= 0 and data[at] >> 4 == 4 and at + 20 <= len(data):
            is_first = (data[at + 6] & 31) == 0 and data[at + 7] == 0
            end = min(len(data), at + (data[at + 2] << 8 | data[at + 3]))
            body = at + (data[at] & 15) * 4
            ported = is_first and body + 8 <= end and data[at + 9] in (TCP, UDP)
            yield Datagram(
                t.time,
                data[at + 12 : at + 16],
                data[at + 16 : at + 20],
                data[body] << 8 | data[body + 1] if ported else 0,
                data[body + 2] << 8 | data[body + 3] if ported else 0,
                t.size,
                data[body + 8 : end] if ported and data[at + 9] == UDP else b"",
            )
        elif at >= 0 and data[at] >> 4 == 6 and at + 40 <= len(data):
            end = min(len(data), at + 40 + (data[at + 4] << 8 | data[at + 5]))
            protocol, body = data[at + 6], at + 40
            while protocol in (HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS) and body + 8 <= end:
                protocol, body = data[body], body + 8 + data[body + 1] * 8
            ported = body + 8 <= end and protocol in (TCP, UDP)
            yield Datagram(
                t.time,
                data[at + 8 : at + 24],
                data[at + 24 : at + 40],
                data[body] << 8 | data[body + 1] if ported else 0,
                data[body + 2] << 8 | data[body + 3] if ported else 0,
                t.size,
                data[body + 8 : end] if ported and protocol == UDP else b"",
            )

    return datagram


def question(t: Datagram) -> Iterator[Question]:
    """Yield the first question of a DNS message over UDP; nothing for what is none."""
    data = t.payload
    if (t.source_port == DNS_PORT or t.target_port == DNS_PORT) and len(data) > 16 and (data[4] or data[5]):
        at = 12
        name = data[12:12]
        while at < len(data) and 0 < data[at] <= LONGEST_LABEL and at + 1 + data[at] < len(data):
            label = data[at + 1 : at + 1 + data[at]]
            name = name + b"." + label if len(name) > 0 else label
            at += 1 + data[at]
        if at + 5 <= len(data) and data[at] == 0 and len(name) <= LONGEST_NAME:
            response = data[2] >= 128
            client = t.target if response else t.source
            yield Question(t.time, client, response, name, data[at + 1] << 8 | data[at + 2], data[3] & 15)


def domain_start(name: bytes) -> int:
    """Where the registered domain begins: the last two labels, or three under a short second level such as co.uk."""
    last = name.rfind(b".")
    if last < 0:
        return 0
    before = name[:last].rfind(b".")
    if before >= 0 and len(name) - last == 3 and last - before <= 4:
        before = name[:before].rfind(b".")
    return before + 1


def entropy(text: bytes) -> float:
    """Shannon's, bits a byte; 0 for nothing."""
    total = 0.0
    for one in text:
        same = 0
        for other in text:
            if other == one:
                same += 1
        total += math.log2(len(text) / same)
    return total / len(text) if len(text) > 0 else 0.0


def share(text: bytes, wanted: bytes) -> float:
    """How many of the bytes are among those wanted, 0 to 1."""
    found = 0
    for one in text:
        if one in wanted:
            found += 1
    return found / len(text) if len(text) > 0 else 0.0


def common_pairs(text: bytes) -> float:
    """How many of the pairs of letters are frequent in English, 0 to 1."""
    pairs, common = 0, 0
    for at in range(len(text) - 1):
        first, second = text[at] - 97, text[at + 1] - 97
        if 0 <= first < 26 and 0 <= second < 26:
            pairs += 1
            common += COMMON_PAIRS[first * 26 + second]
    return common / pairs if pairs > 0 else 0.0
