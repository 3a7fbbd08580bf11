"""Endpoints to learn from documents, in Annif's API and in our own, and to see what was learned."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from lightdxml.serve.bodies import json_only
from lightdxml.serve.problems import Problem
from lightdxml.serve.queries import Document
from lightdxml.serve.schemas import AnnifLesson, History, Learned, Lesson
from lightdxml.serve.service import LEARNING_PROBLEMS, Service, problems, service_of
from lightdxml.serve.teacher import LabeledDocument

_service = Annotated[Service, Depends(service_of)]
_OURS = "lightdxml"


class _LearningRoute(APIRoute):
    """A route that refuses what the server does not allow before the framework reads the body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def checked(request: Request) -> Response:
            service = await service_of(request)
            (name,) = request.path_params.values()
            served = service.models[name]
            if not service.options.allow_learn:
                raise Problem(403, f"the server does not allow {served.id} to learn")
            service.teacher.check_room()
            return await handle(request)

        return checked


router = APIRouter()
_learning = APIRouter(route_class=_LearningRoute, dependencies=[Depends(json_only)], responses=LEARNING_PROBLEMS)


@_learning.post(
    "/v1/projects/{project_id}/learn",
    tags=["Annif"],
    status_code=204,
    response_class=Response,
    response_model=None,
)
async def learn_annif(project_id: str, body: AnnifLesson, service: _service) -> Response:
    """Learn from up to 32 documents with their correct labels, if the server allows it.

    Labels that the model does not have are new labels.
    """
    documents = [
        LabeledDocument(Document(one.text, one.title, one.document_id or ""), [subject.uri for subject in one.subjects])
        for one in body
    ]
    await service.teacher.teach(project_id, documents)
    return Response(status_code=204)


@_learning.post("/api/models/{model}/learn", tags=[_OURS])
async def learn(model: str, body: Lesson, service: _service) -> Learned:
    """Learn from up to 32 documents with their correct labels, if the server allows it.

    Labels that the model does not have are new labels. A document whose `id` the model knows replaces the earlier one,
    if the model keeps its training data.
    """
    documents = [
        LabeledDocument(Document(one.text, one.title, one.id), one.labels, one.rejected) for one in body.documents
    ]
    taught = await service.teacher.teach(model, documents)
    figures = taught.entry.figures
    return Learned.model_validate(
        {
            "model": model,
            "version": taught.served.version,
            "step": taught.entry.step,
            "labels": figures["labels"],
            "new_labels": figures["new_labels"],
            "seconds": round(taught.seconds, 3),
            "drift": asdict(taught.drift),
        }
    )


@router.get("/api/models/{model}/history", tags=[_OURS], responses=problems(400, 404, 429, 503))
async def show_history(model: str, service: _service, limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> History:
    """Return what a model has learned since training: the latest entries of its journal, and how far it has moved."""
    served = service.models[model]
    found = await service.teacher.history(served)
    entries = [
        {"step": one.step, "time": one.time, "kind": one.kind, "figures": one.figures} for one in found.entries[-limit:]
    ]
    return History.model_validate(
        {"model": model, "version": served.version, "entries": entries, "drift": asdict(found.drift)}
    )


router.include_router(_learning)
