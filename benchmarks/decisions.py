"""Probabilities and decisions: `python benchmarks/decisions.py [SET ...] [--data FOLDER] [--logistic SET]`.

Prints, on the test part of each data set: the expected calibration error (ECE) of the first five labels, with the
log-odds of the blend as they are and calibrated; the micro-F1 of labels above the automatic threshold; precision and
recall at the threshold for a precision of 90%. `--logistic` adds, for one data set, the micro-F1 of scikit-learn's
one-vs-rest logistic regression on the same features, with C from 0.1 to 100 chosen by three-fold cross-validation on
the training part. FOLDER holds one folder per data set. Each set has a process of its own.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measure import alone

from lightdxml.cli.decisions import Least
from lightdxml.cli.measure import DEEP, inputs_of, match
from lightdxml.data import load
from lightdxml.estimator import LightDXML
from lightdxml.metrics import decision_measures, expected_calibration_error, first_labels
from lightdxml.model.calibration import Calibration
from lightdxml.predictor import Predictor
from lightdxml.text import tfidf

SETS = (
    "bibtex", "delicious", "citeulike-t", "eurlex57k", "wordnet", "debian-relations", "see-also", "kirjastonhoitaja",
)  # fmt: skip
COSTS = (0.1, 1.0, 10.0, 100.0)


def measured(name: str, folder: Path, with_logistic: bool) -> list[str]:
    """Return the cells of a row of the table."""
    data = load(folder / name if (folder / name).exists() else name)
    train, dev = data.train, data.dev
    held = None if dev is None else (inputs_of(dev), dev.Y, dev.ids)
    given: dict[str, Any] = {"label_names": data.label_names, "feature_names": data.feature_names, "ids": train.ids}
    estimator = LightDXML().fit(inputs_of(train), train.Y, dev=held, **given)
    model, found = estimator.model_, match(data, estimator.model_)
    errors = []
    for calibration in (Calibration(), model.calibration):
        ranked = Predictor(replace(model, calibration=calibration)).rank(found.inputs, DEEP, ids=found.split.ids)
        errors.append(expected_calibration_error(*first_labels(found.Y, *ranked, 5, found.ignore)))
    chosen = {}
    for objective in ("auto", "precision=0.9"):
        least = Least.of(model, objective, False, found.Y.shape[1])
        assert least is not None
        chosen[objective] = decision_measures(found.Y, *ranked, least.of_label, ignore=found.ignore)
    precise = chosen["precision=0.9"]
    cells = [f"{model.n_validation:,}", *(f"{error:.3f}" for error in errors), f"{chosen['auto']['micro-F1']:.2f}"]
    cells += [f"{precise['micro-P']:.1f} / {precise['micro-R']:.1f}"]
    return [*cells, logistic(model, data, found.Y) if with_logistic else "–"]


def logistic(model: Any, data: Any, Y_test: Any) -> str:
    """Return the micro-F1 of logistic regression on the features of a model, and C."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.model_selection import KFold
    from sklearn.multiclass import OneVsRestClassifier

    def features(split: Any) -> Any:
        return split.X if model.vectorizer is None else tfidf.transform(model.vectorizer, split.texts)

    def fitted(cost: float, X: Any, Y: Any) -> Any:
        return OneVsRestClassifier(LogisticRegression(C=cost, solver="liblinear"), n_jobs=2).fit(X, Y)

    X, Y = features(data.train), data.train.Y
    known = np.flatnonzero(np.asarray(Y.sum(axis=0)).ravel() > 0)
    Y = (Y[:, known] > 0).astype(int)
    found = []
    for cost in COSTS:
        scores = [
            f1_score(Y[other], fitted(cost, X[some], Y[some]).predict(X[other]), average="micro", zero_division=0)
            for some, other in KFold(3, shuffle=True, random_state=0).split(X)
        ]
        found.append((float(np.mean(scores)), cost))
    best = max(found)[1]
    predicted = fitted(best, X, Y).predict(features(data.test))
    true = (Y_test[:, known] > 0).astype(int)
    right = int(true.multiply(predicted).sum())
    # Labels without training documents are missed.
    return f"{200 * right / (predicted.nnz + Y_test.nnz):.2f} (C = {best:g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LIGHTDXML_DATA", "../shared/data")))
    parser.add_argument("--logistic", metavar="SET")
    given = parser.parse_args()
    if given.logistic is not None and given.logistic not in given.sets:
        parser.error(f"--logistic {given.logistic} is not one of the data sets")
    columns = ("Data set", "Validation documents", "ECE before", "ECE", "micro-F1, auto", "P / R at `precision=0.9`")
    print(f"| {' | '.join((*columns, 'micro-F1, logistic regression'))} |")
    print("|---|" + "--:|" * len(columns), flush=True)
    for name in given.sets:
        print(f"| {name} | {' | '.join(alone(measured, name, given.data, name == given.logistic))} |", flush=True)


if __name__ == "__main__":
    main()
