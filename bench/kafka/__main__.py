"""A topic of a real broker: records/s and CPU time a record, ours beside librdkafka alone and other systems, in turn.

    python -m bench.kafka [--records 1000000] [--rounds 3] [--systems librdkafka rayelastic ...]

Messages of 100 bytes in two partitions, and objects of JSON with four fields, into `count`; then numbers into a topic,
exactly once and at least once, with a checkpoint a second. Each run is a process of its own. CPU time is that of the
process, not of the broker. Other systems are installed on first use.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.harness import alternated, arguments_of, medians
from bench.kafka.reads import READS, TUNED
from bench.peers.systems import ROOT, NotInstallableError, System
from rayelastic.connectors.kafka.client import library_file
from tools import kafka

FOLDER = Path(__file__).resolve().parent
PARTITIONS = 2
MESSAGE = b"x" * 100
OBJECT = '{"user": "user-%d", "n": %d, "price": %d.25, "ok": true}'
NANO = 1e9
WRITTEN = 2  # one record in so many is written into a topic
MOST_OURS = 100.0  # ns of CPU a record beside librdkafka's own
LEAST_JSON = 1e6  # records/s of one core
MOST_EXACT = 0.15  # of the time of at least once
LEAST = {"quixstreams": 10.0, "bytewax": 5.0}  # times our CPU a record
PEERS = {
    "bytewax": System("bytewax_kafka", ("bytewax==0.21.1", "confluent-kafka==2.16.1")),
    "quixstreams": System("quixstreams", ("quixstreams==3.28.1",)),
}
DELIVERIES = ("at-least-once", "exactly-once")


def main() -> int:
    parser = arguments_of("kafka", __doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", nargs="+", default=["librdkafka", *READS, *DELIVERIES])
    options = parser.parse_args()
    if missing := kafka.missing():
        print(f"{missing} isn't here: ./dev programs", file=sys.stderr)
        return 1
    with kafka.running() as broker, tempfile.TemporaryDirectory() as folder:
        topics = filled(broker.address, options.records)
        commands = {
            name: command
            for name in options.systems
            if (command := command_of(name, broker.address, topics, options.records, Path(folder)))
        }
        cpu: dict[str, list[float]] = {name: [] for name in commands}

        def run(name: str) -> float:
            ran = subprocess.run(commands[name], cwd=ROOT, capture_output=True, text=True, check=True)
            found = json.loads(ran.stdout.splitlines()[-1])
            cpu[name].append(NANO * found["cpu"] / found["records"])
            return float(found["records"] / found["seconds"])

        rates = alternated(options.rounds, {name: lambda name=name: run(name) for name in commands})  # type: ignore[misc]
    report(rates, cpu)
    return 0


def filled(brokers: str, records: int) -> dict[str, str]:
    """Make the topics, two with records; return {system: topic}."""
    import confluent_kafka
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"bootstrap.servers": brokers, "log_level": 0})
    names = ("messages", "objects", *DELIVERIES)
    for made in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        made.result()
    settings = {"bootstrap.servers": brokers, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    producer = confluent_kafka.Producer({**settings, "log_level": 0, "enable.idempotence": True})
    for topic in ("messages", "objects"):
        for n in range(records):
            value = MESSAGE if topic == "messages" else OBJECT % (n % 1000, n, n % 100)
            producer.produce(topic, value, partition=n * PARTITIONS // records)
            if n % 1000 == 0:
                while len(producer) > records // 4:
                    producer.poll(0.01)
        producer.flush()
    return {"rayelastic_json": "objects", **{name: name for name in DELIVERIES}}


def command_of(name: str, brokers: str, topics: dict[str, str], records: int, folder: Path) -> list[str]:
    """Return the command of a system; empty: it can't be installed, which is printed."""
    topic = topics.get(name, "messages")
    if name == "librdkafka":
        program, native = folder / name, ROOT / "native_sched"
        sources = [FOLDER / "librdkafka.cpp", native / "src" / "operators" / "kafka" / "librdkafka.cpp"]
        include = [f"-I{native / 'src'}", f"-I{native / 'include'}"]
        subprocess.run(["g++", "-std=c++20", "-O2", *include, *sources, "-o", program, "-ldl"], check=True)
        settings = {"bootstrap.servers": brokers, "group.id": "reads", "isolation.level": "read_committed", **TUNED}
        own = [f"{key}={value}" for key, value in settings.items()]
        return [str(program), library_file(), topic, f"{PARTITIONS}", f"{records}", *own]
    python = sys.executable
    if name in PEERS:
        try:
            python = str(PEERS[name].python())
        except NotInstallableError as error:
            print(f"{name} can't be installed: {error}")
            return []
    script, part = ("writes.py", WRITTEN) if name in DELIVERIES else ("reads.py", 1)
    return [python, str(FOLDER / script), name, brokers, topic, f"{records // part}"]


def report(rates: dict[str, list[float]], cpu: dict[str, list[float]]) -> None:
    """Print a table, and what was wanted."""
    took = medians(cpu)
    print(f"{'':18} {'records/s':>12} {'ns of CPU a record':>28}")
    for name, found in rates.items():
        span = f"{min(cpu[name]):,.0f} to {max(cpu[name]):,.0f}"
        print(f"{name:18} {statistics.median(found):>12,.0f} {took[name]:>12,.0f} ({span})")
    ours = took.get("rayelastic")
    if ours is not None and "librdkafka" in took:
        more = statistics.median(a - b for a, b in zip(cpu["rayelastic"], cpu["librdkafka"], strict=True))
        print(f"ours beside librdkafka: {more:+,.0f} ns a record, at most {MOST_OURS:g}: {met(more <= MOST_OURS)}")
    if "rayelastic_json" in took:
        core = NANO / took["rayelastic_json"]
        print(f"JSON: {core:,.0f} records/s a core, at least {LEAST_JSON:,.0f}: {met(core >= LEAST_JSON)}")
    for name, least in LEAST.items():
        if ours is not None and name in took:
            times = took[name] / ours
            print(f"{name}: {times:.1f} times our CPU a record, at least {least:g}: {met(times >= least)}")
    if all(name in rates for name in DELIVERIES):
        less = 1 - statistics.median(b / a for a, b in zip(*(rates[name] for name in DELIVERIES), strict=True))
        print(f"exactly once: {less:.0%} fewer records/s, at most {MOST_EXACT:.0%}: {met(less <= MOST_EXACT)}")


def met(is_met: bool) -> str:
    return "met" if is_met else "NOT MET"


if __name__ == "__main__":
    sys.exit(main())
