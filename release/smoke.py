"""A smoke test of an installed lightdxml: run it with the interpreter of the environment, from anywhere.

It needs nothing but the installed package, so that an environment holds only what a user would have.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from urllib.request import Request, urlopen

_TEXT = "draw random samples"
# The filter of `-W` takes the exact name of one module, this one takes all modules of the package.
_STRICT = (
    "import warnings\n"
    "for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):\n"
    "    warnings.filterwarnings('error', category=kind, module=r'lightdxml(\\.|$)')\n"
)
_VOCABULARY = """\
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
<urn:x:cat> a skos:Concept ; skos:prefLabel "cat"@en .
"""


def main() -> None:
    """Run the smoke test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", help="the version that must be installed")
    parser.add_argument("--extras", default="", help="the extras to try, separated by commas")
    parser.add_argument("--strict", action="store_true", help="deprecation warnings of lightdxml's code are errors")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lightdxml-smoke-", ignore_cleanup_errors=True) as folder:
        smoke = Smoke(Path(folder), strict=options.strict)
        smoke.core(options.version)
        for extra in filter(None, options.extras.split(",")):
            tried = _EXTRAS.get(extra)
            print(f"extra {extra}: {'nothing to try' if tried is None else 'tried'}", flush=True)
            if tried is not None:
                tried(smoke)


class Smoke:
    """Commands in a temporary folder.

    Parameters
    ----------
    folder
        Where the commands run.
    strict
        Whether deprecation warnings that lightdxml's code causes are errors.
    """

    def __init__(self, folder: Path, *, strict: bool) -> None:
        self.folder = folder
        self._prefix = _STRICT if strict else ""

    def python(self, code: str, *arguments: str, text: str | None = None) -> str:
        """Run Python code in a process of its own and return what it prints."""
        # `-I`: neither the current folder nor PYTHONPATH can stand in for the installed package.
        command = [sys.executable, "-I", "-X", "utf8", "-c", self._prefix + code, *arguments]
        done = subprocess.run(
            command, cwd=self.folder, input=text, capture_output=True, text=True, encoding="utf-8", check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments) or code} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def command(self, *arguments: str, text: str | None = None) -> str:
        """Run a command of `lightdxml` and return what it prints."""
        print(f"+ lightdxml {' '.join(arguments)}", flush=True)
        return self.python("from lightdxml.__main__ import main; main()", *arguments, text=text)

    def core(self, version: str | None) -> None:
        """Train, evaluate, predict and load."""
        shown = self.command("--version").split()[-1]
        if version not in (None, shown):
            raise SystemExit(f"lightdxml {shown} is installed, expected {version}")
        self.command("train", "see-also", "--preset", "fast", "--model", "model")
        print(self.command("evaluate", "model", "see-also"))
        found = self.command("predict", "model", "-", "-k", "1", text=f"{_TEXT}\n")
        if "random" not in found:
            raise SystemExit(f"{_TEXT!r} gets {found!r}")
        code = "import lightdxml as m; a, b = m.load('model'), m.Predictor.load('model'); "
        same = self.python(code + f"print(a.predict([{_TEXT!r}], k=3) == b.predict([{_TEXT!r}], k=3))")
        if same.strip() != "True":
            raise SystemExit("load and Predictor.load predict different labels")

    def report(self) -> None:
        """Write a report with figures."""
        self.command("report", "model", "--data", "see-also")

    def pipeline(self) -> None:
        """Clone the estimator as scikit-learn does."""
        self.python("import sklearn.base as s, lightdxml as m; assert s.is_classifier(s.clone(m.LightDXML('fast')))")

    def languages(self) -> None:
        """Train with base forms of words."""
        rows = "".join(f"{animal}s sleep,{animal}\n" for animal in ("cat", "dog", "cow") * 10)
        (self.folder / "pets.csv").write_text(f"text,labels\n{rows}", encoding="utf-8")
        # `vectors` runs it too.
        self.command("train", "pets.csv", "--model", "pets", "--preset", "fast", "--language", "en", "--force")

    def skos(self) -> None:
        """Read a vocabulary in SKOS."""
        (self.folder / "vocabulary.ttl").write_text(_VOCABULARY, encoding="utf-8")
        self.command("vocabulary", "info", "vocabulary.ttl")

    def parquet(self) -> None:
        """Write predictions as Parquet."""
        arguments = ("--to", "parquet", "--out", "found.parquet")
        self.command("predict", "model", "-", "-k", "1", *arguments, text=f"{_TEXT}\n")

    def serve(self) -> None:
        """Start the service, ask it and stop it."""
        code = self._prefix + "from lightdxml.__main__ import main; main()"
        service = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", code, "serve", "model", "--port", "0"],
            cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, encoding="utf-8",
        )  # fmt: skip
        assert service.stderr is not None
        try:
            notes = []
            for line in service.stderr:
                notes.append(line)
                if " at http://" in line:
                    break
            else:
                raise SystemExit("the service ends:\n" + "".join(notes))
            url = "http://" + notes[-1].split(" at http://")[1].split("/")[0]
            body = Request(f"{url}/v1/projects/model/suggest", b"text=draw+random+samples")
            with urlopen(body, timeout=30) as response:
                if not json.load(response)["results"]:
                    raise SystemExit("the service suggests nothing")
            with urlopen(url, timeout=30) as response:
                if b"<html" not in response.read():
                    raise SystemExit("the service has no page")
        finally:
            service.terminate()
            service.wait(30)
            service.stderr.close()

    def ray(self) -> None:
        """Import Ray's backend: a cluster would take longer than all the rest."""
        if find_spec("ray") is None:
            raise SystemExit("ray is not installed")
        self.python("import lightdxml.cluster")

    def vectors(self) -> None:
        """Train word vectors."""
        self.languages()
        self.command("train", "pets.csv", "--model", "vectors", "--word-vectors", "train", "--epochs", "1")

    def hub(self) -> None:
        """Write a model card, with huggingface_hub's metadata; without a hub there is no more to try."""
        self.command("card", "model", "--out", "README.md")

    def tune(self) -> None:
        """Run two trials, the second of which has sampled settings."""
        self.command("tune", "see-also", "--preset", "fast", "--trials", "2", "--no-prune")


_EXTRAS: dict[str, Callable[[Smoke], None]] = {
    "plots": Smoke.report, "sklearn": Smoke.pipeline, "languages": Smoke.languages, "skos": Smoke.skos,
    "parquet": Smoke.parquet, "serve": Smoke.serve, "ray": Smoke.ray, "vectors": Smoke.vectors,
    "hub": Smoke.hub, "tune": Smoke.tune,
}  # fmt: skip

if __name__ == "__main__":
    main()
