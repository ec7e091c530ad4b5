"""Packet analysis of a real capture and of traffic that is made up, against plain Python over the same packets."""

from __future__ import annotations

import gzip
import ipaddress
import math
import struct
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

import rayelastic as rel
from rayelastic.cli import main
from rayelastic.plan.settings.threads import ModelName
from rayelastic.runtime.watch.machine_load import available_cpus
from rayelastic.topologies import dns, dns_traffic, packet_analysis, pcap, threats

SECOND = 1_000_000  # microseconds
LIMITS = threats.Thresholds()
Found = dict[str, list[tuple[Any, ...]]]


# --- the reference: protocols and detectors once more, in plain Python ------------------------------------------------


def entropy(text: bytes) -> float:
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def ip_of(frame: bytes) -> tuple[str, str, int, int, bytes] | None:
    """Source, target, ports and UDP payload of an Ethernet frame."""
    kind, body = struct.unpack_from(">H", frame, 12)[0], frame[14:]
    if kind == 0x0800 and len(body) >= 20:
        source, target = (str(ipaddress.ip_address(body[at : at + 4])) for at in (12, 16))
        data, protocol = body[(body[0] & 15) * 4 : struct.unpack_from(">H", body, 2)[0]], body[9]
    elif kind == 0x86DD and len(body) >= 40:
        source, target = (str(ipaddress.ip_address(body[at : at + 16])) for at in (8, 24))
        data, protocol = body[40 : 40 + struct.unpack_from(">H", body, 4)[0]], body[6]
        while protocol in (0, 43, 60):
            protocol, data = data[0], data[8 + 8 * data[1] :]
    else:
        return None
    if protocol not in (6, 17) or len(data) < 8:
        return source, target, 0, 0, b""
    return source, target, *struct.unpack_from(">HH", data), data[8:] if protocol == 17 else b""


def question_of(data: bytes) -> tuple[bytes, int, bool] | None:
    """Name, type and whether it is a response."""
    if len(data) < 17 or struct.unpack_from(">H", data, 4)[0] == 0:
        return None
    labels, at = [], 12
    while data[at]:
        labels.append(data[at + 1 : at + 1 + data[at]])
        at += 1 + data[at]
    return b".".join(labels), struct.unpack_from(">H", data, at + 1)[0], data[2] > 127


def split_name(name: bytes) -> tuple[bytes, bytes]:
    """What stands in front of the registered domain, and the domain."""
    labels = name.split(b".")
    count = 3 if len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3 else 2
    return b".".join(labels[:-count]), b".".join(labels[-count:])


def name_score(label: bytes) -> float:
    letters = [label[at : at + 2] for at in range(len(label) - 1) if label[at : at + 2].isalpha()]
    pairs = sum(pair.decode() in dns._PAIRS for pair in letters) / len(letters) if letters else 0.0
    digits, vowels = (sum(c in wanted for c in label) / len(label) for wanted in (b"0123456789", b"aeiouy"))
    disorder = min(1, max(0, (entropy(label) - 2.5) / 1.25))
    return 0.45 * (1 - pairs) + 0.2 * min(1, 4 * digits) + 0.1 * max(0, 1 - 3 * vowels) + 0.25 * disorder


