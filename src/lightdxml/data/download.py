"""Fetching data sets: downloads that resume, archives that stay in their folder, sizes that are checked."""

from __future__ import annotations

import bz2
import errno
import gzip
import http.client
import json
import lzma
import re
import shutil
import socket
import ssl
import stat
import struct
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from email.message import Message
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import IO, cast
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from lightdxml import __version__
from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.registry import Entry, cache_folder, find

Progress = Callable[[int, "int | None"], None]
_Response = http.client.HTTPResponse | urllib.error.HTTPError

_CHUNK = 1 << 16
_HEAD = 512
_PAGE_LIMIT = 1 << 20
_LONGEST_WAIT = 60.0
_FREE_BYTES = 1 << 30
_RATIO = 200
_GZIP = b"\x1f\x8b"
_MAGIC = {b"PK\x03\x04": "zip", b"PK\x05\x06": "zip", _GZIP: "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
_SUFFIXES = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz", ".tar", ".zip", ".gz", ".bz2", ".xz")
_UNREACHABLE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.ECONNREFUSED}


class DownloadError(OSError):
    """A download that failed for good, said in one sentence.

    Examples
    --------
    >>> raise DownloadError("no such file")
    Traceback (most recent call last):
    lightdxml.data.download.DownloadError: no such file
    """


class _BrokenError(Exception):
    """A failure that another attempt may mend."""

    def __init__(self, what: str, *, restart: bool = False, unreachable: bool = False) -> None:
        super().__init__(what)
        self.restart = restart  # what is held cannot be continued: the next attempt asks for the whole file
        self.unreachable = unreachable


@dataclass(frozen=True)
class _Job:
    url: str
    target: Path
    expected: int | None
    progress: Progress | None
    timeout: float
    page: str | None
    opener: urllib.request.OpenerDirector

    @property
    def part(self) -> Path:
        return self.target.with_name(self.target.name + ".part")

    @property
    def note(self) -> Path:
        return self.target.with_name(self.target.name + ".part.json")


@dataclass(frozen=True)
class _Note:
    """What the sidecar remembers of the file that a partial file is the beginning of."""

    url: str
    etag: str | None
    modified: str | None
    total: int | None
    encoding: str | None
    form: bool  # the file came only after a confirmation form

    def agrees(self, other: _Note) -> bool:
        """Whether both may be of one file; a 206 need not repeat every header of the 200."""
        pairs = ((self.etag, other.etag), (self.modified, other.modified), (self.total, other.total))
        return all(a is None or b is None or a == b for a, b in pairs)


