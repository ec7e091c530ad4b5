"""Access to the web UI: viewers need the token, and browsers load nothing from other servers.

The token comes once in the address, then in a cookie that scripts can't read and other sites can't send. A browser
sends a cookie to all ports of a host. So this one belongs to a path of this web UI, which other servers don't know.

Few connections show no token, each for a while: a half request costs a descriptor of the process that runs the job. So
whoever connects once more than may be without a token ends the oldest such connection. A browser shows its token within
milliseconds.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

ASKED_BY_PAGE = "X-Rayelastic"  # a header that forms and links of other sites can't send
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
MOST_UNKNOWN = 32  # connections at once that have shown no token
MOST_KNOWN = 512  # and that have; each viewer has a few
DEADLINE = 10.0  # seconds for a connection to show a token, of which a handshake of TLS is a part
BACKLOG = 128  # connections that wait to be accepted, which have no descriptor yet
NO_DESCRIPTORS = 0.5  # seconds until the next connection is accepted when the process has no descriptor left
LOG_PERIOD = 60.0  # seconds between two lines about what strangers send


class Access:
    """The token of one server.

    Args:
        token: what has to be known; made up if not given.
    """

    def __init__(self, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)
        self.cookie = f"rayelastic-{secrets.token_hex(4)}"  # several servers may share a host name
        self.view = f"/v-{secrets.token_hex(16)}"  # a path that no other server has: the cookie goes to it alone

    def answer(self, request: web.Request) -> HTTPStatus:
        """Return the answer to a request that may carry the token in its address, its cookie or as a bearer."""
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = (request.query.get("token", ""), request.cookies.get(self.cookie, ""), bearer)
        if not all(one.isascii() for one in given):  # bytes that are no text come as lone surrogates
            return HTTPStatus.BAD_REQUEST
        allowed = any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given if one)
        return HTTPStatus.OK if allowed else HTTPStatus.UNAUTHORIZED


class _Rarely(logging.Filter):
    """Pass one record a period, as one line, with the number since the last one."""

    def __init__(self) -> None:
        super().__init__()
        self._last = -LOG_PERIOD
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now < self._last + LOG_PERIOD:
            self._left_out += 1
            return False
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}: {record.exc_info[1]!r}"
        more = f" ({self._left_out} more since the last line)" if self._left_out else ""
        record.msg, record.args, record.exc_info = f"web UI: {text}{more}", (), None
        self._last, self._left_out = now, 0
        return True


QUIET = logging.getLogger("rayelastic.page")
QUIET.addFilter(_Rarely())


class Visitors:
    """The connections of one server. All methods but `listen` belong to its loop."""

    def __init__(self) -> None:
        self._unknown: dict[_Visitor, None] = {}  # oldest first
        self._known: dict[asyncio.BaseTransport, _Visitor] = {}
        self._met: dict[asyncio.BaseTransport, _Visitor] = {}

    @staticmethod
    def listen(host: str, port: int) -> socket.socket:
        """Open the port; raises OSError if it can't be."""
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, proto)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        return listener

    async def accept(
        self, listener: socket.socket, protocol: Callable[[], asyncio.Protocol], context: ssl.SSLContext | None
    ) -> None:
        """Take connections until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                QUIET.warning("no connection can be accepted: %s", error)
                await asyncio.sleep(NO_DESCRIPTORS)
                continue
            if len(self._unknown) >= MOST_UNKNOWN:
                next(iter(self._unknown)).end()
            visitor = _Visitor(self, protocol(), connection)
            self._unknown[visitor] = None
            visitor.begin(context)

    def admit(self, transport: asyncio.BaseTransport) -> None:
        """Note that a connection has shown the token."""
        visitor = self._met.get(transport)
        if visitor is None or visitor not in self._unknown:
            return
        if len(self._known) >= MOST_KNOWN:
            next(iter(self._known.values())).end()
        del self._unknown[visitor]
        visitor.stays()
        self._known[transport] = visitor

    def meets(self, transport: asyncio.BaseTransport, visitor: _Visitor) -> None:
        """Note that a connection is open."""
        self._met[transport] = visitor

    def forget(self, visitor: _Visitor, transport: asyncio.BaseTransport | None) -> None:
        """Note that a connection is closed."""
        self._unknown.pop(visitor, None)
        if transport is not None:
            self._known.pop(transport, None)
            self._met.pop(transport, None)

    def close(self) -> None:
        """End all connections."""
        for visitor in [*self._unknown, *self._known.values()]:
            visitor.end()


class _Visitor(asyncio.Protocol):
    """One connection: passes on what comes to the server's protocol."""

    def __init__(self, visitors: Visitors, server: asyncio.Protocol, connection: socket.socket) -> None:
        self._visitors = visitors
        self._server = server
        self._connection = connection
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._begun = False  # that task
        self._deadline: asyncio.TimerHandle | None = None

    def begin(self, context: ssl.SSLContext | None) -> None:
        """Begin to read, behind a handshake of TLS if there is one."""
        self._deadline = asyncio.get_running_loop().call_later(DEADLINE, self.end)
        self._task = asyncio.create_task(self._connect(context))

    def stays(self) -> None:
        """Have it stay for as long as it likes."""
        if self._deadline is not None:
            self._deadline.cancel()

    def end(self) -> None:
        """Close it at once."""
        self.stays()
        if self._transport is not None:
            self._transport.abort()
        elif self._task is not None:
            self._task.cancel()
            if not self._begun:  # the loop closes it otherwise, whose transport still uses its descriptor
                self._connection.close()
        self._visitors.forget(self, self._transport)

    async def _connect(self, context: ssl.SSLContext | None) -> None:
        self._begun, loop = True, asyncio.get_running_loop()
        handshake = None if context is None else DEADLINE
        with suppress(OSError):  # whoever connected has gone, or speaks no TLS
            try:
                await loop.connect_accepted_socket(
                    lambda: self, self._connection, ssl=context, ssl_handshake_timeout=handshake
                )
            finally:
                if self._transport is None:
                    self.stays()
                    self._visitors.forget(self, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._visitors.meets(transport, self)
        self._server.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.stays()
        self._visitors.forget(self, self._transport)
        self._server.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._server.data_received(data)

    def eof_received(self) -> bool | None:
        return self._server.eof_received()

    def pause_writing(self) -> None:
        self._server.pause_writing()

    def resume_writing(self) -> None:
        self._server.resume_writing()
