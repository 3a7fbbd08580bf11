"""`lightdxml serve` under load, beside `predict` in the same hour, and beside Annif's server.

`python benchmarks/serve.py DATA OUT [--model MODEL] [--seconds 6] [--overload 60] [--swaps 200] [--annif FOLDER]`

DATA holds the folder `eurlex57k`, whose test documents are asked. The model is trained with the defaults and kept in
OUT, unless `--model` names another one. The service runs in a process of its own, on all cores, with its defaults. A
second process is the load: connections that stay open, each of which sends its next document when it has the answer to
the last one. It needs part of the same cores.

`--annif` is a folder that `benchmarks/annif.py` left. Its Bonsai is served by Annif's recommended server, gunicorn with
two workers, and its LightDXML by `lightdxml serve`. Both get the same load, and nothing else is measured.
`LIGHTDXML_ANNIF` names the `annif` of its environment.

Tables, as Markdown:
1. documents per second and latencies of 1, 8 and 64 clients, as a share of a batch `predict` before and after;
2. twice the capacity, at a fixed rate: answers by status, latencies of those accepted, memory;
3. models exchanged under load; a slow client and 1,000 idle connections.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from measure import alone, timed

from lightdxml import Predictor
from lightdxml.model import store

LABELS = 10
_SINGLE = "one document per request"
FORM = "application/x-www-form-urlencoded"


@dataclass
class Outcome:
    """What a load got: answers by status, seconds of each answer with status 200, requests without an answer."""

    seconds: float
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    lost: int = 0

    def rate(self) -> float:
        """Return the accepted requests per second."""
        return len(self.latencies) / self.seconds

    def latency(self, share: float) -> str:
        """Return a quantile of the latency in milliseconds."""
        ordered = sorted(self.latencies)
        return f"{1000 * ordered[int(share * (len(ordered) - 1))]:.1f}" if ordered else "–"


class Client(asyncio.Protocol):
    """A connection that sends a request when it is told to, and reads the answer."""

    def __init__(self) -> None:
        self.buffer = b""
        self.answer: asyncio.Future[int] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport: Any = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that waits."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionResetError())

    def data_received(self, data: bytes) -> None:
        """Read a response."""
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        if not end:
            return
        lowered = head.lower()
        at = lowered.find(b"content-length:")
        length = int(lowered[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(body) >= length and self.answer is not None:
            self.buffer = body[length:]
            self.answer.set_result(int(head[9:12]))

    def send(self, request: bytes) -> asyncio.Future[int]:
        """Send a request, and return its status when the response is complete."""
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.answer


async def _connect(address: tuple[str, int]) -> Client:
    _, client = await asyncio.get_running_loop().create_connection(Client, *address)
    return client


async def _ask(client: Client, request: bytes, outcome: Outcome) -> bool:
    start = time.perf_counter()
    try:
        status = await asyncio.wait_for(client.send(request), 60)
    except (ConnectionError, RuntimeError, asyncio.TimeoutError):
        outcome.lost += 1
        return False
    outcome.statuses[status] += 1
    if status == 200:
        outcome.latencies.append(time.perf_counter() - start)
    return True


async def _closed(address: tuple[str, int], requests: Sequence[bytes], clients: int, seconds: float) -> Outcome:
    """Keep so many clients busy for so long."""
    outcome = Outcome(seconds)
    numbers = iter(range(10**9))
    end = time.perf_counter() + seconds

    async def work() -> None:
        client = await _connect(address)
        while time.perf_counter() < end:
            if not await _ask(client, requests[next(numbers) % len(requests)], outcome):
                client = await _connect(address)
        client.transport.close()

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(clients)))
    outcome.seconds = time.perf_counter() - start
    return outcome


async def _open(address: tuple[str, int], requests: Sequence[bytes], rate: float, seconds: float) -> Outcome:
    """Send so many requests per second, whether or not there are answers; connections are used again."""
    outcome, free = Outcome(seconds), list[Client]()
    tasks: set[asyncio.Task[None]] = set()
    start = time.perf_counter()

    async def one(number: int) -> None:
        # The service closes connections that are idle for long.
        while free and free[-1].transport.is_closing():
            free.pop()
        try:
            client = free.pop() if free else await _connect(address)
        except OSError:
            outcome.lost += 1
            return
        if await _ask(client, requests[number % len(requests)], outcome):
            free.append(client)

    number = 0
    while (now := time.perf_counter() - start) < seconds:
        while number < rate * now:
            task = asyncio.ensure_future(one(number))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            number += 1
        await asyncio.sleep(0.001)
    await asyncio.gather(*tasks)
    outcome.seconds = time.perf_counter() - start
    return outcome


def closed_load(address: tuple[str, int], requests: Sequence[bytes], clients: int, seconds: float) -> Outcome:
    return _run(_closed(address, requests, clients, seconds))


def open_load(address: tuple[str, int], requests: Sequence[bytes], rate: float, seconds: float) -> Outcome:
    return _run(_open(address, requests, rate, seconds))


def _run(main: object) -> Outcome:
    import uvloop

    found: Outcome = uvloop.run(main)  # type: ignore[arg-type]
    return found


def requests_of(path: str, bodies: Sequence[str], kind: str, headers: str = "") -> list[bytes]:
    start = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n{headers}"
    encoded = [body.encode() for body in bodies]
    return [f"{start}content-length: {len(body)}\r\n\r\n".encode() + body for body in encoded]


def forms(texts: Sequence[str]) -> list[str]:
    return [urllib.parse.urlencode({"text": text, "limit": LABELS}) for text in texts]


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def wait_until_ready(process: subprocess.Popen[Any], port: int, path: str) -> None:
    """Wait until a service answers with 200; raise if it ends before, or within a minute does not."""
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the service ended with code {process.returncode}: {process.args!r}")
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as probe:
            probe.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            if b" 200 " in probe.recv(100):
                return
        time.sleep(0.1)
    raise RuntimeError("the service did not become ready")


@contextmanager
def service(model: Path, *options: str) -> Iterator[tuple[tuple[str, int], subprocess.Popen[str]]]:
    """Run the service on a free port inside the `with` block."""
    port = free_port()
    command = [sys.executable, "-m", "lightdxml", "serve", f"model={model}", "--port", str(port), *options]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, text=True)
    try:
        wait_until_ready(process, port, "/v2/health/ready")
        yield ("127.0.0.1", port), process
    finally:
        process.terminate()
        process.wait()


def batch_speed(model: Path, texts: Sequence[str]) -> float:
    """Return the documents per second of a batch `predict`."""
    predictor = Predictor.load(model)
    predictor.rank(texts[:64], LABELS)
    return len(texts) / statistics.median(timed(predictor.rank, texts, LABELS)[1] for _ in range(3))


def lone_latency(model: Path, texts: Sequence[str]) -> float:
    """Return the median seconds of `predict` for one document, on one thread as in the service."""
    predictor = Predictor.load(model, n_jobs=1)
    predictor.rank(texts[:64], LABELS)
    return statistics.median(timed(predictor.rank, [text], LABELS)[1] for text in texts[:500])


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"\n| {' | '.join(columns)} |\n|---|{'--:|' * (len(columns) - 1)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    sys.stdout.flush()


def throughput(model: Path, texts: Sequence[str], seconds: float) -> float:
    """Print the throughput of several kinds of clients; return that of 64."""
    form = forms(texts)
    batches = [
        json.dumps({"documents": [{"text": text} for text in texts[i : i + 32]]}) for i in range(0, len(texts) - 32, 32)
    ]
    path, capacity = "/v1/projects/model/suggest", 0.0
    loads = [
        (_SINGLE, requests_of(path, form, FORM), 1, 1),
        (_SINGLE, requests_of(path, form, FORM), 8, 1),
        (_SINGLE, requests_of(path, form, FORM), 64, 1),
        ("the same without the fast path", requests_of(path, form, FORM, "origin: http://x\r\n"), 64, 1),
        ("32 documents per request", requests_of(f"{path}-batch?limit={LABELS}", batches, "application/json"), 8, 32),
    ]
    rows = []
    lone = alone(lone_latency, model, texts)
    for name, requests, clients, size in loads:
        before = alone(batch_speed, model, texts)
        with service(model) as (address, _):
            alone(closed_load, address, requests, clients, 2.0)
            found = alone(closed_load, address, requests, clients, seconds)
        predicted = (before + alone(batch_speed, model, texts)) / 2
        rate = size * found.rate()
        if clients == 64 and name == _SINGLE:
            capacity = rate
        above = f"+{1000 * statistics.median(found.latencies) - 1000 * lone:.1f}" if clients == 1 else ""
        share = f"{100 * rate / predicted:.0f}%"
        rows.append(
            (name, clients, f"{rate:,.0f}", f"{predicted:,.0f}", share, found.latency(0.5), found.latency(0.99), above)
        )
    columns = ("Load", "Clients", "Documents/s", "`predict`, documents/s", "Share", "p50 ms", "p99 ms", "HTTP adds, ms")
    table(columns, rows)
    return capacity


@contextmanager
def annif_server(folder: Path) -> Iterator[tuple[str, int]]:
    """Run Annif's server with the projects of a folder on a free port inside the `with` block."""
    port = free_port()
    server = Path(os.environ["LIGHTDXML_ANNIF"]).parent / "gunicorn"
    command = [str(server), "--workers", "2", "--bind", f"127.0.0.1:{port}", "annif:create_app()"]
    variables = {"ANNIF_PROJECTS": f"{folder}/projects.cfg", "ANNIF_DATADIR": f"{folder}/data"}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | variables
    )
    try:
        wait_until_ready(process, port, "/v1/projects")
        yield "127.0.0.1", port
    finally:
        process.terminate()
        process.wait()