@dataclass(frozen=True)
class _Answer:
    response: _Response
    length: int | None  # as announced
    body: Iterator[bytes]
    form: bool = False


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

    The file grows as `target` + ``.part`` and takes its name when it is whole. Archives are read as a check.

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
    lightdxml.data.download.DownloadError: ftp://example.org/data.zip is no http or https address
    """
    _require_http(url)
    job = _Job(url, target, expected_bytes, progress, timeout, page, _opener())
    target.parent.mkdir(parents=True, exist_ok=True)
    at_start = furthest = _size(job.part)
    failures, fresh = 0, False
    while (broken := _attempted(job, fresh)) is not None:
        held = _size(job.part)
        failures = 1 if held > furthest else failures + 1
        furthest = max(furthest, held)
        # A machine without a network should say so at once; one that loses it on the way should wait.
        if failures > retries or (broken.unreachable and furthest == at_start):
            raise _final(job, broken) from broken
        fresh = broken.restart
        time.sleep(min(backoff * 2 ** (failures - 1), _LONGEST_WAIT))
    return target


def _require_http(url: str) -> None:
    with suppress(ValueError):  # half an IPv6 address
        if urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname:
            return
    raise DownloadError(f"{url} is no http or https address")


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener for http and https alone, so that no redirect leads to a file or to ftp."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPCookieProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _final(job: _Job, broken: _BrokenError) -> DownloadError:
    note, held = _held(job)
    kept = (
        f"the {held} bytes that have arrived are kept in {job.part}"
        if note
        else "nothing has arrived that could be continued"
    )
    again = "repeating the command resumes" if note else "repeating the command begins anew"
    if broken.unreachable:
        return DownloadError(f"{broken}{_by_hand(job)}; {kept}, and with a network {again}")
    return DownloadError(f"{job.url}: {broken}; {kept}, and {again}")


def _by_hand(job: _Job) -> str:
    if job.page is None:
        return ""
    folder = job.target.with_name(_stem(job.target.name))
    return f": fetch it by hand from {job.page} and save it as {job.target} or unpack it into {folder}"


def _stem(name: str) -> str:
    """Return the name without its archive suffix; `Path.stem` would take the end off "EURLex-4.3K"."""
    suffix = next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")
    return name.removesuffix(name[len(name) - len(suffix) :]) or name


def _attempted(job: _Job, fresh: bool) -> _BrokenError | None:
    try:
        _attempt(job, fresh)
    except _BrokenError as broken:
        return broken
    return None


def _attempt(job: _Job, fresh: bool) -> None:
    """Bring the file further by one connection, and finish it if that is the last."""
    note, held = (None, 0) if fresh else _held(job)
    if note is None or note.total != held:
        answer = _ask(job, note, held)
        with closing(answer.response):
            note, held = _receive(job, answer, note, held)
    _finish(job, note, glued=held > 0)


def _held(job: _Job) -> tuple[_Note | None, int]:
    """Return the note of a partial file that can be continued, and its size; else None and 0."""
    note, size = _read_note(job), _size(job.part)
    if note is None or size == 0 or (note.total is not None and size > note.total):
        return None, 0
    if note.etag is None and note.modified is None and note.total is None:
        return None, 0
    return note, size


def _read_note(job: _Job) -> _Note | None:
    try:
        stored = json.loads(job.note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(stored, dict) or set(stored) != {field.name for field in fields(_Note)}:
        return None
    note = _Note(**stored)
    return note if note.url == job.url else None


def _write_note(job: _Job, note: _Note) -> None:
    draft = job.note.with_name(job.note.name + ".new")
    draft.write_text(json.dumps(asdict(note)), encoding="utf-8")
    draft.replace(job.note)


def _ask(job: _Job, note: _Note | None, held: int) -> _Answer:
    """Request the file, past a confirmation form if there is one."""
    ranged = {} if note is None else _range_headers(note, held)
    # A form is not to be asked for from the middle: the range is for what comes after it.
    answer = _look(_request(job, job.url, {} if note is not None and note.form else ranged))
    if isinstance(answer, _Answer):
        return answer
    form = answer.confirmation
    if form is None:
        raise _page_error(job, answer)
    address, data = _submission(form, answer.url)
    answer = _look(_request(job, address, ranged, data))
    if isinstance(answer, _Answer):
        return replace(answer, form=True)
    raise _page_error(job, answer)


def _range_headers(note: _Note, held: int) -> dict[str, str]:
    strong = note.etag if note.etag is not None and not note.etag.startswith("W/") else None
    validator = strong or note.modified
    return {"Range": f"bytes={held}-"} | ({"If-Range": validator} if validator else {})


def _request(job: _Job, url: str, headers: dict[str, str], data: bytes | None = None) -> _Response:
    """Send a request; return the answer if it is the file, a part of it, or a 416."""
    always = {"User-Agent": f"lightdxml/{__version__}", "Accept-Encoding": "identity"}
    try:
        request = urllib.request.Request(url, data, always | headers)
        return cast(http.client.HTTPResponse, job.opener.open(request, timeout=job.timeout))
    except urllib.error.HTTPError as error:
        if error.code == 416:
            return error
        with closing(error):
            raise _status_error(job, error) from None
    except urllib.error.URLError as error:
        raise _connection_error(job, url, error.reason) from error
    except (http.client.InvalidURL, ValueError) as error:
        raise DownloadError(f"{url} is no address that can be asked for: {error}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(f"the connection broke before an answer came ({_reason(error)})") from error


def _status_error(job: _Job, error: urllib.error.HTTPError) -> Exception:
    what = f"the server answered {error.code} {error.reason}"
    if error.code >= 500 or error.code == 408:
        return _BrokenError(what)
    try:
        title = _Page(error.url, error.read(_PAGE_LIMIT)).title
    except (OSError, http.client.HTTPException):
        title = ""
    said = f" with a page titled {excerpt(title)}" if title else ""
    advice = "wait before you repeat it" if error.code == 429 else "another attempt will not change that"
    return DownloadError(f"{job.url}: {what}{said}, and {advice}{_by_hand(job)}")


def _connection_error(job: _Job, url: str, reason: object) -> Exception:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return DownloadError(f"{url}: the certificate is not valid ({_reason(reason)}){_by_hand(job)}")
    refused = isinstance(reason, OSError) and reason.errno in _UNREACHABLE
    tunnel = str(reason).startswith("Tunnel connection failed")
    if refused or tunnel or isinstance(reason, socket.gaierror | TimeoutError):
        host = urlsplit(url).netloc.rpartition("@")[2]
        return _BrokenError(f"cannot reach {host} ({_reason(reason)})", unreachable=True)
    if isinstance(reason, OSError):
        return _BrokenError(f"the connection broke before an answer came ({_reason(reason)})")
    return DownloadError(f"{url} cannot be asked for: {reason}")


def _reason(error: object) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__


def _look(response: _Response) -> _Answer | _Page:
    """See whether an answer is the file; if it is a web page, read that and close the response."""
    if response.status not in (200, 206):
        return _Answer(response, None, iter(()))
    length = cast(http.client.HTTPResponse, response).length
    body = _chunks(response, length)
    if response.status == 206:
        return _Answer(response, length, body)
    try:
        head = _read_up_to(body, _HEAD)
        encoded = _encoding(response.headers) == "gzip"
        if not _is_page(response.headers, _gunzipped(head) if encoded else head):
            return _Answer(response, length, chain([head], body))
        whole = head + _read_up_to(body, _PAGE_LIMIT)
    except BaseException:
        response.close()
        raise
    response.close()
    return _Page(response.url, _gunzipped(whole) if encoded else whole)


def _read_up_to(chunks: Iterator[bytes], size: int) -> bytes:
    taken = b""
    while len(taken) < size and (chunk := next(chunks, b"")):
        taken += chunk
    return taken


def _gunzipped(beginning: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(beginning, _PAGE_LIMIT)
    except zlib.error:
        return beginning


def _is_page(headers: Message, head: bytes) -> bool:
    if _kind(head) is not None:
        return False
    html = headers.get_content_type() in ("text/html", "application/xhtml+xml")
    return html or head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html"))


def _chunks(response: _Response, limit: int | None) -> Iterator[bytes]:
    """Yield what arrives as it arrives, up to a limit, so that a break loses nothing that came before it."""
    read = cast(http.client.HTTPResponse, response).read1
    while limit is None or limit > 0:
        try:
            chunk = read(_CHUNK if limit is None else min(_CHUNK, limit))
        except (OSError, http.client.HTTPException) as error:
            raise _BrokenError(f"the connection broke ({_reason(error)})") from error
        if not chunk:
            return
        limit = None if limit is None else limit - len(chunk)
        yield chunk


@dataclass
class _Form:
    id: str
    action: str
    method: str
    inputs: dict[str, str]


class _Page(HTMLParser):
    """A web page's title, and the form by which Google Drive has large files confirmed."""

    def __init__(self, url: str, body: bytes) -> None:
        super().__init__()
        self.url = url
        self._titles: list[str] = []
        self._in_title = False
        self._forms: list[_Form] = []
        with suppress(AssertionError):  # what the parser raises for malformed declarations
            self.feed(body.decode("utf-8", errors="replace"))
            self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "title":
            self._in_title = True
        elif tag == "form":
            method = given.get("method", "get").lower()
            self._forms.append(_Form(given.get("id", ""), given.get("action", ""), method, {}))
        elif tag == "input" and self._forms and given.get("type", "").lower() == "hidden" and "name" in given:
            self._forms[-1].inputs[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = self._in_title and tag != "title"

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._titles.append(data)

    @property
    def title(self) -> str:
        return " ".join("".join(self._titles).split())

    @property
    def confirmation(self) -> _Form | None:
        wanted = ("download-form", "downloadForm")
        return next((form for form in self._forms if form.id in wanted or "confirm" in form.inputs), None)


def _submission(form: _Form, base: str) -> tuple[str, bytes | None]:
    """Return the address that a form leads to, and the body to post there (None to get)."""
    try:
        address = urljoin(base, form.action)
    except ValueError:  # half an IPv6 address, which is refused below
        address = form.action
    _require_http(address)
    if form.method == "post":
        return address, urlencode(form.inputs).encode()
    parts = urlsplit(address)
    query = dict(parse_qsl(parts.query, keep_blank_values=True)) | form.inputs
    return urlunsplit(parts._replace(query=urlencode(query), fragment="")), None


def _page_error(job: _Job, page: _Page) -> DownloadError:
    titled = f"titled {excerpt(page.title)}" if page.title else "without a title"
    quota = ", for the file has been fetched too often today" if "quota" in page.title.lower() else ""
    return DownloadError(f"{job.url} gave a web page {titled} instead of the file{quota}{_by_hand(job)}")


def _receive(job: _Job, answer: _Answer, note: _Note | None, held: int) -> tuple[_Note, int]:
    """Write what an answer brings; return what is known of the whole, and from where it was continued."""
    headers, status = answer.response.headers, answer.response.status
    if status == 416:
        if note is not None and note.total is None and _unsatisfied(headers) == held:
            return note, held
        raise _BrokenError("the server has no bytes where the partial file ends", restart=True)
    stop: int | None
    if status == 206:
        start, end, total = _content_range(headers)
        seen = _seen(job, answer, total)
        if start != held or (note is not None and not note.agrees(seen)):
            raise _BrokenError("the server answered with a part that does not fit what is held", restart=True)
        whole = seen if note is None else replace(note, total=note.total if total is None else total)
        stop = end + 1
    elif status == 200:
        whole, stop, held = _seen(job, answer, answer.length), answer.length, 0
    else:
        raise DownloadError(f"{job.url}: the server answered {status}, which is no file{_by_hand(job)}")
    _require_expected(job, whole)
    done = _store(job, whole, answer.body, held, stop)
    end_of_file = stop if whole.total is None else whole.total
    if end_of_file is not None and done < end_of_file:
        raise _BrokenError(f"the connection ended at {done} of {end_of_file} bytes")
    return whole, held


def _seen(job: _Job, answer: _Answer, total: int | None) -> _Note:
    headers = answer.response.headers
    return _Note(job.url, headers["ETag"], headers["Last-Modified"], total, _encoding(headers), answer.form)


def _encoding(headers: Message) -> str | None:
    named = (headers["Content-Encoding"] or "identity").strip().lower().removeprefix("x-")
    return None if named == "identity" else named


def _content_range(headers: Message) -> tuple[int, int, int | None]:
    given = (headers["Content-Range"] or "").strip()
    match = re.fullmatch(r"bytes\s+(\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", given)
    if match is None:
        raise _BrokenError("the server answered with a part but does not say which", restart=True)
    start, end, total = int(match[1]), int(match[2]), None if match[3] == "*" else int(match[3])
    if not start <= end < (end + 1 if total is None else total):
        raise _BrokenError(f"the server answered with an impossible part, {given}", restart=True)
    return start, end, total


def _unsatisfied(headers: Message) -> int | None:
    match = re.fullmatch(r"bytes\s+\*/(\d{1,18})", (headers["Content-Range"] or "").strip())
    return None if match is None else int(match[1])


def _require_expected(job: _Job, note: _Note) -> None:
    if note.encoding not in (None, "gzip"):
        raise DownloadError(f"{job.url}: the server encodes it as {note.encoding}, which is not supported")
    if job.expected is not None and note.encoding is None and note.total not in (None, job.expected):
        raise DownloadError(f"{job.url}: the server offers {note.total} bytes instead of {job.expected}")


def _store(job: _Job, note: _Note, chunks: Iterator[bytes], done: int, stop: int | None) -> int:
    """Append to the partial file (from nothing: begin it) up to a size; return the size reached."""
    try:
        if done == 0:
            job.part.write_bytes(b"")  # emptied first: at no time may a new note stand beside old bytes
            _write_note(job, note)
        with job.part.open("ab") as file:
            for chunk in chunks:
                done += file.write(chunk if stop is None else chunk[: stop - done])
                if job.progress is not None:
                    job.progress(done, note.total)
                if done == stop:
                    break
    except OSError as error:
        kept = "what has arrived is kept, and repeating the command resumes"
        raise DownloadError(f"{job.part} cannot be written ({_reason(error)}); {kept}") from error
    return done


def _finish(job: _Job, note: _Note, glued: bool) -> None:
    """Check what has arrived and give it its name."""
    ready, fault = _decoded(job, note)
    # Pieces that no tag or date proves to be of one file are proved by their checksums.
    thorough = glued and note.etag is None and note.modified is None
    fault = fault or _fault(ready, job, thorough)
    if fault is None:
        ready.replace(job.target)
        job.part.unlink(missing_ok=True)
        job.note.unlink(missing_ok=True)
        return
    if ready != job.part:
        ready.unlink(missing_ok=True)
    if glued or note.total is None:
        raise _BrokenError(fault, restart=glued)
    job.note.unlink(missing_ok=True)  # without it the next call begins anew
    raise DownloadError(
        f"{job.url}: {fault}; what has arrived is kept in {job.part} until the command is repeated, which"
        f" begins anew{_by_hand(job)}"
    )


def _decoded(job: _Job, note: _Note) -> tuple[Path, str | None]:
    """Return the file without its Content-Encoding, and what is wrong with that encoding."""
    if note.encoding != "gzip" or not _head(job.part).startswith(_GZIP):
        return job.part, None
    # Many servers declare a .tar.gz as a tar that they have encoded: there the archive is what was asked for.
    named = job.target.name.lower().endswith((".gz", ".tgz"))
    if named and not _gunzipped(_head(job.part)).startswith(_GZIP):
        return job.part, None
    plain = job.target.with_name(job.target.name + ".decoded")
    try:
        with _broken_archives(job.part), _decompressed(job.part, "gzip") as source, plain.open("wb") as sink:
            _copy(source, sink, _Budget(job.part))
    except DataError as error:
        return plain, f"its encoding is broken ({error})"
    return plain, None


def _fault(path: Path, job: _Job, thorough: bool) -> str | None:
    """Say what is wrong with a file that should be whole."""
    size = _size(path)
    if job.expected is not None and size != job.expected:
        return f"{size} bytes arrived where {job.expected} are expected"
    if size == 0:
        return "the file that arrived is empty"
    kind = _kind(_head(path))
    if kind is None:
        named = job.target.name.lower().endswith(_SUFFIXES)
        return f"what arrived is no archive but begins with {excerpt(_head(path), 20)}" if named else None
    try:
        with _broken_archives(path):
            _check_archive(path, kind, thorough)
    except DataError as error:
        return f"the archive that arrived is broken ({error.found})"
    return None


def _check_archive(path: Path, kind: str, thorough: bool) -> None:
    if kind != "zip":
        for _ in _stream_members(path, kind):
            pass
        return
    with zipfile.ZipFile(path) as archive:  # its directory stands at the end: it opens only if it is all there
        if thorough and (name := archive.testzip()) is not None:
            raise zipfile.BadZipFile(f"{excerpt(name)} does not have its checksum")


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)


