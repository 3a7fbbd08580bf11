"""The service does what its own OpenAPI description says, for valid and for invalid requests."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from lightdxml.serve.app import openapi
from tests.support.serving import Running

_OPERATIONS = [(method.upper(), path) for path, methods in openapi()["paths"].items() for method in methods]


@schemathesis.serializer("application/jsonl")
def lines(context: schemathesis.SerializationContext, value: Any) -> bytes | None:
    return str(value).encode()


@pytest.fixture(scope="module")
def description(server: Running) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(server.url + "/v1/openapi.json")


def check(description: schemathesis.BaseSchema, method: str, path: str, mode: Any, **given_model: str) -> None:
    operation = description[path][method]

    @settings(max_examples=5, suppress_health_check=list(HealthCheck), deadline=None)
    @given(case=operation.as_strategy(generation_mode=mode))
    def validate(case: Any) -> None:
        case.path_parameters.update(
            {name: value for name, value in given_model.items() if name in case.path_parameters}
        )
        # Names of labels and languages are valid only if the model has them, which no description says.
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    validate()


@pytest.mark.parametrize(("method", "path"), _OPERATIONS)
def test_valid_requests_get_what_is_described(description: schemathesis.BaseSchema, method: str, path: str) -> None:
    check(description, method, path, GenerationMode.POSITIVE, project_id="pets", model="pets")


# Lines that are not valid get an answer each, with status 200.
_STRICT = [one for one in _OPERATIONS if one[0] == "POST" and not one[1].endswith("lines")]


@pytest.mark.parametrize(("method", "path"), _STRICT)
def test_invalid_requests_get_what_is_described(description: schemathesis.BaseSchema, method: str, path: str) -> None:
    check(description, method, path, GenerationMode.NEGATIVE, project_id="pets", model="pets")
