"""Imports go one way: what docs/explanation/architecture.md promises."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "lightdxml"
# What each package may import when it is loaded, apart from itself and the modules that all layers share.
SHARED = {"settings", "metrics", "newton", "propensity", "progress", "plotting", "__version__", "resources.system"}
MAY_IMPORT = {
    "kernels": set(),
    "data": {"kernels"},
    "executor": {"kernels"},
    "cluster": {"executor", "kernels"},
    "text": {"kernels", "data", "executor"},
    "index": {"kernels"},
    "persistence": set(),
    "views": {"kernels", "index", "persistence", "executor"},
    "model": {"kernels", "views", "persistence", "text", "data", "config"},
    "resources": {"kernels", "views", "config"},
    "training": {
        "kernels", "index", "views", "model", "persistence", "resources", "config", "validation", "executor",
    },
    "hub": {"metrics", "config", "model", "persistence", "learning"},
    "tuning": {
        "estimator", "training", "views", "model", "data", "config", "presets", "survey", "label_names", "validation",
        "text", "persistence",
    },
    "presets": {"config", "data", "text"},
    "learning": {
        "executor", "kernels", "views", "model", "training", "persistence", "text", "data", "validation",
        "label_columns", "label_names",
    },
}  # fmt: skip


def imported(path: Path) -> set[str]:
    """Return what a module imports when it is loaded; imports for type checkers and within functions do not count."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            own = node.module == "lightdxml"
            names = [f"lightdxml.{alias.name}" for alias in node.names] if own else [node.module]
        found |= set(names)
    return found


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_the_layers_below_it(package: str) -> None:
    for path in [SOURCE / f"{package}.py", *(SOURCE / package).rglob("*.py")]:
        if not path.exists():
            continue
        own = {name.removeprefix("lightdxml.") for name in imported(path) if name.startswith("lightdxml.")}
        assert {name.split(".")[0] for name in own - SHARED} <= {package, *SHARED, *MAY_IMPORT[package]}, path


def test_only_kernels_import_numba() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "kernels":
            assert not {name.split(".")[0] for name in imported(path)} & {"numba", "llvmlite"}, path


def test_only_plots_import_matplotlib() -> None:
    allowed = {SOURCE / "report", SOURCE / "experiments" / "bench"}
    for path in SOURCE.rglob("*.py"):
        if path.parent not in allowed and path.name != "plotting.py":
            assert "matplotlib" not in {name.split(".")[0] for name in imported(path)}, path


def test_only_the_service_imports_web_frameworks() -> None:
    libraries = {"fastapi", "starlette", "uvicorn", "pydantic", "prometheus_client", "httptools", "uvloop"}
    for path in SOURCE.rglob("*.py"):
        if not path.is_relative_to(SOURCE / "serve"):
            assert not {name.split(".")[0] for name in imported(path)} & libraries, path


def test_the_service_knows_neither_kernels_nor_training() -> None:
    for path in (SOURCE / "serve").rglob("*.py"):
        own = {name.split(".")[1] for name in imported(path) if name.startswith("lightdxml.")}
        assert not own & {"kernels", "training", "views", "index", "estimator", "cli", "experiments"}, path


def test_the_package_imports_what_is_asked_for_and_no_more() -> None:
    code = (
        "import sys, lightdxml; before = sorted(name for name in sys.modules if name.startswith('lightdxml'));"
        "lightdxml.Vocabulary; print(before, {'scipy', 'numba', 'rdflib', 'lightdxml.estimator'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "['lightdxml'] set()\n"


def test_only_the_cluster_package_imports_ray() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "cluster":
            assert "ray" not in {name.split(".")[0] for name in imported(path)}, path


def test_only_the_hub_package_imports_huggingface_hub_and_only_when_it_is_used() -> None:
    for path in SOURCE.rglob("*.py"):
        assert "huggingface_hub" not in {name.split(".")[0] for name in imported(path)}, path
        assert path.parent.name == "hub" or "import huggingface_hub" not in path.read_text("utf-8"), path
        assert path.parent.name == "hub" or "from huggingface_hub" not in path.read_text("utf-8"), path


def test_only_the_tuning_package_imports_optuna() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "tuning":
            assert not {name.split(".")[0] for name in imported(path)} & {"optuna", "sqlalchemy"}, path


def test_no_module_imports_a_library_of_frames_when_it_is_loaded() -> None:
    libraries = {"pandas", "polars", "pyarrow", "datasets"}
    for path in SOURCE.rglob("*.py"):
        assert not {name.split(".")[0] for name in imported(path)} & libraries, path


def test_predictors_and_readers_import_no_library_of_frames() -> None:
    """The estimator may: scikit-learn imports pandas where it is installed."""
    code = (
        "import sys, lightdxml.predictor, lightdxml.data.catalog, lightdxml.data.stream, lightdxml.cli.predict;"
        "print({'pandas', 'polars', 'pyarrow', 'datasets'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
