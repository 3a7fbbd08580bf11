"""Annif's REST API, for unmodified Annif clients."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import Response

from lightdxml import __version__
from lightdxml.serve.bodies import FORM, fraction, integer, json_only, media_type, parse_form
from lightdxml.serve.labels import check_language, label_json
from lightdxml.serve.problems import Problem
from lightdxml.serve.queries import MAX_LABELS, Document, Found, SuggestOptions, suggest
from lightdxml.serve.registry import ServedModel
from lightdxml.serve.schemas import (
    AnnifDocuments,
    ApiInfo,
    BatchResults,
    LanguageRequest,
    LanguageScores,
    Project,
    Projects,
    Results,
    Vocabs,
)
from lightdxml.serve.service import PREDICTION_PROBLEMS, Service, problems, service_of

_LIMIT = 10
_FORM_SCHEMA = {
    "requestBody": {
        "required": True,
        "content": {
            FORM: {
                "schema": {
                    "type": "object",
                    "required": ["text"],
                    "properties": {
                        "text": {"type": "string", "minLength": 1},
                        "limit": {"type": "integer", "minimum": 0, "default": _LIMIT},
                        "threshold": {"type": "number", "minimum": 0, "maximum": 1, "default": 0},
                        "language": {"type": "string", "description": "The language of labels; empty for the default."},
                        "metadata_title": {"type": "string", "description": "The title of the document."},
                    },
                }
            }
        },
    }
}
_service = Annotated[Service, Depends(service_of)]

router = APIRouter(prefix="/v1", tags=["Annif"])


@router.get("/", responses=problems())
async def show_info() -> ApiInfo:
    """Return title and version of the API."""
    return ApiInfo(title="lightdxml, with the REST API of Annif", version=__version__)


@router.get("/projects", responses=problems(503))
async def list_projects(service: _service) -> Projects:
    """List all models."""
    return Projects(projects=[_project(served) for served in service.models])


@router.get("/projects/{project_id}", responses=problems(404, 503))
async def show_project(project_id: str, service: _service) -> Project:
    """Describe a model."""
    return _project(service.models[project_id])


@router.get("/vocabs", responses=problems(503))
async def list_vocabs(service: _service) -> Vocabs:
    """List the vocabularies, one per model."""
    return Vocabs.model_validate({"vocabs": [_vocab(served) for served in service.models]})


@router.post(
    "/projects/{project_id}/suggest",
    response_model=Results,
    responses=PREDICTION_PROBLEMS,
    openapi_extra=_FORM_SCHEMA,
)
async def suggest_labels(project_id: str, request: Request, service: _service) -> Response:
    """Suggest labels for a text."""
    return _json(await suggested(service, project_id, media_type(request), await request.body()))


async def suggested(service: Service, project_id: str, kind: str, body: bytes) -> bytes:
    """Return the response body for a form."""
    form = parse_form(kind, body)
    served = service.models[project_id]
    if not form.get("text", "").strip():
        raise Problem(400, "text is missing or empty: send a text")
    language = check_language(served, form.get("language"))
    options = SuggestOptions(integer(form, "limit", _LIMIT, MAX_LABELS), fraction(form, "threshold", 0.0))
    document = Document(form["text"], form.get("metadata_title", ""))
    (found,) = await suggest(service.batcher, served, [document], options)
    return f'{{"results": {_results(served, language, found)}}}'.encode()


@router.post(
    "/projects/{project_id}/suggest-batch",
    response_model=list[BatchResults],
    responses=PREDICTION_PROBLEMS,
    dependencies=[Depends(json_only)],
)
async def suggest_batch(
    project_id: str,
    body: AnnifDocuments,
    service: _service,
    limit: Annotated[int, Query(ge=0)] = _LIMIT,
    threshold: Annotated[float, Query(ge=0, le=1)] = 0.0,
    language: str | None = None,
) -> Response:
    """Suggest labels for up to 32 texts."""
    served = service.models[project_id]
    shown = check_language(served, language)
    documents = [Document(one.text, one.title) for one in body.documents]
    rows = await suggest(service.batcher, served, documents, SuggestOptions(min(limit, MAX_LABELS), threshold))
    answers = [
        f'{{"results": {_results(served, shown, found)}, "document_id": {json.dumps(one.document_id)}}}'
        for one, found in zip(body.documents, rows, strict=True)
    ]
    return _json(f"[{', '.join(answers)}]".encode())


@router.post(
    "/detect-language",
    response_model=LanguageScores,
    responses=problems(400, 408, 413, 415, 429, 503),
    dependencies=[Depends(json_only)],
)
async def detect_language(body: LanguageRequest, service: _service) -> dict[str, Any]:
    """Detect the language of a text among some candidates."""
    from lightdxml.text.languages import language_shares

    try:
        (shares,) = await service.detector.run(
            object(), lambda texts: [language_shares(text, body.languages) for text in texts], [body.text]
        )
    except ImportError as error:
        raise Problem(503, str(error)) from error
    except ValueError as error:
        raise Problem(400, str(error)) from error
    return {"results": [{"language": language, "score": share} for language, share in shares]}


def _project(served: ServedModel) -> Project:
    vocab = _vocab(served)
    return Project.model_validate(
        {
            "project_id": served.id,
            "name": served.id,
            "language": served.language,
            "backend": {"backend_id": "lightdxml"},
            "vocab": vocab,
            "vocab_language": served.language,
            "is_trained": True,
            "modification_time": served.modified.isoformat(),
        }
    )


def _vocab(served: ServedModel) -> dict[str, Any]:
    return {"vocab_id": served.id, "languages": served.languages, "size": served.model.n_labels, "loaded": True}


def _results(served: ServedModel, language: str, found: Found) -> str:
    return f"[{', '.join(label_json(served, language, j, score) for j, score in found)}]"


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")