def _kind(head: bytes) -> str | None:
    """Say by its first 512 bytes what kind of archive a file is; None where it is none."""
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    return "tar" if _is_tar(head) else None


def _is_tar(head: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


class _Budget:
    """How much an archive may still unpack to: what stands against archives made to fill the disk."""

    def __init__(self, archive: Path) -> None:
        self.archive = archive
        self.limit = max(_FREE_BYTES, _RATIO * _size(archive))
        self.left = self.limit

    def require(self, size: int) -> None:
        if size > self.left:
            found = f"more than {self.limit} bytes when unpacked"
            raise DataError(self.archive, found, "an archive that does not fill the disk")

    def take(self, size: int) -> None:
        self.require(size)
        self.left -= size


class _Reader:
    """The stream inside an archive, read within a budget, its end watched for."""

    def __init__(self, stream: IO[bytes], archive: Path) -> None:
        self._stream = stream
        self._budget = _Budget(archive)
        self._pushed_back = b""
        self.position = 0
        self.last_nonzero = 0

    def peek(self, size: int) -> bytes:
        self._pushed_back = self._stream.read(size)
        return self._pushed_back

    def read(self, size: int) -> bytes:
        data = self._pushed_back or self._stream.read(size)
        self._pushed_back = b""
        self._budget.take(len(data))
        stripped = len(data.rstrip(b"\0"))
        self.last_nonzero = self.position + stripped if stripped else self.last_nonzero
        self.position += len(data)
        return data


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a zip, a tar (plain or compressed) or a single compressed file into a new folder.

    The kind is told by the content. Nothing is written outside the folder, and the folder appears only when
    everything is in it.

    Parameters
    ----------
    archive
        The file to unpack.
    folder
        The folder to make; one that is there must be empty.

    Returns
    -------
    Path
        `folder`.

    Raises
    ------
    DataError
        The archive is broken, or has members that no data set needs: links, devices, paths that lead out of
        the folder, more than 1 GB (and 200 times its own size) of content.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with zipfile.ZipFile(Path(place, "data.zip"), "w") as file:
    ...         file.writestr("train.txt", "1 2 3")
    ...     folder = unpack(Path(place, "data.zip"), Path(place, "data"))
    ...     (folder / "train.txt").read_text()
    '1 2 3'
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DataError(folder, "something there already", "a new or an empty folder to unpack into")
    staging = folder.with_name(folder.name + ".unpacking")
    _remove_tree(staging)
    staging.mkdir(parents=True)
    try:
        with _broken_archives(archive):
            _extract(archive, staging)
        if folder.exists():
            folder.rmdir()
        staging.replace(folder)
    except BaseException:
        _remove_tree(staging)
        raise
    return folder


def _remove_tree(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


@contextmanager
def _broken_archives(archive: Path) -> Iterator[None]:
    """Turn what the archive modules raise for broken archives into a DataError."""
    whole = "a whole archive: fetch it again"
    try:
        yield
    except DataError:
        raise
    except OSError as error:
        # The decompressors raise bare OSErrors; one with a number is the file system's own (EINVAL: a seek
        # to where a broken directory points).
        if error.errno not in (None, errno.EINVAL):
            raise
        raise DataError(archive, f"a broken archive ({error})", whole) from error
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError) as error:
        raise DataError(archive, f"a broken archive ({error})", whole) from error
    except (RuntimeError, ValueError, LookupError, OverflowError, struct.error) as error:
        # Encrypted, an unknown compression, nonsense in a header (an empty name is an IndexError).
        raise DataError(archive, f"an archive that cannot be read ({error})", whole) from error


@dataclass(frozen=True)
class _Member:
    name: str
    size: int  # as declared
    content: IO[bytes] | None  # None for a folder
    plain: bool = True  # neither a link nor a device


def _extract(archive: Path, folder: Path) -> None:
    kind = _kind(_head(archive))
    if kind is None:
        found = f"a file that begins with {excerpt(_head(archive), 20)}"
        raise DataError(archive, found, "a zip, tar, gz, bz2 or xz archive")
    budget = _Budget(archive)
    with closing(_zip_members(archive) if kind == "zip" else _stream_members(archive, kind)) as members:
        for member in members:
            if not member.plain:
                found = f"a link or a device, {excerpt(member.name)}"
                raise DataError(archive, found, "an archive of files and folders only")
            budget.require(member.size)
            _write_member(archive, folder, member, budget)


def _write_member(archive: Path, folder: Path, member: _Member, budget: _Budget) -> None:
    path = _inside(archive, folder, member.name)
    try:
        if member.content is None:
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as sink:
            _copy(member.content, sink, budget)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise DataError(archive, f"two members named {excerpt(member.name)}", "every name once") from error


def _zip_members(archive: Path) -> Generator[_Member]:
    with zipfile.ZipFile(archive) as file:
        _Budget(archive).require(sum(info.file_size for info in file.infolist()))
        for info in file.infolist():
            plain = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG, stat.S_IFDIR)
            if info.is_dir():
                yield _Member(info.filename, 0, None, plain)
                continue
            with file.open(info) as stream:
                yield _Member(info.filename, info.file_size, stream, plain)


