"""Download files: interrupted downloads resume, and complete archives are checked."""

from __future__ import annotations

import json
import re
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, replace
from html import unescape
from html.parser import HTMLParser
from http.client import HTTPException, HTTPResponse, InvalidURL
from itertools import chain
from pathlib import Path
from typing import cast
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

from lightdxml import __version__
from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.unpack import HEAD, archive_suffix, check, is_archive, stem

ProgressCallback = Callable[[int, "int | None"], None]

_CHUNK = 1 << 16
_PAGE_LIMIT = 1 << 20
_LONGEST_WAIT = 60.0
# Errors while connecting that a new attempt may solve.
_TRANSIENT = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError, ssl.SSLEOFError)


class DownloadError(OSError):
    """A download that failed and will not be retried."""


class _RetryError(Exception):
    """A failure that a new attempt may solve."""

    def __init__(self, what: str, *, restart: bool = False, unreachable: bool = False) -> None:
        super().__init__(what)
        self.restart = restart  # the partial file cannot be resumed
        self.unreachable = unreachable


def fetch(
    url: str,
    target: Path,
    *,
    progress: ProgressCallback | None = None,
    retries: int = 5,
    timeout: float = 30.0,
    backoff: float = 1.0,
    page: str | None = None,
) -> Path:
    """Download a file and return `target`. A partial file of an earlier download is resumed.

    The download grows in `target` + ``.part`` and is renamed when it is complete. An archive is checked first.

    Parameters
    ----------
    url
        An http or https address. Google Drive's form that confirms large files is submitted.
    target
        The file to write; an existing file is replaced.
    progress
        Called with the number of bytes so far and the total, None if the server does not state it.
    retries
        The number of attempts in a row that may fail without any progress.
    timeout
        Seconds without an answer after which a connection counts as broken.
    backoff
        Seconds before the first retry; they double with each further one, up to a minute.
    page
        A web page for a manual download, for the error message.

    Raises
    ------
    DownloadError
        If the download fails. The message says why, and whether it can be resumed.
    """
    _require_http(url)
    download = _Download(url, target, progress, timeout, page, build_opener(HTTPCookieProcessor))
    target.parent.mkdir(parents=True, exist_ok=True)
    at_start = furthest = _size(download.part)
    failures = 0
    while True:
        try:
            return download.attempt()
        except _RetryError as error:
            if error.restart:
                download.note.unlink(missing_ok=True)
            size = _size(download.part)
            failures = 1 if size > furthest else failures + 1
            furthest = max(furthest, size)
            # Without a network the download fails at once; if the network is lost on the way, it waits.
            if failures > retries or (error.unreachable and furthest == at_start):
                raise download.final_error(error) from error
        time.sleep(min(backoff * 2 ** (failures - 1), _LONGEST_WAIT))


def _require_http(url: str) -> None:
    with suppress(ValueError):  # an incomplete IPv6 address
        if urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname:
            return
    raise DownloadError(f"{url} is not an http or https address")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__


@dataclass(frozen=True)
class _Note:
    """What the server says about a file; stored next to the partial file to resume it."""

    url: str
    etag: str | None
    modified: str | None
    total: int | None
    form: bool  # the file comes only after a confirmation form

    def agrees(self, other: _Note) -> bool:
        """Return whether both can describe the same file; a 206 need not repeat all headers of the 200."""
        pairs = ((self.etag, other.etag), (self.modified, other.modified), (self.total, other.total))
        return all(a is None or b is None or a == b for a, b in pairs)


@dataclass(frozen=True)
class _Answer:
    """The bytes of a file from `start` to `stop`; None for an unknown end."""

    note: _Note
    start: int
    stop: int | None
    body: Iterator[bytes]


