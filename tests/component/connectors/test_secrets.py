"""A secret is read where it is used, and is in nothing that a job writes, stores or sends."""

from __future__ import annotations

import os
import pickle
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pytest

import rayelastic as rel
from rayelastic.connectors.secret import Secret
from tests.kafka import Topics, kafka_broker, needs_kafka, topics
from tests.postgres import needs_postgres, postgres_server
from tests.raising import raises
from tests.waiting import wait_until
from tools.kafka import PASSWORD, USER

__all__ = ["kafka_broker", "topics"]  # fixtures

WORD = "Kq7-of-the-database-itself"  # looked for in all that is written
WRONG = "Kq7-not-the-one"


class Row(NamedTuple):
    number: int


ROWS = [Row(number) for number in range(500)]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("psycopg")
    with postgres_server(WORD) as conninfo:
        yield conninfo


def topology_of(sink: Any) -> rel.Topology:
    made = rel.Topology("with_secret")
    made.source(rel.rows(ROWS), name="rows").throttle(500).sink(sink, name="out")
    return made


def from_file(folder: Path) -> Secret:
    path = folder.parent / f"{folder.name}-secret"  # not among what is searched
    path.write_text(f"{WORD}\n")
    path.chmod(stat.S_IRUSR)
    return rel.secret(file=str(path))


def read_it() -> str:
    return os.environ["OF_THE_VAULT"]


PLACES: dict[str, Callable[[Path], Secret]] = {
    "variable": lambda _: rel.secret("OF_THE_DATABASE"),
    "file": from_file,
    "call": lambda _: rel.secret(call=read_it),
}


def written(*folders: Path) -> Iterator[tuple[str, bytes]]:
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file():
                yield str(path), path.read_bytes()