def _stream_members(archive: Path, kind: str) -> Generator[_Member]:
    """Yield the members of a tar, or the one file of which the archive is the compressed form."""
    with _decompressed(archive, kind) as stream:
        reader = _Reader(stream, archive)
        if kind == "tar" or _is_tar(reader.peek(_HEAD)):
            yield from _tar_members(archive, reader)
        else:
            # What takes the member drains it; the check of a download does not.
            yield _Member(_stem(archive.name), 0, cast("IO[bytes]", reader))
            _drain(reader)


def _decompressed(archive: Path, kind: str) -> IO[bytes]:
    openers: dict[str, Callable[[Path], object]] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    return cast("IO[bytes]", openers[kind](archive) if kind in openers else archive.open("rb"))


def _tar_members(archive: Path, reader: _Reader) -> Iterator[_Member]:
    with tarfile.open(fileobj=cast("IO[bytes]", reader), mode="r|") as file:
        for info in file:
            content = file.extractfile(info) if info.isfile() else None
            yield _Member(info.name, info.size, content, plain=info.isfile() or info.isdir())
        end = file.offset
    _drain(reader)
    # tarfile takes a header that it cannot read for the end: the end is where only zeros follow.
    if reader.last_nonzero > end or reader.position < end + tarfile.BLOCKSIZE:
        raise DataError(archive, "a broken archive (its end is missing)", "a whole archive: fetch it again")


