"""Metrics and constraints as people write them: what is read is what was written, and values are scikit-learn's."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer

from fuzz.verdicts import Verdict, assert_refusal
from laws.metric_records import NAMES, RECORDS
from metricwise.core.errors import Refusal
from metricwise.goals.constraint_text import ConstraintSpec, read_constraints
from metricwise.metrics.parameters import written
from metricwise.metrics.resolution import KINDS, resolve, scorer_names

METRICS = ("recall", "precision", "f1", "f0.5", "share", "false_positive_rate", "accuracy", "kappa", "_x9", "F.b")
WORDS = ("urgent", "a", "no", "7b", "ü", "None", "nan", "and", "in", "group", "every", "gap", "within", "_")
TEXTS = (
    "on hold",
    "it's",
    'say "x"',
    "back\\slash",
    "",
    " ",
    "a, b",
    "]",
    "[",
    ">= 0.9",
    "0",
    "True",
    "1e5",
    "\t",
    "\n",
)
NUMBERS = (0, 1, -1, 42, 10**20, 0.5, -2.5)
CHARACTERS = "[]'\"\\,<>=≥≤%.+-eE0123456789 _abgipnrst\n\u00a0é\u0000"


# --------------------------------------------------------------------------------------------- constraints, as written


def draw_label(rng):
    """A label, and the text that stands for it."""
    kind = rng.integers(5)
    if kind == 0:
        label = NUMBERS[rng.integers(len(NUMBERS))]
        return label, repr(label)
    if kind == 1:
        label = bool(rng.integers(2))
        return label, repr(label)
    if kind == 2:
        label = str(rng.choice([word for word in WORDS if not word[0].isdigit()]))
        return label, label
    label = str(rng.choice([*TEXTS, *WORDS]))
    return label, written(label)


def draw_number(rng):
    """A bound, and the text that stands for it."""
    value = float(rng.choice([0.0, 0.9, 0.05, 1.0, 2.5, 1e-3, 12.0])) * (1 if rng.random() < 0.8 else -1)
    if rng.random() < 0.3:
        return float(f"{value:g}") / 100, f"{value:g}{blank(rng)}%"
    return value, rng.choice([f"{value:g}", f"{value:e}", f"{value:+}"])


def blank(rng):
    return str(rng.choice(["", " ", "  ", "\t"]))


def draw_constraint(rng):
    """A constraint as data, and the text that says it."""
    metric = str(rng.choice(METRICS))
    labels = [draw_label(rng) for _ in range(rng.integers(3))]
    inside = f"{blank(rng)},{blank(rng)}".join(text for _, text in labels)
    term = f"{metric}{blank(rng)}[{blank(rng)}{inside}{blank(rng)}]" if labels else metric
    fields = {"metric": metric, "labels": tuple(label for label, _ in labels), "low": -np.inf, "high": np.inf}
    over = None
    if rng.random() < 0.15:
        term, over = f"{term} gap", "gap"
    text = bounded(rng, term, fields)
    if over is None and rng.random() < 0.3:
        text, over, fields["group"] = in_groups(rng, text)
    return text, {**fields, "over": over}


def bounded(rng, term, fields):
    """The term with bounds, which are put among the fields."""
    value, number = draw_number(rng)
    shape = rng.integers(4)
    spaces = blank(rng)
    least, most = str(rng.choice([">=", "≥"])), str(rng.choice(["<=", "≤"]))
    if shape == 0:
        fields["low"] = value
        return f"{term}{spaces}{least}{spaces}{number}"
    if shape == 1:
        fields["high"] = value
        return f"{term}{spaces}{most}{spaces}{number}"
    if shape == 2:
        fields["low"] = value
        return f"{number}{spaces}{most}{spaces}{term}"
    other = value + 0.5
    fields["low"], fields["high"] = value, other
    return f"{number}{spaces}{most} {term} {most}{spaces}{other!r}"


def in_groups(rng, text):
    """The bound in some groups, what it is over, and the group."""
    shape = rng.integers(3)
    if shape == 0:
        return f"{text} in every group", "every", None
    if shape == 1:
        return f"{text} in every label", "every label", None
    groups = [draw_label(rng) for _ in range(rng.integers(1, 3))]
    names = tuple(label for label, _ in groups)
    return f"{text} in group {', '.join(one for _, one in groups)}", "group", names[0] if len(names) == 1 else names


@dataclass
class Written:
    """Constraints in one text, and what each of them says."""

    text: str
    expected: list
    refusable: bool = False

    def __str__(self):
        return f"{self.text!r} for {self.expected}"

    def judge(self):
        specs = read_constraints(self.text)
        assert len(specs) == len(self.expected)
        for spec, fields in zip(specs, self.expected, strict=True):
            for name, value in fields.items():
                assert_equal(getattr(spec, name), value, name)
            check_rewritten(spec)
        return Verdict.RIGHT


def assert_equal(value, expected, name):
    same = value == pytest.approx(expected, rel=1e-12) if isinstance(expected, float) else value == expected
    assert same, f"{name} is {value!r}, was written as {expected!r}"


def check_rewritten(spec):
    """A constraint prints as text that says the same, to the digits that it prints."""
    fields = {name: getattr(spec, name) for name in ("metric", "low", "high", "labels", "near_prior", "over", "group")}
    (again,) = read_constraints(str(ConstraintSpec(**fields)))
    for name, value in fields.items():
        other = getattr(again, name)
        same = other == pytest.approx(value, rel=1e-5) if isinstance(value, float) else other == value
        assert same, f"{name} is {value!r}, and {other!r} when it is written and read again"


def draw_written(rng):
    drawn = [draw_constraint(rng) for _ in range(rng.integers(1, 4))]
    return Written(" and ".join(text for text, _ in drawn), [fields for _, fields in drawn])


# ----------------------------------------------------------------------------------------------------- mangled texts


def mangle_text(text, rng):
    """A text with characters dropped, doubled, swapped or replaced."""
    for _ in range(rng.integers(1, 5)):
        start, length = int(rng.integers(len(text) + 1)), int(rng.integers(0, 4))
        junk = "".join(rng.choice(list(CHARACTERS), size=rng.integers(0, 4)))
        middle = (junk, text[start : start + length] * 2, text[start : start + length][::-1])[rng.integers(3)]
        text = text[:start] + middle + text[start + length :]
    return text


@dataclass
class MangledConstraint:
    """A text that was a constraint."""

    text: str
    refusable: bool = True

    def __str__(self):
        return repr(self.text)

    def judge(self):
        for spec in read_constraints(self.text):
            check_rewritten(spec)
        return Verdict.RIGHT


@dataclass
class MangledMetric:
    """A text that was the name of a metric, for a kind of target."""

    text: str
    kind: str
    refusable: bool = True

    def __str__(self):
        return f"{self.text!r} for {self.kind}"

    def judge(self):
        metric = resolve(self.text, self.kind).metric
        y, p = np.array([0, 1, 1, 0, 1, 0]), np.array([0, 1, 0, 0, 1, 1])
        try:
            value = metric.score(y, p, classes=[0, 1])
        except Refusal as error:  # of another class, or for other targets
            assert_refusal(error)
            return Verdict.RIGHT
        assert np.isfinite(value), value
        return Verdict.RIGHT


def draw_name(rng):
    name = str(rng.choice([*NAMES, *scorer_names(), "f0.5", "f2", "macro_f2", "precision@3", "neg_hamming_loss"]))
    return f"{name}[{draw_label(rng)[1]}]" if rng.random() < 0.4 else name


# ---------------------------------------------------------------------------------------------- values of what is named


@dataclass
class NamedMetric:
    """A metric by its name, with labels and predictions; what the same name means to scikit-learn."""

    text: str
    name: str
    y: np.ndarray
    p: np.ndarray
    weight: np.ndarray | None
    k: int
    c: int | None = None
    refusable: bool = False

    def __str__(self):
        weight = None if self.weight is None else self.weight.tolist()
        return f"{self.text!r}, y={self.y.tolist()}, y_pred={self.p.tolist()}, sample_weight={weight}, {self.k} classes"

    def judge(self):
        metric = resolve(self.text, "binary" if self.k == 2 else "multiclass", zero_division=0.0).metric
        value = metric.score(self.y, self.p, sample_weight=self.weight, classes=list(range(self.k)))
        expected = self.expected()
        assert value == pytest.approx(expected, abs=1e-12), f"value {value!r}, by scikit-learn {expected!r}"
        return Verdict.RIGHT

    def expected(self):
        if self.name in RECORDS:
            return RECORDS[self.name].value(self.y, self.p, self.weight, k=self.k, c=self.c)
        scorer = get_scorer(self.name)
        options = dict(scorer._kwargs)
        if "average" in options and options["average"] != "binary":
            options |= {"labels": range(self.k), "zero_division": 0.0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            return scorer._sign * scorer._score_func(self.y, self.p, sample_weight=self.weight, **options)


OF_ONE_CLASS = (
    "recall",
    "precision",
    "f1",
    "jaccard",
    "specificity",
    "share",
    "false_positive_rate",
    "fowlkes_mallows",
)
OF_ALL = tuple(
    name
    for name in NAMES
    if name not in (*OF_ONE_CLASS, "fbeta", "cost", "weighted_accuracy", "hamming_accuracy", "micro_f1")
)
SUFFIXED = tuple(
    f"{name}_{average}"
    for name in ("f1", "precision", "recall", "jaccard")
    for average in ("micro", "macro", "weighted")
)


def draw_named(rng):
    n, k = int(rng.integers(2, 25)), int(rng.integers(2, 5))
    y, p = rng.integers(0, k, n), rng.integers(0, k, n)
    p = np.where(rng.random(n) < 0.5, y, p)
    weight = rng.integers(1, 5, n).astype(float) if rng.random() < 0.5 else None
    shape = rng.integers(3)
    if shape == 0:
        name, c = str(rng.choice(OF_ONE_CLASS)), int(rng.integers(k))
        return NamedMetric(f"{name}[{c}]", name, y, p, weight, k, c)
    name = str(rng.choice(OF_ALL if shape == 1 else SUFFIXED))
    return NamedMetric(name, name, y, p, weight, k)


def draw(rng):
    """Draw a text."""
    shape = rng.choice(4, p=[0.35, 0.25, 0.15, 0.25])
    if shape == 0:
        return draw_written(rng)
    if shape == 1:
        return MangledConstraint(mangle_text(draw_written(rng).text, rng))
    if shape == 2:
        name = draw_name(rng)
        return MangledMetric(mangle_text(name, rng) if rng.random() < 0.7 else name, str(rng.choice(list(KINDS))))
    return draw_named(rng)
