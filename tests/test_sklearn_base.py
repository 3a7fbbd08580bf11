"""Without scikit-learn, an estimator has what we use of its base class; without matplotlib, commands say so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lightdxml import LightDXML
from lightdxml.sklearn_base import _NotFittedError, _Parameters

WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import importlib.util as util
known = util.find_spec
util.find_spec = lambda name, package=None: None if name in {names!r} else known(name, package)
"""


def run_without(names: set[str], code: str) -> str:
    """Return what code prints in a process without these packages."""
    command = [sys.executable, "-c", WITHOUT.format(names=names) + code]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout + found.stderr


class Tiny(_Parameters):
    def __init__(self, dim: int = 8, name: str = "a") -> None:
        self.dim, self.name = dim, name


def test_parameters_are_read_changed_and_shown() -> None:
    tiny = Tiny(dim=4)
    assert tiny.get_params() == {"dim": 4, "name": "a"}
    assert tiny.set_params(name="b") is tiny
    assert repr(tiny) == "Tiny(dim=4, name='b')"
    with pytest.raises(ValueError, match="Tiny has no parameter 'k': choose from dim, name"):
        tiny.set_params(k=1)
    assert issubclass(_NotFittedError, ValueError | AttributeError)


def test_the_estimator_works_without_scikit_learn(tmp_path: Path) -> None:
    texts, labels = ["red rose", "white wine"] * 10, [["rose"], ["wine"]] * 10
    code = f"""
from lightdxml import LightDXML, load
texts, labels = ["red rose", "white wine"] * 10, [["rose"], ["wine"]] * 10
LightDXML(dim=8, epochs=2).fit(texts, labels).save({str(tmp_path / "model")!r})
print(load({str(tmp_path / "model")!r}).predict("a rose", k=1), "sklearn" in sys.modules)
"""
    assert run_without({"sklearn"}, code) == "['rose'] False\n"
    assert LightDXML(dim=8, epochs=2).fit(texts, labels).predict("a rose", k=1) == ["rose"]


@pytest.mark.parametrize("command", [["report", "m", "--data", "d"], ["bench", "--data", "d", "--out", "o"]])
def test_commands_that_plot_say_what_to_install(command: list[str]) -> None:
    code = f"sys.argv[1:] = {command!r}\nfrom lightdxml.__main__ import main\nmain()"
    assert run_without({"matplotlib"}, code) == 'error: plots need matplotlib: pip install "lightdxml[plots]"\n'


@pytest.mark.parametrize("rules", [[], ["--exclude", "wine"]])
def test_predict_imports_only_what_it_needs(tmp_path: Path, rules: list[str]) -> None:
    texts, labels = ["red rose", "white wine"] * 10, [["rose"], ["wine"]] * 10
    LightDXML(dim=8, epochs=2).fit(texts, labels).save(tmp_path / "model")
    (tmp_path / "text.txt").write_text("a rose\n")
    code = f"""
import sys
sys.argv[1:] = ["predict", {str(tmp_path / "model")!r}, {str(tmp_path / "text.txt")!r}, "-k", "1", *{rules!r}]
from lightdxml.__main__ import main
try:
    main()
finally:
    others = {{"scipy.sparse", "sklearn", "matplotlib", "lightdxml.cli.train", "lightdxml.cli.bench"}}
    others |= {{"pandas", "polars", "pyarrow", "datasets"}}
    print(sorted(others & set(sys.modules)))
"""
    # Compiling imports SciPy. The first process leaves compiled code for the second one.
    for _ in range(2):
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    predicted, imported = found.stdout.splitlines()
    assert predicted.startswith("rose ")
    assert imported == "[]"
