"""Error responses: `application/problem+json` (RFC 9457) with one sentence."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_log = logging.getLogger("lightdxml")
MEDIA_TYPE = "application/problem+json"
_MAX_DETAIL = 300
# The status in log and metrics of a request whose client is gone, as in nginx.
CLIENT_GONE = 499
# What these fields may be: the messages of the validation show patterns and unions.
_EXPECTED = {
    "text": "text must be a string that is not empty (to be explained, of at most 100,000 characters)",
    "threshold": "threshold must be a number from 0 to 1, auto, micro-f1, macro-f1, samples-f1 or precision=0.9",
}
# Tells clients to retry after a second.
RETRY_AFTER = {"Retry-After": "1"}


class Problem(HTTPException):
    """An error response.

    Parameters
    ----------
    status
        The status code.
    detail
        One sentence: what is wrong and what to do.
    headers
        Additional response headers.

    Examples
    --------
    >>> problem_response(Problem(404, "there is no project 'cats': GET /v1/projects lists them")).status_code
    404
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        # Details may quote the request: on one line, and not all of it.
        super().__init__(status, " ".join(detail.split())[:_MAX_DETAIL], dict(headers or {}))


def problem_body(problem: Problem) -> bytes:
    """Return the JSON body of an error."""
    status = problem.status_code
    content = {
        "type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": problem.detail,
    }  # fmt: skip
    return json.dumps(content).encode()


def problem_response(problem: Problem) -> Response:
    """Return the response for an error."""
    return Response(problem_body(problem), problem.status_code, problem.headers, MEDIA_TYPE)


async def on_problem(request: Request, error: Exception) -> Response:
    """Handle a `Problem`."""
    assert isinstance(error, Problem)
    return problem_response(error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Handle errors of the framework: unknown paths and methods, and bodies that are not JSON."""
    assert isinstance(error, HTTPException)
    path, method = request.url.path, request.method
    details = {
        400: "the body is not JSON in UTF-8, or it is nested too deeply: check it",
        404: f"there is nothing at {path[:100]}: /v1/ui/ lists all paths",
        405: f"{path[:100]} does not take {method}: use {(error.headers or {}).get('Allow', 'another method')}",
    }
    detail = details.get(error.status_code, str(error.detail))
    return problem_response(Problem(error.status_code, detail, error.headers))


async def on_disconnect(request: Request, error: Exception) -> Response:
    """Record a client that is gone before its request was complete: no failure of ours."""
    return Response(status_code=CLIENT_GONE)


async def on_invalid(request: Request, error: Exception) -> Response:
    """Handle parameters and bodies that fail validation; report the first error."""
    return problem_response(Problem(400, _first(getattr(error, "errors", list)())))


def _first(errors: Any) -> str:
    """Return the first validation error as one sentence.

    >>> _first([{"loc": ("body", "documents", 3, "text"), "msg": "Field required", "type": "missing"}])
    'documents.3.text: field required'
    """
    if not errors:
        return "the request is not valid"
    first = errors[0]
    if first.get("type") == "json_invalid":
        return f"the body is not JSON: {first.get('ctx', {}).get('error', 'check it')}"
    where, *fields = (str(part) for part in first.get("loc") or ("body",))
    if where == "body" and fields and fields[0] in _EXPECTED and first.get("type") != "missing":
        return _EXPECTED[fields[0]]
    if first.get("type") == "string_pattern_mismatch" and first["ctx"]["pattern"] == r"\S":
        return f"{'.'.join(fields)[:200]}: must not be empty"
    message = str(first.get("msg", "not valid")).replace(" after validation", "").replace(" to extract fields from", "")
    return f"{'.'.join(fields)[:200] or 'the body'}: {message[:1].lower()}{message[1:300]}"


def as_problem(error: Exception) -> Problem:
    """Convert an error to a `Problem`. Unexpected errors are logged, and clients see no details."""
    if isinstance(error, Problem):
        return error
    _log.error("a request failed: %s", "".join(traceback.format_exception(error)))
    return Problem(500, "the server failed to answer: its log says why")


async def on_failure(request: Request, error: Exception) -> Response:
    """Handle an unexpected error."""
    return problem_response(as_problem(error))