def reference(packets: list[pcap.Packet] | tuple[pcap.Packet, ...]) -> Found:
    domains: dict[str, tuple[int, float]] = {}
    texts: defaultdict[tuple[str, str, int], list[tuple[bytes, int]]] = defaultdict(list)
    volumes: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for packet in packets:
        datagram = ip_of(packet.data)
        if datagram is None:
            continue
        source, _, *ports, payload = datagram
        volumes[source][packet.time // SECOND] += packet.size
        asked = question_of(payload) if 53 in ports else None
        if asked is None or asked[2]:
            continue
        front, domain = split_name(asked[0])
        shown = domain.lower().decode("ascii", "backslashreplace")
        label = domain.lower().split(b".")[0]
        if domain.count(b".") and len(label) >= LIMITS.label:
            domains.setdefault(shown, (packet.time, name_score(label)))
        if front:
            texts[source, shown, packet.time // SECOND // LIMITS.window].append((front, asked[1]))
    generated = [(d, first, score) for d, (first, score) in domains.items() if score >= LIMITS.generated]
    return {"generated": generated, "tunnels": tunnels(texts), "bursts": bursts(volumes)}


def tunnels(texts: dict[tuple[str, str, int], list[tuple[bytes, int]]]) -> list[tuple[Any, ...]]:
    found: defaultdict[tuple[str, str], list[tuple[int, int, float]]] = defaultdict(list)
    for (client, domain, window), asked in texts.items():
        n = len(asked)
        many = min(1, len({text for text, _ in asked}) / 20)
        long = min(1, sum(len(text) for text, _ in asked) / n / 40)
        disorder = min(1, sum(entropy(text) for text, _ in asked) / n / 4)
        odd = sum(sum(c not in dns.PLAIN for c in text) / len(text) for text, _ in asked) / n
        rare = sum(kind in (10, 16) or kind > 65000 for _, kind in asked) / n
        score = 0.3 * many + 0.2 * long + 0.15 * disorder + 0.1 * min(1, 4 * odd) + 0.25 * rare
        if n >= LIMITS.queries and score >= LIMITS.tunnel:
            found[client, domain].append((window * LIMITS.window * SECOND, n, score))
    return [
        (*pair, min(w[0] for w in windows), len(windows), sum(w[1] for w in windows), max(w[2] for w in windows))
        for pair, windows in found.items()
    ]


def bursts(volumes: dict[str, Counter[int]]) -> list[tuple[Any, ...]]:
    found = []
    for source, seconds in volumes.items():
        usual, over = None, []
        for second, volume in sorted(seconds.items()):
            before = float(volume) if usual is None else usual
            usual = before + LIMITS.weight * (volume - before)
            if volume >= LIMITS.burst * before and volume >= LIMITS.volume:
                over.append((second * SECOND, volume, int(math.log2(volume / before))))
        if over:
            found.append((source, over[0][0], len(over), max(o[1] for o in over), max(o[2] for o in over)))
    return found


def found_in(output: Path) -> Found:
    tables = {what: parquet.read_table(output / what).to_pylist() for what in ("generated", "tunnels", "bursts")}
    return {what: [tuple(row.values()) for row in rows] for what, rows in tables.items()}


def check(found: Found, expected: Found) -> None:
    for what, rows in expected.items():
        assert sorted(row[:-1] for row in found[what]) == sorted(row[:-1] for row in rows), what
        scores = {row[:-1]: row[-1] for row in rows}
        assert [row[-1] for row in found[what]] == pytest.approx([scores[row[:-1]] for row in found[what]])


# --- tests ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dns_traffic.Marked, Found]:
    path = tmp_path_factory.mktemp("traffic") / "made_up.pcap"
    packets, marked = dns_traffic.network(8000, seed=3)
    pcap.write(path, packets)
    return str(path), marked, reference(packets)


def test_a_real_tunnel(dns_capture: Path, tmp_path: Path) -> None:
    rel.run(packet_analysis.build(str(dns_capture), str(tmp_path)))
    found = found_in(tmp_path)
    check(found, reference(pcap.read(str(dns_capture)).packets))
    assert {row[1] for row in found["tunnels"]} == {"pirate.sea"}


@pytest.mark.parametrize("operators", [37, 387])
def test_traffic_that_nobody_has_seen(
    traffic: tuple[str, dns_traffic.Marked, Found], tmp_path: Path, operators: int
) -> None:
    path, marked, expected = traffic
    topology = packet_analysis.build(path, str(tmp_path), operators)
    assert len(topology.operators) == operators
    rel.run(topology, rel.JobConfig(threads=rel.Threads(count=2, model="dynamic", queue_records=256)))
    found = found_in(tmp_path)
    check(found, expected)
    assert {row[0] for row in found["generated"]} == {name.decode() for name in marked.generated}
    assert {row[1] for row in found["tunnels"]} == {marked.tunnel.decode()}
    assert str(ipaddress.ip_address(marked.burst)) in {row[0] for row in found["bursts"]}


def run_2305(path: str, output: Path, config: rel.JobConfig) -> rel.Job:
    topology = packet_analysis.build(path, str(output), 2305)
    assert len(topology.operators) == 2305
    job = rel.start(topology, config)
    job.wait()
    return job


def test_2305_operators_under_multi_level_elasticity(
    traffic: tuple[str, dns_traffic.Marked, Found], tmp_path: Path
) -> None:
    path, _, expected = traffic
    job = run_2305(path, tmp_path, rel.JobConfig(elasticity=rel.Elasticity(thread_period=0.1)))
    check(found_in(tmp_path), expected)
    passes = list(job.adaptations(every_pass=True))
    assert all(one.thread_count <= available_cpus() for one in passes)  # type: ignore[union-attr]


@pytest.mark.nightly
@pytest.mark.parametrize("threading", ["manual", "dynamic", "dedicated"])
def test_2305_operators_under_each_threading_model(
    traffic: tuple[str, dns_traffic.Marked, Found], tmp_path: Path, threading: ModelName
) -> None:
    path, _, expected = traffic
    run_2305(
        path, tmp_path, rel.JobConfig(threads=rel.Threads(count=2, model=threading, queue_records=64, run_records=16))
    )
    check(found_in(tmp_path), expected)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "ticks"), [(0xA1B2C3D4, 1_000_000), (0xA1B23C4D, 1_000_000_000)])
