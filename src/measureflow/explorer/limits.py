"""What the server refuses: bodies too large, and more work than it can queue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
from anyio import to_thread
from fastapi import HTTPException, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """How much one server takes on; beyond it, it says so at once instead of slowing to a halt."""

    body: int = 64 * 2**20  # bytes of an uploaded table
    requests: int = 256  # answered at the same time
    running: int = 2  # heavy calculations at the same time
    waiting: int = 64  # heavy calculations in the queue
    rows: int = 1_000_000  # of a table to fit


def busy(what: str) -> HTTPException:
    """The answer 503, with a time after which to ask again."""
    return HTTPException(503, f"{what}; try again in a moment", headers={"Retry-After": "2"})


async def body_of(request: Request, limit: int) -> bytes:
    """The whole body, or 413 as soon as it is known to be too long."""
    too_long = HTTPException(413, f"the body is larger than {limit / 2**20:g} MB")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise too_long
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise too_long
        parts.append(part)
    return b"".join(parts)


class Gate:
    """Runs heavy functions in threads, a few at a time; a full queue is answered with 503."""

    def __init__(self, running: int, waiting: int):
        self.running, self.most, self.inside = running, running + waiting, 0
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """The result of ``work(*args)``."""
        if self.inside >= self.most:
            raise busy("the server has all the work it can queue")
        self._limiter = self._limiter or anyio.CapacityLimiter(self.running)
        self.inside += 1
        try:
            return await to_thread.run_sync(work, *args, limiter=self._limiter)
        finally:
            self.inside -= 1


class Crowd:
    """Middleware that answers 503 to requests beyond the limit, before anything is read."""

    def __init__(self, app: ASGIApp, most: int):
        self.app, self.most, self.inside = app, most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.inside >= self.most:
            refusal = JSONResponse({"detail": "too many requests at once"}, 503, {"Retry-After": "2"})
            await refusal(scope, receive, send)
            return
        self.inside += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.inside -= 1


HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),  # keep, but ask first whether it is still the same
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
        b"img-src 'self' data: blob:; worker-src 'self' blob:; frame-ancestors 'none'",
    ),
]


class Sealed:
    """Middleware whose headers allow the page to talk to this server alone."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sealed(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        await self.app(scope, receive, sealed)
