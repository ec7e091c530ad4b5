"""A browser for the tests of the page."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.component.web.in_browser import CHROMIUM, WIDTHS, Open


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Opens a page; fails if the browser complains of anything but a job that the test has ended."""
    complaints: list[str] = []
    contexts = []

    def complain(url: str, message: ConsoleMessage) -> None:
        if message.type == "error" and not ("ERR_CONNECTION_REFUSED" in message.text and _is_gone(url)):
            complaints.append(message.text)

    def open_page(url: str, width: int = WIDTHS[0], scheme: Any = "light", script: str = "", before: str = "") -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.add_init_script(script)
        contexts.append(context)
        page = context.new_page()
        if before:  # where one logs in
            page.goto(before)
        page.on("console", lambda message: complain(url, message))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.goto(url)
        expect(page.locator("g.box").first).to_be_visible()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def _is_gone(url: str) -> bool:
    """Whether nobody listens any more where the page came from."""
    place = urlsplit(url)
    try:
        socket.create_connection((place.hostname or "", place.port or 80), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False
