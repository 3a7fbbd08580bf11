from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import re
import socket
import struct
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from lightdxml.data import download
from lightdxml.data.download import DownloadError, fetch, get, unpack
from lightdxml.data.errors import DataError

PAGE = "http://example.org/by-hand.html"
BIBTEX = (4880, 2515, 1836, 159)


def zipped(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def tarred(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


NOISE = random.Random(0).randbytes(200_000)
BODY = zipped(("noise.txt", NOISE))
OTHER = zipped(("noise.txt", random.Random(1).randbytes(200_000)))

Handler = BaseHTTPRequestHandler
Script = Callable[[Handler], None]


class Site:
    """A server on the loopback that answers each request by the next script, the last one for ever."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[Script] = []
        site = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                script = site.scripts.pop(0) if len(site.scripts) > 1 else site.scripts[0]
                script(self)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Quiet(HTTPServer):
            def handle_error(self, request: object, client_address: object) -> None:
                pass  # the client has gone away, as it may

        self.server = Quiet(("127.0.0.1", 0), Answering)
        self.root = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.root}/data.zip"

    def says(self, *scripts: Script) -> None:
        self.scripts = list(scripts)

    @property
    def ranges(self) -> list[str | None]:
        return [headers.get("range") for _, headers in self.requests]


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def file(
    body: bytes = BODY,
    *,
    upto: int | None = None,
    etag: str | None = '"one"',
    modified: str | None = None,
    ranges: bool = True,
    if_range: bool = True,
    shift: int = 0,
    length: int | None = -1,
    headers: dict[str, str] | None = None,
    reset: bool = False,
) -> Script:
    """Serve a file as a good server would, or with the faults that are asked for.

    At most `upto` bytes are sent; `ranges` and `if_range` say which requests are understood; `shift` is added
    to where a part begins; `length` is announced (None: none is).
    """

    def answer(handler: Handler) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"] or "") if ranges else None
        condition = handler.headers["If-Range"]
        if wanted and if_range and condition not in (None, etag, modified):
            wanted = None
        start = int(wanted[1]) + shift if wanted else 0
        if wanted and start >= len(body):
            handler.send_response(416)
            handler.send_header("Content-Range", f"bytes */{len(body)}")
            handler.end_headers()
            return
        content = body[start:]
        handler.send_response(206 if wanted else 200)
        handler.send_header("Content-Type", "application/zip")
        if wanted:
            handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        announced = len(content) if length == -1 else length
        if announced is not None:
            handler.send_header("Content-Length", str(announced))
        if etag is not None:
            handler.send_header("ETag", etag)
        if modified is not None:
            handler.send_header("Last-Modified", modified)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content[:upto])
        if reset:
            handler.wfile.flush()
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()

    return answer


def text(content: str | bytes, status: int = 200, kind: str = "text/html", encoding: str | None = None) -> Script:
    body = content.encode() if isinstance(content, str) else content

    def answer(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        if encoding is not None:
            handler.send_header("Content-Encoding", encoding)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def redirect(to: str, status: int = 302) -> Script:
    def answer(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def refused() -> str:
    """Return an address at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/data.zip"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def interrupted_at(size: int) -> Callable[[int, int | None], None]:
    def progress(done: int, total: int | None) -> None:
        if done >= size:
            raise KeyboardInterrupt

    return progress


# --- fetch: what goes well -------------------------------------------------------------------------------


def test_whole_file_is_fetched_and_nothing_else_is_left(site: Site, tmp_path: Path) -> None:
    site.says(file())
    calls: list[tuple[int, int | None]] = []
    target = tmp_path / "new" / "data.zip"
    assert fetch(site.url, target, progress=lambda *call: calls.append(call), backoff=0) == target
    assert target.read_bytes() == BODY
    assert names(target.parent) == ["data.zip"]
    assert calls[-1] == (len(BODY), len(BODY))
    assert calls == sorted(calls)


def test_fetch_replaces_what_was_there(site: Site, tmp_path: Path) -> None:
    site.says(file())
    (tmp_path / "data.zip").write_bytes(b"old")
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY


def test_redirect_is_followed_with_the_range(site: Site, tmp_path: Path) -> None:
    site.says(redirect("/one"), file(upto=1000), redirect("/two", 307), file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert [path for path, _ in site.requests] == ["/data.zip", "/one", "/data.zip", "/two"]
    assert site.ranges == [None, None, "bytes=1000-", "bytes=1000-"]


# --- fetch: connections that break -----------------------------------------------------------------------


def test_broken_connections_are_resumed_as_long_as_the_file_grows(site: Site, tmp_path: Path) -> None:
    site.says(*[file(upto=20_000)] * 9, file())
    assert fetch(site.url, tmp_path / "data.zip", retries=1, backoff=0).read_bytes() == BODY
    assert site.ranges == [None] + [f"bytes={20_000 * i}-" for i in range(1, 10)]
    assert site.requests[-1][1]["if-range"] == '"one"'


def test_reset_connections_are_resumed(site: Site, tmp_path: Path) -> None:
    site.says(*[file(upto=20_000, reset=True)] * 3, file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert len(site.requests) == 4


def test_stalled_connection_is_resumed(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = threading.Event()

    def stall(handler: Handler) -> None:
        file(upto=20_000)(handler)
        handler.wfile.flush()
        gone.wait(10)

    # The server has one thread: it answers again once the first connection is let go.
    monkeypatch.setattr(time, "sleep", lambda _: gone.set())
    site.says(stall, file())
    assert fetch(site.url, tmp_path / "data.zip", timeout=0.3, retries=9).read_bytes() == BODY
    assert site.ranges[-1] == "bytes=20000-"


def test_connection_that_never_brings_more_fails_in_the_end_and_keeps_the_part(site: Site, tmp_path: Path) -> None:
    site.says(file(upto=5000), file(upto=0))
    with pytest.raises(DownloadError, match=r"5000 of \d+ bytes.*kept in .*data\.zip\.part.*resumes$"):
        fetch(site.url, tmp_path / "data.zip", retries=3, backoff=0)
    assert len(site.requests) == 1 + 3
    assert (tmp_path / "data.zip.part").read_bytes() == BODY[:5000]
    site.says(file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges[-1] == "bytes=5000-"
    assert names(tmp_path) == ["data.zip"]


def test_waits_grow_up_to_a_minute(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    site.says(text("busy", 503))
    with pytest.raises(DownloadError, match="503"):
        fetch(site.url, tmp_path / "data.zip", retries=8)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_interruption_leaves_the_part_and_the_next_call_resumes(site: Site, tmp_path: Path) -> None:
    site.says(file())
    with pytest.raises(KeyboardInterrupt):
        fetch(site.url, tmp_path / "data.zip", progress=interrupted_at(1), backoff=0)
    held = (tmp_path / "data.zip.part").stat().st_size
    assert 0 < held < len(BODY)
    assert not (tmp_path / "data.zip").exists()
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, f"bytes={held}-"]


def test_part_that_is_whole_is_finished_without_a_request(site: Site, tmp_path: Path) -> None:
    site.says(file())
    with pytest.raises(KeyboardInterrupt):
        fetch(site.url, tmp_path / "data.zip", progress=interrupted_at(len(BODY)), backoff=0)
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert len(site.requests) == 1


def test_part_of_another_address_is_not_continued(site: Site, tmp_path: Path) -> None:
    site.says(file(OTHER, upto=5000, etag=None))
    with pytest.raises(DownloadError):
        fetch(site.url, tmp_path / "data.zip", retries=0, backoff=0)
    site.says(file(etag=None))
    assert fetch(f"{site.root}/else.zip", tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, None]


@pytest.mark.parametrize("note", [None, b"", b"[]", b'{"url": 1}'])
def test_part_without_a_readable_note_is_not_continued(site: Site, tmp_path: Path, note: bytes | None) -> None:
    (tmp_path / "data.zip.part").write_bytes(b"of unknown origin")
    if note is not None:
        (tmp_path / "data.zip.part.json").write_bytes(note)
    site.says(file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None]


# --- fetch: servers that do not keep to the rules --------------------------------------------------------


def test_server_that_ignores_ranges_is_read_anew(site: Site, tmp_path: Path) -> None:
    site.says(file(upto=30_000, ranges=False), file(ranges=False))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, "bytes=30000-"]


def test_server_that_ignores_ranges_and_always_breaks_is_given_up(site: Site, tmp_path: Path) -> None:
    site.says(file(upto=30_000, ranges=False))
    with pytest.raises(DownloadError, match="30000 of"):
        fetch(site.url, tmp_path / "data.zip", retries=3, backoff=0)
    assert len(site.requests) == 4


@pytest.mark.parametrize("shift", [-1000, 1000])
def test_part_from_a_wrong_place_is_not_glued(site: Site, tmp_path: Path, shift: int) -> None:
    site.says(file(upto=30_000), file(shift=shift), file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, "bytes=30000-", None]


@pytest.mark.parametrize("part", ["", "bytes", "bytes 30000-10/200000", "bytes 30000-900000/200000", "x 1-2/3"])
def test_part_without_a_sensible_place_is_not_glued(site: Site, tmp_path: Path, part: str) -> None:
    def odd(handler: Handler) -> None:
        handler.send_response(206)
        handler.send_header("Content-Range", part)
        handler.end_headers()
        handler.wfile.write(b"nonsense")

    site.says(file(upto=30_000), odd, file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, "bytes=30000-", None]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param({"etag": '"one"'}, {"etag": '"two"'}, id="If-Range understood"),
        pytest.param({"etag": '"one"'}, {"etag": '"two"', "if_range": False}, id="If-Range ignored"),
        pytest.param({"etag": 'W/"one"'}, {"etag": 'W/"two"'}, id="weak tag"),
        pytest.param(
            {"etag": None, "modified": "Mon, 01 Jan 2024 00:00:00 GMT"},
            {"etag": None, "modified": "Tue, 02 Jan 2024 00:00:00 GMT"},
            id="date",
        ),
    ],
)
def test_file_that_changes_between_attempts_is_not_glued(
    site: Site, tmp_path: Path, first: dict[str, str], then: dict[str, str]
) -> None:
    changed = file(OTHER, **then)  # type: ignore[arg-type]
    site.says(file(upto=30_000, **first), changed)  # type: ignore[arg-type]
    assert len(OTHER) == len(BODY)  # so that the length gives nothing away
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == OTHER


def test_checksums_tell_a_changed_file_without_any_tag_and_of_the_same_length(site: Site, tmp_path: Path) -> None:
    site.says(file(OTHER, upto=30_000, etag=None), file(etag=None))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, "bytes=30000-", None]


def test_part_longer_than_the_file_is_not_continued(site: Site, tmp_path: Path) -> None:
    site.says(file(upto=30_000), file())
    with pytest.raises(DownloadError):
        fetch(site.url, tmp_path / "data.zip", retries=0, backoff=0)
    with (tmp_path / "data.zip.part").open("ab") as part:
        part.write(BODY)
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, None]


def test_what_follows_the_end_of_a_part_is_not_taken(site: Site, tmp_path: Path) -> None:
    def endless(handler: Handler) -> None:
        file(BODY, length=None)(handler)
        for _ in range(100):
            handler.wfile.write(NOISE)

    calls: list[int] = []
    site.says(file(upto=30_000), endless)
    fetch(site.url, tmp_path / "data.zip", progress=lambda done, _: calls.append(done), backoff=0)
    assert (tmp_path / "data.zip").read_bytes() == BODY
    assert len(set(calls)) == len(calls)


def test_changed_length_tells_a_changed_file_without_any_tag(site: Site, tmp_path: Path) -> None:
    longer = zipped(("noise.txt", NOISE[::-1]), ("more.txt", b"more"))
    site.says(file(upto=30_000, etag=None), file(longer, etag=None))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == longer


def test_more_announced_than_sent_is_an_error_that_resumes(site: Site, tmp_path: Path) -> None:
    site.says(file(length=len(BODY) + 500, ranges=False))
    with pytest.raises(DownloadError, match=rf"ended at {len(BODY)} of {len(BODY) + 500} bytes.*resumes"):
        fetch(site.url, tmp_path / "data.zip", retries=2, backoff=0)
    assert names(tmp_path) == ["data.zip.part", "data.zip.part.json"]


def test_less_announced_than_sent_is_an_error_that_begins_anew(site: Site, tmp_path: Path) -> None:
    site.says(file(length=len(BODY) - 500))
    with pytest.raises(DownloadError, match=r"archive that arrived is broken.*begins anew"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 1
    assert names(tmp_path) == ["data.zip.part"]
    site.says(file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert names(tmp_path) == ["data.zip"]


def test_file_without_length_is_taken_to_its_end(site: Site, tmp_path: Path) -> None:
    site.says(file(length=None))
    calls: list[tuple[int, int | None]] = []
    fetch(site.url, tmp_path / "data.zip", progress=lambda *call: calls.append(call), backoff=0)
    assert (tmp_path / "data.zip").read_bytes() == BODY
    assert calls[-1] == (len(BODY), None)


@pytest.mark.parametrize(
    ("name", "body"),
    [("data.zip", BODY), ("data.json.gz", gzip.compress(NOISE)), ("data.tar", tarred(("a", NOISE)))],
)
def test_archive_cut_off_without_length_is_noticed_and_resumed(
    site: Site, tmp_path: Path, name: str, body: bytes
) -> None:
    site.says(file(body, length=None, upto=50_000), file(body, length=None))
    assert fetch(site.url, tmp_path / name, backoff=0).read_bytes() == body
    assert site.ranges == [None, "bytes=50000-"]


def test_chunks_that_break_are_resumed(site: Site, tmp_path: Path) -> None:
    def chunked(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.send_header("ETag", '"one"')
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b"%x\r\n" % 40_000 + BODY[:40_000] + b"\r\n" + b"%x\r\n" % 40_000 + BODY[40_000:40_004])

    site.says(chunked, file())
    assert fetch(site.url, tmp_path / "data", backoff=0).read_bytes() == BODY
    assert len(site.requests) == 2


def test_416_finishes_a_part_that_is_whole(site: Site, tmp_path: Path) -> None:
    site.says(file(length=None))
    with pytest.raises(KeyboardInterrupt):
        fetch(site.url, tmp_path / "data.zip", progress=interrupted_at(len(BODY)), backoff=0)
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, f"bytes={len(BODY)}-"]


def test_416_for_a_file_that_has_shrunk_begins_anew(site: Site, tmp_path: Path) -> None:
    small = zipped(("small.txt", b"small"))
    site.says(file(upto=30_000), file(small, if_range=False))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == small
    assert site.ranges == [None, "bytes=30000-", None]


def test_encoded_file_is_decoded(site: Site, tmp_path: Path) -> None:
    site.says(file(gzip.compress(BODY), headers={"Content-Encoding": "gzip"}))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert names(tmp_path) == ["data.zip"]
    assert site.requests[0][1]["accept-encoding"] == "identity"


def test_encoded_file_that_breaks_is_resumed_before_it_is_decoded(site: Site, tmp_path: Path) -> None:
    encoded = {"Content-Encoding": "x-gzip"}
    body = gzip.compress(BODY)
    site.says(file(body, upto=30_000, headers=encoded), file(body, headers=encoded))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, "bytes=30000-"]


def test_archive_that_is_declared_an_encoding_stays_an_archive(site: Site, tmp_path: Path) -> None:
    archive = gzip.compress(tarred(("a.txt", b"a")))
    site.says(file(archive, headers={"Content-Encoding": "gzip"}))
    assert fetch(site.url, tmp_path / "data.tar.gz", backoff=0).read_bytes() == archive


def test_unknown_encoding_is_refused(site: Site, tmp_path: Path) -> None:
    site.says(file(headers={"Content-Encoding": "br"}))
    with pytest.raises(DownloadError, match="encodes it as br, which is not supported"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)


def test_broken_encoding_is_an_error(site: Site, tmp_path: Path) -> None:
    site.says(file(gzip.compress(BODY)[:-20], headers={"Content-Encoding": "gzip"}))
    with pytest.raises(DownloadError, match="encoding is broken"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert "data.zip" not in names(tmp_path)


def test_unexpected_size_is_refused_before_it_is_fetched(site: Site, tmp_path: Path) -> None:
    site.says(file())
    with pytest.raises(DownloadError, match=rf"offers {len(BODY)} bytes instead of 17"):
        fetch(site.url, tmp_path / "data.zip", expected_bytes=17, backoff=0)
    site.says(file(length=None))
    with pytest.raises(DownloadError, match="arrived where 17 are expected"):
        fetch(site.url, tmp_path / "data.zip", expected_bytes=17, retries=0, backoff=0)
    assert "data.zip" not in names(tmp_path)
    fetch(site.url, tmp_path / "data.zip", expected_bytes=len(BODY), backoff=0)


def test_something_else_under_an_archives_name_is_an_error(site: Site, tmp_path: Path) -> None:
    site.says(text("sorry", kind="application/zip"))
    with pytest.raises(DownloadError, match="no archive but begins with 'sorry'"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    site.says(text("", kind="application/zip"))
    with pytest.raises(DownloadError, match="empty"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)


# --- fetch: pages and statuses ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        text("<!DOCTYPE html><title>Quota\n exceeded</title><p>Too many"),
        text("  <HTML><title>Quota exceeded</title>", kind="application/octet-stream"),
        text(gzip.compress(b"<html><title>Quota exceeded</title>"), encoding="gzip"),
    ],
)
def test_page_in_place_of_the_file_is_an_error_with_its_title(site: Site, tmp_path: Path, answer: Script) -> None:
    site.says(file(upto=5000))
    with pytest.raises(DownloadError):
        fetch(site.url, tmp_path / "data.zip", retries=0, backoff=0)
    site.says(answer)
    with pytest.raises(DownloadError, match=rf"web page titled 'Quota exceeded' instead.*too often.*{PAGE}"):
        fetch(site.url, tmp_path / "data.zip", page=PAGE, backoff=0)
    assert len(site.requests) == 2
    assert (tmp_path / "data.zip.part").read_bytes() == BODY[:5000]


def test_archive_served_as_html_is_taken(site: Site, tmp_path: Path) -> None:
    site.says(text(BODY))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY


def form(action: str, method: str = "get", **hidden: str) -> Script:
    inputs = "".join(f'<input type="hidden" name="{name}" value="{value}">' for name, value in hidden.items())
    return text(
        f"<!DOCTYPE html><title>Virus scan warning</title><form action='/search'><input name=q></form>"
        f'<form id="download-form" action="{action}" method="{method}">'
        f'<input type="submit" name="go" value="Download anyway"/>{inputs}</form>'
    )


def test_confirmation_form_is_followed(site: Site, tmp_path: Path) -> None:
    site.says(form("/download?a=1&amp;b=2", id="x&amp;y", confirm="t", uuid="1-2"), file())
    assert fetch(f"{site.root}/uc?id=x", tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    path = urlsplit(site.requests[1][0])
    assert path.path == "/download"
    fields = {"a": ["1"], "b": ["2"], "id": ["x&y"], "confirm": ["t"], "uuid": ["1-2"]}
    assert parse_qs(path.query) == fields


def test_form_that_posts_is_posted(site: Site, tmp_path: Path) -> None:
    posted: list[bytes] = []

    def take(handler: Handler) -> None:
        assert handler.command == "POST"
        posted.append(handler.rfile.read(int(handler.headers["Content-Length"])))
        file()(handler)

    site.says(form("/post", "POST", confirm="t"), take)
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert posted == [b"confirm=t"]


def test_download_behind_a_form_is_resumed_behind_the_form(site: Site, tmp_path: Path) -> None:
    asked = form("/download", confirm="t")
    site.says(asked, file(upto=30_000), asked, file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, None, None, "bytes=30000-"]


def test_second_form_is_not_followed(site: Site, tmp_path: Path) -> None:
    site.says(form("/again", confirm="t"))
    with pytest.raises(DownloadError, match="web page titled 'Virus scan warning'"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 2


@pytest.mark.parametrize("action", ["file:///data.zip", "javascript:x()", "ftp://127.0.0.1/x", "http://["])
def test_form_leads_to_the_web_only(site: Site, tmp_path: Path, action: str) -> None:
    site.says(form(action, confirm="t"))
    with pytest.raises(DownloadError, match="no http or https address"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 1


def test_other_forms_are_pages(site: Site, tmp_path: Path) -> None:
    login = "<title>Sign in</title><form action='/login' method=post><input type=hidden name=token value=1>"
    site.says(text(login))
    with pytest.raises(DownloadError, match="titled 'Sign in'"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429])
def test_refusals_are_not_repeated(site: Site, tmp_path: Path, status: int) -> None:
    site.says(text("<html><title>Not for you</title>", status))
    with pytest.raises(DownloadError, match=rf"answered {status} .*titled 'Not for you'.*by hand from {PAGE}"):
        fetch(site.url, tmp_path / "data.zip", page=PAGE, backoff=0)
    assert len(site.requests) == 1
    assert names(tmp_path) == []


def test_busy_server_is_asked_again(site: Site, tmp_path: Path) -> None:
    site.says(text("busy", 503), text("busy", 503), file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert len(site.requests) == 3


def test_server_that_stays_busy_is_given_up(site: Site, tmp_path: Path) -> None:
    site.says(text("busy", 500))
    with pytest.raises(DownloadError, match="answered 500"):
        fetch(site.url, tmp_path / "data.zip", retries=2, backoff=0)
    assert len(site.requests) == 3


@pytest.mark.parametrize("to", ["file:///data.zip", "ftp://127.0.0.1:1/data.zip", "/data.zip"])
def test_redirects_to_nowhere_are_refused(site: Site, tmp_path: Path, to: str) -> None:
    site.says(redirect(to))
    with pytest.raises(DownloadError):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert names(tmp_path) == []


@pytest.mark.parametrize("url", ["file:///data.zip", "data.zip", "http://", "http://[", "https:///x"])
def test_other_addresses_are_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="is no http or https address"):
        fetch(url, tmp_path / "data.zip")


@pytest.mark.parametrize("url", ["http://127.0.0.1:port/x", "http://127.0.0.1/a b"])
def test_malformed_addresses_are_refused_at_once(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="no address that can be asked for"):
        fetch(url, tmp_path / "data.zip")


# --- fetch: no network, no disk --------------------------------------------------------------------------


def test_refused_connection_says_at_once_where_to_fetch_by_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("there is nothing to wait for"))
    with pytest.raises(DownloadError) as caught:
        fetch(refused(), tmp_path / "Set-4.3K.zip", page=PAGE)
    said = str(caught.value)
    assert re.match(r"cannot reach 127\.0\.0\.1:\d+ ", said)
    for place in (PAGE, str(tmp_path / "Set-4.3K.zip"), f"unpack it into {tmp_path / 'Set-4.3K'};"):
        assert place in said


def test_unknown_host_is_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(DownloadError, match=r"cannot reach example\.org \(Name or service not known\)"):
        fetch("https://example.org/data.zip", tmp_path / "data.zip", page=PAGE)


def test_network_that_fails_on_the_way_is_waited_for(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = socket.create_connection
    attempts: list[object] = []

    def flaky(*args: object, **kwargs: object) -> socket.socket:
        attempts.append(args)
        if len(attempts) in (2, 3):
            raise OSError(101, "Network is unreachable")
        return connect(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "create_connection", flaky)
    site.says(file(upto=30_000), file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert len(attempts) == 4


def test_part_that_cannot_be_written_is_an_error_at_once(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.zip.part").mkdir()
    site.says(file())
    with pytest.raises(DownloadError, match=r"data\.zip\.part cannot be written"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 1


# --- unpack ----------------------------------------------------------------------------------------------

TAR = tarred(("top/a.txt", b"first\n"), ("top/b.txt", NOISE))
ARCHIVES = {
    "x.zip": zipped(("top/a.txt", b"first\n"), ("top/b.txt", NOISE)),
    "x.tar": TAR,
    "x.tar.gz": gzip.compress(TAR),
    "x.tar.bz2": bz2.compress(TAR),
    "x.tar.xz": lzma.compress(TAR, preset=0),
}


def put(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_are_unpacked(tmp_path: Path, name: str) -> None:
    folder = unpack(put(tmp_path, name, ARCHIVES[name]), tmp_path / "deep" / "x")
    assert (folder / "top" / "a.txt").read_bytes() == b"first\n"
    assert (folder / "top" / "b.txt").read_bytes() == NOISE
    assert names(folder.parent) == ["x"]


@pytest.mark.parametrize("name", ["trn.json.gz", "trn.json.bz2", "trn.json.xz"])
def test_single_compressed_file_is_unpacked_under_its_name(tmp_path: Path, name: str) -> None:
    content = b"{}\n" * 5
    kinds = {"gz": gzip.compress(content), "bz2": bz2.compress(content), "xz": lzma.compress(content)}
    folder = unpack(put(tmp_path, name, kinds[name.rpartition(".")[2]]), tmp_path / "x")
    assert names(folder) == ["trn.json"]
    assert (folder / "trn.json").read_bytes() == content


def test_kind_is_told_by_content(tmp_path: Path) -> None:
    folder = unpack(put(tmp_path, "x.zip", ARCHIVES["x.tar.gz"]), tmp_path / "x")
    assert names(folder) == ["top"]


def test_folders_and_odd_but_harmless_names_are_kept(tmp_path: Path) -> None:
    body = zipped(*((name, b"") for name in ("./", "empty/", "./dots/..a.txt", "windows\\b.txt")))
    folder = unpack(put(tmp_path, "x.zip", body), tmp_path / "x")
    assert sorted(str(path.relative_to(folder).as_posix()) for path in folder.rglob("*")) == [
        "dots",
        "dots/..a.txt",
        "empty",
        "windows",
        "windows/b.txt",
    ]


HOSTILE = [
    "../out.txt",
    "/out.txt",
    "a/../../out.txt",
    "..\\out.txt",
    "C:\\out.txt",
    "c:out.txt",
    ".. /out.txt",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_lead_out_are_refused(tmp_path: Path, kind: str, name: str) -> None:
    make = zipped if kind == "zip" else tarred
    body = make(("fine.txt", b""), (name, b"out"))
    with pytest.raises(DataError, match="names that stay inside the folder"):
        unpack(put(tmp_path, "x", body), tmp_path / "deep" / "x")
    assert list((tmp_path / "deep").iterdir()) == []
    assert names(tmp_path) == ["deep", "x"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("odd")
        info.type, info.linkname = kind, "/elsewhere"
        archive.addfile(info)
    with pytest.raises(DataError, match="a link or a device, 'odd'"):
        unpack(put(tmp_path, "x.tar", buffer.getvalue()), tmp_path / "x")
    assert names(tmp_path) == ["x.tar"]


def test_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("odd")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/elsewhere")
    with pytest.raises(DataError, match="a link or a device, 'odd'"):
        unpack(put(tmp_path, "x.zip", buffer.getvalue()), tmp_path / "x")


def bombs() -> dict[str, bytes]:
    zeros = b"\0" * 300_000
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one", zeros[:90_000])
        archive.writestr("two", zeros[:90_000])
    header = tarfile.TarInfo("huge")
    header.size = 1 << 40
    return {
        "zip": buffer.getvalue(),
        "tar.gz": gzip.compress(tarred(("a", zeros[:90_000]), ("b", zeros[:90_000]))),
        "gz": gzip.compress(zeros),
        "declared": gzip.compress(header.tobuf() + zeros),
        "sparse": sparse_bomb(),
        "long name": gzip.compress(long_name_bomb(zeros)),
    }


def sparse_bomb() -> bytes:
    """Return a tar whose one member is declared to be mostly a hole."""
    info = tarfile.TarInfo("hole")
    info.type = tarfile.GNUTYPE_SPARSE
    raw = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    raw[386:410] = b"%011o\0%011o\0" % (0, 0)
    raw[483:495] = b"%011o\0" % (1 << 32)
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw) + b"\0" * 1024


def long_name_bomb(zeros: bytes) -> bytes:
    info = tarfile.TarInfo("@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, (1 << 33) - 1
    return info.tobuf() + zeros


@pytest.mark.parametrize("kind", bombs())
def test_bombs_are_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_FREE_BYTES", 100_000)
    monkeypatch.setattr(download, "_RATIO", 2)
    with pytest.raises(DataError, match=r"more than 100000 bytes when unpacked"):
        unpack(put(tmp_path, "x", bombs()[kind]), tmp_path / "y")
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("kind", ["zip", "declared"])
def test_declared_bombs_are_refused_before_anything_is_written(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_FREE_BYTES", 100_000)
    monkeypatch.setattr(download, "_RATIO", 2)
    monkeypatch.setattr(download, "_write_member", lambda *_: pytest.fail("was written"))
    with pytest.raises(DataError, match="more than 100000 bytes"):
        unpack(put(tmp_path, "x", bombs()[kind]), tmp_path / "y")


def test_small_archives_may_be_compressed_as_well_as_they_can(tmp_path: Path) -> None:
    folder = unpack(put(tmp_path, "x.gz", gzip.compress(b"\0" * 3_000_000)), tmp_path / "y")
    assert (folder / "x").stat().st_size == 3_000_000


def test_limit_is_a_gigabyte_or_two_hundred_times_the_archive(tmp_path: Path) -> None:
    assert download._Budget(put(tmp_path, "x", b"")).limit == 1 << 30
    with (tmp_path / "x").open("wb") as large:
        large.truncate(1 << 30)
    assert download._Budget(tmp_path / "x").limit == 200 << 30


def test_zip_that_understates_its_sizes_is_refused(tmp_path: Path) -> None:
    body = bytearray(bombs()["zip"])
    directory = body.index(b"PK\x01\x02")
    body[directory + 24 : directory + 28] = struct.pack("<I", 10)
    body[22:26] = struct.pack("<I", 10)
    with pytest.raises(DataError, match="broken archive"):
        unpack(put(tmp_path, "x.zip", bytes(body)), tmp_path / "x")


@pytest.mark.parametrize("left", [0.0, 0.001, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("name", ARCHIVES)
def test_truncated_archives_are_refused(tmp_path: Path, name: str, left: float) -> None:
    whole = ARCHIVES[name]
    with pytest.raises(DataError, match=r"expected a (whole archive|zip, tar)"):
        unpack(put(tmp_path, name, whole[: int(left * len(whole))]), tmp_path / "x")
    assert names(tmp_path) == [name]


def test_tar_cut_between_two_members_is_refused(tmp_path: Path) -> None:
    first = tarfile.BLOCKSIZE * 2  # header and content of the first member
    with pytest.raises(DataError, match="end is missing"):
        unpack(put(tmp_path, "x.tar", TAR[:first]), tmp_path / "x")


def test_checksum_behind_the_end_of_a_tar_is_checked(tmp_path: Path) -> None:
    body = bytearray(gzip.compress(TAR + b"\0" * 300_000))
    body[-8] ^= 1
    with pytest.raises(DataError, match="broken archive"):
        unpack(put(tmp_path, "x.tar.gz", bytes(body)), tmp_path / "x")


def test_tar_with_a_damaged_header_loses_nothing_silently(tmp_path: Path) -> None:
    damaged = bytearray(TAR)
    damaged[tarfile.BLOCKSIZE * 2] ^= 1
    with pytest.raises(DataError, match="broken archive"):
        unpack(put(tmp_path, "x.tar", bytes(damaged)), tmp_path / "x")


@pytest.mark.parametrize("name", ARCHIVES)
def test_damaged_archives_are_whole_or_refused(tmp_path: Path, name: str) -> None:
    rng = random.Random(2)
    content = {"a.txt": b"first\n" * 9, "b.txt": b"second\n"}
    plain = tarred(*content.items())
    whole = {
        "x.zip": zipped(*content.items()),
        "x.tar": plain,
        "x.tar.gz": gzip.compress(plain),
        "x.tar.bz2": bz2.compress(plain),
        "x.tar.xz": lzma.compress(plain),
    }[name]
    for trial in range(120):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 1, 3, 10])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        folder = tmp_path / str(trial)
        try:
            unpack(put(tmp_path, name, bytes(damaged)), folder)
        except DataError:
            assert not folder.exists()
            continue
        if name != "x.tar":  # which has no checksum of the content
            assert {path.name: path.read_bytes() for path in folder.rglob("*.txt")} == content
    assert not any(path.name.endswith(".unpacking") for path in tmp_path.iterdir())


def test_encrypted_zip_is_refused(tmp_path: Path) -> None:
    body = bytearray(zipped(("a.txt", b"secret")))
    body[6] |= 1
    body[body.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(DataError, match="encrypted"):
        unpack(put(tmp_path, "x.zip", bytes(body)), tmp_path / "x")


def test_member_without_a_name_is_refused(tmp_path: Path) -> None:
    body = zipped(("a", b"")).replace(b"\x01\x00\x00\x00a", b"\x00\x00\x01\x00a")
    directory = body.index(b"PK\x01\x02")
    body = body[: directory + 28] + b"\0\0\1\0" + body[directory + 32 :]
    with pytest.raises(DataError):
        unpack(put(tmp_path, "x.zip", body), tmp_path / "x")
    assert names(tmp_path) == ["x.zip"]


@pytest.mark.parametrize("second", ["a", "a/b", "./a"])
def test_names_that_collide_are_refused(tmp_path: Path, second: str) -> None:
    with pytest.raises(DataError, match="two members named"):
        unpack(put(tmp_path, "x.tar", tarred(("a", b"1"), (second, b"2"))), tmp_path / "x")


@pytest.mark.parametrize("content", [b"", b"<html>", b"plain text, and long enough " * 50])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match=r"expected a zip, tar, gz, bz2 or xz archive"):
        unpack(put(tmp_path, "x.zip", content), tmp_path / "x")


def test_folder_with_content_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    put(tmp_path / "x", "mine.txt", b"mine")
    with pytest.raises(DataError, match="empty folder"):
        unpack(put(tmp_path, "x.zip", BODY), tmp_path / "x")
    assert names(tmp_path / "x") == ["mine.txt"]


def test_empty_folder_and_leftovers_of_a_killed_process_are_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x.unpacking").mkdir()
    put(tmp_path / "x.unpacking", "half.txt", b"ha")
    unpack(put(tmp_path, "x.zip", BODY), tmp_path / "x")
    assert names(tmp_path) == ["x", "x.zip"]
    assert names(tmp_path / "x") == ["noise.txt"]


# --- get -------------------------------------------------------------------------------------------------


def counted(*counts: int) -> Callable[[Path], tuple[int, int, int, int]]:
    def verify(folder: Path) -> tuple[int, int, int, int]:
        assert names(folder) == ["data.txt"]
        train, test, features, labels = counts
        return train, test, features, labels

    return verify


SET = zipped(("Bibtex/data.txt", b"0 1:1\n"))


def test_set_is_fetched_once_and_found_from_then_on(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))
    site.says(file(SET))
    folder = get("BIBTEX", url=site.url, verify=counted(*BIBTEX))
    assert folder == tmp_path / "Bibtex"
    assert (folder / "data.txt").read_bytes() == b"0 1:1\n"
    assert names(tmp_path) == ["Bibtex"]
    assert get("bibtex", url=site.url) == folder
    assert len(site.requests) == 1


def test_folder_around_the_files_is_taken_off_but_not_the_files_own(site: Site, tmp_path: Path) -> None:
    site.says(file(zipped(("a/b/one.txt", b"1"), ("a/b/two.txt", b"2"), ("__MACOSX/x.txt", b""))))
    assert names(get("Bibtex", url=site.url, folder=tmp_path)) == ["one.txt", "two.txt"]
    site.says(file(zipped(("a/one.txt", b"1"), ("two.txt", b"2"))))
    assert names(get("Bibtex", url=site.url, folder=tmp_path, force=True)) == ["a", "two.txt"]
    assert names(tmp_path) == ["Bibtex"]


def test_archive_is_told_by_the_suffix_of_its_address(site: Site, tmp_path: Path) -> None:
    site.says(file(gzip.compress(b"0 1:1\n")))
    folder = get("Bibtex", url=f"{site.root}/x.gz?download=1", folder=tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"Bibtex": b"0 1:1\n"}


@pytest.mark.parametrize(
    ("place", "found", "wanted"),
    [
        (0, "4881 training documents", "4880 training documents"),
        (1, "2516 test documents", "2515 test documents"),
        (2, "1837 features", "1836 features"),
        (3, "160 labels", "159 labels"),
    ],
)
def test_wrong_number_is_named_and_the_set_put_aside(
    site: Site, tmp_path: Path, place: int, found: str, wanted: str
) -> None:
    counts = [count + (i == place) for i, count in enumerate(BIBTEX)]
    site.says(file(SET))
    with pytest.raises(DataError, match=rf"found {found}, expected {wanted} in Bibtex; .*\.suspect"):
        get("Bibtex", url=site.url, folder=tmp_path, verify=counted(*counts))
    assert names(tmp_path) == ["Bibtex.suspect", "Bibtex.zip.suspect"]
    assert (tmp_path / "Bibtex.zip.suspect").read_bytes() == SET
    get("Bibtex", url=site.url, folder=tmp_path, verify=counted(*BIBTEX))
    assert len(site.requests) == 2
    assert names(tmp_path) == ["Bibtex", "Bibtex.suspect", "Bibtex.zip.suspect"]


def test_earlier_suspects_are_kept(site: Site, tmp_path: Path) -> None:
    site.says(file(SET))
    for _ in range(2):
        with pytest.raises(DataError):
            get("Bibtex", url=site.url, folder=tmp_path, verify=counted(1, 2, 3, 4))
    assert names(tmp_path) == [
        "Bibtex.2.suspect",
        "Bibtex.suspect",
        "Bibtex.zip.2.suspect",
        "Bibtex.zip.suspect",
    ]


@pytest.mark.parametrize("own", [True, False])
def test_set_that_cannot_be_read_is_put_aside(site: Site, tmp_path: Path, own: bool) -> None:
    def verify(folder: Path) -> tuple[int, int, int, int]:
        raise DataError(folder / "data.txt", "x", "y", line=3) if own else ValueError("cannot be")

    site.says(file(SET))
    at = r"Bibtex\.suspect.Bibtex.data\.txt, line 3: found x, expected y; " if own else "found cannot be, "
    with pytest.raises(DataError, match=at):
        get("Bibtex", url=site.url, folder=tmp_path, verify=verify)
    assert names(tmp_path) == ["Bibtex.suspect", "Bibtex.zip.suspect"]


def test_broken_archive_is_put_aside(site: Site, tmp_path: Path) -> None:
    damaged = bytearray(BODY)
    damaged[1000] ^= 1  # which only the checksum of the content tells
    site.says(file(bytes(damaged)))
    with pytest.raises(DataError, match=r"Bibtex\.zip\.suspect: found a broken archive"):
        get("Bibtex", url=site.url, folder=tmp_path)
    assert names(tmp_path) == ["Bibtex.zip.suspect"]


def test_raw_text_stands_beside_and_its_features_are_not_counted(site: Site, tmp_path: Path) -> None:
    site.says(file(SET))
    bag = get("LF-Amazon-131K", url=site.url, folder=tmp_path, verify=counted(294805, 134835, 80000, 131073))
    text_ = get("LF-Amazon-131K", raw=True, url=site.url, folder=tmp_path, verify=counted(294805, 134835, 0, 131073))
    assert (bag.name, text_.name) == ("LF-Amazon-131K", "LF-Amazon-131K-raw")
    assert names(tmp_path) == ["LF-Amazon-131K", "LF-Amazon-131K-raw"]
    assert len(site.requests) == 2


def test_force_replaces_only_by_what_is_right(site: Site, tmp_path: Path) -> None:
    site.says(file(SET))
    get("Bibtex", url=site.url, folder=tmp_path)
    new = zipped(("data.txt", b"new"))
    site.says(file(new))
    with pytest.raises(DataError):
        get("Bibtex", url=site.url, folder=tmp_path, force=True, verify=counted(0, 0, 0, 0))
    assert (tmp_path / "Bibtex" / "data.txt").read_bytes() == b"0 1:1\n"
    (tmp_path / "Bibtex.old").mkdir()  # as a killed process leaves it
    put(tmp_path / "Bibtex.old", "older.txt", b"")
    get("Bibtex", url=site.url, folder=tmp_path, force=True, verify=counted(*BIBTEX))
    assert (tmp_path / "Bibtex" / "data.txt").read_bytes() == b"new"
    assert names(tmp_path) == ["Bibtex", "Bibtex.suspect", "Bibtex.zip.suspect"]


def test_archive_fetched_by_hand_is_checked_and_stays(tmp_path: Path) -> None:
    put(tmp_path, "Bibtex.zip", SET)
    get("bibtex", folder=tmp_path, verify=counted(*BIBTEX))
    assert names(tmp_path) == ["Bibtex", "Bibtex.zip"]


def test_folder_made_by_hand_is_taken(tmp_path: Path) -> None:
    (tmp_path / "Bibtex").mkdir()
    put(tmp_path / "Bibtex", "Bibtex_data.txt", b"")
    assert get("bibtex", folder=tmp_path) == tmp_path / "Bibtex"


def test_without_network_the_page_and_the_places_are_named(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        get("Bibtex", url=refused(), folder=tmp_path)
    for place in ("XMLRepository.html", str(tmp_path / "Bibtex.zip"), f"{tmp_path / 'Bibtex'};"):
        assert place in str(caught.value)


def test_interrupted_get_is_continued(site: Site, tmp_path: Path) -> None:
    site.says(file())
    with pytest.raises(KeyboardInterrupt):
        get("Bibtex", url=site.url, folder=tmp_path, progress=interrupted_at(1))
    assert "Bibtex" not in names(tmp_path)
    note = json.loads((tmp_path / "Bibtex.zip.part.json").read_text())
    assert (note["url"], note["etag"], note["total"]) == (site.url, '"one"', len(BODY))
    assert names(get("Bibtex", url=site.url, folder=tmp_path)) == ["noise.txt"]
    assert site.ranges[0] is None
    assert str(site.ranges[1]).startswith("bytes=")
    assert names(tmp_path) == ["Bibtex"]


def test_unknown_sets_and_missing_versions_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="lightdxml data list"):
        get("nothing of the kind", folder=tmp_path)
    with pytest.raises(DataError, match="no raw text"):
        get("Bibtex", raw=True, folder=tmp_path)
    assert names(tmp_path) == []
