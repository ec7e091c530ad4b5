"""The page behind a path prefix, in Chromium: a proxy of our own, and a real Jupyter server with its proxy."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from playwright.sync_api import Page, expect

import rayelastic as rel
from rayelastic.job import start
from tests.component.web.in_browser import CHROMIUM, Open, running

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: ./dev programs installs it")
BASE = "/user/ann/"  # as on a JupyterHub


class Proxy:
    """A proxy as Jupyter's: serves another server below a path, which it takes off."""

    def __init__(self, url: str, prefix: str) -> None:
        self.root, self.token = url.split("/?token=")
        self.prefix = prefix
        self.url = ""
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.run_forever()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_route("*", self.prefix + "{rest:.*}", self._pass_on)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}{self.prefix}?token={self.token}"
        self._ready.set()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        address = f"{self.root}/{request.match_info['rest']}"
        kept = {
            name: value for name, value in request.headers.items() if name.lower() not in ("host", "accept-encoding")
        }
        async with (
            ClientSession(auto_decompress=False) as session,
            session.request(
                request.method, address, params=request.query, headers=kept, data=await request.read(),
                allow_redirects=False,
            ) as answer,
        ):  # fmt: skip
            passed = web.StreamResponse(status=answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    passed.headers.add(name, value)
            await passed.prepare(request)
            async for part in answer.content.iter_any():
                await passed.write(part)
            return passed


def acted_on(page: Page, prefix: str) -> None:
    """Has the page's job get two replicas, and looks that all of the page is below the prefix."""
    assert page.url.startswith(prefix)
    expect(page.locator("#state")).to_have_text("running")
    expect(page.locator("#numbers")).to_contain_text("tuples/s")
    page.locator("#replicas").fill("2")
    page.locator("#rescale button").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#answer")).to_contain_text("Done")
    expect(page.locator("#events")).to_contain_text("1 → 2 replicas")  # the stream of updates tells it
    asked = page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    assert asked
    assert all(one.startswith(prefix) for one in asked)


def test_behind_a_path_prefix_it_is_followed_and_acted_on(opened: Open) -> None:
    job = start(running(), rel.JobConfig(regions="manual", web_port=0))
    proxy = Proxy(job.web_url or "", "/user/ann/proxy/8080/")
    try:
        page = opened(proxy.url)
        acted_on(page, proxy.url.partition("?")[0])
        page.close()  # it would complain of a server that has left
    finally:
        job.close()
        proxy.close()


@pytest.fixture
def jupyter(tmp_path: Path) -> Iterator[str]:
    """The address of a Jupyter server, with its token: http://127.0.0.1:8888/user/ann/?token=..."""
    secret = secrets.token_hex(16)
    folders = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    settings = ["port=0", "open_browser=False", "allow_root=True", f"base_url={BASE}", f"root_dir={tmp_path}"]
    command = [sys.executable, "-m", "jupyter_server", *(f"--ServerApp.{setting}" for setting in settings)]
    environment = {**os.environ, **folders, "JUPYTER_TOKEN": secret}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        said = []
        try:
            for line in server.stdout:
                said.append(line)
                if (found := re.search(rf"http://127\.0\.0\.1:\d+{BASE}", line)) is not None:
                    break
            else:
                pytest.fail("".join(said))
            threading.Thread(target=server.stdout.read, daemon=True).start()
            yield f"{found[0]}?token={secret}"
        finally:
            server.terminate()
            server.wait(30)


def test_below_jupyters_path_it_is_followed_and_acted_on(opened: Open, jupyter: str) -> None:
    job = start(running(), rel.JobConfig(regions="manual", web_port=0))
    try:
        root, _, secret = jupyter.partition("?token=")
        port, _, token = (job.web_url or "").removeprefix("http://127.0.0.1:").partition("/?token=")
        prefix = f"{root}proxy/{port}/"
        page = opened(f"{prefix}?token={token}", before=f"{root}api/status?token={secret}")
        acted_on(page, prefix)
        page.locator("#cancel button").click()
        page.locator("#confirm-yes").click()
        expect(page.locator("#state")).to_have_text("cancelled")
        page.close()
    finally:
        job.close()
