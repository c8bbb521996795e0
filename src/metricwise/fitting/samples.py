"""Rows of a problem in memory, with exact copies of rows taken as one cluster: what rules are judged on."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from ..oracles.problem import InMemory, Problem
from ..rules.calibration_fit import LINK_ROWS

__all__ = ["MAX_ROWS", "judging_rows", "with_copies_clustered"]

P = TypeVar("P", bound=Problem)

MAX_ROWS = LINK_ROWS  # beyond it a sample serves, with all rows of rare classes


def judging_rows(problem: Problem) -> tuple[InMemory, bool]:
    """Return rows of a problem in memory, copies clustered, and whether they are all of its rows."""
    rows = problem.sample(MAX_ROWS, 0)
    return with_copies_clustered(rows), rows.n_rows == problem.n_rows


def with_copies_clustered(problem: P) -> P:
    """Return the problem with exact copies of rows in one cluster, if a sample of the rows has copies."""
    rows = problem.sample(MAX_ROWS, 0).source.rows
    if rows.cluster is not None or rows.repeats is not None or rows.copies() is None:
        return problem
    return replace(problem, source=problem.source.map(lambda part: replace(part, cluster=part.content_codes())))
