"""Files from the web: downloads that resume where they broke, and are checked when they are whole."""

from __future__ import annotations

import json
import re
import ssl
import sys
import time
import zlib
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
from lightdxml.data.unpack import HEAD, archive_suffix, check, gunzip, is_archive, stem

Progress = Callable[[int, "int | None"], None]

_CHUNK = 1 << 16
_PAGE_LIMIT = 1 << 20
_LONGEST_WAIT = 60.0
_PASSING = (ConnectionResetError, ConnectionAbortedError, BrokenPipeError, ssl.SSLEOFError)


class DownloadError(OSError):
    """A download that failed for good, said in one sentence.

    Examples
    --------
    >>> raise DownloadError("no such file")
    Traceback (most recent call last):
    lightdxml.data.fetch.DownloadError: no such file
    """


class _BrokenError(Exception):
    """A failure that another attempt may mend."""

    def __init__(self, what: str, *, restart: bool = False, unreachable: bool = False) -> None:
        super().__init__(what)
        self.restart = restart  # what is held cannot be continued
        self.unreachable = unreachable


@dataclass(frozen=True)
class _Job:
    url: str
    target: Path
    expected: int | None
    progress: Progress | None
    timeout: float
    page: str | None
    opener: OpenerDirector

    def beside(self, suffix: str) -> Path:
        return self.target.with_name(self.target.name + suffix)

    @property
    def part(self) -> Path:
        return self.beside(".part")

    @property
    def note(self) -> Path:
        return self.beside(".part.json")

    @property
    def by_hand(self) -> str:
        if self.page is None:
            return ""
        folder = self.target.with_name(stem(self.target.name))
        return f": fetch it by hand from {self.page} and save it as {self.target} or unpack it into {folder}"


@dataclass(frozen=True)
class _Note:
    """What is known of a file on a server, and remembered beside the part of it that is held."""

    url: str
    etag: str | None
    modified: str | None
    total: int | None
    encoding: str
    form: bool  # it came only after a confirmation form

    def agrees(self, other: _Note) -> bool:
        """Whether both may be of one file; a 206 need not repeat every header of the 200."""
        pairs = ((self.etag, other.etag), (self.modified, other.modified), (self.total, other.total))
        return all(a is None or b is None or a == b for a, b in pairs)


@dataclass(frozen=True)
class _Answer:
    """The bytes of a file from `start` to `stop` (None: to wherever it ends)."""

    note: _Note
    start: int
    stop: int | None
    body: Iterator[bytes]


def fetch(
    url: str,
    target: Path,
    *,
    expected_bytes: int | None = None,
    progress: Progress | None = None,
    retries: int = 5,
    timeout: float = 30.0,
    backoff: float = 1.0,
    page: str | None = None,
) -> Path:
    """Download a file, continuing what an earlier, interrupted download has left.

    The file grows as `target` + ``.part`` and takes its name when it is whole, and sound if it is an archive.

    Parameters
    ----------
    url
        An http or https address; Google Drive's confirmation of large files is given by itself.
    target
        The file to write; one that is there is replaced.
    expected_bytes
        The size that the file must have, where it is known.
    progress
        Called with the bytes held and the bytes in all (None where the server does not say).
    retries
        How many attempts in a row may fail without bringing the file further.
    timeout
        Seconds without an answer after which a connection counts as broken.
    backoff
        Seconds before the first new attempt; twice as long before each that follows, up to a minute.
    page
        Where a person can fetch the file by hand, for the error message.

    Returns
    -------
    Path
        `target`.

    Raises
    ------
    DownloadError
        The file cannot be had; the message says why, and what becomes of the part that has arrived.

    Examples
    --------
    >>> fetch("ftp://example.org/data.zip", Path("data.zip"))
    Traceback (most recent call last):
    lightdxml.data.fetch.DownloadError: ftp://example.org/data.zip is no http or https address
    """
    _require_http(url)
    job = _Job(url, target, expected_bytes, progress, timeout, page, build_opener(HTTPCookieProcessor))
    target.parent.mkdir(parents=True, exist_ok=True)
    at_start = furthest = _size(job.part)
    failures = 0
    while True:
        try:
            return _attempt(job)
        except _BrokenError as broken:
            if broken.restart:
                job.note.unlink(missing_ok=True)
            held = _size(job.part)
            failures = 1 if held > furthest else failures + 1
            furthest = max(furthest, held)
            # A machine without a network should say so at once; one that loses it on the way should wait.
            if failures > retries or (broken.unreachable and furthest == at_start):
                raise _given_up(job, broken) from broken
        time.sleep(min(backoff * 2 ** (failures - 1), _LONGEST_WAIT))


