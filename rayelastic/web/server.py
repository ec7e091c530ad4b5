"""The HTTP server of the web UI: one snapshot and one stream of events for all viewers, on the loopback address.

All addresses in the web UI are relative, so that it works behind a proxy that adds a path. The first server loads
aiohttp, which comes with Ray's dashboard.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rayelastic.errors import ConfigError, ErrorCode, JobNotFoundError, RayelasticError
from rayelastic.web.access import ASKED_BY_PAGE, HEADERS, Access, Visitors
from rayelastic.web.actions import StaleError
from rayelastic.web.graphs import graph
from rayelastic.web.ray_tab import PATH, RayTab
from rayelastic.web.story import Story
from rayelastic.web.updates import written

if TYPE_CHECKING:
    from aiohttp import web

    from rayelastic.runtime.values.status import JobStatus
    from rayelastic.web.history import History
    from rayelastic.web.watched import Catalogue, Watched

ASSETS = Path(__file__).parent / "assets"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
LISTED_FOR = 2.0  # seconds for which a list of a cluster's jobs is good: each viewer asks for it now and then
SILENCE = 10.0  # seconds after which a stream with nothing to say sends a comment, so that proxies keep it
REFUSED = "<!doctype html><title>rayelastic</title><p>Open the address with ?token=... that the command printed."


class PageApp:
    """The application behind the web UI. All methods belong to one loop.

    Args:
        access: who may look.
        visitors: their connections.
        jobs: that run, by name.
        histories: of jobs that are over, by name.
        catalogue: finds more jobs; None: there are no others.
    """

    def __init__(
        self,
        access: Access,
        visitors: Visitors,
        jobs: Mapping[str, Watched],
        histories: Mapping[str, History],
        catalogue: Catalogue | None = None,
    ) -> None:
        self._access = access
        self._visitors = visitors
        self._catalogue = catalogue
        self._jobs = dict(jobs)
        self._histories = dict(histories)
        self._stories: dict[str, Story] = {}
        self._opening = asyncio.Lock()
        self._listing = asyncio.Lock()
        self._listed: list[JobStatus] = []
        self._listed_at = -LISTED_FOR
        self._tab: RayTab | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def made(self) -> web.Application:
        """Return the application for aiohttp."""
        from aiohttp import web

        app = web.Application(middlewares=[self._guarded()])
        for view in ("", self._access.view):  # programs show a bearer, browsers a cookie of the second
            app.add_routes(
                [
                    web.get(view + "/", self._page),
                    web.get(view + "/assets/{name}", self._asset),
                    web.get(view + "/api/about", self._about),
                    web.get(view + "/api/jobs", self._list),
                    web.get(view + PATH + "{rest:.*}", self._ray),
                    web.get(view + "/api/jobs/{job}/story", self._answer_story),
                    web.get(view + "/api/jobs/{job}/graph", self._graph),
                    web.get(view + "/api/jobs/{job}/frame", self._frame),
                    web.get(view + "/api/jobs/{job}/operator", self._operator),
                    web.get(view + "/api/jobs/{job}/events", self._events),
                    web.get(view + "/api/jobs/{job}/series", self._series),
                    web.get(view + "/api/jobs/{job}/stream", self._stream),
                    web.post(view + "/api/jobs/{job}/actions", self._act),
                ]
            )
        return app

    async def start(self) -> None:
        """Begin to sample the jobs that are known from the start."""
        for name in self._jobs:
            await self._story(name)

    async def close(self) -> None:
        """End streams and sampling."""
        for story in self._stories.values():
            story.close()
        if self._tab is not None:
            await self._tab.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- who may, and what goes wrong ---------------------------------------------------------------------------------

    def _guarded(self) -> Any:
        from aiohttp import web

        @web.middleware
        async def guarded(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            path = request.path.removeprefix(self._access.view)
            answer = HTTPStatus.OK if path.startswith("/assets/") else self._access.answer(request)
            if answer is not HTTPStatus.OK:
                response: web.StreamResponse = web.Response(text=REFUSED, content_type="text/html", status=answer)
            else:
                if request.transport is not None and not path.startswith("/assets/"):
                    self._visitors.admit(request.transport)
                response = await self._answered(request, handler)
            if not response.prepared and not path.startswith(PATH):
                response.headers.update(HEADERS)
            return response

        return guarded

    async def _answered(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            return await handler(request)
        except JobNotFoundError as error:
            return _json({"error": str(error)}, HTTPStatus.NOT_FOUND)
        except StaleError as error:
            return _json({"error": str(error)}, HTTPStatus.CONFLICT)
        except ConfigError as error:
            return _json({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        except (RayelasticError, TimeoutError) as error:
            return _json({"error": str(error)}, HTTPStatus.BAD_GATEWAY)

    # --- the files ----------------------------------------------------------------------------------------------------

    async def _page(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        if "token" not in request.query:
            return web.FileResponse(ASSETS / "index.html")
        if not request.path.startswith(self._access.view):
            there = f".{self._access.view}/?{request.query_string}"
            return web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": there})
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": "./"})
        response.set_cookie(
            self._access.cookie, self._access.token, httponly=True, samesite="Strict", secure=request.secure, path=""
        )  # no path: the browser takes that of the web UI, which a proxy may prefix
        return response

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        name = request.match_info["name"]
        if name not in {path.name for path in ASSETS.iterdir()}:
            raise web.HTTPNotFound
        path = ASSETS / name
        return web.FileResponse(
            path, headers={"Content-Type": f"{TYPES.get(path.suffix, 'text/plain')}; charset=utf-8"}
        )

    # --- what it asks for ---------------------------------------------------------------------------------------------

    async def _about(self, _: web.Request) -> web.StreamResponse:
        return _json({"ray": await self._ray_tab() is not None})

    async def _ray(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        tab = await self._ray_tab()
        if tab is None:
            raise web.HTTPNotFound(text="no dashboard of Ray runs here")
        return await tab.pass_on(request)

    async def _ray_tab(self) -> RayTab | None:
        if self._tab is None and self._catalogue is not None:
            found = await asyncio.to_thread(self._catalogue.dashboard)
            self._tab = RayTab(found) if found is not None else None
        return self._tab

    async def _list(self, _: web.Request) -> web.StreamResponse:
        listed = [
            {"name": story.name, "state": story.history.state, "live": story.live} for story in self._stories.values()
        ]
        listed += [
            {"name": name, "state": history.state, "live": False}
            for name, history in self._histories.items()
            if name not in self._stories
        ]
        known = {one["name"] for one in listed}
        listed += [
            {"name": status.name, "state": status.state.value, "live": not status.state.is_final}
            for status in await self._catalogued()
            if status.name not in known
        ]
        return _json(sorted(listed, key=lambda one: str(one["name"])))

    async def _catalogued(self) -> list[JobStatus]:
        """Return the jobs of the catalogue, asked once for all requests within a while."""
        if self._catalogue is None:
            return []
        async with self._listing:
            if time.monotonic() > self._listed_at + LISTED_FOR:
                self._listed = await asyncio.to_thread(self._catalogue.listed)
                self._listed_at = time.monotonic()
            return self._listed

    async def _answer_story(self, request: web.Request) -> web.StreamResponse:
        return _json((await self._asked(request)).opening())

    async def _graph(self, request: web.Request) -> web.StreamResponse:
        history = (await self._asked(request)).history
        opened = request.query.getall("open", [])
        plan = history.plan_at(_seconds(request))
        lanes = {name: info.lane for name, info in history.operator_infos.items()}
        detail = request.query.get("detail", "")
        return _json(await asyncio.to_thread(graph, plan, history.places, lanes, detail, opened))

    async def _operator(self, request: web.Request) -> web.StreamResponse:
        history, name = (await self._asked(request)).history, request.query.get("name", "")
        series = history.operator_series(name)
        info = history.operator_infos.get(name)
        return _json({"series": series, "info": asdict(info) if info is not None else None})

    async def _frame(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        story, at = await self._asked(request), _seconds(request)
        if at is None:
            return web.Response(body=story.updates.whole, content_type="application/json")
        frame = story.history.frame_at(at)
        text = written(story.history.report(frame), frame.operators if frame is not None else None)
        return web.Response(text=text, content_type="application/json")

    async def _events(self, request: web.Request) -> web.StreamResponse:
        history = (await self._asked(request)).history
        return _json(history.events_from(int(_seconds(request, "from") or 0)))

    async def _series(self, request: web.Request) -> web.StreamResponse:
        behind = _seconds(request, "behind")
        return _json((await self._asked(request)).history.series(-1.0 if behind is None else behind))

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        story = await self._asked(request)
        response = web.StreamResponse(
            headers={**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        await response.prepare(request)
        with suppress(ConnectionResetError):  # whoever looked has gone
            await self._tell(story, response)
        return response

    async def _tell(self, story: Story, response: web.StreamResponse) -> None:
        """Write the whole state, and then what changes, until the job or the server ends."""
        number: int | None = None
        while not story.closed:
            if not await story.newer(number, SILENCE):
                await response.write(b": still here\n\n")
                continue
            live, update, number = story.live, story.updates.since(number), story.updates.number
            await response.write(b"data: " + update + b"\n\n")
            if not live and number == story.updates.number:
                await response.write(f'event: over\ndata: {{"number": {number}}}\n\n'.encode())
                return

    async def _act(self, request: web.Request) -> web.StreamResponse:
        story = await self._asked(request)
        if ASKED_BY_PAGE not in request.headers:
            raise ConfigError(f"no header {ASKED_BY_PAGE}", hint="Use the web UI", code=ErrorCode.WRONG_REQUEST)
        try:
            wanted = await request.json()
        except ValueError:
            wanted = None
        if not isinstance(wanted, dict):
            raise ConfigError(
                "the request isn't a JSON object",
                hint='Send {"action": ...} or {"confirm": ...}',
                code=ErrorCode.WRONG_REQUEST,
            )
        return _json(await story.act(wanted, request.remote or "unknown"))

    # --- the stories --------------------------------------------------------------------------------------------------

    async def _asked(self, request: web.Request) -> Story:
        return await self._story(request.match_info["job"])

    async def _story(self, name: str) -> Story:
        async with self._opening:
            if name not in self._stories:
                self._stories[name] = await self._opened(name)
                task = asyncio.create_task(self._stories[name].sample(), name=f"sample {name}")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            return self._stories[name]

    async def _opened(self, name: str) -> Story:
        if name in self._histories:
            return Story(name, self._histories[name])
        job = self._jobs.get(name)
        if job is None and self._catalogue is not None:
            job = await asyncio.to_thread(self._catalogue.opened, name)
        if job is None:
            known = ", ".join([*self._jobs, *self._histories])
            raise JobNotFoundError(f"no job {name!r} in this web UI; there are: {known}", code=ErrorCode.UNKNOWN_JOB)
        return await asyncio.to_thread(Story, name, None, job)


def _json(values: Any, status: int = HTTPStatus.OK) -> web.Response:
    from aiohttp import web

    response = web.Response(text=json.dumps(values), content_type="application/json", status=status)
    response.enable_compression()
    return response


def _seconds(request: web.Request, name: str = "at") -> float | None:
    text = request.query.get(name, "")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise ConfigError(
            f"{name}={text!r} isn't a number",
            hint="Pass seconds since the start of the job",
            code=ErrorCode.WRONG_REQUEST,
        )
    return seconds