@dataclass(frozen=True)
class _Download:
    url: str
    target: Path
    progress: ProgressCallback | None
    timeout: float
    page: str | None
    opener: OpenerDirector

    @property
    def part(self) -> Path:
        return self.target.with_name(f"{self.target.name}.part")

    @property
    def note(self) -> Path:
        return self.target.with_name(f"{self.target.name}.part.json")

    @property
    def manual(self) -> str:
        """How to download the file manually, for error messages."""
        if self.page is None:
            return ""
        folder = self.target.with_name(stem(self.target.name))
        return f": download it manually from {self.page} and save it as {self.target} or unpack it into {folder}"

    def final_error(self, error: _RetryError) -> DownloadError:
        note, size = self._resumable()
        kept = "nothing can be resumed" if note is None else f"{size} bytes are kept in {self.part}"
        again = "starts over" if note is None else "resumes"
        return DownloadError(f"{self.url}: {error}{self.manual}; {kept}, and running the command again {again}")

    def attempt(self) -> Path:
        """Download as much as one connection gives, and finish the file if it is complete."""
        note, size = self._resumable()
        if note is None or note.total != size:
            with ExitStack() as stack:
                answer = self._ask(note, size, stack)
                note, size = self._receive(answer, note, size), answer.start
        return self._finish(note, resumed=size > 0)

    def _resumable(self) -> tuple[_Note | None, int]:
        """Return the note of a partial file that can be resumed, and its size; else None and 0."""
        try:
            note = _Note(**json.loads(self.note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None, 0
        size = _size(self.part)
        identified = (note.etag, note.modified, note.total) != (None, None, None)
        fits = size > 0 and (note.total is None or size <= note.total)
        return (note, size) if note.url == self.url and identified and fits else (None, 0)

    def _ask(self, note: _Note | None, size: int, stack: ExitStack) -> _Answer:
        """Request the missing part of the file; submit a confirmation form if there is one."""
        ranged = {}
        if note is not None:
            # A weak ETag does not identify bytes.
            validator = note.modified if (note.etag or "W/").startswith("W/") else note.etag
            ranged = {"Range": f"bytes={size}-"} | ({"If-Range": validator} if validator else {})
        # The range belongs to the file, not to the form that comes before it.
        headers = {} if note is not None and note.form else ranged
        answer = self._interpret(stack.enter_context(closing(self._request(self.url, headers))), form=False)
        if isinstance(answer, _Page) and (address := answer.confirmation()) is not None:
            answer = self._interpret(stack.enter_context(closing(self._request(address, ranged))), form=True)
        if isinstance(answer, _Answer):
            return answer
        titled = f"titled {excerpt(answer.title)}" if answer.title else "without a title"
        quota = ", because of too many downloads today" if "quota" in answer.title.lower() else ""
        raise DownloadError(f"{self.url} is a web page {titled} instead of the file{quota}{self.manual}")

    def _request(self, url: str, headers: dict[str, str]) -> HTTPResponse:
        """Send a request; return the response if it has status 200, 206 or 416."""
        always = {"User-Agent": f"lightdxml/{__version__}", "Accept-Encoding": "identity"}
        try:
            request = Request(url, headers=always | headers)
            return cast(HTTPResponse, self.opener.open(request, timeout=self.timeout))
        except HTTPError as error:
            if error.code == 416:
                return cast(HTTPResponse, error)  # which wraps the response
            with closing(error):
                raise self._status_error(error) from None
        except (URLError, InvalidURL, ValueError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            if not isinstance(reason, OSError):
                raise DownloadError(f"{url} is not a valid address: {reason}") from error
            what = f"cannot reach {urlsplit(url).netloc} ({_reason(reason)})"
            raise _RetryError(what, unreachable=not isinstance(reason, _TRANSIENT)) from error
        except (OSError, HTTPException) as error:
            raise _RetryError(f"the connection broke before an answer ({_reason(error)})") from error

    def _status_error(self, error: HTTPError) -> Exception:
        what = f"the server answered {error.code} {error.reason}"
        if error.code >= 500 or error.code == 408:
            return _RetryError(what)
        title = ""
        with suppress(OSError, HTTPException):
            title = _Page(error.url, error.read(_PAGE_LIMIT)).title
        page = f" with a page titled {excerpt(title)}" if title else ""
        advice = "wait before you try again" if error.code == 429 else "a new attempt will not help"
        return DownloadError(f"{self.url}: {what}{page}, and {advice}{self.manual}")

    def _interpret(self, response: HTTPResponse, form: bool) -> _Answer | _Page:
        """Return the file, or the web page that came instead."""
        start, stop, total = _content_range(response)
        headers = response.headers
        body = _chunks(response, sys.maxsize if stop is None else stop - start)
        if response.status == 200:
            head = _read_up_to(body, HEAD)
            if _is_page(headers.get_content_type(), head):
                return _Page(response.url, head + _read_up_to(body, _PAGE_LIMIT))
            body = chain([head], body)
        encoding = (headers["Content-Encoding"] or "identity").strip().lower().removeprefix("x-")
        # Many servers declare a .tar.gz as an encoded .tar.
        archive = encoding == "gzip" and self.target.name.lower().endswith((".gz", ".tgz"))
        if encoding != "identity" and not archive:
            raise DownloadError(f"{self.url}: the server encodes the file as {encoding}, which is not supported")
        return _Answer(_Note(self.url, headers["ETag"], headers["Last-Modified"], total, form), start, stop, body)

    def _receive(self, answer: _Answer, note: _Note | None, size: int) -> _Note:
        """Store an answer, and return the note of the complete file."""
        known = answer.note
        if answer.start > 0:
            if note is None or answer.start != size or not note.agrees(known):
                raise _RetryError("the server sent a part that does not fit the partial file", restart=True)
            known = replace(note, total=known.total or note.total)
        done = self._store(known, answer)
        end = answer.stop if known.total is None else known.total
        if end is not None and done < end:
            raise _RetryError(f"the connection ended at {done} of {end} bytes")
        return known

    def _store(self, note: _Note, answer: _Answer) -> int:
        """Append an answer to the partial file, or start a new one; return its size."""
        done = answer.start
        try:
            if done == 0:
                self.part.write_bytes(b"")  # emptied first: a new note must never describe old bytes
                self.note.write_text(json.dumps(asdict(note)), encoding="utf-8")
            with self.part.open("ab") as file:
                for chunk in answer.body:
                    done += file.write(chunk)
                    if self.progress is not None:
                        self.progress(done, note.total)
        except OSError as error:
            kept = "the part so far is kept, and running the command again resumes"
            raise DownloadError(f"{self.part} cannot be written ({_reason(error)}); {kept}") from error
        return done

    def _finish(self, note: _Note, resumed: bool) -> Path:
        """Check the file and rename it."""
        try:
            if _size(self.part) == 0:
                raise DataError(self.part, "an empty file", "the complete file")
            if archive_suffix(self.target.name):
                # Without ETag or date, only checksums prove that the parts belong to one file.
                check(self.part, thorough=resumed and note.etag is None and note.modified is None)
        except DataError as error:
            if resumed or note.total is None:
                raise _RetryError(f"the download is {error.found}", restart=resumed) from error
            self.note.unlink(missing_ok=True)  # the next call starts over
            kept = f"it is kept in {self.part}, and running the command again starts over"
            raise DownloadError(f"{self.url}: the download is {error.found}; {kept}{self.manual}") from error
        self.part.replace(self.target)
        self.note.unlink(missing_ok=True)
        return self.target


def _content_range(response: HTTPResponse) -> tuple[int, int | None, int | None]:
    """Return the first byte, the end and the total size of the file that a response contains."""
    if response.status == 200:
        return 0, response.length, response.length
    given = (response.headers["Content-Range"] or "").strip()
    if response.status == 416 and (match := re.fullmatch(r"bytes\s+\*/(\d{1,18})", given)):
        end = int(match[1])
        return end, end, end
    part = re.fullmatch(r"bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", given)
    if response.status == 206 and part is not None:
        start, stop, total = int(part[1]), int(part[2]) + 1, None if part[3] == "*" else int(part[3])
        if start < stop and (total is None or stop <= total):
            return start, stop, total
    raise _RetryError(f"the server answered {response.status} for the range {excerpt(given)}", restart=True)


def _chunks(response: HTTPResponse, size: int) -> Iterator[bytes]:
    """Yield bytes as they arrive: a broken connection loses nothing that came before."""
    while size > 0:
        try:
            chunk = response.read1(min(_CHUNK, size))
        except (OSError, HTTPException) as error:
            raise _RetryError(f"the connection broke ({_reason(error)})") from error
        if not chunk:
            return
        size -= len(chunk)
        yield chunk


def _read_up_to(chunks: Iterator[bytes], size: int) -> bytes:
    taken = b""
    while len(taken) < size and (chunk := next(chunks, b"")):
        taken += chunk
    return taken


def _is_page(content_type: str, head: bytes) -> bool:
    looks = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))
    return (looks or content_type in ("text/html", "application/xhtml+xml")) and not is_archive(head)


class _Page(HTMLParser):
    """The title of a web page, and Google Drive's form that confirms the download of a large file."""

    def __init__(self, url: str, body: bytes) -> None:
        super().__init__()
        text = body.decode("utf-8", errors="replace")
        title = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
        self.title = " ".join(unescape(title[1]).split()) if title else ""
        self._url = url
        self._forms: list[tuple[dict[str, str], dict[str, str]]] = []  # attributes and hidden inputs
        with suppress(AssertionError):  # raised for malformed declarations
            self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._forms.append((given, {}))
        elif tag == "input" and self._forms and given.get("type", "").lower() == "hidden" and "name" in given:
            self._forms[-1][1][given["name"]] = given.get("value", "")

    def confirmation(self) -> str | None:
        """Return the address to which the form leads."""
        for attributes, inputs in self._forms:
            if attributes.get("id") in ("download-form", "downloadForm") or "confirm" in inputs:
                action = attributes.get("action", "")
                with suppress(ValueError):  # an incomplete IPv6 address
                    action = urljoin(self._url, action)
                _require_http(action)
                parts = urlsplit(action)
                query = urlencode(dict(parse_qsl(parts.query, keep_blank_values=True)) | inputs)
                return urlunsplit(parts._replace(query=query, fragment=""))
        return None