def _drain(reader: _Reader) -> None:
    while reader.read(_CHUNK):
        pass


def _inside(archive: Path, folder: Path, name: str) -> Path:
    """Return where a member belongs; refuse names that lead out of the folder on any system."""
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    # Windows drops the dots and spaces at a name's end, so that ".. " is a way up there.
    upwards = any(not part.strip(". ") for part in parts)
    if plain.startswith("/") or re.match("[A-Za-z]:", plain) or "\0" in plain or upwards:
        raise DataError(archive, f"a member {excerpt(name)}", "only names that stay inside the folder")
    return folder.joinpath(*parts)


def _copy(source: IO[bytes], sink: IO[bytes], budget: _Budget) -> None:
    while chunk := source.read(_CHUNK):
        budget.take(len(chunk))
        sink.write(chunk)


def get(
    name: str,
    *,
    raw: bool = False,
    folder: Path | None = None,
    url: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
    verify: Callable[[Path], tuple[int, int, int, int]] | None = None,
) -> Path:
    """Return the folder of a data set of the registry, fetched and checked if it is not there yet.

    Parameters
    ----------
    name
        The set's name, upper or lower case.
    raw
        The raw text instead of the bag of words; it is kept in a folder of its own, with ``-raw`` at its end.
    folder
        Where the sets' folders stand, instead of `cache_folder()`.
    url
        Where to fetch the archive from, instead of the registry's address.
    force
        Fetch anew even what is there; the old folder stays until the new one is checked.
    progress
        See `fetch`.
    verify
        Given the unpacked folder, returns its numbers of training and test documents, features and labels, to
        be compared with the registry's (the features not for raw text); None to go without.

    Returns
    -------
    Path
        The folder that holds the set's files.

    Raises
    ------
    DownloadError
        The archive cannot be had.
    DataError
        There is no such set, or what was fetched is not it: then it is kept under a name that ends in
        ``.suspect``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:  # an archive fetched by hand is taken as it is
    ...     with zipfile.ZipFile(Path(place, "Bibtex.zip"), "w") as file:
    ...         file.writestr("Bibtex_data.txt", "")
    ...     found = get("bibtex", folder=Path(place))
    ...     found.name, [path.name for path in found.iterdir()]
    ('Bibtex', ['Bibtex_data.txt'])
    """
    entry = find(name)
    root = cache_folder() if folder is None else folder
    home = root / (f"{entry.name}-raw" if raw else entry.name)
    if not force and home.is_dir() and any(home.iterdir()):
        return home
    source = entry.url(raw) if url is None else url
    archive = root / (home.name + _suffix(source))
    fetched = force or url is not None or not archive.exists()
    if fetched:
        fetch(source, archive, progress=progress, page=entry.page)
    fresh = home.with_name(home.name + ".fresh")
    _remove_tree(fresh)
    try:
        content = _innermost(unpack(archive, fresh))
        if verify is not None:
            _compare(entry, raw, content, verify(content))
    except ValueError as error:
        raise _suspect(error, archive, fresh, home) from error
    _put_in_place(content, home)
    _remove_tree(fresh)
    if fetched:  # an archive that somebody put there stays theirs
        archive.unlink()
    return home


