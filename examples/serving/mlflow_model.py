"""A rule as an MLflow model (pyfunc): probabilities in, decisions out.

    pip install metricwise mlflow
    python mlflow_model.py rule.json my_model
    mlflow models predict -m my_model --input-path probabilities.csv --content-type csv --env-manager local

The rule file is an artifact of the model. Columns of a data frame are matched to the classes by name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mlflow.pyfunc

import metricwise as mw


class RuleModel(mlflow.pyfunc.PythonModel):
    """Predicts with the rule file that is logged with the model."""

    def load_context(self, context: Any) -> None:
        """Load the rule."""
        self.rule = mw.load_rule(context.artifacts["rule"])

    def predict(self, context, model_input, params=None):
        """Return decisions for rows of probabilities; without type hints, which MLflow would interpret as a schema."""
        return self.rule.predict(model_input)


def save_model(rule: str | Path, path: str | Path) -> None:
    """Write a rule file as an MLflow model."""
    mlflow.pyfunc.save_model(
        path=str(path),
        python_model=RuleModel(),
        artifacts={"rule": str(rule)},
        pip_requirements=[f"metricwise=={mw.__version__}"],
    )


if __name__ == "__main__":
    save_model(*sys.argv[1:3])
