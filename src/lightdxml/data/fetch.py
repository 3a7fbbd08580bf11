"""Download files over HTTPS; interrupted downloads resume."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from lightdxml import __version__
from lightdxml.data.errors import excerpt

ProgressCallback = Callable[[int, "int | None"], None]

_CHUNK = 1 << 16
_PAGE_LIMIT = 1 << 20
# The largest archive of the repository has a few gigabytes.
_MAX_BYTES = 1 << 35
_TIMEOUT = 30.0  # seconds without an answer after which a connection counts as broken
_ATTEMPTS = 5  # in a row without progress
_BUSY = (408, 500, 502, 503, 504)
# Google Drive's form that confirms the download of a large file, and its fields.
_FORM = re.compile(r'<form[^>]*\bid="download-form"[^>]*\baction="([^"]*)"')
_FIELD = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)"')
_TITLE = re.compile(r"<title[^>]*>([^<]*)", re.IGNORECASE)


class DownloadError(OSError):
    """A download that failed."""


class _BrokenError(Exception):
    """A connection that broke, which a new request may solve."""


def https_session() -> requests.Session:
    """Return a session for HTTPS only, which follows no redirect to another protocol and waits for busy servers."""
    session = requests.Session()
    session.adapters.clear()
    # Without a network, few attempts: the user waits. A server may ask for a wait of hours, which is ignored.
    retry = Retry(
        _ATTEMPTS,
        connect=2,
        backoff_factor=1,
        status_forcelist=_BUSY,
        raise_on_status=False,
        respect_retry_after_header=False,
    )
    session.mount("https://", HTTPAdapter(max_retries=retry))
    session.headers.update({"User-Agent": f"lightdxml/{__version__}", "Accept-Encoding": "identity"})
    return session


def fetch(
    url: str,
    target: Path,
    *,
    progress: ProgressCallback | None = None,
    session: requests.Session | None = None,
) -> None:
    """Download a file. A partial file of an earlier download is resumed.

    The download grows in `target` + ``.part`` and is renamed when it is complete.

    Parameters
    ----------
    url
        An https address. Google Drive's form that confirms large files is submitted.
    target
        The file to write; an existing file is replaced.
    progress
        Called with the number of bytes so far and the total, None if the server does not state it.
    session
        The session, instead of `https_session()`.

    Raises
    ------
    DownloadError
        If the download fails. The message says why, and whether it can be resumed.
    """
    part, tag = (target.with_name(f"{target.name}{suffix}") for suffix in (".part", ".part.tag"))
    download = _Download(url, part, tag, progress, session or https_session())
    target.parent.mkdir(parents=True, exist_ok=True)
    failures = 0
    while True:
        before = download.size
        try:
            download.attempt()
        except _BrokenError as error:
            failures = failures + 1 if download.size <= before else 1
            if failures == _ATTEMPTS:
                raise download.error(str(error)) from error
        else:
            part.replace(target)
            tag.unlink(missing_ok=True)
            return


@dataclass(frozen=True)
class _Download:
    url: str
    part: Path  # the partial file
    tag: Path  # the file of its address and version
    progress: ProgressCallback | None
    session: requests.Session

    @property
    def size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    @property
    def version(self) -> str:
        """The ETag or date of the partial file; empty if it cannot be resumed."""
        try:
            url, version = self.tag.read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError):
            return ""
        return version if url == self.url and self.size else ""

    def error(self, what: str) -> DownloadError:
        kept = f"; {self.size} bytes are kept in {self.part}, and the same command resumes" if self.version else ""
        return DownloadError(f"{self.url}: {what}{kept}")

    def attempt(self) -> None:
        """Download the rest of the file over one connection."""
        version = self.version
        size = self.size if version else 0
        with self._request({"Range": f"bytes={size}-", "If-Range": version} if version else {}) as response:
            if response.status_code == 200:
                size = 0
            else:
                here = response.headers.get("Content-Range", "").startswith(f"bytes {size}-")
                if response.status_code == 416 or not here or _version(response) not in ("", version):
                    self.tag.unlink(missing_ok=True)
                    raise _BrokenError("the server sent a part that does not fit the partial file")
            try:
                self._store(response, size)
            except HTTPError as error:
                raise _BrokenError(f"the connection broke ({_reason(error)})") from error
            except DownloadError:
                raise
            except OSError as error:
                raise self.error(f"{self.part} cannot be written ({_reason(error)})") from error

    def _store(self, response: requests.Response, size: int) -> None:
        length = response.headers.get("Content-Length", "")
        total = size + int(length) if length.isdecimal() else None
        if total is not None:
            self._check_size(total)
        if size == 0:
            self.part.write_bytes(b"")  # emptied first: a new version must never describe old bytes
            self.tag.write_text(f"{self.url}\n{_version(response)}", encoding="utf-8")
        with self.part.open("ab") as file:
            for chunk in response.raw.stream(_CHUNK, decode_content=False):
                size += file.write(chunk)
                self._check_size(size)
                if self.progress is not None:
                    self.progress(size, total)
        if total is not None and size < total:
            raise _BrokenError(f"the connection ended at {size} of {total} bytes")

    def _check_size(self, size: int) -> None:
        if size > _MAX_BYTES:
            self.tag.unlink(missing_ok=True)
            raise self.error(f"the file has more than {_MAX_BYTES >> 30} GB: download it by hand if it is right")

    def _request(self, headers: dict[str, str]) -> requests.Response:
        """Return the response with the file; submit a confirmation form if there is one."""
        address, title = self.url, ""
        fields: dict[str, str] = {}
        for _ in range(2):
            try:
                response = self.session.get(address, params=fields, headers=headers, stream=True, timeout=_TIMEOUT)
            except ValueError as error:  # what requests raises for addresses
                raise self.error(f"not a valid https address ({error})") from error
            except requests.RequestException as error:
                raise self.error(f"cannot reach {urlsplit(address).netloc} ({_reason(error)})") from error
            if response.status_code not in (200, 206, 416):
                response.close()
                raise self.error(f"the server answered {response.status_code} {response.reason}")
            if response.status_code != 200 or not response.headers.get("Content-Type", "").startswith("text/html"):
                return response
            with response:
                text = response.raw.read(_PAGE_LIMIT, decode_content=True).decode("utf-8", "replace")
            found = _TITLE.search(text)
            title = " ".join(unescape(found[1]).split()) if found else ""
            if (form := _FORM.search(text)) is None:
                break
            address = urljoin(response.url, unescape(form[1]))
            fields = {unescape(name): unescape(value) for name, value in _FIELD.findall(text)}
        raise self.error(f"a web page titled {excerpt(title)} came instead of the file")


def _version(response: requests.Response) -> str:
    """Return what identifies the bytes of a file; a weak ETag does not."""
    etag = response.headers.get("ETag", "W/")
    return response.headers.get("Last-Modified", "") if etag.startswith("W/") else etag


def _reason(error: BaseException) -> str:
    """Return the message of the first cause."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
