"""Rules at random and of every kind, in Python, ONNX, DuckDB and SQLite: the decisions of `predict`, ties included."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from fuzz.by_hypothesis import drawer
from fuzz.verdicts import Verdict
from laws import exported
from laws.exported import scores_by_numpy
from worlds.rules import rules_and_logits, rules_and_rows

MAX_MARGIN = 1e-9  # between scores that libraries may round to either side, behind a link
SYSTEMS = {
    "python": exported.decide_in_python,
    "onnx": exported.decide_in_onnx,
    "duckdb": exported.decide_in_duckdb,
    "sqlite": exported.decide_in_sqlite,
}
SINGLE = ("python", "onnx", "duckdb")  # systems that have single precision


@cache
def drawers():
    return drawer(rules_and_rows()), drawer(rules_and_logits())


@dataclass
class Exported:
    """A rule, the rows that it decides, and a system that decides them by its export."""

    rule: Any
    numbers: np.ndarray = field(repr=False)
    system: str
    refusable: bool = False

    def __str__(self):
        return f"{self.system}, {self.numbers.dtype}, {self.rule.to_json()}, rows {self.numbers.tolist()}"

    def judge(self):
        n = len(self.numbers)
        ours = self.rule.predict(self.numbers).reshape(n, -1)
        theirs = np.asarray(SYSTEMS[self.system](self.rule, self.numbers), dtype=object).reshape(n, -1)
        for m, labels in enumerate(self.rule.schema.decisions):
            differing = np.flatnonzero(ours[:, m] != theirs[:, m])
            if len(differing):
                self.check_ties(m, labels.tolist(), ours[:, m], theirs[:, m], differing)
        return Verdict.RIGHT

    def check_ties(self, m, labels, ours, theirs, rows):
        """Only scores that tie, behind a link, may be decided otherwise."""
        assert self.rule.link is not None, f"rows {rows.tolist()} of output {m} differ"
        place = {label: j for j, label in enumerate(labels)}
        scores = self.scores(m)
        for row in rows:
            margin = abs(scores[row, place[ours[row]]] - scores[row, place[theirs[row]]])
            assert margin < MAX_MARGIN, f"row {row} of output {m}: {ours[row]!r}, exported {theirs[row]!r}"

    def scores(self, m):
        """The expected loss of each decision about output m, (N, D)."""
        numbers = self.numbers.astype(float)
        if self.rule.schema.input.name != "probabilities":
            return scores_by_numpy(self.rule, numbers, m)
        k, d = int(self.rule.n_classes[m]), int(self.rule.schema.n_decisions[m])
        eta = numbers[:, m, :k] if self.rule.multioutput else numbers
        eta = eta / eta.sum(axis=1, keepdims=True) if self.rule.normalize else eta
        link = self.rule.link
        powers = np.maximum(eta, link.floor) ** link.temperature[m] * np.exp(link.bias[m, :k])
        return powers / powers.sum(axis=1, keepdims=True) @ self.rule.loss.output(m).tensor()[0][:k, :d]


def draw(rng):
    """Draw a rule, rows and a system."""
    rule, numbers = drawers()[rng.integers(2)](rng)
    system = str(rng.choice(list(SYSTEMS)))
    if system in SINGLE and rng.random() < 0.3 and (system == "onnx" or not rule.normalize):
        numbers = numbers.astype(np.float32)
    return Exported(rule, numbers, system)
