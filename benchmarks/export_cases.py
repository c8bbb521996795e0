"""Rules of every kind, and rows for which an export could differ: ties, rounded numbers, thresholds.

Must not know formats or databases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import TemperatureScaling

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """A rule and the rows that it decides.

    Parameters
    ----------
    target : str
        Kind of target.
    decides : str
        What kind of rule it is.
    rule : WeightedRule or MixtureRule
    proba : array (N,), (N, K), (N, M) or (N, M, K) padded with 0
    columns : list
        Names of its columns, as `to_sql` takes them.
    groups : array (N,) or None
        The sensitive group of every row, of a rule by group: the column "group".
    """

    target: str
    decides: str
    rule: Any
    proba: Array
    columns: list[Any]
    groups: Array | None = None

    @property
    def linked(self) -> bool:
        rules = getattr(self.rule, "rules", (self.rule,))
        return any(getattr(rule, "link", None) is not None for rule in rules)

    @property
    def drawn(self) -> bool:
        """Return whether decisions are random, in some group at least."""
        rules = self.rule.rules if self.groups is not None else (self.rule,)
        return any(isinstance(rule, mw.MixtureRule) for rule in rules)

    @property
    def ours(self) -> Array:
        """Return the decisions of the rule."""
        given = {} if self.groups is None else {"sensitive_features": self.groups}
        return np.asarray(self.rule.predict(self.proba, **given)).astype(object)

    @property
    def positive(self) -> bool:
        """Return whether only the probability of the second of two classes is given."""
        return self.proba.ndim == (2 if self.rule.multioutput else 1)

    def table(self) -> dict[str, Array]:
        """Return the columns by name, as in a database."""
        names = self.columns if self.rule.multioutput else [self.columns]
        result = {}
        for m, own in enumerate(names):
            own = [own] if isinstance(own, str) else own
            block = self.proba[:, m] if self.rule.multioutput else self.proba
            block = block[:, None] if block.ndim == 1 else block
            result.update({name: block[:, j] for j, name in enumerate(own)})
        return result if self.groups is None else {**result, "group": self.groups}


# ---------------------------------------------------------------------------------------------------------------- rows


def simplex(rng: np.random.Generator, n: int, k: int) -> Array:
    """Rows of K probabilities: smooth, two decimals, eighths, certain, uniform, and exact in float32."""
    smooth = rng.dirichlet(np.full(k, 0.7), n)
    parts = [
        smooth,
        smooth.round(2),
        rng.multinomial(8, np.full(k, 1 / k), n) / 8,
        np.eye(k)[rng.integers(k, size=n)],
        np.full((n, k), 1 / k),
        smooth.astype(np.float32).astype(np.float64),
    ]
    which = rng.choice(len(parts), n, p=[0.35, 0.25, 0.15, 0.05, 0.05, 0.15])
    return np.choose(which[:, None], parts)


def unit(rng: np.random.Generator, n: int, thresholds: Array) -> Array:
    """Probabilities of one class: smooth, two decimals, sixteenths, and around thresholds."""
    smooth = rng.beta(0.8, 1.5, n)
    near = rng.choice(thresholds, n)
    parts = [
        smooth,
        smooth.round(2),
        rng.integers(17, size=n) / 16,
        near,
        np.nextafter(near, 1.0),
        np.nextafter(near, 0.0),
        smooth.astype(np.float32).astype(np.float64),
    ]
    return np.choose(rng.choice(len(parts), n, p=[0.4, 0.25, 0.1, 0.05, 0.05, 0.05, 0.1]), parts)


def quadratic(k: int) -> Array:
    """A full loss: squared distances plus noise, so that no two sums are equal by design."""
    i = np.arange(k)
    return (i[:, None] - i) ** 2 / (k - 1) ** 2 + np.random.default_rng(k).normal(0, 0.05, (k, k)).round(3)


def link(m: int, k: int, temperature: float) -> TemperatureScaling:
    rng = np.random.default_rng(m + k)
    return TemperatureScaling(np.full(m, temperature) + 0.1 * np.arange(m), rng.normal(0, 0.4, (m, k)))


# --------------------------------------------------------------------------------------------------------------- cases


def binary(rng: np.random.Generator, n: int) -> list[Case]:
    labels = ("no", "it's")
    rule = mw.WeightedRule.from_thresholds(0.37, classes=labels, pos_label="it's")
    costs = mw.WeightedRule(Loss.from_tensor([[0.0, 1.0], [2.7, 0.0]]), (np.array([False, True]),))
    linked = mw.WeightedRule(Loss.from_tensor([[0.0, 1.0], [2.7, 0.0]]), (np.array([0, 1]),), link(1, 2, 0.8))
    edges = np.array([0.37, *costs.thresholds, *linked.thresholds])
    p, both = unit(rng, n, edges), simplex(rng, n, 2)
    return [
        Case("binary, p", "threshold", rule, p, ["p"]),
        Case("binary, p", "costs", costs, p, ["p"]),
        Case("binary, p", "costs behind a link", linked, p, ["p"]),
        Case("binary, both", "threshold", rule, both, ["p no", "p yes"]),
        Case("binary, both", "costs", costs, both, ["p0", "p1"]),
        Case("binary, both", "costs behind a link", linked, both, ["p0", "p1"]),
    ]


def multiclass(rng: np.random.Generator, n: int) -> list[Case]:
    k = 4
    labels = (np.array(["a", 'b"', "c'd", "e\\f"]),)
    codes = (np.arange(k),)
    weights = mw.WeightedRule.from_weights([1.0, 1.7, 0.9, 2.2], classes=labels[0])
    offsets = mw.WeightedRule(Loss(diagonal=-np.array([[1, 1.5, 2, 1]]), offset=np.array([[0, 0.1, 0.2, -0.1]])), codes)
    grades = mw.WeightedRule.from_cut_points([0.4, 1.5, 2.6])
    full = mw.WeightedRule(Loss(full=quadratic(k)[None]), (np.array([1.0, 1.5, 2.0, 2.5]),))
    far = mw.WeightedRule(offsets.loss, codes, link(1, k, 1.3))
    all_of_it = mw.WeightedRule(full.loss, labels, link(1, k, 0.7))
    scores = mw.WeightedRule(full.loss, labels, normalize=True)
    p, names = simplex(rng, n, k), [f"p{j}" for j in range(k)]
    positive = (p + rng.integers(2, size=(n, 1)) * 0.125) * rng.choice([1.0, 3.0, 7.0], (n, 1))
    return [
        Case("multiclass", "argmax", mw.WeightedRule(Loss.argmax(k), labels), p, names),
        Case("multiclass", "weights", weights, p, names),
        Case("multiclass", "weights and offsets", offsets, p, names),
        Case("multiclass", "cut points", grades, p, names),
        Case("multiclass", "full loss", full, p, names),
        Case("multiclass", "offsets behind a link", far, p, names),
        Case("multiclass", "full loss behind a link", all_of_it, p, names),
        Case("multiclass", "full loss, scores normalised", scores, positive, names),
    ]


def several(rng: np.random.Generator, n: int) -> list[Case]:
    tags = mw.WeightedRule.from_thresholds({"news": 0.3, "sport": 0.62, "arts": 0.05})
    names = list(tags.output_names)
    p = np.stack([unit(rng, n, tags.thresholds) for _ in names], axis=1)
    labels = (np.array(["no", "yes"]), np.array(["low", "mid", "high"]))
    mixed = np.zeros((n, 2, 3))
    mixed[:, 0, :2], mixed[:, 1] = simplex(rng, n, 2), simplex(rng, n, 3)
    loss = Loss(full=np.stack([quadratic(3), quadratic(3)[::-1]]))
    outputs = mw.WeightedRule(loss, labels, multioutput=True, output_names=("risk", "size"))
    columns = [["no", "yes"], ["low", "mid", "high"]]
    return [
        Case("multilabel", "thresholds", tags, p, names),
        Case("multioutput", "full losses", outputs, mixed, columns),
        Case("multioutput", "full losses behind links", _with_link(outputs), mixed, columns),
    ]


def _with_link(rule: Any) -> Any:
    return mw.WeightedRule(rule.loss, rule.classes, link(2, 3, 0.9), True, output_names=rule.output_names)


def mixtures(rng: np.random.Generator, n: int) -> list[Case]:
    classes = (np.array([3, 5, 8]),)
    parts = (
        mw.WeightedRule(Loss(full=quadratic(3)[None]), classes),
        mw.WeightedRule(Loss.argmax(3), classes),
        mw.WeightedRule.from_weights([1.0, 2.0, 3.0], classes=classes[0]),
    )
    rule = mw.MixtureRule(parts, np.array([0.2, 0.5, 0.3]), seed=7)
    return [Case("multiclass", "mixture of three rules", rule, simplex(rng, n, 3), ["p0", "p1", "p2"])]


def abstaining(rng: np.random.Generator, n: int) -> list[Case]:
    """K classes by K + 1 decisions: costs on a grid, so that abstaining ties with classes."""
    two = Loss(full=np.array([[[0.0, 1.0, 0.25], [1.0, 0.0, 0.25], [0.0, 0.0, 0.0]]]))
    chow = mw.WeightedRule(two, (np.array(["no", "yes"]),), abstain_label="ask")
    flat = Loss(diagonal=-np.array([[1.0, 1.5, 2.0, 0.0]]), offset=np.array([[0.0, 0.1, 0.2, -0.75]]))
    short = mw.WeightedRule(flat, (np.arange(3),), abstain_label=-1)
    square = np.zeros((2, 4, 4))
    square[:, :3, :3], square[0, :, 2], square[1, :, 3] = quadratic(3), 0.125, 0.2
    labels = (np.array(["no", "yes"]), np.array(["low", "mid", "high"]))
    outputs = mw.WeightedRule(Loss(full=square), labels, multioutput=True, abstain_label="ask")
    mixture = mw.MixtureRule((chow, mw.WeightedRule(Loss.argmax(3), chow.classes, abstain_label="ask")), [0.4, 0.6])
    mixed = np.zeros((n, 2, 3))
    mixed[:, 0, :2], mixed[:, 1] = simplex(rng, n, 2), simplex(rng, n, 3)
    p, three = unit(rng, n, np.array([0.25, 0.75])), simplex(rng, n, 3)
    linked = mw.WeightedRule(flat, (np.arange(3),), link(1, 3, 1.2), abstain_label=-1)
    return [
        Case("binary, p", "abstaining", chow, p, ["p"]),
        Case("binary, both", "abstaining", chow, simplex(rng, n, 2), ["p0", "p1"]),
        Case("binary, both", "mixture, abstaining", mixture, simplex(rng, n, 2), ["p0", "p1"]),
        Case("multiclass", "offsets, abstaining", short, three, ["p0", "p1", "p2"]),
        Case("multiclass", "offsets, abstaining, behind a link", linked, three, ["p0", "p1", "p2"]),
        Case("multioutput", "full losses, abstaining", outputs, mixed, [["no", "yes"], ["low", "mid", "high"]]),
    ]


def grouped(rng: np.random.Generator, n: int) -> list[Case]:
    strict, lenient = (mw.WeightedRule.from_thresholds(t, classes=["no", "yes"], pos_label="yes") for t in (0.6, 0.37))
    drawn = mw.MixtureRule((strict, lenient), np.array([0.3, 0.7]), seed=11)
    names = np.array(["it's", 'b"', "c"])
    groups, p = names[rng.integers(3, size=n)], unit(rng, n, np.array([0.37, 0.6]))
    fixed = mw.GroupedRule((strict, lenient, strict), tuple(names.tolist()))
    some = mw.GroupedRule((strict, drawn, lenient), tuple(names.tolist()))
    return [
        Case("binary, p", "thresholds by group", fixed, p, ["p"], groups),
        Case("binary, p", "thresholds by group, one drawn", some, p, ["p"], groups),
    ]


FAMILIES: tuple[Callable[[np.random.Generator, int], list[Case]], ...] = (
    binary,
    multiclass,
    several,
    mixtures,
    abstaining,
    grouped,
)


def cases(n: int, seed: int = 0) -> list[Case]:
    """Return all cases with n rows."""
    rng = np.random.default_rng(seed)
    return [case for family in FAMILIES for case in family(rng, n)]