def _require_http(url: str) -> None:
    with suppress(ValueError):  # half an IPv6 address
        if urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname:
            return
    raise DownloadError(f"{url} is no http or https address")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _given_up(job: _Job, broken: _BrokenError) -> DownloadError:
    note, held = _held(job)
    kept, again = f"the {held} bytes that have arrived are kept in {job.part}", "resumes"
    if note is None:
        kept, again = "nothing has arrived that could be continued", "begins anew"
    return DownloadError(f"{job.url}: {broken}{job.by_hand}; {kept}, and repeating the command {again}")


def _attempt(job: _Job) -> Path:
    """Bring the file further by one connection, and finish it if that is the last."""
    note, held = _held(job)
    if note is None or note.total != held:
        with ExitStack() as stack:
            answer = _ask(job, note, held, stack)
            note, held = _receive(job, answer, note, held)
    return _finish(job, note, glued=held > 0)


def _held(job: _Job) -> tuple[_Note | None, int]:
    """Return the note of a partial file that can be continued, and its size; else None and 0."""
    try:
        note = _Note(**json.loads(job.note.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None, 0
    size = _size(job.part)
    known = (note.etag, note.modified, note.total) != (None, None, None)
    fits = size > 0 and (note.total is None or size <= note.total)
    return (note, size) if note.url == job.url and known and fits else (None, 0)


def _ask(job: _Job, note: _Note | None, held: int, stack: ExitStack) -> _Answer:
    """Request what is missing of the file, past a confirmation form if there is one."""
    ranged = {}
    if note is not None:
        validator = note.modified if (note.etag or "W/").startswith("W/") else note.etag
        ranged = {"Range": f"bytes={held}-"} | ({"If-Range": validator} if validator else {})
    # A form is not to be asked for from the middle: the range is for what comes after it.
    headers = {} if note is not None and note.form else ranged
    answer = _look(job, stack.enter_context(closing(_request(job, job.url, None, headers))), form=False)
    if isinstance(answer, _Page) and (submission := answer.confirmation()) is not None:
        answer = _look(job, stack.enter_context(closing(_request(job, *submission, ranged))), form=True)
    if isinstance(answer, _Answer):
        return answer
    titled = f"titled {excerpt(answer.title)}" if answer.title else "without a title"
    quota = ", for the file has been fetched too often today" if "quota" in answer.title.lower() else ""
    raise DownloadError(f"{job.url} gave a web page {titled} instead of the file{quota}{job.by_hand}")


def _request(job: _Job, url: str, data: bytes | None, headers: dict[str, str]) -> HTTPResponse:
    """Send a request; return the answer if it is the file, a part of it, or a 416."""
    always = {"User-Agent": f"lightdxml/{__version__}", "Accept-Encoding": "identity"}
    try:
        request = Request(url, data, always | headers)
        return cast(HTTPResponse, job.opener.open(request, timeout=job.timeout))
    except HTTPError as error:
        if error.code == 416:
            return cast(HTTPResponse, error)  # which it wraps
        with closing(error):
            raise _status_error(job, error) from None
    except (URLError, InvalidURL, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        if not isinstance(reason, OSError):
            raise DownloadError(f"{url} is no address that can be asked for: {reason}") from error
        what = f"cannot reach {urlsplit(url).netloc} ({_reason(reason)})"
        raise _BrokenError(what, unreachable=not isinstance(reason, _PASSING)) from error
    except (OSError, HTTPException) as error:
        raise _BrokenError(f"the connection broke before an answer came ({_reason(error)})") from error


def _status_error(job: _Job, error: HTTPError) -> Exception:
    what = f"the server answered {error.code} {error.reason}"
    if error.code >= 500 or error.code == 408:
        return _BrokenError(what)
    title = ""
    with suppress(OSError, HTTPException):
        title = _Page(error.url, error.read(_PAGE_LIMIT)).title
    said = f" with a page titled {excerpt(title)}" if title else ""
    advice = "wait before you repeat it" if error.code == 429 else "another attempt will not change that"
    return DownloadError(f"{job.url}: {what}{said}, and {advice}{job.by_hand}")


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__


def _look(job: _Job, response: HTTPResponse, form: bool) -> _Answer | _Page:
    """See whether an answer is the file or a web page; the latter is read."""
    start, stop, total = _extent(response)
    headers = response.headers
    encoding = (headers["Content-Encoding"] or "identity").strip().lower().removeprefix("x-")
    body = _chunks(response, sys.maxsize if stop is None else stop - start)
    if response.status == 200:
        head = _read_up_to(body, HEAD)
        if _is_page(headers.get_content_type(), _plain(head, encoding)):
            return _Page(response.url, _plain(head + _read_up_to(body, _PAGE_LIMIT), encoding))
        body = chain([head], body)
    note = _Note(job.url, headers["ETag"], headers["Last-Modified"], total, encoding, form)
    return _Answer(note, start, stop, body)


def _extent(response: HTTPResponse) -> tuple[int, int | None, int | None]:
    """Return from where to where in the file an answer goes, and how long the file is."""
    if response.status == 200:
        return 0, response.length, response.length
    given = (response.headers["Content-Range"] or "").strip()
    if response.status == 416 and (match := re.fullmatch(r"bytes\s+\*/(\d{1,18})", given)):
        end = int(match[1])  # behind which nothing comes
        return end, end, end
    part = re.fullmatch(r"bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", given)
    if response.status == 206 and part is not None:
        start, stop, total = int(part[1]), int(part[2]) + 1, None if part[3] == "*" else int(part[3])
        if start < stop and (total is None or stop <= total):
            return start, stop, total
    raise _BrokenError(f"the server answered {response.status} for the range {excerpt(given)}", restart=True)


def _chunks(response: HTTPResponse, size: int) -> Iterator[bytes]:
    """Yield what arrives as it arrives, so that a break loses nothing that came before it."""
    while size > 0:
        try:
            chunk = response.read1(min(_CHUNK, size))
        except (OSError, HTTPException) as error:
            raise _BrokenError(f"the connection broke ({_reason(error)})") from error
        if not chunk:
            return
        size -= len(chunk)
        yield chunk


def _read_up_to(chunks: Iterator[bytes], size: int) -> bytes:
    taken = b""
    while len(taken) < size and (chunk := next(chunks, b"")):
        taken += chunk
    return taken


def _plain(beginning: bytes, encoding: str) -> bytes:
    if encoding == "gzip":
        with suppress(zlib.error):
            return zlib.decompressobj(wbits=31).decompress(beginning, _PAGE_LIMIT)
    return beginning


def _is_page(content_type: str, head: bytes) -> bool:
    looks = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))
    return (looks or content_type in ("text/html", "application/xhtml+xml")) and not is_archive(head)


class _Page(HTMLParser):
    """A web page's title, and the form by which Google Drive has large files confirmed."""

    def __init__(self, url: str, body: bytes) -> None:
        super().__init__()
        text = body.decode("utf-8", errors="replace")
        title = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
        self.title = " ".join(unescape(title[1]).split()) if title else ""
        self._url = url
        self._forms: list[tuple[dict[str, str], dict[str, str]]] = []  # their attributes and hidden inputs
        with suppress(AssertionError):  # what the parser raises for malformed declarations
            self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._forms.append((given, {}))
        elif tag == "input" and self._forms and given.get("type", "").lower() == "hidden" and "name" in given:
            self._forms[-1][1][given["name"]] = given.get("value", "")

    def confirmation(self) -> tuple[str, bytes | None] | None:
        """Return the address that the form leads to, and the body to post there (None to get)."""
        for attributes, inputs in self._forms:
            if attributes.get("id") in ("download-form", "downloadForm") or "confirm" in inputs:
                post = attributes.get("method", "").lower() == "post"
                return _submission(self._url, attributes.get("action", ""), inputs, post)
        return None


def _submission(base: str, action: str, inputs: dict[str, str], post: bool) -> tuple[str, bytes | None]:
    with suppress(ValueError):  # half an IPv6 address, which is refused
        action = urljoin(base, action)
    _require_http(action)
    if post:
        return action, urlencode(inputs).encode()
    parts = urlsplit(action)
    query = dict(parse_qsl(parts.query, keep_blank_values=True)) | inputs
    return urlunsplit(parts._replace(query=urlencode(query), fragment="")), None


def _receive(job: _Job, answer: _Answer, note: _Note | None, held: int) -> tuple[_Note, int]:
    """Store what an answer brings; return what is known of the file, and from where it was continued."""
    whole = answer.note
    if answer.start > 0:
        if note is None or answer.start != held or not note.agrees(whole):
            raise _BrokenError("the server answered with a part that does not fit what is held", restart=True)
        whole = replace(note, total=whole.total or note.total)
    if whole.encoding not in ("identity", "gzip"):
        raise DownloadError(f"{job.url}: the server encodes it as {whole.encoding}, which is not supported")
    if job.expected is not None and whole.encoding == "identity" and whole.total not in (None, job.expected):
        raise DownloadError(f"{job.url}: the server offers {whole.total} bytes instead of {job.expected}")
    done = _store(job, whole, answer)
    end = answer.stop if whole.total is None else whole.total
    if end is not None and done < end:
        raise _BrokenError(f"the connection ended at {done} of {end} bytes")
    return whole, answer.start


def _store(job: _Job, note: _Note, answer: _Answer) -> int:
    """Append an answer to the partial file, or begin it; return the size reached."""
    done = answer.start
    try:
        if done == 0:
            job.part.write_bytes(b"")  # emptied first: at no time may a new note stand beside old bytes
            job.note.write_text(json.dumps(asdict(note)), encoding="utf-8")
        with job.part.open("ab") as file:
            for chunk in answer.body:
                done += file.write(chunk)
                if job.progress is not None:
                    job.progress(done, note.total)
    except OSError as error:
        kept = "what has arrived is kept, and repeating the command resumes"
        raise DownloadError(f"{job.part} cannot be written ({_reason(error)}); {kept}") from error
    return done


def _finish(job: _Job, note: _Note, glued: bool) -> Path:
    """Give what has arrived its name, if it is what was wanted."""
    # Pieces that no tag or date proves to be of one file are proved by their checksums.
    thorough = glued and note.etag is None and note.modified is None
    try:
        ready = _checked(job, note, thorough)
    except DataError as error:
        job.beside(".decoded").unlink(missing_ok=True)
        if glued or note.total is None:
            raise _BrokenError(f"what arrived is {error.found}", restart=glued) from error
        job.note.unlink(missing_ok=True)  # without it the next call begins anew
        kept = f"it is kept in {job.part} until the command is repeated, which begins anew"
        raise DownloadError(f"{job.url}: what arrived is {error.found}; {kept}{job.by_hand}") from error
    ready.replace(job.target)
    job.part.unlink(missing_ok=True)
    job.note.unlink(missing_ok=True)
    return job.target


def _checked(job: _Job, note: _Note, thorough: bool) -> Path:
    """Return the file without its encoding; raise a DataError if it is not whole."""
    ready = job.part
    # Many servers declare a .tar.gz as a tar that they have encoded: there the archive is what was meant.
    if note.encoding == "gzip" and not job.target.name.lower().endswith((".gz", ".tgz")):
        ready = job.beside(".decoded")
        gunzip(job.part, ready)
    size = _size(ready)
    if size == 0 or job.expected not in (None, size):
        found = f"{size} bytes instead of {job.expected}" if size else "an empty file"
        raise DataError(ready, found, "the whole file")
    if archive_suffix(job.target.name):
        check(ready, thorough=thorough)
    return ready
