"""Request bodies: forms and JSON Lines."""

from __future__ import annotations

import asyncio
import json
import math
import re
from binascii import a2b_qp
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.requests import Request

from lightdxml.serve.problems import Problem

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
LINES = ("application/jsonl", "application/x-ndjson", "application/x-jsonlines")
_MAX_FIELDS = 100
_NO_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def bare_type(content_type: str) -> str:
    """Return a media type without its parameters.

    >>> bare_type("application/JSON; charset=utf-8")
    'application/json'
    """
    return content_type.partition(";")[0].strip().lower()


def media_type(request: Request) -> str:
    """Return the media type of a request's body."""
    return bare_type(request.headers.get("content-type", ""))


async def json_only(request: Request) -> None:
    """Raise a `Problem` unless the content type is JSON."""
    found = media_type(request)
    if found != JSON:
        raise Problem(415, f"the body has the type {found[:60]!r}: send {JSON}")


def parse_form(kind: str, body: bytes) -> dict[str, str]:
    """Return the fields of a form; raise a `Problem` if the body is not a form in UTF-8.

    >>> parse_form(FORM, b"text=a+cat%2C+a+dog&limit=3")
    {'text': 'a cat, a dog', 'limit': '3'}
    """
    if kind != FORM:
        raise Problem(415, f"the body has the type {kind[:60]!r}: send {FORM}")
    fields = body.split(b"&")
    if len(fields) > _MAX_FIELDS:
        raise Problem(400, f"the form has more than {_MAX_FIELDS} fields: send fewer")
    pairs = (field.partition(b"=") for field in fields if field)
    try:
        return {_unquoted(name): _unquoted(value) for name, _, value in pairs}
    except UnicodeDecodeError as error:
        raise Problem(400, "the form is not UTF-8: encode it as UTF-8") from error


def _unquoted(text: bytes) -> str:
    """Decode a form field. Percent signs without two hex digits stay, as in `urllib.parse`.

    Quoted-printable differs only in its escape character, and its decoder is written in C: 4 kB take 23 µs, not 41.
    """
    text = text.replace(b"+", b" ")
    if b"%" in text:
        if _NO_ESCAPE.search(text):
            return unquote_to_bytes(text).decode("utf-8")
        text = a2b_qp(text.replace(b"=", b"%3D").replace(b"%", b"="))
    return text.decode("utf-8")


def integer(fields: dict[str, str], name: str, default: int, most: int) -> int:
    """Return a form field as an integer of at least 0; `most` if it is larger.

    >>> integer({"limit": "3"}, "limit", 10, 1000), integer({"limit": "5000"}, "limit", 10, 1000)
    (3, 1000)
    """
    text = fields.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()):
        raise Problem(400, f"{name} is {text[:20]!r}: it must be an integer of at least 0")
    # Converting very long digit strings is slow.
    return most if len(text) > len(str(most)) else min(most, int(text))


def fraction(fields: dict[str, str], name: str, default: float) -> float:
    """Return a form field as a number from 0 to 1.

    >>> fraction({"threshold": "0.5"}, "threshold", 0.0)
    0.5
    """
    text = fields.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise Problem(400, f"{name} is {text[:20]!r}: it must be a number from 0 to 1")
    return value


async def read_lines(request: Request, longest: int, timeout: float) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a request body as they arrive, without line ends: those of each chunk together.

    Raises a `Problem` if a line is longer than `longest` bytes, or no data arrives for `timeout` seconds.
    """
    chunks, pending = request.stream(), bytearray()
    while True:
        try:
            chunk = await asyncio.wait_for(anext(chunks, None), timeout)
        except asyncio.TimeoutError as error:
            raise Problem(
                408, f"nothing arrived for {timeout:g} seconds: send documents without long pauses"
            ) from error
        pending += b"\n" if chunk is None else chunk
        # Only the new bytes can end a line: a long one may arrive in many chunks.
        end = pending.rfind(b"\n", len(pending) - len(chunk or b"\n"))
        if end >= 0:
            lines = bytes(pending[:end]).split(b"\n")
            del pending[: end + 1]
            yield [line for line in lines if line.strip()]
        if chunk is None:
            return
        if len(pending) > longest:
            raise Problem(413, f"a line has more than {longest:,} bytes: split the document")


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def parse_line(line: bytes) -> dict[str, Any]:
    """Parse a line of JSON; raise a `ValueError` with one sentence if it is not an object.

    >>> parse_line(b'{"text": "a cat"}')
    {'text': 'a cat'}
    """
    try:
        content = json.loads(line, parse_constant=_reject)
    except UnicodeDecodeError as error:
        raise ValueError("the line is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise ValueError("the line is not JSON") from error
    if not isinstance(content, dict):
        raise ValueError('the line is not an object with a "text"')
    return content
