"""The lightdxml API: all prediction options, explanations, and JSON Lines streams."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lightdxml.serve.batching import BATCH
from lightdxml.serve.bodies import LINES, json_only, media_type, parse_line, read_lines
from lightdxml.serve.labels import check_language, described, label_json
from lightdxml.serve.problems import Problem
from lightdxml.serve.queries import MAX_LABELS, Document, SuggestOptions, explain, suggest
from lightdxml.serve.registry import ServedModel
from lightdxml.serve.schemas import (
    ExplainRequest,
    Explanations,
    ModelInfo,
    Models,
    Suggested,
    SuggestRequest,
)
from lightdxml.serve.service import PREDICTION_PROBLEMS, Service, problems, service_of

_service = Annotated[Service, Depends(service_of)]
_LINES_SCHEMA = {
    "requestBody": {
        "required": True,
        "content": {LINES[0]: {"schema": {"type": "string", "example": '{"id": "1", "text": "a purring cat"}\n'}}},
    }
}

router = APIRouter(prefix="/api", tags=["lightdxml"])


@router.get("/models", responses=problems(503))
async def list_models(service: _service) -> Models:
    """List all models."""
    return Models(models=[_info(served, service) for served in service.models])


@router.get("/models/{model}", responses=problems(404, 503))
async def show_model(model: str, service: _service) -> ModelInfo:
    """Describe a model."""
    return _info(service.models[model], service)


@router.post(
    "/models/{model}/suggest",
    response_model=Suggested,
    responses=PREDICTION_PROBLEMS,
    dependencies=[Depends(json_only)],
)
async def suggest_labels(model: str, body: SuggestRequest, service: _service) -> Response:
    """Suggest labels for a document."""
    served = service.models[model]
    language = check_language(served, body.language)
    (found,) = await suggest(service.batcher, served, [body.document()], body.options())
    labels = [described(served, language, j, score) for j, score in found]
    return _response(served, labels=labels)


@router.post(
    "/models/{model}/explain",
    response_model=Explanations,
    responses=PREDICTION_PROBLEMS,
    dependencies=[Depends(json_only)],
)
async def explain_labels(model: str, body: ExplainRequest, service: _service) -> Response:
    """Explain the suggested labels: how much each word adds to the probability."""
    served = service.models[model]
    language = check_language(served, body.language)
    found = await explain(service.batcher, served, body.document(), body.options())
    labels = [
        {
            **described(served, language, j, one.score),
            "base": one.base,
            "name_match": one.name_match,
            "words": [{"word": str(word), "adds": adds} for word, adds in one.parts],
        }
        for j, one in found.labels
    ]
    return _response(served, labels=labels, positions=found.positions)


@router.post(
    "/models/{model}/suggest-lines",
    response_class=Response,
    responses={**problems(400, 404, 415, 503), 200: {"description": "A line per document.", "content": {LINES[0]: {}}}},
    openapi_extra=_LINES_SCHEMA,
)
async def suggest_lines(
    model: str,
    request: Request,
    service: _service,
    k: Annotated[int, Query(ge=1, le=MAX_LABELS)] = 10,
    threshold: Annotated[float, Query(ge=0, le=1)] = 0.0,
    tail: Annotated[float, Query(ge=0, le=1)] = 0.0,
    language: str | None = None,
) -> Response:
    """Suggest labels for any number of documents: JSON Lines in, JSON Lines out, in the same order.

    Results are sent while documents still arrive, so read the response while you send. A line that is not valid gets a
    result with `error`, and the stream continues.
    """
    served = service.models[model]
    shown = check_language(served, language)
    if media_type(request) not in LINES:
        raise Problem(415, f"the body has the type {media_type(request)[:60]!r}: send {LINES[0]}")
    options = SuggestOptions(k, threshold, tail=tail)
    return _Lines(_lines(request, service, served, options, shown))


class _Lines(Response):
    """A streaming response that leaves the request body to its generator.

    Starlette's `StreamingResponse` reads from the request to detect disconnects, and would swallow documents.
    """

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        super().__init__(media_type=LINES[0])
        del self.headers["content-length"]
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Read before responding: some clients wait for `100 Continue` before they send a body.
        chunk = await anext(self._lines, None)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        while chunk is not None:
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            chunk = await anext(self._lines, None)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _lines(
    request: Request, service: Service, served: ServedModel, options: SuggestOptions, language: str
) -> AsyncIterator[bytes]:
    limits = service.options
    try:
        async for lines in read_lines(request, limits.max_body, limits.timeout):
            for start in range(0, len(lines), BATCH):
                yield await _results(service, served, options, language, lines[start : start + BATCH])
    except ClientDisconnect:
        return
    except Problem as problem:
        # Too late for a status code: the response has started.
        yield json.dumps({"error": problem.detail}).encode() + b"\n"


async def _results(
    service: Service, served: ServedModel, options: SuggestOptions, language: str, lines: Sequence[bytes]
) -> bytes:
    """Return the result lines for some input lines."""
    documents: list[Document] = []
    heads: list[tuple[dict[str, Any], int | None]] = []
    for line in lines:
        try:
            content = parse_line(line)
        except ValueError as error:
            heads.append(({"error": str(error)}, None))
            continue
        name = content.get("id")
        head = {} if name is None else {"id": name}
        if not isinstance(content.get("text"), str):
            heads.append(({**head, "error": 'the line is not an object with a "text"'}, None))
            continue
        heads.append((head, len(documents)))
        title = content.get("title")
        documents.append(
            Document(content["text"], title if isinstance(title, str) else "", "" if name is None else str(name))
        )
    # A running stream waits for room in the queue instead of failing with 429.
    await service.batcher.room(len(documents))
    rows = await suggest(service.batcher, served, documents, options)
    answers = []
    for head, place in heads:
        start = json.dumps(head)[:-1]
        if place is None:
            answers.append(f"{start}}}\n")
            continue
        labels = ", ".join(label_json(served, language, j, score) for j, score in rows[place])
        answers.append(f'{start}{", " if head else ""}"labels": [{labels}]}}\n')
    return "".join(answers).encode()


def _response(served: ServedModel, **content: Any) -> Response:
    return Response(
        json.dumps({"model": served.id, "version": served.version, **content}), media_type="application/json"
    )


def _info(served: ServedModel, service: Service) -> ModelInfo:
    model = served.model
    vocabulary = model.vocabulary
    return ModelInfo(
        id=served.id,
        version=served.version,
        modified=served.modified.isoformat(),
        labels=model.n_labels,
        documents=model.n_documents,
        features=model.n_features,
        language=served.language,
        languages=served.languages,
        has_vocabulary=vocabulary is not None,
        has_hierarchy=vocabulary is not None and vocabulary.has_hierarchy,
        can_learn=service.options.allow_learn,
        views=list(model.views),
        metrics=model.metrics,
        validation_documents=model.n_validation,
        lightdxml=str(served.manifest["lightdxml"]),
    )
