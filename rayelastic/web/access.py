"""Who may look: those who know the token. What browsers are told to load: only what this server serves.

The token comes once in the address, then in a cookie that scripts can't read and other sites can't send. A browser
sends a cookie to all ports of a host. So this one belongs to a path of the page's own, which other servers don't know.
"""

from __future__ import annotations

import hmac
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["ASKED_BY_PAGE", "HEADERS", "Access"]

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
        """What a request is answered with that may carry the token in its address, its cookie or as a bearer."""
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = (request.query.get("token", ""), request.cookies.get(self.cookie, ""), bearer)
        if not all(one.isascii() for one in given):  # bytes that are no text come as lone surrogates
            return HTTPStatus.BAD_REQUEST
        allowed = any(hmac.compare_digest(one.encode(), self.token.encode()) for one in given if one)
        return HTTPStatus.OK if allowed else HTTPStatus.UNAUTHORIZED
