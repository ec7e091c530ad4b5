"""What the page of a large job costs: first paint, how old the numbers get, the processor time of server and sampling.

    python -m bench.web_page [operators=2305] [viewers=5] [seconds=20]

A job in this process, first one whose operators wait, then one through all of whose operators tuples go all the time,
so that every row of the page's table changes. Viewers are processes of their own, Chromium is for the first paint. The
processor time is that of the page's threads: one that reads the job, one that serves. Goals (issue "a page for running
jobs"): first paint within 1.5 s, no number older than 1 s, 1 % of a core for 5 viewers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
import urllib.request

from playwright.sync_api import sync_playwright

import rayelastic as rel

LENGTH = 8  # operators of a branch
RATE = 200.0  # tuples/s of the job that flows: each reading finds other numbers everywhere
PAGE = ("page", "asyncio")  # how threads of the page are named
PAINTED = """() => {
  const box = document.querySelector('g.box');
  if (!box) return null;
  const paint = performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint');
  return [paint ? paint.startTime / 1000 : null, performance.now() / 1000];
}"""


def topology(operators: int, go_on: threading.Event, *, flows: bool) -> rel.Topology:
    """So many operators: a source, branches of LENGTH with a sink each, whose first tuple waits if nothing flows."""
    made = rel.Topology("large")
    source = made.source(rel.sequence(10**9 if flows else 10), name="numbers")
    if flows:
        source = source.throttle(name="slowly", per_second=RATE)
    for branch in range((operators - 1) // LENGTH):
        stream = source
        for step in range(LENGTH - 1):
            stream = stream.map(lambda t: t.value + 1, name=f"branch{branch}_step{step}", schema={"value": int})
        stream.sink(rel.count() if flows else rel.call(lambda _: go_on.wait()), name=f"out{branch}")
    return made


def view(url: str, started: float, seconds: float) -> None:
    """Follow the stream of a page; prints how old numbers got at most, in seconds, as JSON."""
    root, token = url.split("?token=")
    request = urllib.request.Request(f"{root}api/jobs/large/stream", headers={"Authorization": f"Bearer {token}"})
    until, shown, ages = time.monotonic() + seconds, None, []
    with urllib.request.urlopen(request, timeout=30) as lines:
        for line in lines:
            if not line.startswith(b"data: "):
                continue
            now, frame = time.monotonic() - started, json.loads(line[6:])
            if shown is not None:
                ages.append(now - shown)
            shown = frame.get("seconds", shown)
            if time.monotonic() > until:
                break
    print(json.dumps(ages))


def first_paint(url: str) -> tuple[float, float] | None:
    """Seconds until anything is on the screen, and until the boxes of the graph are; None: there is no Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(url, wait_until="commit")
        paint, boxes = page.wait_for_function(PAINTED, polling="raf").json_value()
        browser.close()
    return paint or boxes, boxes


def used() -> float:
    """Seconds of processor time of the threads of pages so far."""
    threads = [one.ident for one in threading.enumerate() if one.name.startswith(PAGE) and one.ident is not None]
    return sum(time.clock_gettime(time.pthread_getcpuclockid(ident)) for ident in threads)


def main(operators: int = 2305, viewers: int = 5, seconds: float = 20.0) -> None:
    for flows in (False, True):
        measure(operators, viewers, seconds, flows=flows)


def measure(operators: int, viewers: int, seconds: float, *, flows: bool) -> None:
    """One job, looked at."""
    go_on = threading.Event()
    job = rel.start(topology(operators, go_on, flows=flows), rel.JobConfig(threads=1, elasticity="off", web_port=0))
    try:
        url = job.web_url or ""
        print(f"{operators} operators, {'each with tuples all the time' if flows else 'all waiting'}")
        if not flows and (painted := first_paint(url)) is not None:
            print(f"  first paint {painted[0]:.2f} s, boxes of the graph {painted[1]:.2f} s")
        started = time.monotonic() - job.metrics().seconds
        command = [sys.executable, "-m", "bench.web_page", "view", url, str(started), str(seconds)]
        before, whole, began = used(), time.process_time(), time.monotonic()
        runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(viewers)]
        ages = sorted(age for run in runs for age in json.loads(run.communicate()[0]))
        seconds = time.monotonic() - began
        share, whole = (used() - before) / seconds, (time.process_time() - whole) / seconds
        print(
            f"  {viewers} viewers: {share:.1%} of a core, with the job {whole:.1%}; "
            f"age {ages[len(ages) // 2]:.2f} s, {ages[-1]:.2f} s at most"
        )
    finally:
        go_on.set()
        job.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["view"]:
        view(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
    else:
        main(*map(int, sys.argv[1:]))