def beside_annif(folder: Path, texts: Sequence[str], seconds: float) -> None:
    """Print the throughput of Annif and of the service, one after the other."""
    loads = {
        project: requests_of(f"/v1/projects/{project}/suggest", forms(texts), FORM) for project in ("bonsai", "model")
    }
    rows = []
    for clients in (1, 8, 64):
        with annif_server(folder) as there:
            alone(closed_load, there, loads["bonsai"], clients, 5.0)
            other = alone(closed_load, there, loads["bonsai"], clients, seconds)
        with service(folder / "model") as (here, _):
            alone(closed_load, here, loads["model"], clients, 5.0)
            ours = alone(closed_load, here, loads["model"], clients, seconds)
        ratio = f"{ours.rate() / other.rate():.1f}"
        rows.append(
            (clients, f"{ours.rate():,.0f}", f"{other.rate():,.0f}", ratio, ours.latency(0.5), other.latency(0.5))
        )
    table(("Clients", "LightDXML, documents/s", "Annif, documents/s", "Ratio", "p50 ms", "Annif, p50 ms"), rows)


def resident_mb(process: subprocess.Popen[str]) -> float:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1000


def overload(model: Path, texts: Sequence[str], capacity: float, seconds: float) -> None:
    requests = requests_of("/v1/projects/model/suggest", forms(texts), FORM)
    with service(model) as (address, process):
        alone(closed_load, address, requests, 64, 5.0)
        before = resident_mb(process)
        found = alone(open_load, address, requests, 2 * capacity, seconds)
        after = resident_mb(process)
    statuses = ", ".join(f"{count:,} × {status}" for status, count in sorted(found.statuses.items()))
    columns = ("Twice the capacity", "Answers", "Lost", "Accepted/s", "p50 ms", "p99 ms", "Memory before → after, MB")
    sent = (found.statuses.total() + found.lost) / seconds
    row = (
        f"{sent:,.0f} requests/s for {seconds:.0f} s", statuses, found.lost, f"{found.rate():,.0f}",
        found.latency(0.5), found.latency(0.99), f"{before:,.0f} → {after:,.0f}",
    )  # fmt: skip
    table(columns, [row])


