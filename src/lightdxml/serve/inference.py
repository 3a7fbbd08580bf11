"""The Open Inference Protocol (V2): health, metadata and inference."""

from __future__ import annotations

import math
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse, Response

from lightdxml import __version__
from lightdxml.serve.bodies import json_only
from lightdxml.serve.labels import uri_of
from lightdxml.serve.problems import RETRY_AFTER, Problem
from lightdxml.serve.queries import Document, SuggestOptions, suggest
from lightdxml.serve.schemas import InferRequest
from lightdxml.serve.service import PREDICTION_PROBLEMS, Service, problems, service_of

_service = Annotated[Service, Depends(service_of)]

router = APIRouter(prefix="/v2", tags=["Open Inference Protocol"])


@router.get("", responses=problems())
async def server_metadata() -> dict[str, Any]:
    """Return name and version of the server."""
    return {"name": "lightdxml", "version": __version__, "extensions": []}


@router.get("/health/live", responses=problems())
async def live() -> dict[str, bool]:
    """Return 200 while the process is alive."""
    return {"live": True}


@router.get("/health/ready", responses=problems(503))
async def ready(service: _service) -> dict[str, bool]:
    """Return 200 if all models are loaded and the server is not shutting down."""
    if not service.is_ready:
        raise Problem(503, "the models are still being loaded, or the server is stopping", RETRY_AFTER)
    return {"ready": True}


@router.get("/models/{model}", responses=problems(404, 503))
async def model_metadata(model: str, service: _service) -> dict[str, Any]:
    """Return the metadata of a model: its input is texts, its output label URIs and probabilities."""
    served = service.models[model]
    return {
        "name": served.id,
        "versions": [served.version],
        "platform": "lightdxml",
        "inputs": [{"name": "text", "datatype": "BYTES", "shape": [-1]}],
        "outputs": [
            {"name": "labels", "datatype": "BYTES", "shape": [-1, -1]},
            {"name": "scores", "datatype": "FP32", "shape": [-1, -1]},
        ],
    }


@router.get("/models/{model}/ready", responses=problems(404, 503))
async def model_ready(model: str, service: _service) -> Response:
    """Return 200 if a model is loaded."""
    return JSONResponse({"name": service.models[model].id, "ready": True})


@router.post(
    "/models/{model}/infer",
    responses=PREDICTION_PROBLEMS,
    dependencies=[Depends(json_only)],
)
async def infer(model: str, body: InferRequest, service: _service) -> dict[str, Any]:
    """Suggest labels: texts × k URIs and probabilities, padded with empty strings and 0."""
    served = service.models[model]
    texts, k = body.inputs[0], body.parameters.k
    if math.prod(texts.shape) != len(texts.data):
        raise Problem(400, f"shape {texts.shape} does not fit {len(texts.data)} texts")
    rows = await suggest(service.batcher, served, [Document(text) for text in texts.data], SuggestOptions(k))
    filled = [[*row, *[(-1, 0.0)] * (k - len(row))] for row in rows]
    shape = [len(rows), k]
    uris = ["" if j < 0 else uri_of(served.model, j) for row in filled for j, _ in row]
    scores = [round(score, 6) for row in filled for _, score in row]
    return {
        "model_name": served.id,
        "model_version": served.version,
        **({} if body.id is None else {"id": body.id}),
        "outputs": [
            {"name": "labels", "datatype": "BYTES", "shape": shape, "data": uris},
            {"name": "scores", "datatype": "FP32", "shape": shape, "data": scores},
        ],
    }
