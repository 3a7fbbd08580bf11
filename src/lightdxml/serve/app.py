"""The ASGI application: routes and middleware."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from lightdxml import __version__
from lightdxml.serve import annif, api, inference, learn
from lightdxml.serve.fast_path import FastPath
from lightdxml.serve.middleware import Limits, Observer
from lightdxml.serve.problems import Problem, on_disconnect, on_failure, on_http_error, on_invalid, on_problem
from lightdxml.serve.schemas import ProblemBody
from lightdxml.serve.service import ServeOptions, Service

_PAGES = files("lightdxml.serve") / "page"
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def create_app(folders: Mapping[str, Path], options: ServeOptions | None = None) -> tuple[ASGIApp, Service]:
    """Return an ASGI application that serves models, and its shared state.

    Parameters
    ----------
    folders
        Model folders by id. `service.models.load()` loads them.
    options
        Options of the service.

    Examples
    --------
    >>> app, service = create_app({"cats": Path("models/cats")})
    >>> service.is_ready
    False
    """
    service = Service(folders, options or ServeOptions())
    app = _framework(service)
    limited = Limits(app, service)
    origins = service.options.origins
    shared = CORSMiddleware(limited, allow_origins=origins, allow_methods=["*"], allow_headers=["*"])
    return FastPath(Observer(shared, service), limited), service


def openapi() -> dict[str, Any]:
    """Return the OpenAPI description.

    >>> "/v1/projects" in openapi()["paths"]
    True
    """
    return _described(_framework(Service({}, ServeOptions())))


def _framework(service: Service) -> FastAPI:
    """Return the FastAPI application with all routes."""
    app = FastAPI(
        title="lightdxml",
        version=__version__,
        description="Suggests the few right labels of a document out of very many.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    for module in (annif, api, learn, inference):
        app.include_router(module.router)
    _add_pages(app, service)
    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(ClientDisconnect, on_disconnect)
    app.add_exception_handler(Exception, on_failure)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _add_pages(app: FastAPI, service: Service) -> None:
    """Add the pages and the metrics endpoint."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return _file("index.html")

    @app.get("/v1/ui/", include_in_schema=False)
    async def interface() -> Response:
        return _file("api.html")

    @app.get("/v1/ui", include_in_schema=False)
    async def interface_without_slash() -> Response:
        return RedirectResponse("ui/")

    @app.get("/v1", include_in_schema=False)
    async def annif_without_slash() -> Response:
        return RedirectResponse("v1/")

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str) -> Response:
        return _file(name)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _file(name: str) -> Response:
    """Return a file of the page, by its exact name."""
    if name not in _files():
        raise HTTPException(404)
    return Response(_files()[name], media_type=f"{_TYPES[Path(name).suffix]}; charset=utf-8")


@lru_cache(maxsize=1)
def _files() -> dict[str, bytes]:
    """Return all files of the page."""
    return {path.name: path.read_bytes() for path in _PAGES.iterdir() if Path(path.name).suffix in _TYPES}


def _described(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, with our error responses instead of FastAPI's."""
    if app.openapi_schema is None:
        content = FastAPI.openapi(app)
        schemas = content["components"]["schemas"]
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        schemas[ProblemBody.__name__] = ProblemBody.model_json_schema()
        for operations in content["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
    return app.openapi_schema or {}
