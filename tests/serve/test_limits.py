"""Bad requests get the right status and one sentence, and disturb nobody."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lightdxml.progress import peak_memory
from lightdxml.serve.bodies import FORM, parse_form
from tests.support.serving import Running, running, wait_until

SUGGEST = "/v1/projects/pets/suggest"
BATCH = "/v1/projects/pets/suggest-batch"
OWN = "/api/models/pets/suggest"
JSON = {"Content-Type": "application/json"}
TENSOR = {"name": "text", "datatype": "BYTES", "shape": [1], "data": ["a cat"]}


@pytest.fixture(scope="module")
def strict(plain_folder: Path) -> Iterator[Running]:
    """A server with small limits, and tokens."""
    tokens = ("a-token-that-is-long", "another-long-token")
    with running({"pets": plain_folder}, tokens=tokens, max_body=100_000, timeout=1.0) as one:
        yield one


def still_works(server: Running) -> bool:
    return bool(server.post(SUGGEST, data={"text": "a cat", "limit": 1}).json()["results"])


@pytest.mark.parametrize(
    ("path", "request_options", "status", "detail"),
    [
        (SUGGEST, {"data": {"limit": 3}}, 400, "text is missing or empty"),
        (SUGGEST, {"data": {"text": " \n"}}, 400, "text is missing or empty"),
        (SUGGEST, {"data": {"text": "a", "limit": -1}}, 400, "limit is '-1': it must be an integer of at least 0"),
        (SUGGEST, {"data": {"text": "a", "limit": "1e3"}}, 400, "limit is '1e3': it must be an integer of at least 0"),
        (SUGGEST, {"data": {"text": "a", "threshold": 2}}, 400, "threshold is '2': it must be a number from 0 to 1"),
        (SUGGEST, {"data": {"text": "a", "threshold": "nan"}}, 400, "threshold is 'nan'"),
        (SUGGEST, {"data": b"text=%ff", "headers": {"Content-Type": FORM}}, 400, "the form is not UTF-8"),
        (SUGGEST, {"data": b"text=\xff", "headers": {"Content-Type": FORM}}, 400, "the form is not UTF-8"),
        (SUGGEST, {"data": b"a=1&" * 1000, "headers": {"Content-Type": FORM}}, 400, "more than 100 fields"),
        (SUGGEST, {"json": {"text": "a cat"}}, 415, "send application/x-www-form-urlencoded"),
        (SUGGEST, {"files": {"text": b"a cat"}}, 415, "multipart/form-data"),
        (SUGGEST, {"data": b"text=a", "headers": {"Content-Type": ""}}, 415, "the body has the type ''"),
        ("/v1/projects/none/suggest", {"data": {"text": "a"}}, 404, "there is no project or model 'none'"),
        (BATCH, {"json": {"documents": [{"text": "a"}] * 33}}, 400, "documents: list should have at most 32 items"),
        (BATCH, {"json": {"documents": [{"text": 7}]}}, 400, "documents.0.text: input should be a valid string"),
        (BATCH, {"json": {}}, 400, "documents: field required"),
        (BATCH + "?limit=-1", {"json": {"documents": []}}, 400, "limit: input should be greater than or equal to 0"),
        (BATCH + "?threshold=2", {"json": {"documents": []}}, 400, "threshold: input should be less than or equal"),
        (BATCH, {"data": "[" * 100_000, "headers": JSON}, 400, "JSON"),
        (BATCH, {"data": '{"documents": ' + "[" * 100_000, "headers": JSON}, 400, "JSON"),
        (BATCH, {"data": b'{"documents": ["\xff"]}', "headers": JSON}, 400, "JSON"),
        (BATCH, {"data": b"{", "headers": JSON}, 400, "JSON"),
        (BATCH, {"data": {"text": "a"}}, 415, "send application/json"),
        (OWN, {"json": {"text": ""}}, 400, "text must be a string that is not empty"),
        (OWN, {"json": {"text": "a", "k": 0}}, 400, "k: input should be greater than or equal to 1"),
        (OWN, {"json": {"text": "a", "k": 1001}}, 400, "k: input should be less than or equal to 1000"),
        (OWN, {"json": {"text": "a", "tail": 2}}, 400, "tail: input should be less than or equal to 1"),
        (OWN, {"json": {"text": "a", "threshold": "f1"}}, 400, "threshold must be a number from 0 to 1, auto"),
        (
            OWN,
            {"json": {"text": "a", "by_frequency": True, "threshold": 0.5}},
            400,
            "by_frequency needs one such as auto",
        ),
        (OWN, {"json": {"text": "a", "include": ["horse"]}}, 400, "there is no label 'horse' to include"),
        (OWN, {"data": b'{"text": NaN}', "headers": JSON}, 400, "text"),
        (OWN, {"data": b'{"text": "a", "tail": NaN}', "headers": JSON}, 400, "tail"),
        (OWN, {"json": {"text": " \n"}}, 400, "text must be a string that is not empty"),
        (OWN, {"json": {"text": "a", "kk": 3}}, 400, "kk: extra inputs are not permitted"),
        (OWN, {"json": [1]}, 400, "the body: input should be a valid dictionary or object"),
        (OWN, {"json": {"text": "a", "include": ["x\ny" * 100_000]}}, 400, "there is no label"),
        ("/api/models/pets/explain", {"json": {"text": "a " * 100_000}}, 400, "at most 100,000 characters"),
        ("/v2/models/pets/infer", {"json": {"inputs": [TENSOR | {"shape": [2, 3]}]}}, 400, "does not fit 1 texts"),
        ("/v2/models/pets/infer", {"json": {"inputs": [TENSOR | {"shape": [1] * 99}]}}, 400, "shape: list should"),
        ("/v1/projects/pets/learn", {"data": b"[" * 100_000}, 403, "does not allow"),
        ("/api/models/pets/suggest-lines", {"json": {"text": "a"}}, 415, "send application/jsonl"),
        ("/v1/detect-language", {"json": {"text": "a", "languages": ["xx"]}}, 400, "not supported"),
        ("/v1/detect-language", {"json": {"text": "a", "languages": []}}, 400, "languages"),
        ("/v1/none", {"json": {}}, 404, "there is nothing at /v1/none"),
        ("/v1/projects", {"json": {}}, 405, "/v1/projects does not take POST: use GET"),
    ],
)
def test_bad_requests_get_one_sentence(
    server: Running, path: str, request_options: dict[str, Any], status: int, detail: str
) -> None:
    answer = server.post(path, **request_options)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert detail in problem["detail"]
    assert problem["status"] == status
    assert "\n" not in problem["detail"]
    assert len(problem["detail"]) < 400
    assert still_works(server)


def test_fields_of_forms_are_those_of_the_standard_library() -> None:
    from urllib.parse import parse_qsl

    for body in (
        b"text=a%2Bb+c%3Dd&x",
        b"a=1&a=2&&b==%3D",
        "text=ä%C3%A4%".encode(),
        b"text=%zz%2&limit=%33",
        b"%61=b",
    ):
        assert parse_form(FORM, body) == dict(parse_qsl(body.decode(), keep_blank_values=True))


def test_a_body_that_is_too_large_is_refused_before_it_is_read(server: Running) -> None:
    with server.connect() as connection:
        connection.sendall(
            b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-type: %s\r\ncontent-length: 100000000\r\n\r\n"
            % (SUGGEST.encode(), FORM.encode())
        )
        assert b"413" in connection.recv(1000).splitlines()[0]
    assert still_works(server)


@pytest.mark.parametrize("path", [SUGGEST, BATCH])
def test_a_body_of_unknown_length_is_cut_off(strict: Running, path: str) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(40):
            yield b"text=aaaa" * 1000

    kind = FORM if path == SUGGEST else "application/json"
    headers = {"Content-Type": kind, "Authorization": "Bearer another-long-token"}
    answer = strict.post(path, data=endless(), headers=headers)
    assert (answer.status_code, answer.json()["detail"]) == (
        413, "the body has more than 100,000 bytes: send less at a time",
    )  # fmt: skip


def test_lines_that_are_too_long_end_the_stream(strict: Running) -> None:
    headers = {"Content-Type": "application/jsonl", "Authorization": "Bearer another-long-token"}
    body = b'{"text": "a cat"}\n' + b"x" * 200_000
    answer = strict.post("/api/models/pets/suggest-lines", data=body, headers=headers)
    assert "a line has more than 100,000 bytes" in json.loads(answer.text.splitlines()[-1])["error"]


def test_without_a_token_only_health_and_the_page_are_there(strict: Running) -> None:
    for path in ("/v2/health/live", "/v2/health/ready", "/", "/v1/ui/", "/v1/openapi.json"):
        assert strict.get(path).status_code == 200
    for path in ("/v1/", "/v1/projects", "/api/models", "/v2", "/metrics", "/none"):
        answer = strict.get(path)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert strict.post(SUGGEST, data={"text": "a cat"}).status_code == 401
    for given in ("Bearer wrong", "Basic a-token-that-is-long", "a-token-that-is-long", "Bearer", "Bearer ä"):
        wrong = {"Authorization": given.encode("latin-1")}
        assert strict.post(SUGGEST, data={"text": "a cat"}, headers=wrong).status_code == 401
    for token in ("a-token-that-is-long", "another-long-token"):
        right = {"Authorization": f"Bearer {token}"}
        assert strict.post(SUGGEST, data={"text": "a cat"}, headers=right).status_code == 200


def test_preflight_requests_need_no_token(strict: Running) -> None:
    import requests

    asked = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    assert requests.options(strict.url + SUGGEST, headers=asked, timeout=30).status_code == 200


def test_a_limit_above_the_largest_is_the_largest(server: Running) -> None:
    for limit in ("5000", "9" * 5000):
        assert server.post(SUGGEST, data={"text": "cat dog cow", "limit": limit}).status_code == 200
    batch = server.post(f"{BATCH}?limit=5000", json={"documents": [{"text": "cat dog cow"}]})
    assert len(batch.json()[0]["results"]) == 3


@pytest.mark.parametrize(
    "path",
    ["//v1/projects", "/static/../v1/projects", "/static/..%2fv1/projects", "/v1/projects?x=/static/", "/api/models"],
)
def test_no_path_leads_around_the_token(strict: Running, path: str) -> None:
    with strict.connect() as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        answer = _received(connection)
    assert answer.startswith((b"HTTP/1.1 401", b"HTTP/1.1 404"))
    assert b"pets" not in answer


def test_head_is_answered_as_get_without_a_body(server: Running) -> None:
    import requests

    for path in ("/", "/v2/health/ready", "/v1/projects"):
        answer = requests.head(server.url + path, timeout=30)
        assert (answer.status_code, answer.content) == (200, b"")


def _received(connection: socket.socket) -> bytes:
    """Return all that a connection receives until it is closed."""
    parts = []
    while True:
        try:
            part = connection.recv(10_000)
        except ConnectionError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("flood", [b"x-%d: " + b"a" * 1000 + b"\r\n", b"a" * 1000])
def test_a_flood_of_headers_is_cut_off(server: Running, flood: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /v1/ HTTP/1.1\r\nhost: x\r\n" + (b"" if flood[:1] == b"x" else b"x: "))
        try:
            for i in range(2000):
                connection.sendall(flood % i if b"%d" in flood else flood)
        except ConnectionError:
            pass
        answer = _received(connection)
    # The answer is lost if the client is still sending when the connection is closed.
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431")
    assert still_works(server)


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"], ids=["unfinished", "complete"])
def test_headers_that_are_a_little_too_long_are_refused_in_one_sentence(server: Running, end: bytes) -> None:
    with server.connect() as connection:
        connection.sendall(b"GET /v1/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx: " + b"a" * 64_000 + end)
        answer = _received(connection)
    assert answer.startswith(b"HTTP/1.1 431")
    assert b"the headers have more than 64,000 bytes" in answer


def test_trailers_take_no_memory(server: Running) -> None:
    with server.connect() as connection:
        head = b"POST /v1/projects/pets/suggest HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n"
        connection.sendall(head + b"content-type: application/x-www-form-urlencoded\r\n\r\n5\r\ntext=\r\n0\r\n")
        before = peak_memory()["peak_mb"]
        for _ in range(100):
            connection.sendall(b"a:b\r\n" * 20_000)
        connection.sendall(b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert peak_memory()["peak_mb"] - before < 100


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /v1/projects/pets/suggest HTTP/1.1\r\nhost: x\r\n",
        b"POST /v1/projects/pets/suggest HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n"
        b"authorization: Bearer another-long-token\r\ncontent-length: 1000\r\n\r\ntext=a",
    ],
)
def test_a_request_that_never_ends_is_given_up(strict: Running, sent: bytes) -> None:
    start = time.monotonic()
    with strict.connect() as connection:
        connection.sendall(sent)
        answer = _received(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not arrive within 1 seconds" in answer
    assert 0.5 < time.monotonic() - start < 10


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\nPOST /v1/projects/pets/suggest HTTP/1.1\r\nhost: x\r\n"
        b"content-length: 1000\r\n\r\n",
        b"POST /nope/suggest-lines HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nx",
    ],
    ids=["pipelined", "rejected stream"],
)
def test_no_request_holds_its_connection_forever(strict: Running, sent: bytes) -> None:
    with strict.connect() as connection:
        connection.settimeout(10)
        connection.sendall(sent)
        time.sleep(0.3)
        connection.sendall(b"x")
        assert _received(connection).startswith(b"HTTP/1.1 ")


def test_a_stream_whose_client_does_not_read_is_given_up(strict: Running) -> None:
    head = (
        b"POST /api/models/pets/suggest-lines HTTP/1.1\r\nhost: x\r\ncontent-type: application/jsonl\r\n"
        b"authorization: Bearer another-long-token\r\ncontent-length: 1000000000\r\n\r\n"
    )
    with strict.connect() as connection:
        connection.settimeout(20)
        connection.sendall(head)
        with pytest.raises(ConnectionError):
            _send_forever(connection, b'{"text": "a cat and a dog"}\n' * 1000)
    assert strict.get("/v2/health/live").status_code == 200


def _send_forever(connection: socket.socket, data: bytes) -> None:
    while True:
        connection.sendall(data)


def test_too_many_large_bodies_at_once_are_refused(strict: Running) -> None:
    head = (
        b"POST /v1/projects/pets/suggest HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n"
        b"authorization: Bearer another-long-token\r\ncontent-length: 99999\r\n\r\n"
    )
    connections = [strict.connect() for _ in range(30)]
    try:
        for connection in connections:
            connection.sendall(head + b"text=" + b"a" * 90_000)
        wait_until(lambda: any(_first_line(one).startswith(b"HTTP/1.1 503") for one in connections), 10)
    finally:
        for connection in connections:
            connection.close()
    wait_until(lambda: strict.service.body_bytes == 0, 10)


def _first_line(connection: socket.socket) -> bytes:
    connection.settimeout(0.01)
    try:
        return connection.recv(100, socket.MSG_PEEK)
    except TimeoutError:
        return b""


def test_a_connection_without_a_request_is_closed_after_a_while(strict: Running) -> None:
    with strict.connect() as silent, strict.connect() as used:
        used.sendall(b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        assert _received(silent) == b""
        assert _received(used).startswith(b"HTTP/1.1 200")


def test_requests_may_follow_each_other_on_one_connection(strict: Running) -> None:
    with strict.connect() as connection:
        for _ in range(6):
            time.sleep(0.3)
            connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b'{"live":true}'):
                part = connection.recv(10_000)
                assert part, "the connection was closed"
                answer += part
            assert answer.startswith(b"HTTP/1.1 200")


def test_a_slow_client_and_idle_connections_do_not_block_others(server: Running) -> None:
    idle = [server.connect() for _ in range(300)]
    try:
        slow = idle[0]
        slow.sendall(b"POST /v1/projects/pets/suggest HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n")
        assert all(still_works(server) for _ in range(5))
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.parametrize("origin", [b"", b"origin: http://x\r\n"], ids=["fast path", "framework"])
def test_a_client_that_leaves_is_no_failure(server: Running, origin: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with server.connect() as connection:
        head = b"POST /v1/projects/pets/suggest HTTP/1.1\r\nhost: x\r\n" + origin
        connection.sendall(
            head + b"content-type: application/x-www-form-urlencoded\r\ncontent-length: 99\r\n\r\ntext=a"
        )
        time.sleep(0.2)
    wait_until(lambda: 'status="499"' in server.get("/metrics").text)
    assert "failed" not in caplog.text


def test_what_is_no_http_is_refused(server: Running) -> None:
    for sent in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"GET / HTTP/9.9\r\n\r\n", b"nonsense\r\n\r\n"):
        with server.connect() as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            answer = _received(connection)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    assert still_works(server)


def test_pages_load_nothing_from_elsewhere_and_answers_are_kept_by_nobody(server: Running) -> None:
    page = server.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "server" not in page.headers
    answer = server.post(SUGGEST, data={"text": "a cat"})
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "none.js", "page", ""])
def test_only_files_of_the_page_are_served(server: Running, name: str) -> None:
    assert server.get(f"/static/{name}").status_code == 404