@needs_postgres
@pytest.mark.parametrize("place", PLACES)
def test_no_artefact_of_a_job_has_the_secret(
    place: str,
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    import psycopg

    monkeypatch.setenv("OF_THE_DATABASE", WORD)
    monkeypatch.setenv("OF_THE_VAULT", WORD)
    topology = topology_of(rel.postgres(server, f"of_{place}", password=PLACES[place](tmp_path)))
    shipped = cloudpickle.dumps(topology)
    texts = [f"{topology!r}", f"{topology.explain()}"]
    config = rel.JobConfig(checkpoint=rel.Checkpoint(str(tmp_path / "checkpoints"), every=0.2))
    with caplog.at_level(0), closing(rel.start(topology, config)) as job:
        wait_until(job, lambda: job.status.checkpoints.taken > 0)
        found = list(written(tmp_path, Path(os.environ["XDG_STATE_HOME"])))
        texts.append(f"{job.wait()!r}")
        texts += [f"{job.status}", f"{job.metrics()}", f"{job.adaptations(every_pass=True)}"]
    with psycopg.connect(server, password=WORD) as connection:
        assert connection.execute(f"SELECT count(*) FROM of_{place}").fetchone() == (len(ROWS),)
    captured = capfd.readouterr()
    texts += [caplog.text, captured.out, captured.err]
    found += written(tmp_path, Path(os.environ["XDG_STATE_HOME"]))
    assert any("checkpoints" in name for name, _ in found)
    assert not [name for name, content in found if WORD.encode() in content]
    assert WORD.encode() not in shipped
    assert not [text for text in texts if WORD in text]


@needs_postgres
def test_no_error_has_the_secret(
    server: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cases: dict[str, tuple[Any, str, Secret | None]] = {
        "rejected": (server, WRONG, rel.secret("OF_THE_DATABASE")),
        "malformed": (rel.secret("WHOLE"), f"host=here {WRONG}", None),
        "malformed number": (rel.secret("WHOLE"), f"postgresql://u:{WRONG}@h:{WRONG}/d", None),
    }
    for name, (conninfo, value, password) in cases.items():
        monkeypatch.setenv("OF_THE_DATABASE", value)
        monkeypatch.setenv("WHOLE", value)
        with pytest.raises(rel.errors.RayelasticError) as raised:
            rel.run(topology_of(rel.postgres(conninfo, "nowhere", password=password)))
        texts = [*_texts(raised.value), pickle.dumps(raised.value).decode("latin-1"), caplog.text]
        assert any("PostgreSQL" in text for text in texts), name
        assert not [text for text in texts if WRONG in text], name


def _texts(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield f"{error!s} {error!r} {error.args}"
        error = error.__cause__


@needs_postgres
def test_a_secret_that_is_not_there_is_named_with_its_operator(server: str, tmp_path: Path) -> None:
    def fails() -> str:
        raise ValueError(WORD)

    cases = {
        "variable='NOT_SET_HERE'": rel.secret("NOT_SET_HERE"),
        f"file='{tmp_path}/none'": rel.secret(file=f"{tmp_path}/none"),
        "ValueError": rel.secret(call=fails),
    }
    for text, missing in cases.items():
        with pytest.raises(rel.errors.RayelasticError) as raised:
            rel.run(topology_of(rel.postgres(server, "nowhere", password=missing)))
        assert rel.errors.code_of(raised.value) == "unreadable-secret"
        assert "operator 'out'" in str(raised.value)
        assert text in str(raised.value)
        assert not [text for text in _texts(raised.value) if WORD in text]


@needs_postgres
def test_a_password_in_plain_text_is_rejected_and_not_shown(server: str) -> None:
    with pytest.raises(rel.errors.SinkError, match="is no secret") as raised:
        topology_of(rel.postgres(server, "nowhere", password=WORD))  # type: ignore[arg-type]
    assert WORD not in str(raised.value)


def test_a_secret_cannot_become_part_of_a_text() -> None:
    with pytest.raises(rel.errors.ConfigError, match=r"secret\.read"):
        f"postgresql://jobs:{rel.secret('OF_THE_DATABASE')}@host"
    for wrong in ({}, {"file": "a", "variable": "B"}, {"call": "no function"}, {"variable": 3}):
        with pytest.raises(rel.errors.ConfigError, match="one place"):
            rel.secret(**wrong)


def test_a_function_reads_the_secret_that_it_captures(monkeypatch: pytest.MonkeyPatch) -> None:
    key = rel.secret("OF_AN_API")
    topology = rel.Topology("signs")
    signed = topology.source(rel.rows(ROWS[:2]), name="rows").map(
        lambda t: f"{t.number}{key.read()}", name="sign", schema={"value": str}
    )
    signed.sink(rel.list(), name="out")
    monkeypatch.setenv("OF_AN_API", WORD)
    assert WORD.encode() not in cloudpickle.dumps(topology)
    assert [t.value for t in rel.run(topology)["out"]] == [f"0{WORD}", f"1{WORD}"]


@needs_kafka
def test_brokers_that_ask_for_a_password_get_the_secret(
    topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OF_THE_BROKER", PASSWORD)
    settings: dict[str, object] = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(topics.broker.certificate),
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": rel.secret("OF_THE_BROKER"),
    }
    topic, brokers = topics.make(), topics.broker.guarded
    config = rel.JobConfig(checkpoint=rel.Checkpoint(str(tmp_path / "checkpoints"), every=0.2))
    for delivery in ("at-least-once", "exactly-once"):
        rel.run(topology_of(rel.to_kafka(brokers, topic, delivery=delivery, settings=settings)), config)
    reading = rel.Topology("reads")
    reading.source(rel.kafka(brokers, topic, {"number": int}, stop="end", settings=settings), name="messages").sink(
        rel.list(), name="out"
    )
    assert sorted(t.number for t in rel.run(reading)["out"]) == sorted(2 * [row.number for row in ROWS])
    assert not [name for name, content in written(tmp_path) if PASSWORD.encode() in content]
    assert PASSWORD.encode() not in cloudpickle.dumps(reading)
    unknown = {**settings, "ssl.ca.location": "probe"}  # the authorities of the system, which don't know the broker
    other = rel.Topology("not_believed")
    other.source(rel.kafka(brokers, topic, bytes, settings=unknown), name="messages").sink(rel.count(), name="out")
    with raises(rel.errors.SourceError, "bad-credentials", "certificate"):
        rel.run(other)
    monkeypatch.setenv("OF_THE_BROKER", WRONG)
    with pytest.raises(rel.errors.RayelasticError) as raised:
        rel.run(reading)
    assert rel.errors.code_of(raised.value) == "bad-credentials"
    assert not [text for text in (*_texts(raised.value), caplog.text) if WRONG in text or PASSWORD in text]
