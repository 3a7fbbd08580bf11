"""Annif itself asks the service, through its `http` backend. Annif has an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.serving import Running

ANNIF = os.environ.get("LIGHTDXML_ANNIF") or shutil.which("annif")
PROJECT = """[animals]
name=animals
language=en
backend=http
vocab=animals
endpoint={url}/v1/projects/animals/suggest
"""


@pytest.mark.skipif(ANNIF is None, reason="Annif is not installed: set LIGHTDXML_ANNIF to its command")
def test_annif_suggests_what_the_service_does(server: Running, tmp_path: Path) -> None:
    (tmp_path / "projects.cfg").write_text(PROJECT.format(url=server.url))
    lines = ["<urn:animal>\tanimal", "<urn:cat>\tcat\t50", "<urn:dog>\tdog\t51", "<urn:cow>\tcow\t52"]
    (tmp_path / "animals.tsv").write_text("\n".join(lines))

    def annif(*arguments: str, text: str = "") -> str:
        command = [str(ANNIF), *arguments]
        found = subprocess.run(command, cwd=tmp_path, input=text, capture_output=True, text=True, check=True)
        return found.stdout

    annif("load-vocab", "--language", "en", "animals", "animals.tsv")
    suggested = annif("suggest", "animals", "--limit", "1", text="the cat purrs")
    found = server.post("/v1/projects/animals/suggest", data={"text": "the cat purrs", "limit": 1}).json()["results"]
    assert suggested.split("\t")[:2] == ["<urn:cat>", "cat"]
    assert float(suggested.split("\t")[-1]) == pytest.approx(found[0]["score"], abs=1e-3)
    assert "True" in annif("show-project", "animals")
