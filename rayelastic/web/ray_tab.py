"""Ray's own dashboard as a tab of the web UI: a read-only relay behind the same token.

Ray's dashboard has no place for other pages, so the web UI includes it: one address and one token for both. The relay
accepts GET alone, and no path that ends an actor. The dashboard's own application runs its own scripts alone. All
else that it serves, such as logs, has no rights in a browser. Jobs of the cluster write it, and a page of theirs would
act as the viewer. Must not know Ray: a catalogue has the address of its dashboard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import ClientSession, web

PATH = "/ray/"
ENDS = "kill"  # a word in the paths that end actors, by GET
APPLICATION = ("static/", "favicon.ico")  # with the path "" itself: files of Ray's package
NOT_OURS = frozenset(
    {"content-length", "content-encoding", "transfer-encoding", "connection", "set-cookie", "content-security-policy"}
)
OF_APPLICATION = (  # it makes styles as it runs, and may show Grafana
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self' data:; connect-src 'self'; frame-src http: https:; worker-src 'self' blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'"
)
OF_OTHERS = "sandbox; default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"


@dataclass(frozen=True, slots=True)
class Dashboard:
    """Where Ray serves its dashboard.

    Args:
        url: of it, such as 'http://127.0.0.1:8265'.
        headers: that it wants, such as a token.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class RayTab:
    """Relay what browsers ask of a dashboard. Belongs to one loop.

    Args:
        dashboard: where it is.
    """

    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard
        self._session: ClientSession | None = None

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        """Relay a request below PATH."""
        from aiohttp import ClientError, ClientSession, web

        rest = request.match_info["rest"]
        if ENDS in rest.lower():
            return web.Response(text="the tab is for reading", status=HTTPStatus.FORBIDDEN)
        if self._session is None:
            self._session = ClientSession(headers=dict(self._dashboard.headers))
        query = {name: value for name, value in request.query.items() if name != "token"}
        try:
            async with self._session.get(f"{self._dashboard.url}/{rest}", params=query) as answer:
                passed = web.StreamResponse(status=answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in NOT_OURS:
                        passed.headers.add(name, value)
                is_application = not rest or rest.startswith(APPLICATION)
                passed.headers["Content-Security-Policy"] = OF_APPLICATION if is_application else OF_OTHERS
                passed.headers["X-Content-Type-Options"] = "nosniff"
                passed.headers["Referrer-Policy"] = "no-referrer"
                await passed.prepare(request)
                async for part in answer.content.iter_any():
                    await passed.write(part)
                return passed
        except (ClientError, TimeoutError, OSError) as error:
            return web.Response(text=f"Ray's dashboard doesn't answer: {error}", status=HTTPStatus.BAD_GATEWAY)

    async def close(self) -> None:
        """End its connections."""
        if self._session is not None:
            await self._session.close()
