"""Downloads: they resume after any interruption, and only complete, unchanged files get their name."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from lightdxml.data import fetch as module
from lightdxml.data.fetch import DownloadError, ProgressCallback
from tests.data.server import (
    BODY,
    OTHER,
    Script,
    Site,
    file,
    interrupted_at,
    local_session,
    names,
    redirect,
    refused,
    text,
)

HALF = 131_072  # bytes, a multiple of what is read at once

pytestmark = pytest.mark.usefixtures("no_proxy")


def fetch(url: str, target: Path, progress: ProgressCallback | None = None) -> Path:
    module.fetch(url, target, progress=progress, session=local_session())
    return target


def failure(url: str, target: Path) -> str:
    with pytest.raises(DownloadError) as caught:
        fetch(url, target)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_complete_file_is_stored_and_nothing_else(site: Site, tmp_path: Path) -> None:
    site.answers(file())
    calls: list[tuple[int, int | None]] = []
    target = tmp_path / "new" / "data.zip"
    fetch(site.url, target, lambda *call: calls.append(call))
    assert target.read_bytes() == BODY
    assert names(target.parent) == ["data.zip"]
    assert calls[-1] == (len(BODY), len(BODY))
    assert calls == sorted(calls)


def test_existing_file_is_replaced_and_an_unknown_length_accepted(site: Site, tmp_path: Path) -> None:
    site.answers(file(length=False))
    (tmp_path / "data.zip").write_bytes(b"old")
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY


# --- broken connections


def test_broken_download_is_resumed_where_it_stopped(site: Site, tmp_path: Path) -> None:
    site.answers(redirect("/one"), file(upto=HALF), redirect("/two", 307), file())
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY
    assert [path for path, _ in site.requests] == ["/data.zip", "/one", "/data.zip", "/two"]
    assert site.ranges == [None, None, f"bytes={HALF}-", f"bytes={HALF}-"]
    assert site.requests[-1][1]["if-range"] == '"one"'


def test_attempts_are_unlimited_while_the_file_grows(site: Site, tmp_path: Path) -> None:
    body = BODY * 5
    site.answers(*[file(body, upto=HALF)] * 7, file(body))
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == body


def test_reset_connections_and_missing_answers_are_retried(site: Site, tmp_path: Path) -> None:
    site.answers(file(upto=HALF, reset=True), lambda handler: None, file())
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY


def test_stalled_connection_is_resumed(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", 0.2)
    site.answers(file(upto=HALF, stall=0.4), file())
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY
    assert site.ranges[-1] == f"bytes={HALF}-"


def test_download_without_progress_fails_and_the_next_call_resumes(site: Site, tmp_path: Path) -> None:
    site.answers(file(upto=HALF), file(upto=0))
    message = failure(site.url, tmp_path / "data.zip")
    assert f"{HALF} bytes are kept in {tmp_path / 'data.zip.part'}, and the same command resumes" in message
    site.answers(file())
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY
    assert site.ranges[-1] == f"bytes={HALF}-"
    assert names(tmp_path) == ["data.zip"]


def test_interrupted_download_is_resumed_by_the_next_call(site: Site, tmp_path: Path) -> None:
    site.answers(file())
    with pytest.raises(KeyboardInterrupt):
        fetch(site.url, tmp_path / "data.zip", interrupted_at(1))
    held = (tmp_path / "data.zip.part").stat().st_size
    assert not (tmp_path / "data.zip").exists()
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY
    assert site.ranges == [None, f"bytes={held}-"]


@pytest.mark.parametrize("tag", [None, "", 'https://example.org\n"one"', "\n\n\n"])
def test_part_of_unknown_origin_is_not_resumed(site: Site, tmp_path: Path, tag: str | None) -> None:
    (tmp_path / "data.zip.part").write_bytes(b"of unknown origin")
    if tag is not None:
        (tmp_path / "data.zip.part.tag").write_text(tag)
    site.answers(file())
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY
    assert site.ranges == [None]


# --- faulty servers


def test_server_without_ranges_is_read_from_the_start(site: Site, tmp_path: Path) -> None:
    site.answers(file(upto=HALF, ranges=False), file(ranges=False))
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY
    assert site.ranges == [None, f"bytes={HALF}-"]


@pytest.mark.parametrize("wrong", [file(shift=-1000), file(shift=1000), file(b"short"), text("", 206, "x/y")])
def test_part_from_another_position_is_not_appended(site: Site, tmp_path: Path, wrong: Script) -> None:
    site.answers(file(upto=HALF), wrong, file())
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY
    assert site.ranges == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param({"etag": '"one"'}, {"etag": '"two"'}, id="If-Range understood"),
        pytest.param({"etag": '"one"'}, {"etag": '"two"', "if_range": False}, id="If-Range ignored"),
        pytest.param({"etag": 'W/"one"'}, {"etag": 'W/"two"'}, id="weak tag"),
        pytest.param({"etag": None}, {"etag": None}, id="no tag"),
        pytest.param({"etag": None, "modified": "Monday"}, {"etag": None, "modified": "Tuesday"}, id="date"),
    ],
)
def test_parts_of_a_changed_file_are_not_joined(
    site: Site, tmp_path: Path, first: dict[str, str], then: dict[str, str]
) -> None:
    site.answers(file(upto=HALF, **first), file(OTHER, **then))  # type: ignore[arg-type]
    assert len(OTHER) == len(BODY)  # the length does not show the change
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == OTHER


# --- pages and errors of servers

FORM = """<!DOCTYPE html><html><head><title>Google Drive - Virus scan warning</title></head><body>
<form id="download-form" action="/download?x=1" method="get"><input type="submit" value="Download anyway"/>
<input type="hidden" name="id" value="0B3"><input type="hidden" name="confirm" value="t&amp;x"></form></body></html>"""


def test_confirmation_form_is_submitted_also_when_resuming(site: Site, tmp_path: Path) -> None:
    site.answers(text(FORM), file(upto=HALF), text(FORM), file())
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY
    last = urlsplit(site.requests[-1][0])
    assert last.path == "/download"
    assert parse_qs(last.query) == {"x": ["1"], "id": ["0B3"], "confirm": ["t&x"]}
    assert site.ranges[-1] == f"bytes={HALF}-"


@pytest.mark.parametrize(
    ("page", "title"),
    [("<title>Quota  exceeded &amp; more", "Quota exceeded & more"), (FORM, "Virus scan"), ("", "''")],
)
def test_web_page_instead_of_the_file_fails_with_its_title(site: Site, tmp_path: Path, page: str, title: str) -> None:
    site.answers(text(page))
    assert title in failure(site.url, tmp_path / "data.zip")
    assert names(tmp_path) == []


@pytest.mark.parametrize("status", [204, 403, 404, 429])
def test_refusal_fails_at_once(site: Site, tmp_path: Path, status: int) -> None:
    site.answers(text("", status))
    assert f"the server answered {status} " in failure(site.url, tmp_path / "data.zip")
    assert len(site.requests) == 1


def test_busy_server_is_retried_and_then_fails(site: Site, tmp_path: Path) -> None:
    site.answers(text("busy", 503), text("busy", 503), file())
    assert fetch(site.url, tmp_path / "data.zip").read_bytes() == BODY
    site.answers(text("busy", 500))
    assert "the server answered 500 " in failure(site.url, tmp_path / "other.zip")


@pytest.mark.parametrize("to", ["file:///data.zip", "ftp://127.0.0.1:1/data.zip", "http://example.org/x", "/data.zip"])
def test_redirects_to_other_protocols_and_loops_fail(site: Site, tmp_path: Path, to: str) -> None:
    site.answers(redirect(to))
    failure(site.url, tmp_path / "data.zip")
    assert names(tmp_path) == []


@pytest.mark.parametrize("url", ["file:///data.zip", "data.zip", "http://example.org/x", "https://[", "https:///x"])
def test_addresses_other_than_https_are_rejected(tmp_path: Path, url: str) -> None:
    assert "not a valid https address" in failure(url, tmp_path / "data.zip")


# --- no network, no disk


def test_refused_connection_fails_with_the_reason(tmp_path: Path) -> None:
    message = failure(refused(), tmp_path / "data.zip")
    assert re.search(r": cannot reach 127\.0\.0\.1:\d+ \(Connection refused\)", message)


def test_part_that_cannot_be_written_fails_at_once(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.zip.part").mkdir()
    site.answers(file())
    assert "data.zip.part cannot be written (Is a directory)" in failure(site.url, tmp_path / "data.zip")
    assert len(site.requests) == 1


@pytest.mark.parametrize("address", ["ftp://127.0.0.1/data.zip", "http://example.org/data.zip", "file:///etc/passwd"])
def test_a_redirect_to_another_protocol_is_not_followed(site: Site, tmp_path: Path, address: str) -> None:
    site.answers(redirect(address))
    assert "not a valid https address" in failure(site.url, tmp_path / "data.zip")
    assert names(tmp_path) == []


@pytest.mark.parametrize("length", [True, False])
def test_a_file_that_is_too_large_is_not_stored(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: bool
) -> None:
    monkeypatch.setattr(module, "_MAX_BYTES", HALF)
    site.answers(file(length=length))
    assert "the file has more than" in failure(site.url, tmp_path / "data.zip")
    assert not (tmp_path / "data.zip").exists()
    assert not (tmp_path / "data.zip.part.tag").exists(), "it is not resumed"
