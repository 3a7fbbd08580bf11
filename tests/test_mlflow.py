"""The example of MLflow, where that is installed: it is too large for the development environment."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "mlflow_pyfunc.py"


@pytest.mark.skipif(find_spec("mlflow") is None, reason="needs mlflow-skinny and pandas")
def test_mlflow_packs_a_model_without_pickle(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("[[{'label': 'cat', 'score': ")
    files = {path.name for path in (tmp_path / "pets-mlflow").rglob("*")}
    assert {"MLmodel", "mlflow_pyfunc.py", "arrays.safetensors"} <= files
    assert not [name for name in files if name.endswith((".pkl", ".pickle", ".joblib"))]
