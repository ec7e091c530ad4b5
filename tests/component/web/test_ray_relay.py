"""What a job of the cluster gets Ray's dashboard to serve has no rights in the viewer's browser."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser

from rayelastic.web.page import Page
from rayelastic.web.ray_tab import Dashboard
from tests.component.web.in_browser import CHROMIUM

if TYPE_CHECKING:
    from rayelastic.job import Job
    from rayelastic.runtime.values.status import JobStatus

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium here: ./dev programs installs it")

PLANTED = """<!doctype html><title>planted</title><p id="text">a log</p>
<script>document.title = "ran"</script>
<script src="../static/app.js"></script>"""
APPLICATION = """<!doctype html><title>dashboard</title><script src="./static/app.js"></script>
<p onclick="1" id="text">overview</p><script>document.title = "ran inline"</script>
<script src="./logs/planted.js"></script>"""
FILES = {
    "/": ("text/html", APPLICATION),
    "/static/app.js": ("text/javascript", 'document.documentElement.dataset.app = "started"'),
    "/logs/planted.html": ("text/html", PLANTED),
    "/logs/planted.js": ("text/plain", 'document.title = "ran"'),
    "/static/../logs/planted.html": ("text/html", PLANTED),
}


class Served(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        kind, text = FILES.get(self.path, ("text/plain", ""))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", "script-src 'unsafe-inline'")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *arguments: object) -> None:
        pass


class Jobs:
    """A cluster without jobs, whose dashboard is a server of this test."""

    def __init__(self, port: int) -> None:
        self._port = port

    def listed(self) -> list[JobStatus]:
        return []

    def dashboard(self) -> Dashboard:
        return Dashboard(f"http://127.0.0.1:{self._port}")

    def opened(self, name: str) -> Job:
        raise NotImplementedError


@pytest.fixture
def page() -> Iterator[Page]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    served = Page({}, catalogue=Jobs(server.server_port), port=0)
    yield served
    served.close()
    server.shutdown()
    serving.join()
    server.server_close()


def test_what_a_tenant_has_the_dashboard_serve_runs_no_script(page: Page, browser: Browser) -> None:
    context = browser.new_context()
    shown = context.new_page()
    shown.goto(page.url)  # the browser has the cookie from here
    view = shown.url
    shown.goto(f"{view}ray/")
    assert shown.locator("html").get_attribute("data-app") == "started", "the dashboard's own script runs"
    assert shown.title() == "dashboard"
    for path in ("logs/planted.html", "static/%2e%2e/logs/planted.html"):
        shown.goto(f"{view}ray/{path}")
        if shown.locator("#text").count():
            assert (shown.title(), shown.locator("html").get_attribute("data-app")) == ("planted", None)
            assert shown.evaluate("self.origin") == "null", "it has no origin, so that no cookie and no answer is its"
    context.close()
