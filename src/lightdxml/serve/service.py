"""Shared state: options, models, batch queue, teacher and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request

from lightdxml.predictor import thread_count
from lightdxml.serve.batching import Batcher
from lightdxml.serve.metrics import Metrics
from lightdxml.serve.problems import MEDIA_TYPE
from lightdxml.serve.registry import ModelRegistry
from lightdxml.serve.schemas import ProblemBody
from lightdxml.serve.teacher import Teacher

# The most texts whose language is being detected.
_MAX_DETECTIONS = 8


@dataclass(frozen=True)
class ServeOptions:
    """Options of the service.

    Attributes
    ----------
    threads
        Number of prediction threads; None for all cores.
    queue
        The most documents in the batch queue. Further requests get 429.
    timeout
        Seconds that a request may take to arrive, and that it may wait in the queue.
    max_body
        The most bytes of a request body, or of a line in a stream. All bodies together may have 20 times as many.
    tokens
        Valid bearer tokens; empty if clients need none.
    origins
        Web sites whose pages may use the API (CORS); `*` for all.
    access_log
        Whether to log requests.
    allow_learn
        Whether models learn from documents that clients send.
    """

    threads: int | None = None
    queue: int = 512
    timeout: float = 30.0
    max_body: int = 10_000_000
    tokens: tuple[str, ...] = field(default=(), repr=False)
    origins: tuple[str, ...] = ("*",)
    access_log: bool = True
    allow_learn: bool = False


class Service:
    """Shared state of all requests.

    Parameters
    ----------
    folders
        Models by id.
    options
        Options of the service.
    """

    def __init__(self, folders: Mapping[str, Path], options: ServeOptions) -> None:
        self.options = options
        self.models = ModelRegistry(folders)
        self.metrics = Metrics(self.models)
        self.batcher = Batcher(
            thread_count(options.threads), options.queue, options.timeout, self.metrics.batch_size.observe
        )
        # Dictionaries of languages take seconds to load: they must not block predictions.
        self.detector = Batcher(1, _MAX_DETECTIONS, options.timeout)
        self.teacher = Teacher(self.models, options.timeout, self.metrics.count_lesson)
        self.metrics.watch(self.batcher)
        self.body_bytes = 0
        self.stopping = False

    def close(self) -> None:
        """Stop all threads."""
        self.batcher.close()
        self.detector.close()
        self.teacher.close()

    @property
    def is_ready(self) -> bool:
        """Whether all models are loaded and the server is not shutting down."""
        return self.models.ready and not self.stopping


async def service_of(request: Request) -> Service:
    """Return the shared state. It is a coroutine because FastAPI runs plain functions on extra threads."""
    service: Service = request.app.state.service
    return service


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of an endpoint, for OpenAPI."""
    content = {MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{ProblemBody.__name__}"}}}
    return {status: {"description": _MEANING[status], "content": content} for status in (401, 500, *statuses)}


_MEANING = {
    400: "The request is not valid.",
    401: "A token is missing or wrong.",
    403: "The server does not allow this.",
    404: "There is no such model.",
    408: "The request took too long to arrive.",
    409: "The model was changed meanwhile.",
    413: "The request is too large.",
    415: "The body has the wrong type.",
    429: "Too many documents are waiting.",
    500: "The server failed.",
    503: "The server cannot answer now.",
}
# What a request for predictions, or to learn, may get.
PREDICTION_PROBLEMS = problems(400, 404, 408, 413, 415, 429, 503)
LEARNING_PROBLEMS = problems(400, 403, 404, 408, 409, 413, 415, 429, 503)
