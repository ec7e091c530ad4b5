"""The page and the port of Prometheus by TLS: what they show, whom they let in, and mistakes told before a start."""

import ssl
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import HTTPCookieProcessor, HTTPSHandler, build_opener

import pytest

import rayelastic as rel
from rayelastic.errors import ConfigError
from rayelastic.job import start
from rayelastic.testing import Gate, script
from tests.component.network.certificates import make_certificates
from tests.raising import raises

TIMEOUT = 10.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


def client(folder: Path, name: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ours.pem"))
    if name:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


def read(url: str, context: ssl.SSLContext | None) -> str:
    opener = build_opener(HTTPSHandler(context=context), HTTPCookieProcessor())  # the page's token becomes a cookie
    with opener.open(url, timeout=TIMEOUT) as answer:
        return str(answer.read().decode())


def topology(gate: Gate) -> rel.Topology:
    made = rel.Topology("watched")
    made.source(script([gate, (1,)], {"n": int}), name="rows").sink(rel.count(), name="out")
    return made


@pytest.mark.parametrize("mutual", [False, True])
def test_page_and_metrics_are_served_by_tls(folder: Path, mutual: bool) -> None:
    ca = str(folder / "ours.pem") if mutual else None
    tls = rel.TLS(str(folder / "port.pem"), str(folder / "port.key"), ca)
    gate = Gate()
    job = start(topology(gate), rel.JobConfig(web_port=0, network=rel.Network(tls=tls)), metrics_port=0)
    try:
        page = job.web_url
        assert page is not None
        assert page.startswith("https://127.0.0.1:")
        metrics = f"https://127.0.0.1:{job.metrics_port}/metrics"
        known = client(folder, "friend" if mutual else "")
        assert "<title>" in read(page, known)
        assert 'rel_job="watched"' in read(metrics, known)
        refused = [None, client(folder), client(folder, "stranger")] if mutual else [ssl.create_default_context()]
        for context in refused:
            for url in (page, metrics):
                with pytest.raises((URLError, ssl.SSLError, ConnectionError)) as refusal:
                    read(url, context)
                assert not isinstance(refusal.value, HTTPError)  # nobody has answered
        with pytest.raises((URLError, ConnectionError)):
            read(metrics.replace("https", "http"), None)
    finally:
        gate.open()
        assert job.wait(TIMEOUT)["out"] == 1


def test_mistakes_are_told_before_the_start(folder: Path) -> None:
    gate = Gate()
    good = [str(folder / "port.pem"), str(folder / "port.key")]
    for tls, code, value in (
        (rel.TLS(str(folder / "none.pem"), good[1]), "missing-file", "none.pem"),
        (rel.TLS(good[0], str(folder / "friend.key")), "bad-certificate", "friend.key"),
        (rel.TLS(good[0], good[1], good[1]), "bad-certificate", f"rel.TLS(ca='{good[1]}')"),
    ):
        with raises(ConfigError, code, value):
            start(topology(gate), rel.JobConfig(web_port=0, network=rel.Network(tls=tls)))
    with raises(ConfigError, "invalid-setting", "True"):
        rel.JobConfig(network=rel.Network(tls=True))  # type: ignore[arg-type]
    with raises(ConfigError, "invalid-setting", "key="):
        rel.TLS("cert.pem", "")
