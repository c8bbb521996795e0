"""Serve a rule over HTTP with FastAPI.

    pip install metricwise fastapi uvicorn
    METRICWISE_RULE=rule.json uvicorn fastapi_app:app

    curl -X POST localhost:8000/decide -H 'Content-Type: application/json' -d '{"probabilities": [[0.2, 0.8]]}'

The rule is loaded once. It is immutable, so all threads of the server share it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import metricwise as mw


class Rows(BaseModel):
    """Probabilities of rows, in a shape that ``rule.predict`` accepts."""

    probabilities: list[Any]


def create_app(path: str | Path) -> FastAPI:
    """Return the application for a rule file."""
    rule = mw.load_rule(path)
    app = FastAPI(title="Decisions", description=rule.describe())

    @app.get("/rule")
    def describe() -> dict[str, Any]:
        """Return the description and the metadata of the rule."""
        return {"description": rule.describe(), "facts": rule.metadata.to_dict()}

    @app.post("/decide")
    def decide(rows: Rows) -> dict[str, list[Any]]:
        """Return decisions for rows, or status 422 and an error message if the rows are invalid."""
        try:
            return {"decisions": rule.predict(rows.probabilities).tolist()}
        except (TypeError, ValueError) as error:
            raise HTTPException(status_code=422, detail=str(error)) from None

    return app


def __getattr__(name: str) -> FastAPI:
    """Create ``app`` on first access."""
    if name != "app":
        raise AttributeError(name)
    return create_app(os.environ["METRICWISE_RULE"])
