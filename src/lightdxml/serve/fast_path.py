"""A fast path for the busiest endpoint, Annif's `suggest`, around the framework.

`benchmarks/serve.py` measures what it gains.
"""

from __future__ import annotations

import time

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from lightdxml.serve.annif import suggested
from lightdxml.serve.bodies import bare_type
from lightdxml.serve.middleware import ANSWER_HEADERS, Limits, Observer
from lightdxml.serve.problems import CLIENT_GONE, as_problem, problem_response

_START, _END = "/v1/projects/", "/suggest"
_ROUTE = f"{_START}{{project_id}}{_END}"
_HEADERS = [(b"content-type", b"application/json"), *ANSWER_HEADERS]


class FastPath:
    """Handles Annif's `suggest` as plain ASGI, and passes all other requests on.

    Parameters
    ----------
    observer
        The next ASGI application, for all other requests and for those with an `Origin` header (CORS).
    limits
        The limits that hold on both paths.
    """

    def __init__(self, observer: Observer, limits: Limits) -> None:
        self.app, self.service = observer, limits.service
        self._limits, self._observer = limits, observer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        path: str = scope.get("path", "")
        if not path.endswith(_END) or not path.startswith(_START) or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        name, headers = path[len(_START) : -len(_END)], dict(scope["headers"])
        if "/" in name or b"origin" in headers:
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        try:
            self._limits.check(path, headers)
            kind = bare_type(headers.get(b"content-type", b"").decode("latin-1"))
            with self._limits.limited(receive) as limited:
                content = await suggested(self.service, name, kind, await _body(limited))
            status, own = 200, [*_HEADERS, (b"content-length", str(len(content)).encode())]
        except ClientDisconnect:
            self._observer.record(scope, _ROUTE, CLIENT_GONE, 0, time.perf_counter() - start)
            return
        except Exception as error:
            answer = problem_response(as_problem(error))
            status, content, own = answer.status_code, bytes(answer.body), [*answer.raw_headers, *ANSWER_HEADERS]
        await send({"type": "http.response.start", "status": status, "headers": own})
        await send({"type": "http.response.body", "body": content})
        self._observer.record(scope, _ROUTE, status, len(content), time.perf_counter() - start)


async def _body(receive: Receive) -> bytes:
    """Return the body of a request; raise a `ClientDisconnect` if the client is gone."""
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)
