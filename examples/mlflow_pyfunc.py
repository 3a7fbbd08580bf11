"""A model in MLflow, as code and arrays, without pickle: `python examples/mlflow_pyfunc.py [MODEL [OUT]]`.

It packs a model folder with this file: MLflow calls this "models from code". Without an argument, it trains a small
model first. `mlflow.pyfunc.log_model` takes the same arguments as `save_model`.
"""

from __future__ import annotations

import sys
from typing import Any

import mlflow
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext

from lightdxml import LightDXML, Predictor


class Labels(PythonModel):  # type: ignore[misc, unused-ignore]
    """The k best labels of each text, and their probabilities."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the model."""
        self.predictor = Predictor.load(context.artifacts["model"])

    def predict(
        self, context: PythonModelContext, model_input: list[str], params: dict[str, Any] | None = None
    ) -> list[list[dict[str, Any]]]:
        """Return labels and probabilities; `params` are options of `Predictor.rank`."""
        model, ranked = self.predictor.model, self.predictor.rank(model_input, **(params or {}))
        rows = (zip(labels.tolist(), scores.tolist(), strict=True) for labels, scores in zip(*ranked, strict=True))
        return [[{"label": model.label(j).name, "score": score} for j, score in row if j >= 0] for row in rows]


set_model(Labels())

if __name__ == "__main__":
    folder, out = [*sys.argv[1:], *["pets-model", "pets-mlflow"][len(sys.argv) - 1 :]]
    if len(sys.argv) == 1:
        LightDXML().fit(["a purring cat", "a barking dog"] * 10, [["cat"], ["dog"]] * 10).save(folder)
    mlflow.pyfunc.save_model(
        out,
        python_model=__file__,
        artifacts={"model": folder},
        input_example=(["the cat purrs"], {"k": 5}),
        pip_requirements=["lightdxml"],
    )
    print(mlflow.pyfunc.load_model(out).predict(["the cat purrs"], params={"k": 1}))
