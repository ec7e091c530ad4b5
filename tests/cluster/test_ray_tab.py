"""Ray's dashboard as a tab of the page: read through the page's own address and token, and nothing else."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect, sync_playwright

from rayelastic.pages import cluster_page
from rayelastic.web.page import Page

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def page(no_ray: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    import ray
    from ray._private import ray_constants

    monkeypatch.setenv("RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT", "180")  # seconds, on a busy machine
    monkeypatch.setattr(ray_constants, "RAY_DASHBOARD_STARTUP_TIMEOUT_S", 180)
    address = ray.init("local", num_cpus=1, include_dashboard=True, dashboard_port=0, logging_level="error")
    try:
        served = cluster_page(None, address.address_info["gcs_address"], 0)
        yield served
        served.close()
    finally:
        ray.shutdown()


def ask(url: str, token: str, method: str = "GET") -> tuple[int, str]:
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: ./dev programs installs it")
def test_rays_dashboard_is_read_through_the_page(page: Page) -> None:
    root, token = page.url.split("?token=")
    status, text = ask(f"{root}ray/", token)
    assert (status, "Ray Dashboard" in text) == (200, True)
    status, text = ask(f"{root}ray/api/version", token)
    assert (status, "ray_version" in text) == (200, True)
    assert ask(f"{root}ray/", "wrong")[0] == 401
    assert ask(f"{root}ray/api/jobs/", token, "POST")[0] == 405
    assert ask(f"{root}ray/api/actors/kill?actor_id=1", token)[0] == 403
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        shown = browser.new_page()
        shown.goto(page.url)
        shown.locator("#tab-ray").click(timeout=60_000)
        expect(shown.frame_locator("#ray").get_by_text("Overview").first).to_be_visible(timeout=60_000)
        expect(shown.locator("#main")).to_be_hidden()
        shown.locator("#tab-jobs").click()
        expect(shown.locator("#ray")).to_be_hidden()
        browser.close()
