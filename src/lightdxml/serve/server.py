"""Run the application on uvicorn: socket, connection limits, signals, and loading of models."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lightdxml.serve.middleware import STREAM
from lightdxml.serve.problems import MEDIA_TYPE, Problem, problem_body, problem_response
from lightdxml.serve.service import Service

# The most bytes of request line and headers.
_MAX_HEADER_BYTES = 64_000
# After a request was rejected, the rest of its body is discarded up to this multiple of the body limit.
_IGNORED = 20
# Seconds between checks for changed models.
_POLL = 1.0
# The GIL switch interval in seconds. The default of 5 ms is longer than most requests take.
_SWITCH = 0.0001


_TOO_MANY_HEADERS = Problem(431, f"the headers have more than {_MAX_HEADER_BYTES:,} bytes: send fewer")


class Connection(HttpToolsProtocol):
    """An HTTP connection with limits on header size and on the time that a request may take to arrive.

    Attributes
    ----------
    service
        The shared state, set on a subclass.
    """

    service: Service

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first request."""
        super().connection_made(transport)
        self._header_bytes = self._header_size = self._ignored_bytes = 0
        self._in_headers, self._is_complete = True, True
        self._timeout: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._start_timeout()

    def _start_timeout(self) -> None:
        self._stop_timeout()
        self._timeout = self.loop.call_later(self.service.options.timeout, self._give_up)

    def _stop_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timeouts."""
        self._stop_timeout()
        self._stop_stalled()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start the timeout of a client that does not read."""
        super().pause_writing()
        self._stalled = self.loop.call_later(self.service.options.timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel the timeout of a client that reads again."""
        self._stop_stalled()
        super().resume_writing()

    def _stop_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def data_received(self, data: bytes) -> None:
        """Enforce the header limit, and pass the data on."""
        if self._in_headers:
            self._header_bytes += len(data)
        elif self.cycle is not None and self.cycle.response_complete:
            # The request was rejected before it was complete.
            self._ignored_bytes += len(data)
            if self._ignored_bytes > _IGNORED * self.service.options.max_body:
                self.transport.close()
                return
        super().data_received(data)
        if self._in_headers and self._header_bytes > _MAX_HEADER_BYTES:
            self._refuse(_TOO_MANY_HEADERS)

    def on_message_begin(self) -> None:
        """Start the timeout for headers and body of a request."""
        self._in_headers, self._is_complete, self._header_size = True, False, 0
        self._start_timeout()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers after a body are ignored."""
        self._header_size += len(name) + len(value)
        if self._in_headers and self._header_size <= _MAX_HEADER_BYTES:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start handling the request. Streams have their own timeout, per chunk."""
        self._in_headers, self._header_bytes = False, 0
        app = self.app
        if self._header_size > _MAX_HEADER_BYTES:
            self.app = problem_response(_TOO_MANY_HEADERS)
        super().on_headers_complete()
        self.app = app
        if self.scope["path"].endswith(STREAM):
            self._stop_timeout()

    def on_message_complete(self) -> None:
        """Cancel the timeout, and expect the next request."""
        self._stop_timeout()
        super().on_message_complete()
        self._in_headers, self._is_complete, self._ignored_bytes = True, True, 0

    def on_response_complete(self) -> None:
        """Limit the time for the rest of a request that was rejected before it was complete."""
        super().on_response_complete()
        if not self._is_complete and not self.transport.is_closing():
            self._start_timeout()

    def _give_up(self) -> None:
        """Close the connection, with 408 if a request had started."""
        self._timeout = None
        if self._is_responding():
            self._start_timeout()
        elif self._is_complete or (not self._in_headers and self.cycle.response_complete):
            self.transport.close()
        else:
            seconds = self.service.options.timeout
            self._refuse(Problem(408, f"the request did not arrive within {seconds:g} seconds: send it faster"))

    def _is_responding(self) -> bool:
        """Return whether a response to this or to an earlier request on the connection is still to be sent."""
        if self.cycle is None or self.cycle.response_complete:
            return False
        return bool(self.pipeline) or self._in_headers or self.cycle.response_started

    def send_400_response(self, msg: str) -> None:
        """Reject what is not HTTP."""
        self._refuse(Problem(400, "the request is not valid HTTP: check it"))

    def _refuse(self, problem: Problem) -> None:
        if self.transport.is_closing():
            return
        body, status = problem_body(problem), problem.status_code
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
        self.service.metrics.count("other", "other", status, 0.0)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: some clients ask for HTTP/2 with every request."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise an `OSError` with advice if the address cannot be used."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise OSError(f"{host} is not an address of this machine: give 127.0.0.1, or 0.0.0.0 for all") from error
    listener = socket.socket(family, kind, number)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        reasons = {
            errno.EADDRINUSE: f"port {port} is taken: choose another one with --port",
            errno.EACCES: f"port {port} needs more rights: choose one above 1024 with --port",
            errno.EADDRNOTAVAIL: f"{host} is not an address of this machine: give 127.0.0.1, or 0.0.0.0 for all",
        }
        raise OSError(reasons.get(error.errno or 0, f"{host}:{port} cannot be used ({error.strerror})")) from error
    return listener


class Server:
    """Serves models until a signal or `stop` ends it.

    SIGTERM and Ctrl-C finish running requests first. SIGHUP reloads models that have changed.

    Parameters
    ----------
    app, service
        What `create_app` returned.
    listener
        What `listen` returned.
    watch
        Whether to check for changed models every second.
    on_ready
        Called when all models are loaded.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        listener: socket.socket,
        *,
        watch: bool = False,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        self.service, self.listener, self.watch, self.on_ready = service, listener, watch, on_ready
        self._uvicorn = _Uvicorn(_config(app, service), service)
        self._failure: Exception | None = None

    def run(self) -> None:
        """Serve until stopped. Raise the error if a model cannot be loaded."""
        sys.setswitchinterval(_SWITCH)
        try:
            _run_on_loop(self._uvicorn.config, self._main())
        except KeyboardInterrupt:
            pass
        finally:
            self.service.close()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop the server, from any thread."""
        self.service.stopping = True
        self._uvicorn.should_exit = True

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        tasks = set[asyncio.Task[None]]()

        def start(work: Coroutine[Any, Any, None]) -> None:
            task = loop.create_task(work)
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        start(self._load())
        if self.watch:
            start(self._watch())
        # Windows has no SIGHUP, and only the main thread gets signals.
        with contextlib.suppress(AttributeError, NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(signal.SIGHUP, lambda: start(self._retry()))
        await self._uvicorn.serve(sockets=[self.listener])
        # A lesson that has begun is finished while there is a loop to report to.
        await _on_daemon_thread(self.service.teacher.close)
        for task in list(tasks):
            task.cancel()

    async def _load(self) -> None:
        try:
            await _on_daemon_thread(self.service.models.load)
        except Exception as error:
            self._failure = error
            self.stop()
            return
        # Keep the garbage collector from scanning the models again and again.
        gc.freeze()
        self.on_ready()

    async def _retry(self) -> None:
        """Reload models that have changed, those too that could not be loaded before."""
        while not self.service.models.ready:
            await asyncio.sleep(_POLL)
        await _on_daemon_thread(self.service.models.retry)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_POLL)
            if self.service.models.ready:
                await _on_daemon_thread(self.service.models.reload)


async def _on_daemon_thread(function: Callable[[], Any]) -> None:
    """Run a function on a thread that does not keep the process alive: loading a model may take minutes."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish(error: Exception | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def work() -> None:
        error = None
        try:
            function()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # The server has stopped meanwhile.
            loop.call_soon_threadsafe(finish, error)

    threading.Thread(target=work, daemon=True).start()
    await done


def _run_on_loop(config: uvicorn.Config, main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine on the event loop that uvicorn would use."""
    factory = config.get_loop_factory()
    if sys.version_info >= (3, 11):
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(main)
        return
    loop = asyncio.new_event_loop() if factory is None else factory()
    try:
        loop.run_until_complete(main)
    finally:
        loop.close()


class _Uvicorn(uvicorn.Server):
    """A uvicorn server that reports not ready while it shuts down, and exits with code 0 after a signal."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Shut down gracefully; the second Ctrl-C exits at once. Unlike uvicorn, do not raise the signal again."""
        self._service.stopping = True
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def _config(app: ASGIApp, service: Service) -> uvicorn.Config:
    seconds = max(1, round(service.options.timeout))
    return uvicorn.Config(
        app,
        http=type("_Connection", (Connection,), {"service": service}),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=seconds,
        timeout_graceful_shutdown=seconds,
    )
