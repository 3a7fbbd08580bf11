"""Downloads: they resume after any interruption, and only complete, unchanged files get their name."""

from __future__ import annotations

import gzip
import re
import socket
import ssl
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from lightdxml.data.fetch import DownloadError, fetch
from tests.data.server import (
    BODY,
    NOISE,
    OTHER,
    Handler,
    Script,
    Site,
    file,
    interrupted_at,
    names,
    redirect,
    refused,
    tarred,
    text,
    zipped,
)

PAGE = "http://example.org/by-hand.html"

pytestmark = pytest.mark.usefixtures("no_proxy")


def test_complete_file_is_stored_and_nothing_else(site: Site, tmp_path: Path) -> None:
    site.answers(file())
    calls: list[tuple[int, int | None]] = []
    target = tmp_path / "new" / "data.zip"
    assert fetch(site.url, target, progress=lambda *call: calls.append(call), backoff=0) == target
    assert target.read_bytes() == BODY
    assert names(target.parent) == ["data.zip"]
    assert calls[-1] == (len(BODY), len(BODY))
    assert calls == sorted(calls)


def test_existing_file_is_replaced(site: Site, tmp_path: Path) -> None:
    site.answers(file())
    (tmp_path / "data.zip").write_bytes(b"old")
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY


def test_redirect_keeps_the_range(site: Site, tmp_path: Path) -> None:
    site.answers(redirect("/one"), file(upto=1000), redirect("/two", 307), file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert [path for path, _ in site.requests] == ["/data.zip", "/one", "/data.zip", "/two"]
    assert site.ranges == [None, None, "bytes=1000-", "bytes=1000-"]


# --- broken connections


def test_retries_are_unlimited_while_the_file_grows(site: Site, tmp_path: Path) -> None:
    site.answers(*[file(upto=20_000)] * 9, file())
    assert fetch(site.url, tmp_path / "data.zip", retries=1, backoff=0).read_bytes() == BODY
    assert site.ranges == [None] + [f"bytes={20_000 * i}-" for i in range(1, 10)]
    assert site.requests[-1][1]["if-range"] == '"one"'


def test_reset_connections_are_resumed(site: Site, tmp_path: Path) -> None:
    site.answers(*[file(upto=20_000, reset=True)] * 3, file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert len(site.requests) == 4


def test_connection_closed_before_an_answer_is_retried(site: Site, tmp_path: Path) -> None:
    site.answers(lambda handler: None, file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert len(site.requests) == 2


def test_stalled_connection_is_resumed(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = threading.Event()

    def stall(handler: Handler) -> None:
        file(upto=20_000)(handler)
        handler.wfile.flush()
        gone.wait(10)

    # The server has one thread: it answers again after the first connection is released.
    monkeypatch.setattr(time, "sleep", lambda _: gone.set())
    site.answers(stall, file())
    assert fetch(site.url, tmp_path / "data.zip", timeout=0.3, retries=9).read_bytes() == BODY
    assert site.ranges[-1] == "bytes=20000-"


def test_download_without_progress_fails_and_keeps_the_part(site: Site, tmp_path: Path) -> None:
    site.answers(file(upto=5000), file(upto=0))
    with pytest.raises(DownloadError, match=r"5000 of \d+ bytes.*kept in .*data\.zip\.part.*resumes$"):
        fetch(site.url, tmp_path / "data.zip", retries=3, backoff=0)
    assert len(site.requests) == 1 + 3
    assert (tmp_path / "data.zip.part").read_bytes() == BODY[:5000]
    site.answers(file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges[-1] == "bytes=5000-"
    assert names(tmp_path) == ["data.zip"]


def test_waits_double_up_to_a_minute(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    site.answers(text("busy", 503))
    with pytest.raises(DownloadError, match="503"):
        fetch(site.url, tmp_path / "data.zip", retries=8)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_interrupted_download_is_resumed_by_the_next_call(site: Site, tmp_path: Path) -> None:
    site.answers(file())
    with pytest.raises(KeyboardInterrupt):
        fetch(site.url, tmp_path / "data.zip", progress=interrupted_at(1), backoff=0)
    held = (tmp_path / "data.zip.part").stat().st_size
    assert 0 < held < len(BODY)
    assert not (tmp_path / "data.zip").exists()
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, f"bytes={held}-"]


def test_complete_part_is_finished_without_a_request(site: Site, tmp_path: Path) -> None:
    site.answers(file())
    with pytest.raises(KeyboardInterrupt):
        fetch(site.url, tmp_path / "data.zip", progress=interrupted_at(len(BODY)), backoff=0)
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert len(site.requests) == 1


def test_part_of_another_address_is_not_resumed(site: Site, tmp_path: Path) -> None:
    site.answers(file(OTHER, upto=5000, etag=None))
    with pytest.raises(DownloadError):
        fetch(site.url, tmp_path / "data.zip", retries=0, backoff=0)
    site.answers(file(etag=None))
    assert fetch(f"{site.root}/else.zip", tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, None]


@pytest.mark.parametrize("note", [None, b"", b"[]", b'{"url": 1}'])
def test_part_without_a_valid_note_is_not_resumed(site: Site, tmp_path: Path, note: bytes | None) -> None:
    (tmp_path / "data.zip.part").write_bytes(b"of unknown origin")
    if note is not None:
        (tmp_path / "data.zip.part.json").write_bytes(note)
    site.answers(file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None]


# --- faulty servers


def test_server_without_ranges_is_read_from_the_start(site: Site, tmp_path: Path) -> None:
    site.answers(file(upto=30_000, ranges=False), file(ranges=False))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, "bytes=30000-"]


def test_server_without_ranges_that_always_breaks_fails(site: Site, tmp_path: Path) -> None:
    site.answers(file(upto=30_000, ranges=False))
    with pytest.raises(DownloadError, match="30000 of"):
        fetch(site.url, tmp_path / "data.zip", retries=3, backoff=0)
    assert len(site.requests) == 4


@pytest.mark.parametrize("shift", [-1000, 1000])
def test_part_from_another_position_is_not_appended(site: Site, tmp_path: Path, shift: int) -> None:
    site.answers(file(upto=30_000), file(shift=shift), file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, "bytes=30000-", None]


@pytest.mark.parametrize("part", ["", "bytes", "bytes 30000-10/200000", "bytes 30000-900000/200000", "x 1-2/3"])
def test_part_with_an_invalid_position_is_not_appended(site: Site, tmp_path: Path, part: str) -> None:
    def odd(handler: Handler) -> None:
        handler.send_response(206)
        handler.send_header("Content-Range", part)
        handler.end_headers()
        handler.wfile.write(b"nonsense")

    site.answers(file(upto=30_000), odd, file())
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
def test_parts_of_a_changed_file_are_not_joined(
    site: Site, tmp_path: Path, first: dict[str, str], then: dict[str, str]
) -> None:
    changed = file(OTHER, **then)  # type: ignore[arg-type]
    site.answers(file(upto=30_000, **first), changed)  # type: ignore[arg-type]
    assert len(OTHER) == len(BODY)  # the length does not show the change
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == OTHER


def test_checksums_detect_a_changed_file_of_the_same_length_without_a_tag(site: Site, tmp_path: Path) -> None:
    site.answers(file(OTHER, upto=30_000, etag=None), file(etag=None))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, "bytes=30000-", None]


def test_part_longer_than_the_file_is_not_resumed(site: Site, tmp_path: Path) -> None:
    site.answers(file(upto=30_000), file())
    with pytest.raises(DownloadError):
        fetch(site.url, tmp_path / "data.zip", retries=0, backoff=0)
    with (tmp_path / "data.zip.part").open("ab") as part:
        part.write(BODY)
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, None]


def test_bytes_after_the_end_of_a_range_are_ignored(site: Site, tmp_path: Path) -> None:
    def endless(handler: Handler) -> None:
        file(BODY, length=None)(handler)
        for _ in range(100):
            handler.wfile.write(NOISE)

    calls: list[int] = []
    site.answers(file(upto=30_000), endless)
    fetch(site.url, tmp_path / "data.zip", progress=lambda done, _: calls.append(done), backoff=0)
    assert (tmp_path / "data.zip").read_bytes() == BODY
    assert len(set(calls)) == len(calls)


def test_length_detects_a_changed_file_without_a_tag(site: Site, tmp_path: Path) -> None:
    longer = zipped(("noise.txt", NOISE[::-1]), ("more.txt", b"more"))
    site.answers(file(upto=30_000, etag=None), file(longer, etag=None))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == longer


def test_fewer_bytes_than_announced_fail_and_can_be_resumed(site: Site, tmp_path: Path) -> None:
    site.answers(file(length=len(BODY) + 500, ranges=False))
    with pytest.raises(DownloadError, match=rf"ended at {len(BODY)} of {len(BODY) + 500} bytes.*resumes"):
        fetch(site.url, tmp_path / "data.zip", retries=2, backoff=0)
    assert names(tmp_path) == ["data.zip.part", "data.zip.part.json"]


def test_more_bytes_than_announced_fail_and_start_over(site: Site, tmp_path: Path) -> None:
    site.answers(file(length=len(BODY) - 500))
    with pytest.raises(DownloadError, match=r"the download is a broken archive.*starts over"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 1
    assert names(tmp_path) == ["data.zip.part"]
    site.answers(file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert names(tmp_path) == ["data.zip"]


def test_file_of_unknown_length_is_read_to_its_end(site: Site, tmp_path: Path) -> None:
    site.answers(file(length=None))
    calls: list[tuple[int, int | None]] = []
    fetch(site.url, tmp_path / "data.zip", progress=lambda *call: calls.append(call), backoff=0)
    assert (tmp_path / "data.zip").read_bytes() == BODY
    assert calls[-1] == (len(BODY), None)


@pytest.mark.parametrize(
    ("name", "body"),
    [("data.zip", BODY), ("data.json.gz", gzip.compress(NOISE)), ("data.tar", tarred(("a", NOISE)))],
)
def test_truncated_archive_of_unknown_length_is_resumed(site: Site, tmp_path: Path, name: str, body: bytes) -> None:
    site.answers(file(body, length=None, upto=50_000), file(body, length=None))
    assert fetch(site.url, tmp_path / name, backoff=0).read_bytes() == body
    assert site.ranges == [None, "bytes=50000-"]


def test_broken_chunked_transfer_is_resumed(site: Site, tmp_path: Path) -> None:
    def chunked(handler: Handler) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.send_header("ETag", '"one"')
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.wfile.write(b"%x\r\n" % 40_000 + BODY[:40_000] + b"\r\n" + b"%x\r\n" % 40_000 + BODY[40_000:40_004])

    site.answers(chunked, file())
    assert fetch(site.url, tmp_path / "data", backoff=0).read_bytes() == BODY
    assert len(site.requests) == 2


def test_416_finishes_a_complete_part(site: Site, tmp_path: Path) -> None:
    site.answers(file(length=None))
    with pytest.raises(KeyboardInterrupt):
        fetch(site.url, tmp_path / "data.zip", progress=interrupted_at(len(BODY)), backoff=0)
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, f"bytes={len(BODY)}-"]


def test_416_for_a_shrunk_file_starts_over(site: Site, tmp_path: Path) -> None:
    small = zipped(("small.txt", b"small"))
    site.answers(file(upto=30_000), file(small, if_range=False))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == small
    assert site.ranges == [None, "bytes=30000-", None]


def test_archive_that_is_declared_as_encoding_stays_an_archive(site: Site, tmp_path: Path) -> None:
    archive = gzip.compress(tarred(("a.txt", b"a")))
    site.answers(file(archive, headers={"Content-Encoding": "gzip"}))
    assert fetch(site.url, tmp_path / "data.tar.gz", backoff=0).read_bytes() == archive


@pytest.mark.parametrize("encoding", ["br", "gzip", "x-gzip"])
def test_encoded_file_is_rejected(site: Site, tmp_path: Path, encoding: str) -> None:
    site.answers(file(gzip.compress(BODY), headers={"Content-Encoding": encoding}))
    with pytest.raises(DownloadError, match=f"encodes the file as {encoding.removeprefix('x-')}, which is not supp"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert site.requests[0][1]["accept-encoding"] == "identity"
    assert names(tmp_path) == []


def test_download_that_is_not_an_archive_fails(site: Site, tmp_path: Path) -> None:
    site.answers(text("sorry", kind="application/zip"))
    with pytest.raises(DownloadError, match="the download is a file that starts with 'sorry'"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    site.answers(text("", kind="application/zip"))
    with pytest.raises(DownloadError, match="the download is an empty file"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)


# --- web pages and status codes


@pytest.mark.parametrize(
    "answer",
    [
        text("<!DOCTYPE html><title>Quota\n exceeded</title><p>Too many"),
        text("  <HTML><title>Quota exceeded</title>", kind="application/octet-stream"),
    ],
)
def test_web_page_instead_of_the_file_fails_with_its_title(site: Site, tmp_path: Path, answer: Script) -> None:
    site.answers(file(upto=5000))
    with pytest.raises(DownloadError):
        fetch(site.url, tmp_path / "data.zip", retries=0, backoff=0)
    site.answers(answer)
    with pytest.raises(DownloadError, match=rf"web page titled 'Quota exceeded' instead.*too many downloads.*{PAGE}"):
        fetch(site.url, tmp_path / "data.zip", page=PAGE, backoff=0)
    assert len(site.requests) == 2
    assert (tmp_path / "data.zip.part").read_bytes() == BODY[:5000]


def test_archive_served_as_html_is_accepted(site: Site, tmp_path: Path) -> None:
    site.answers(text(BODY))
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY


def form(action: str, method: str = "get", **hidden: str) -> Script:
    inputs = "".join(f'<input type="hidden" name="{name}" value="{value}">' for name, value in hidden.items())
    return text(
        f"<!DOCTYPE html><title>Virus scan warning</title><form action='/search'><input name=q></form>"
        f'<form id="download-form" action="{action}" method="{method}">'
        f'<input type="submit" name="go" value="Download anyway"/>{inputs}</form>'
    )


def test_confirmation_form_is_submitted(site: Site, tmp_path: Path) -> None:
    site.answers(form("/download?a=1&amp;b=2", id="x&amp;y", confirm="t", uuid="1-2"), file())
    assert fetch(f"{site.root}/uc?id=x", tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    path = urlsplit(site.requests[1][0])
    assert path.path == "/download"
    fields = {"a": ["1"], "b": ["2"], "id": ["x&y"], "confirm": ["t"], "uuid": ["1-2"]}
    assert parse_qs(path.query) == fields


def test_download_after_a_form_is_resumed_after_the_form(site: Site, tmp_path: Path) -> None:
    asked = form("/download", confirm="t")
    site.answers(asked, file(upto=30_000), asked, file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert site.ranges == [None, None, None, "bytes=30000-"]


def test_second_form_is_not_submitted(site: Site, tmp_path: Path) -> None:
    site.answers(form("/again", confirm="t"))
    with pytest.raises(DownloadError, match="web page titled 'Virus scan warning'"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 2


@pytest.mark.parametrize("action", ["file:///data.zip", "javascript:x()", "ftp://127.0.0.1/x", "http://["])
def test_form_to_another_protocol_is_rejected(site: Site, tmp_path: Path, action: str) -> None:
    site.answers(form(action, confirm="t"))
    with pytest.raises(DownloadError, match="not an http or https address"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 1


def test_other_forms_are_web_pages(site: Site, tmp_path: Path) -> None:
    login = "<title>Sign in</title><form action='/login' method=post><input type=hidden name=token value=1>"
    site.answers(text(login))
    with pytest.raises(DownloadError, match="titled 'Sign in'"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429])
def test_client_errors_are_not_retried(site: Site, tmp_path: Path, status: int) -> None:
    site.answers(text("<html><title>Not for you</title>", status))
    with pytest.raises(DownloadError, match=rf"answered {status} .*titled 'Not for you'.*manually from {PAGE}"):
        fetch(site.url, tmp_path / "data.zip", page=PAGE, backoff=0)
    assert len(site.requests) == 1
    assert names(tmp_path) == []


def test_busy_server_is_retried(site: Site, tmp_path: Path) -> None:
    site.answers(text("busy", 503), text("busy", 503), file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert len(site.requests) == 3


def test_server_that_stays_busy_fails(site: Site, tmp_path: Path) -> None:
    site.answers(text("busy", 500))
    with pytest.raises(DownloadError, match="answered 500"):
        fetch(site.url, tmp_path / "data.zip", retries=2, backoff=0)
    assert len(site.requests) == 3


def test_answer_without_content_fails(site: Site, tmp_path: Path) -> None:
    site.answers(text("", 204))
    with pytest.raises(DownloadError, match="answered 204"):
        fetch(site.url, tmp_path / "data.zip", retries=1, backoff=0)
    assert names(tmp_path) == []


@pytest.mark.parametrize("to", ["file:///data.zip", "ftp://127.0.0.1:1/data.zip", "/data.zip"])
def test_redirects_to_other_protocols_and_loops_fail(site: Site, tmp_path: Path, to: str) -> None:
    site.answers(redirect(to))
    with pytest.raises(DownloadError):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert names(tmp_path) == []


@pytest.mark.parametrize("url", ["file:///data.zip", "data.zip", "http://", "http://[", "https:///x"])
def test_addresses_other_than_http_are_rejected(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="is not an http or https address"):
        fetch(url, tmp_path / "data.zip")


@pytest.mark.parametrize("url", ["http://127.0.0.1:port/x", "http://127.0.0.1/a b"])
def test_malformed_addresses_are_rejected(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="is not a valid address"):
        fetch(url, tmp_path / "data.zip")


# --- no network, no disk


def test_refused_connection_fails_at_once_and_explains_the_manual_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waited for nothing"))
    with pytest.raises(DownloadError) as caught:
        fetch(refused(), tmp_path / "Set-4.3K.zip", page=PAGE)
    message = str(caught.value)
    assert re.search(r": cannot reach 127\.0\.0\.1:\d+ ", message)
    for place in (PAGE, str(tmp_path / "Set-4.3K.zip"), f"unpack it into {tmp_path / 'Set-4.3K'};"):
        assert place in message


def test_unknown_host_fails_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(DownloadError, match=r"cannot reach example\.org \(Name or service not known\)"):
        fetch("https://example.org/data.zip", tmp_path / "data.zip", page=PAGE)


def test_network_that_is_lost_on_the_way_is_retried(
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
    site.answers(file(upto=30_000), file())
    assert fetch(site.url, tmp_path / "data.zip", backoff=0).read_bytes() == BODY
    assert len(attempts) == 4


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (ConnectionResetError("Connection reset by peer"), 3),
        (ssl.SSLEOFError("EOF occurred"), 3),
        (ssl.SSLCertVerificationError("certificate verify failed"), 1),
        (TimeoutError("timed out"), 1),
    ],
)
def test_only_transient_errors_while_connecting_are_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, attempts: int
) -> None:
    tried: list[object] = []

    def connect(*args: object, **_: object) -> None:
        tried.append(args)
        raise error

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(DownloadError, match=re.escape(f"cannot reach example.org ({error})")):
        fetch("http://example.org/data.zip", tmp_path / "data.zip", retries=2, backoff=0)
    assert len(tried) == attempts


def test_part_that_cannot_be_written_fails_at_once(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.zip.part").mkdir()
    site.answers(file())
    with pytest.raises(DownloadError, match=r"data\.zip\.part cannot be written"):
        fetch(site.url, tmp_path / "data.zip", backoff=0)
    assert len(site.requests) == 1
