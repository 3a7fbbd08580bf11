"""ASGI middleware: tokens, size limits, response headers, access log and metrics."""

from __future__ import annotations

import hmac
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lightdxml.serve.problems import RETRY_AFTER, Problem, problem_response
from lightdxml.serve.service import Service

# All bodies together may have this many times as many bytes as one.
_MAX_BODIES = 20
# Endpoints that use the batch queue.
_PREDICTING = ("/suggest", "/suggest-batch", "/explain", "/infer")
# Paths that need no token: health checks, the API description, and the pages, which ask for the token.
_PAGES = ("/", "/v1/ui/")
_OPEN = (*_PAGES, "/v1/ui", "/v1/openapi.json", "/v2/health/live", "/v2/health/ready")
_STATIC = "/static/"
# The streaming endpoint: its request body has no size limit, only its lines have.
STREAM = "/suggest-lines"
# The pages load only their own files, and no other site may frame them.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_NO_SNIFFING = (b"x-content-type-options", b"nosniff")
_PAGE_HEADERS = [
    _NO_SNIFFING,
    (b"content-security-policy", _POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
]
# Responses with predictions must not be cached.
ANSWER_HEADERS = [_NO_SNIFFING, (b"cache-control", b"no-store")]


class Limits:
    """Rejects requests without a valid token, requests that are too large, and requests while the queue is full.

    Parameters
    ----------
    app
        The next ASGI application.
    service
        The shared state.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self._tokens = [token.encode() for token in service.options.tokens]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self.check(scope["path"], dict(scope["headers"]))
        except Problem as problem:
            await problem_response(problem)(scope, receive, send)
            return
        if scope["path"].endswith(STREAM):
            await self.app(scope, receive, send)
            return
        with self.limited(receive) as limited:
            await self.app(scope, limited, send)

    def check(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        """Raise a `Problem` if the token is not valid, the body is too large, or the queue is full."""
        self._check_token(path, headers.get(b"authorization", b""))
        if path.endswith(_PREDICTING):
            # Check before reading the body: an overloaded server must reject requests cheaply.
            self.service.batcher.check_room()
        if not path.endswith(STREAM):
            self._check_length(headers.get(b"content-length", b""))

    def _check_token(self, path: str, given: bytes) -> None:
        if not self._tokens or path in _OPEN or path.startswith(_STATIC):
            return
        kind, _, token = given.partition(b" ")
        # Compare with all tokens, each in constant time, so that timing reveals nothing.
        matches = [hmac.compare_digest(token.strip(), one) for one in self._tokens]
        if kind.lower() != b"bearer" or not any(matches):
            detail = "the token is wrong" if given else "a token is missing: send Authorization: Bearer TOKEN"
            raise Problem(401, detail, {"WWW-Authenticate": "Bearer"})

    def _check_length(self, given: bytes) -> None:
        most = self.service.options.max_body
        if given.isdigit() and (len(given) > 18 or int(given) > most):
            raise Problem(413, f"the body has more than {most:,} bytes: send less at a time")

    @contextmanager
    def limited(self, receive: Receive) -> Iterator[Receive]:
        """Yield a `receive` that limits the size of a body, and of all bodies together."""
        most, service, size = self.service.options.max_body, self.service, 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            new = len(message.get("body", b""))
            size += new
            service.body_bytes += new
            if size > most:
                raise Problem(413, f"the body has more than {most:,} bytes: send less at a time")
            if service.body_bytes > _MAX_BODIES * most:
                raise Problem(503, "too many large requests at once: try again later", RETRY_AFTER)
            return message

        try:
            yield limited
        finally:
            service.body_bytes -= size


class Observer:
    """Records metrics, writes the access log, and adds response headers. Document texts are never logged.

    Parameters
    ----------
    app
        The next ASGI application.
    service
        The shared state.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            # As GET; the server leaves the body out.
            scope = {**scope, "method": "GET"}
        start, status, size = time.perf_counter(), 500, 0
        is_page = scope["path"] in _PAGES or scope["path"].startswith(_STATIC)

        async def observed(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                own = _PAGE_HEADERS if is_page else ANSWER_HEADERS
                message = {**message, "headers": [*message["headers"], *own]}
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, observed)
        finally:
            self.record(scope, _route(scope, status), status, size, time.perf_counter() - start)

    def record(self, scope: Scope, route: str, status: int, size: int, seconds: float) -> None:
        """Record a response in metrics and access log."""
        self.service.metrics.count(_method(scope["method"]), route, status, seconds)
        if self.service.options.access_log:
            client: Sequence[Any] | None = scope.get("client")
            entry = {
                "time": datetime.now(tz=timezone.utc).isoformat(timespec="milliseconds"),
                "client": client[0] if client else None,
                "method": scope["method"][:20],
                "path": scope["path"][:200],
                "status": status,
                "ms": round(1000 * seconds, 2),
                "bytes": size,
            }
            sys.stdout.write(json.dumps(entry) + "\n")
            sys.stdout.flush()


def _route(scope: Scope, status: int) -> str:
    """Return the route template: raw paths would let clients create any number of time series."""
    path: str = getattr(scope.get("route"), "path", "")
    return path if path and status != 404 else "static" if scope["path"].startswith(_STATIC) else "other"


def _method(method: str) -> str:
    return method if method in ("GET", "POST", "HEAD", "OPTIONS") else "other"