def variants(model: Path, folder: Path) -> list[Path]:
    """Return two models that differ in their version."""
    stored = store.load(model)
    found = []
    for i, threshold in enumerate((0.3, 0.4)):
        found.append(folder / f"variant{i}")
        store.save(replace(stored.model, threshold=threshold), found[-1], stored.manifest["lightdxml"], stored.history)
    return found


def swaps(model: Path, texts: Sequence[str], count: int) -> None:
    """Exchange models under the load of 8 clients, as fast as the service takes them."""
    import signal
    import threading

    requests = requests_of("/v1/projects/model/suggest", forms(texts), FORM)
    results: list[Outcome] = []
    with tempfile.TemporaryDirectory() as place:
        both, served = variants(model, Path(place)), Path(place) / "served"
        shutil.copytree(both[0], served)
        loaded = [store.load(one) for one in both]
        with service(served) as (address, process):
            before, start = resident_mb(process), time.perf_counter()
            stop = False
            load = threading.Thread(
                target=lambda: results.extend(_until(lambda: stop, address, requests)),
            )
            load.start()
            versions = 0.0
            for i in range(1, count + 1):
                one = loaded[i % 2]
                store.save(one.model, served, one.manifest["lightdxml"], one.history)
                process.send_signal(signal.SIGHUP)
                while versions < i:
                    time.sleep(0.02)
                    versions = _metric(address, "lightdxml_model_reloads_total")
            stop = True
            load.join()
            seconds, after = time.perf_counter() - start, resident_mb(process)
    statuses: Counter[int] = sum((one.statuses for one in results), Counter())
    shown = ", ".join(f"{number:,} × {status}" for status, number in sorted(statuses.items()))
    lost = sum(one.lost for one in results)
    columns = (
        "Models exchanged under the load of 8 clients",
        "Seconds",
        "Answers",
        "Lost",
        "Memory before → after, MB",
    )
    table(columns, [(count, f"{seconds:.0f}", shown, lost, f"{before:,.0f} → {after:,.0f}")])


