"""Rule files of every kind, edited, joined, cut and damaged: a sentence, or a rule that is written, described and used.

Mutations are ours here; `python -m tests.fuzz.by_atheris` has those of libFuzzer, led by coverage.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

import metricwise as mw
from fuzz.mangled_text import damaged, edited, places
from fuzz.verdicts import Verdict, assert_refusal
from laws.rule_records import RECORDS, array_of
from metricwise.core.errors import Refusal

MAX_MUTATIONS = 4
NUMBERS = (
    0,
    -0.0,
    1,
    -1,
    0.5,
    1e-320,
    1e308,
    -1e308,
    2**53,
    2**63,
    2**64,
    10**30,
    1e-9,
    0.1,
    float("inf"),
    float("nan"),
)


@cache
def document(name):
    return RECORDS[name].rule.to_json()


def get_at(node, path):
    for key in path:
        node = node[key]
    return node


def renumbered(text, rng):
    """The text with one number replaced by another, which JSON of Python's may write as NaN or Infinity."""
    content = json.loads(text)
    numeric = [
        path
        for path in places(content)
        if isinstance(get_at(content, path), (int, float)) and not isinstance(get_at(content, path), bool)
    ]
    if not numeric:
        return text
    *parents, last = numeric[rng.integers(len(numeric))]
    node = get_at(content, parents)
    node[last] = NUMBERS[rng.integers(len(NUMBERS))] if rng.random() < 0.5 else node[last] * float(rng.normal())
    return json.dumps(content)


def joined(text, rng):
    """The text with one part of another rule in the place of a part of the same name, or beside the others."""
    content, other = json.loads(text), json.loads(document(str(rng.choice(list(RECORDS)))))
    key = str(rng.choice(list(other)))
    if isinstance(content, dict):
        content[key] = other[key]
    return json.dumps(content)


def deepened(text, rng):
    """The text with one part in so many brackets."""
    depth = int(rng.choice([1, 3, 60, 2000]))
    content = json.loads(text)
    known = list(places(content))
    *parents, last = known[rng.integers(len(known))]
    node = get_at(content, parents)
    inner, mark = json.dumps(node[last]), "@@here@@"
    node[last] = mark
    return json.dumps(content).replace(f'"{mark}"', "[" * depth + inner + "]" * depth)


def cut_off(text, rng):
    return text[: rng.integers(len(text))]


# Mutations of JSON come first, while the text is JSON.
OF_JSON = (edited, edited, renumbered, renumbered, joined, deepened)
OF_TEXT = (damaged, cut_off)


@dataclass
class RuleFile:
    """A text that was the file of a rule, and the record of that rule, whose rows are decided."""

    name: str
    text: str
    refusable: bool = True

    def __str__(self):
        return f"of {self.name!r}: {self.text}"

    def judge(self):
        rule = mw.load_rule(self.text)
        written = rule.to_json()
        again = mw.load_rule(written)
        assert again == rule
        assert again.to_json() == written
        assert isinstance(rule.describe(), str)
        rows = RECORDS[self.name].rows
        try:
            predicted = rule.predict(array_of(rule, rows), **rows.needs)
            distribution = rule.distribution(array_of(rule, rows), **rows.needs)
        except Refusal as error:  # what is loaded may need other rows
            assert_refusal(error)
            return Verdict.RIGHT
        assert predicted.shape[0] == rows.n_rows
        np.testing.assert_allclose(np.asarray(distribution).sum(axis=-1), 1.0, atol=1e-9)
        return Verdict.RIGHT


def draw(rng):
    """Draw a rule file that is no longer what was written."""
    name = str(rng.choice(list(RECORDS)))
    text = document(name)
    for _ in range(rng.integers(1, MAX_MUTATIONS)):
        text = OF_JSON[rng.integers(len(OF_JSON))](text, rng)
        if len(text) > 100_000:
            break
        try:
            json.loads(text)
        except RecursionError:
            break
    if rng.random() < 0.3:
        text = OF_TEXT[rng.integers(len(OF_TEXT))](text, rng)
    return RuleFile(name, text)
