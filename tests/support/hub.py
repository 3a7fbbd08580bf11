"""A stand-in for the Hugging Face Hub on loopback: the few endpoints of its API that sharing models needs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

LICENSES = ("mit", "apache-2.0", "cc-by-4.0")
OWNER = "alice"
# Files from this size on, and all arrays, go through LFS.
_LARGE = 10_000
_REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"


@dataclass
class Repo:
    """A repository: the files of each commit, and the commit of each branch."""

    private: bool = False
    gated: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, files: Mapping[str, bytes], branch: str = "main", message: str = "") -> str:
        """Add a commit with these files, and return its id."""
        content = json.dumps(
            [len(self.commits), branch, *(sorted((name, _sha256(one)) for name, one in files.items()))]
        ).encode()
        self.branches[branch] = oid = hashlib.sha1(content).hexdigest()
        self.commits[oid] = dict(files)
        self.messages.append(message)
        return oid

    def find(self, revision: str) -> str | None:
        """Return the commit of a branch, or a commit as it is; None if there is none."""
        oid = self.branches.get(revision, revision)
        return oid if oid in self.commits else None

    @property
    def files(self) -> dict[str, bytes]:
        """The files of the main branch."""
        return self.commits[self.branches["main"]]


@dataclass
class FakeHub:
    """The hub and what was asked of it.

    Attributes
    ----------
    token
        The only valid token. Writing needs it, and reading what is private or gated.
    requests
        Method and path of all requests.
    sent
        Bytes of files that were downloaded.
    cut
        After so many bytes of a file, its next download breaks off.
    """

    url: str = ""
    token: str = "hf_secret"
    repos: dict[str, Repo] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    sent: int = 0
    cut: int | None = None

    def repo(self, name: str, files: Mapping[str, bytes] | None = None, **options: Any) -> Repo:
        """Add a repository."""
        self.repos[name] = repo = Repo(**options)
        repo.commit(files or {})
        return repo


class _RefusedError(Exception):
    def __init__(self, status: int, code: str = "", content: Any = None) -> None:
        super().__init__(status, code)
        self.status, self.code, self.content = status, code, content


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def _handle(self) -> None:
        path, length = unquote(urlsplit(self.path).path), int(self.headers.get("Content-Length") or 0)
        self.hub.requests.append(f"{self.command} {path}")
        body = self.rfile.read(length)
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunks()
        try:
            for method, pattern, answer in _ROUTES:
                if self.command in method.split() and (found := re.fullmatch(pattern, path)):
                    answer(self, body, **found.groupdict())
                    return
            raise _RefusedError(404)
        except _RefusedError as refused:
            headers = {"X-Error-Code": refused.code} if refused.code else {}
            self._json(refused.content or {"error": "refused"}, refused.status, headers)

    do_GET = do_HEAD = do_POST = do_PUT = _handle  # noqa: N815

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _json(self, content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self._send(json.dumps(content).encode(), status, {"Content-Type": "application/json", **(headers or {})})

    def _send(self, body: bytes, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _may_write(self) -> None:
        if not self._is_owner:
            raise _RefusedError(401)

    @property
    def _is_owner(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {self.hub.token}"

    def _find(self, repo: str) -> Repo:
        found = self.hub.repos.get(repo)
        if found is None or (found.private and not self._is_owner):
            raise _RefusedError(401 if not self._is_owner else 404, "RepoNotFound")
        return found

    def _commit_of(self, repo: str, revision: str | None) -> tuple[str, dict[str, bytes]]:
        found = self._find(repo)
        if (oid := found.find(revision or "main")) is None:
            raise _RefusedError(404, "RevisionNotFound")
        return oid, found.commits[oid]

    def create(self, body: bytes) -> None:
        self._may_write()
        asked = json.loads(body)
        name = f"{asked.get('organization') or OWNER}/{asked['name']}"
        if name.partition("/")[0] != OWNER:
            raise _RefusedError(403)
        status = 409 if name in self.hub.repos else 200
        if status == 200:
            self.hub.repo(name, {".gitattributes": b""}, private=asked.get("visibility") == "private")
        self._json({"url": f"{self.hub.url}/{name}", "name": name}, status)

    def branch(self, body: bytes, repo: str, revision: str) -> None:
        self._may_write()
        found = self._find(repo)
        if revision in found.branches:
            raise _RefusedError(409)
        found.branches[revision] = found.branches["main"]
        self._json({})

    def validate(self, body: bytes) -> None:
        license = re.search(r"^license: (.*)$", json.loads(body)["content"], flags=re.MULTILINE)
        if license is not None and license[1] not in LICENSES:
            raise _RefusedError(400, content={"errors": [{"message": '"license" must be one of them'}], "warnings": []})
        self._json({"errors": [], "warnings": []})

    def preupload(self, body: bytes, repo: str, revision: str) -> None:
        self._may_write()
        _, files = self._commit_of(repo, revision)
        self._json({"files": [self._mode(one, files.get(one["path"])) for one in json.loads(body)["files"]]})

    def _mode(self, asked: Mapping[str, Any], there: bytes | None) -> dict[str, Any]:
        is_large = _is_large(asked["path"], asked["size"])
        oid = None if there is None else _sha256(there) if is_large else _git_hash(there)
        mode = "lfs" if is_large else "regular"
        return {"path": asked["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid}

    def batch(self, body: bytes, repo: str) -> None:
        self._may_write()
        objects: list[dict[str, Any]] = json.loads(body)["objects"]
        for one in objects:
            if one["oid"] not in self.hub.blobs:
                one["actions"] = {"upload": {"href": f"{self.hub.url}/lfs/{one['oid']}"}}
        self._json({"transfer": "basic", "objects": objects})

    def store(self, body: bytes, oid: str) -> None:
        if _sha256(body) != oid:
            raise _RefusedError(400)
        self.hub.blobs[oid] = body
        self._send(b"", 200, {})

    def commit(self, body: bytes, repo: str, revision: str) -> None:
        self._may_write()
        _, before = self._commit_of(repo, revision)
        files, message = dict(before), ""
        for line in body.splitlines():
            key, value = (entry := json.loads(line))["key"], entry["value"]
            if key == "header":
                message = value["summary"]
            elif key == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif key == "lfsFile":
                files[value["path"]] = self.hub.blobs[value["oid"]]
            elif key == "deletedFile":
                del files[value["path"]]
        oid = self._find(repo).commit(files, revision, message)
        self._json({"commitUrl": f"{self.hub.url}/{repo}/commit/{oid}", "commitOid": oid})

    def info(self, body: bytes, repo: str, revision: str | None = None) -> None:
        oid, files = self._commit_of(repo, revision)
        siblings = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
        self._json({"id": repo, "sha": oid, "private": self._find(repo).private, "siblings": siblings})

    def tree(self, body: bytes, repo: str, revision: str) -> None:
        _, files = self._commit_of(repo, revision)
        self._json([_described(name, content) for name, content in files.items()])

    def resolve(self, body: bytes, repo: str, revision: str, name: str) -> None:
        if self._find(repo).gated and not self._is_owner:
            raise _RefusedError(403, "GatedRepo")
        oid, files = self._commit_of(repo, revision)
        if name not in files:
            raise _RefusedError(404, "EntryNotFound")
        content = files[name]
        etag = _sha256(content) if _is_large(name, len(content)) else _git_hash(content)
        headers = {"X-Repo-Commit": oid, "ETag": f'"{etag}"', "Accept-Ranges": "bytes"}
        start = int((self.headers.get("Range") or "bytes=0-")[len("bytes=") :].partition("-")[0])
        status = 206 if start else 200
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        if self.command == "GET":
            self._download(content[start:], status, headers)
        else:
            self._send(content, status, headers)

    def _download(self, content: bytes, status: int, headers: Mapping[str, str]) -> None:
        cut, self.hub.cut = (
            (self.hub.cut, None) if len(content) > (self.hub.cut or len(content)) else (None, self.hub.cut)
        )
        self.hub.sent += len(content[:cut])
        if cut is None:
            self._send(content, status, headers)
            return
        self._send(content[:cut], status, {**headers, "Content-Length": str(len(content))})
        self.close_connection = True


_ROUTES = (
    ("POST", "/api/repos/create", _Handler.create),
    ("POST", "/api/validate-yaml", _Handler.validate),
    ("POST", f"/api/models/{_REPO}/branch/(?P<revision>.+)", _Handler.branch),
    ("POST", f"/api/models/{_REPO}/preupload/(?P<revision>.+)", _Handler.preupload),
    ("POST", f"/api/models/{_REPO}/commit/(?P<revision>.+)", _Handler.commit),
    ("GET", f"/api/models/{_REPO}(?:/revision/(?P<revision>.+))?", _Handler.info),
    ("GET", f"/api/models/{_REPO}/tree/(?P<revision>.+)", _Handler.tree),
    ("POST", rf"/{_REPO}\.git/info/lfs/objects/batch", _Handler.batch),
    ("PUT", "/lfs/(?P<oid>[0-9a-f]+)", _Handler.store),
    ("GET HEAD", f"/{_REPO}/resolve/(?P<revision>[^/]+)/(?P<name>.+)", _Handler.resolve),
)


def _is_large(name: str, size: int) -> bool:
    return name.endswith(".safetensors") or size >= _LARGE


def _described(name: str, content: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": _git_hash(content)}
    if _is_large(name, len(content)):
        found["lfs"] = {"oid": _sha256(content), "size": len(content), "pointerSize": 134}
    return found


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def running_hub() -> Iterator[FakeHub]:
    """Run a hub on a free port inside the `with` block."""
    hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
