"""The Dockerfile, the systemd unit, the nginx example and the pages about serving agree with the service."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lightdxml.serve.service import ServeOptions, Service
from tests.support.commands import run

ROOT = Path(__file__).parents[2]
FILES = (
    "Dockerfile",
    "deploy/lightdxml.service",
    "deploy/nginx.conf",
    "docs/how-to/serving.md",
    "docs/reference/http-api.md",
)
DOCKERFILE, UNIT, NGINX, PAGE, API = ((ROOT / name).read_text("utf-8") for name in FILES)


def options(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def value(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    assert found is not None, pattern
    return int(found[1])


@pytest.fixture(scope="module")
def known() -> set[str]:
    """The options of `lightdxml serve`."""
    return options(run("serve", "--help"))


def test_the_dockerfile_has_no_lint() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed")
    result = subprocess.run([hadolint, ROOT / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


def test_commands_use_options_that_exist(known: set[str]) -> None:
    in_image = [json.loads(line) for line in re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", DOCKERFILE, re.MULTILINE)]
    in_unit = re.findall(r"^ExecStart=.*$", UNIT, re.MULTILINE)
    assert in_image[0] == ["lightdxml", "serve"]
    for command in (" ".join(in_image[1]), *in_unit, NGINX):
        assert options(command)
        assert options(command) <= known, command


def test_the_page_lists_all_options(known: set[str]) -> None:
    table = PAGE.partition("## Options")[2].partition("## ")[0]
    assert options(table) - {"--cpus"} == known - {"--help"}


def test_the_page_lists_all_metrics() -> None:
    table = API.partition("## Metrics")[2]
    named = {name.removesuffix("_total") for name in re.findall(r"`(lightdxml_\w+)`", table)}
    service = Service({}, ServeOptions())
    service.batcher.close()
    assert named == {one.name for one in service.metrics.registry.collect() if one.name.startswith("lightdxml_")}


def test_limits_fit_together() -> None:
    defaults = ServeOptions()
    assert value(r"^EXPOSE (\d+)$", DOCKERFILE) == value(r"server 127\.0\.0\.1:(\d+);", NGINX) == 5000
    # Running requests finish before the service is killed, and errors of the service reach the client.
    assert value(r"^TimeoutStopSec=(\d+)$", UNIT) > defaults.timeout
    assert value(r"proxy_read_timeout (\d+)s;", NGINX) > defaults.timeout
    assert value(r"client_max_body_size (\d+)m;", NGINX) * 2**20 > defaults.max_body