def test_captures_of_both_byte_orders_and_units(tmp_path: Path, order: str, magic: int, ticks: int) -> None:
    file = tmp_path / "one.pcap"
    record = struct.pack(f"{order}IIII", 7, ticks // 4, 3, 1500) + b"abc"
    cut = struct.pack(f"{order}IIII", 8, 0, 60, 60) + b"cut off"
    file.write_bytes(struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 101) + record + cut)
    with pytest.warns(RuntimeWarning, match="is cut off in packet 2: 1 are read, 23 bytes are left"):
        assert pcap.read(str(file)) == pcap.Capture(101, (pcap.Packet(7_250_000, 1500, b"abc"),))


@pytest.mark.parametrize("link", [0x54000001, 0xF0000001, 1])
def test_bits_of_a_checksum_are_none_of_the_link_type(tmp_path: Path, link: int) -> None:
    file = tmp_path / "checked.pcap"
    pcap.write(file, [pcap.Packet(1, 3, b"abc")], link)
    assert pcap.read(str(file)).link == pcap.LINK_ETHERNET


def test_a_bad_record_tells_where_and_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "damaged.pcap"
    pcap.write(file, [pcap.Packet(n, 100, bytes(100)) for n in range(9070)])
    content = bytearray(file.read_bytes())
    at = 24 + 1000 * 116
    content[at + 8 : at + 12] = b"\xff" * 4
    file.write_bytes(content)
    assert main(["run", "rayelastic.topologies.packet_analysis", "--input", str(file)]) == 2
    said = capsys.readouterr().err
    assert f"'{file}' is damaged: packet 1,001, at byte 116,024, says that it has 4,294,967,295 bytes" in said
    assert f"1,000 packets are before it, {len(content) - at:,} bytes left" in said


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_damaged_gzip_is_told(tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "damaged.pcap.gz"
    pcap.write(file, [pcap.Packet(n, 100, bytes(100)) for n in range(9070)])
    packed = gzip.compress(file.read_bytes())
    file.write_bytes(packed[:-9] if damage == "cut" else packed[:500] + b"\xff" * 9 + packed[509:])
    assert main(["run", "rayelastic.topologies.packet_analysis", "--input", str(file)]) == 2
    assert f"'{file}' is damaged (gzip): " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x0a\x0d\x0d\x0a" + bytes(40), "editcap"),
        (b"hello, world, this is no capture", "is no capture"),
        (struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 127), "link type 127"),
    ],
)
def test_what_is_no_capture_is_refused(
    tmp_path: Path, content: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong"
    file.write_bytes(content)
    assert main(["run", "rayelastic.topologies.packet_analysis", "--input", str(file)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("link", [pcap.LINK_NULL, pcap.LINK_ETHERNET, pcap.LINK_RAW, pcap.LINK_COOKED])
def test_link_layers(link: int) -> None:
    packet = dns_traffic.ipv4(bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]), 17, dns_traffic.udp(5, 53, b"payload"))
    front = {
        pcap.LINK_NULL: b"\x02\0\0\0",
        pcap.LINK_ETHERNET: bytes(12) + b"\x81\0\0\x07\x08\0",  # a VLAN tag
        pcap.LINK_RAW: b"",
        pcap.LINK_COOKED: bytes(14) + b"\x08\0",
    }[link]
    (found,) = dns.datagrams(link)(pcap.Packet(0, 99, front + packet))
    assert found == dns.Datagram(0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]), 5, 53, 99, b"payload")
    for size in range(len(front)):  # cut anywhere
        assert not list(dns.datagrams(link)(pcap.Packet(0, 99, front[:size])))


@pytest.mark.parametrize("data", [dns_traffic.message("a.b", 1)[:n] for n in range(20)] + [bytes(12) + b"\xc0\x0c" * 9])
def test_damaged_messages_have_no_question(data: bytes) -> None:
    assert not list(dns.question(dns.Datagram(0, b"", b"", 1, 53, 0, data)))