def _suffix(url: str) -> str:
    """Return the archive suffix of an address; Drive's addresses have none, and its archives are zips."""
    path = urlsplit(url).path.lower()
    return next((suffix for suffix in _SUFFIXES if path.endswith(suffix)), ".zip")


def _innermost(folder: Path) -> Path:
    """Return the folder that holds the files, past folders that hold one folder and nothing else."""
    while True:
        inside = [path for path in folder.iterdir() if path.name not in ("__MACOSX", ".DS_Store")]
        if len(inside) != 1 or not inside[0].is_dir():
            return folder
        folder = inside[0]


def _compare(entry: Entry, raw: bool, folder: Path, found: tuple[int, int, int, int]) -> None:
    names = ("training documents", "test documents", "features", "labels")
    wanted = (entry.n_train, entry.n_test, entry.n_features, entry.n_labels)
    wrong = [
        (f"{have} {what}", f"{want} {what}")
        for what, have, want in zip(names, found, wanted, strict=True)
        if have != want and not (raw and what == "features")
    ]
    if wrong:
        have, want = (", ".join(side) for side in zip(*wrong, strict=True))
        raise DataError(folder, have, f"{want} in {entry.name}")


def _suspect(error: ValueError, archive: Path, fresh: Path, home: Path) -> DataError:
    """Put what is not the set aside, so that nothing is lost and nobody takes it for the set."""
    moved = {archive: _set_aside(archive, archive.name)}
    if fresh.exists():
        moved[fresh] = _set_aside(fresh, home.name)
    names = " and ".join(path.name for path in moved.values())
    kept = f"what was fetched is kept as {names} in {home.parent}"
    if not isinstance(error, DataError):
        return DataError(moved.get(fresh, moved[archive]), str(error), f"{home.name}; {kept}")
    path = error.path
    for old, new in moved.items():
        path = new / path.relative_to(old) if path.is_relative_to(old) else path
    return DataError(path, error.found, f"{error.expected}; {kept}", line=error.line)


def _set_aside(path: Path, name: str) -> Path:
    """Rename a file or folder to a free name ending in .suspect, and return that."""
    number, aside = 1, path.with_name(f"{name}.suspect")
    while aside.exists():
        number += 1
        aside = path.with_name(f"{name}.{number}.suspect")
    return path.replace(aside)


def _put_in_place(content: Path, home: Path) -> None:
    """Rename a folder to its place; an older one there goes only after that."""
    old = home.with_name(home.name + ".old")
    _remove_tree(old)
    if home.exists():
        home.replace(old)
    content.replace(home)
    _remove_tree(old)
