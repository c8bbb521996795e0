"""A rule behind HTTP, with FastAPI.

    pip install metricwise fastapi uvicorn
    METRICWISE_RULE=rule.json uvicorn fastapi_app:app

    curl -X POST localhost:8000/decide -H 'Content-Type: application/json' -d '{"probabilities": [[0.2, 0.8]]}'

The rule is read once. It is never changed by what it decides, so that all threads of the server share it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import metricwise as mw


class Rows(BaseModel):
    """Probabilities of some rows, in the shape that ``rule.predict`` takes."""

    probabilities: list[Any]


def create_app(path: str | Path) -> FastAPI:
    """Return the application that decides by a rule file."""
    rule = mw.load_rule(path)
    app = FastAPI(title="Decisions", description=rule.describe())

    @app.get("/rule")
    def describe() -> dict[str, Any]:
        """Say what the rule does, and where it comes from."""
        return {"description": rule.describe(), "facts": rule.metadata.to_dict()}

    @app.post("/decide")
    def decide(rows: Rows) -> dict[str, list[Any]]:
        """Decide about some rows; 422 and a sentence where they are no probabilities for this rule."""
        try:
            return {"decisions": rule.predict(rows.probabilities).tolist()}
        except (TypeError, ValueError) as error:
            raise HTTPException(status_code=422, detail=str(error)) from None

    return app


def __getattr__(name: str) -> FastAPI:
    """Make ``app`` when the server asks for it."""
    if name != "app":
        raise AttributeError(name)
    return create_app(os.environ["METRICWISE_RULE"])
