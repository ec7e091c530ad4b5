"""Fetches Apache Kafka by Maven, and starts a broker in KRaft mode: for tests, benchmarks and demos.

Two coordinates bring all jars. A broker is one process in a folder of its own, controller and broker in one.
"""

from __future__ import annotations

import base64
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.maven import copy_jars

VERSION = "4.4.0"
COORDINATES = (
    ("org.apache.kafka", "kafka_2.13", VERSION),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.5"),  # without it nothing is logged
)
JARS = Path(__file__).resolve().parent.parent / "build" / "programs" / f"kafka-{VERSION}"
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
PATIENCE = 120.0  # seconds until a broker answers
LOOK = 0.05  # seconds between two questions whether it does
LEAST_PORT = 10_000
USER, PASSWORD = "jobs", "of-the-broker-itself"  # at the listener that asks for them
SESSION = 4000  # ms until a killed broker may register again; less fences a broker of a busy machine


def missing() -> str:
    """Return what a broker needs and isn't there; empty: nothing."""
    for program in ("java", "openssl"):
        if not shutil.which(program):
            return program
    return "" if list(JARS.glob("kafka_2.13-*.jar")) else "Kafka"


def fetch() -> int:
    """Fetch the jars, unless they are there; return Maven's exit status."""
    if missing() != "Kafka":
        return 0
    if not shutil.which("mvn"):
        print("Kafka isn't fetched: mvn isn't here")
        return 0
    return copy_jars(JARS, COORDINATES)


class Broker:
    """One broker, and its folder.

    Clients that ask at its second listener, `proxied`, are sent there again, so a proxy may stand between. Its third
    one, `guarded`, speaks TLS with the certificate `certificate`, and asks for a user and a password by SASL.

    Args:
        folder: An empty folder.
        node: Its number in the cluster.
        controllers: The port of each node's controller; by default it is alone.
        name: The cluster's id; by default a new one.
    """

    def __init__(
        self, folder: Path, node: int = 1, controllers: Mapping[int, int] | None = None, name: str = ""
    ) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        port, free, guarded, self.behind_port, self.proxy_port = _free_ports(5)
        controllers = controllers or {node: free}
        copies = len(controllers)
        self.address = f"127.0.0.1:{port}"
        self.proxied = f"127.0.0.1:{self.proxy_port}"  # of a proxy to `behind_port`
        self.guarded = f"127.0.0.1:{guarded}"
        self._port = port
        self.certificate = folder / "certificate.pem"
        _certify(self.certificate, folder / "certificate.key")
        settings = {
            "process.roles": "broker,controller",
            "node.id": f"{node}",
            "controller.quorum.voters": ",".join(f"{one}@127.0.0.1:{at}" for one, at in controllers.items()),
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controllers[node]},"
            f"PROXIED://127.0.0.1:{self.behind_port},GUARDED://{self.guarded}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},PROXIED://{self.proxied},GUARDED://{self.guarded}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT,"
            "GUARDED:SASL_SSL",
            "listener.name.guarded.ssl.keystore.type": "PEM",
            "listener.name.guarded.ssl.keystore.location": f"{folder}/certificate.key",
            "listener.name.guarded.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.guarded.plain.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule "
            f'required user_{USER}="{PASSWORD}";',
            "log.dirs": f"{folder}/data",
            "default.replication.factor": f"{copies}",
            "min.insync.replicas": f"{copies // 2 + 1}",
            "offsets.topic.replication.factor": f"{copies}",
            "transaction.state.log.replication.factor": f"{copies}",
            "transaction.state.log.min.isr": f"{copies // 2 + 1}",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "broker.session.timeout.ms": f"{SESSION}",
        }
        self._file = folder / "server.properties"
        self._file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
        self._java("kafka.tools.StorageTool", "format", "-t", name or _new_id(), "-c", str(self._file)).wait()

    def launch(self) -> None:
        """Start it."""
        self._process = self._java("kafka.Kafka", str(self._file))

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.launch()
        self.await_answer()

    def await_answer(self) -> None:
        """Wait until it answers."""
        assert self._process is not None
        waited = 0.0
        while not self._answers():
            with contextlib.suppress(subprocess.TimeoutExpired):
                raise RuntimeError(f"Kafka ended with {self._process.wait(LOOK)}, see {self._folder}/log")
            waited += LOOK
            if waited > PATIENCE:
                raise RuntimeError(f"Kafka doesn't answer, see {self._folder}/log")

    def kill(self) -> None:
        """Kill it."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Have it stand still."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
            return True
        return False

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        with Path(self._folder, "log").open("ab") as log:
            command = ["java", *JVM, "-cp", f"{JARS}/*", *arguments]
            return subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder, env={**os.environ, "LANG": "C"})


def _new_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _certify(certificate: Path, pair: Path) -> None:
    """Write a certificate for this machine, and a file with its key and itself."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(pair))
    names = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "30")
    subprocess.run(["openssl", "req", "-x509", *key, *names, "-out", str(certificate)], check=True, capture_output=True)
    with pair.open("a", encoding="ascii") as both:
        both.write(certificate.read_text(encoding="ascii"))


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, and that the system gives to no outgoing connection meanwhile."""
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    found: list[int] = []
    for port in random.SystemRandom().sample(range(LEAST_PORT, first_outgoing), first_outgoing - LEAST_PORT):
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            break
    return found


@contextmanager
def running() -> Iterator[Broker]:
    """Start a broker, and end it after the block."""
    with cluster(1) as (broker,):
        yield broker


@contextmanager
def cluster(size: int) -> Iterator[Sequence[Broker]]:
    """Start brokers that keep a copy of each message each, and end them after the block."""
    controllers = dict(enumerate(_free_ports(size), 1))
    with tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True) as folder:
        brokers, name = [], _new_id()
        for node in controllers:
            Path(folder, f"{node}").mkdir()
            brokers.append(Broker(Path(folder, f"{node}"), node, controllers, name))
        try:
            for broker in brokers:
                broker.launch()
            for broker in brokers:
                broker.await_answer()
            yield brokers
        finally:
            for broker in brokers:
                broker.kill()