def _until(stopped: object, address: tuple[str, int], requests: Sequence[bytes]) -> Iterator[Outcome]:
    while not stopped():  # type: ignore[operator]
        yield alone(closed_load, address, requests, 8, 5.0)


def _metric(address: tuple[str, int], name: str) -> float:
    import urllib.request

    with urllib.request.urlopen(f"http://{address[0]}:{address[1]}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def idle(model: Path, texts: Sequence[str], seconds: float) -> None:
    requests = requests_of("/v1/projects/model/suggest", forms(texts), FORM)
    rows = []
    with service(model) as (address, _):
        alone(closed_load, address, requests, 8, 2.0)
        for name, number in (("no others", 0), ("1,000 idle connections, one slow client", 1000)):
            others = [socket.create_connection(address) for _ in range(number)]
            if others:
                others[0].sendall(requests[0][:200])
            found = alone(closed_load, address, requests, 8, seconds)
            rows.append((name, f"{found.rate():,.0f}", found.latency(0.5), found.latency(0.99), found.lost))
            for other in others:
                other.close()
    table(("8 clients beside", "Documents/s", "p50 ms", "p99 ms", "Lost"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder of the data sets")
    parser.add_argument("out", type=Path, help="the folder for the model")
    parser.add_argument("--model", type=Path, help="another model")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--overload", type=float, default=60.0)
    parser.add_argument("--swaps", type=int, default=200)
    parser.add_argument("--annif", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    with gzip.open(given.data / "eurlex57k" / "test.jsonl.gz", "rt", encoding="utf-8") as stream:
        documents = [json.loads(line) for line in stream]
    random.Random(1).shuffle(documents)
    texts = [f"{one.get('title', '')}\n{one['text']}" for one in documents[:4096]]
    if given.annif is not None:
        beside_annif(given.annif, texts, given.seconds)
        return
    model = given.model or given.out / "eurlex57k"
    if not model.exists():
        train = [sys.executable, "-m", "lightdxml", "train", str(given.data / "eurlex57k"), "--model", str(model)]
        subprocess.run(train, check=True)
    capacity = throughput(model, texts, given.seconds)
    if given.overload:
        overload(model, texts, capacity, given.overload)
    if given.swaps:
        swaps(model, texts, given.swaps)
    idle(model, texts, given.seconds)


if __name__ == "__main__":
    main()
