"""Rules of every kind, and rows for which an export could differ: ties, rounded numbers, thresholds, far logits.

Must not know formats or databases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import OrdinalMap, TemperatureScaling

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
        Probabilities, or what else the rule takes.
    columns : list
        Names of its columns, as `to_sql` takes them.
    groups : array (N,) or None
        The sensitive group or the segment of every row, of a rule by these: the column "group".
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
        given = {} if self.groups is None else dict.fromkeys(self.rule.needs, self.groups)
        return np.asarray(self.rule.predict(self.proba, **given)).astype(object)

    @property
    def positive(self) -> bool:
        """Return whether only the number of the second of two classes is given."""
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


def logits(rng: np.random.Generator, n: int, k: int) -> Array:
    """Rows of K logits: smooth, one decimal, whole, thousands apart, -inf, all equal, and exact in float32."""
    smooth = rng.normal(0, 3, (n, k))
    impossible = np.where(rng.random((n, k)) < 0.3, -np.inf, smooth)
    impossible[np.isinf(impossible).all(axis=1), 0] = 0.0
    parts = [
        smooth,
        smooth.round(1),
        smooth.round(),
        smooth * rng.choice([300.0, 1e3, 1e5], (n, 1)),
        smooth + rng.choice([-1e3, 1e3, 1e6], (n, 1)),
        impossible,
        np.zeros((n, k)),
        smooth.astype(np.float32).astype(np.float64),
    ]
    return np.choose(rng.choice(len(parts), n, p=[0.3, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.1])[:, None], parts)


def log_proba(rng: np.random.Generator, n: int, k: int) -> Array:
    """Rows of K log-probabilities, far below what the logarithm of a probability can be, and -inf."""
    z = logits(rng, n, k)
    z = z - z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def line(rng: np.random.Generator, n: int, thresholds: Array) -> Array:
    """Log-odds or scores: smooth, one decimal, thousands away, infinite, and around thresholds."""
    smooth = rng.normal(0, 4, n)
    near = rng.choice(thresholds, n)
    parts = [
        smooth,
        smooth.round(1),
        smooth * 1e3,
        np.where(smooth > 0, np.inf, -np.inf),
        near,
        np.nextafter(near, np.inf),
        np.nextafter(near, -np.inf),
        smooth.astype(np.float32).astype(np.float64),
    ]
    return np.choose(rng.choice(len(parts), n, p=[0.35, 0.2, 0.1, 0.05, 0.05, 0.05, 0.05, 0.15]), parts)


def quadratic(k: int) -> Array:
    """A full loss: squared distances plus noise, so that no two sums are equal by design."""
    i = np.arange(k)
    return (i[:, None] - i) ** 2 / (k - 1) ** 2 + np.random.default_rng(k).normal(0, 0.05, (k, k)).round(3)


def link(m: int, k: int, temperature: float) -> TemperatureScaling:
    rng = np.random.default_rng(m + k)
    return TemperatureScaling(np.full(m, temperature) + 0.1 * np.arange(m), rng.normal(0, 0.4, (m, k)))


def logit_map(m: int, k: int, temperature: float) -> TemperatureScaling:
    """The same map for logits."""
    return TemperatureScaling(*link(m, k, temperature).arrays[:2], 0.0)


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


def segmented(rng: np.random.Generator, n: int) -> list[Case]:
    """Common losses behind a link of each segment; rows of other segments among them."""
    names = np.array(["it's", 'b"', "c", "unseen"])
    groups = names[rng.integers(4, size=n)]
    t, c = np.array([[0.8], [1.1], [1.3]]), rng.normal(0, 0.6, (3, 1, 3))
    two, three = (TemperatureScaling(np.ones(1), np.zeros((1, k))) for k in (2, 3))
    binary_rule = mw.WeightedRule(Loss.from_tensor([[0.0, 1.0], [2.7, 0.0]]), (np.array(["no", "yes"]),), two)
    ordinal_rule = mw.WeightedRule(Loss(full=quadratic(3)[None]), (np.array(["low", "mid", "high"]),), three)
    by_threshold = mw.SegmentedRule(binary_rule, tuple(names[:3].tolist()), t, c[:, :, :2])
    by_loss = mw.SegmentedRule(ordinal_rule, tuple(names[:3].tolist()), t, c)
    edges = np.array([rule.threshold for rule in by_threshold.parts])
    return [
        Case("binary, p", "thresholds by segment, behind links", by_threshold, unit(rng, n, edges), ["p"], groups),
        Case(
            "multiclass",
            "full losses by segment, behind links",
            by_loss,
            simplex(rng, n, 3),
            ["p0", "p1", "p2"],
            groups,
        ),
    ]


def on_logits(rng: np.random.Generator, n: int) -> list[Case]:
    """Two classes: the threshold is in the user's unit; several outputs: one for each."""
    costs, labels = Loss.from_tensor([[0.0, 1.0], [2.7, 0.0]]), (np.array(["no", "yes"]),)
    odds, logs, margins = (
        mw.WeightedRule(costs, labels, logit_map(1, 2, t), input=kind)
        for kind, t in (("logits", 0.8), ("log_proba", 1.3), ("scores", 0.04))
    )
    price = Loss(full=np.array([[[0.0, 1.0, 0.25], [1.0, 0.0, 0.2], [0.0, 0.0, 0.0]]]))
    chow = mw.WeightedRule(price, labels, logit_map(1, 2, 0.8), abstain_label="ask", input="logits")
    names = ("news", "sport", "arts")
    tags = mw.WeightedRule(costs, (np.arange(2),) * 3, logit_map(3, 2, 0.7), True, output_names=names, input="logits")
    edges = np.array([rule.threshold for rule in (odds, margins)])
    many = np.stack([line(rng, n, tags.thresholds) for _ in names], axis=1)
    cuts = np.array([region.high for region in chow.regions[:-1]])
    z, both = ["z"], ["z0", "z1"]
    return [
        Case("binary, logit", "costs on log-odds", odds, line(rng, n, edges), z),
        Case("binary, both logits", "costs on logits", odds, logits(rng, n, 2), both),
        Case("binary, both log-probabilities", "costs on log-probabilities", logs, log_proba(rng, n, 2), both),
        Case("binary, score", "costs on scores", margins, 30 * line(rng, n, edges / 30), z),
        Case("binary, logit", "abstaining on log-odds", chow, line(rng, n, cuts), z),
        Case("multilabel, logits", "costs on log-odds", tags, many, list(names)),
        *of_one_score(rng, n),
    ]


def of_one_score(rng: np.random.Generator, n: int) -> list[Case]:
    """Cut points, also of two classes, and losses behind proportional odds."""
    cuts, grades = np.array([-1.25, 0.3, 0.3, 2.0]), (np.array(["a", 'b"', "c'd", "e", "f"]),)
    price = np.zeros((1, 4, 4))
    price[0, :3, :3], price[0, :, 3] = quadratic(3), 0.05
    odds = OrdinalMap(1.3, [-1.0, 1.5])
    chow = mw.WeightedRule(
        Loss(full=price), (np.arange(3),), logit_map(1, 3, 1.0), abstain_label=-1, input="scores", ordinal_map=odds
    )
    threshold = mw.WeightedRule.from_thresholds(-1.37, input="scores")
    return [
        Case("grades, score", "cut points of a score", mw.CutPointRule(cuts, grades), line(rng, n, cuts), ["z"]),
        Case("grades, score", "abstaining behind proportional odds", chow, line(rng, n, cuts), ["z"]),
        Case("binary, score", "threshold of a score", threshold, line(rng, n, np.array([-1.37])), ["z"]),
    ]


def several_on_logits(rng: np.random.Generator, n: int) -> list[Case]:
    """More classes: weights, offsets and full losses behind a map of logits."""
    k, labels, names = 4, (np.array(["a", 'b"', "c'd", "e\\f"]),), ["z0", "z1", "z2", "z3"]
    weights = Loss(diagonal=-np.array([[1.0, 1.7, 0.9, 2.2]]), offset=np.zeros((1, k)))
    offsets = Loss(diagonal=-np.array([[1, 1.5, 2, 1]]), offset=np.array([[0, 0.1, 0.2, -0.1]]))
    full = Loss(full=quadratic(k)[None])
    rules = {
        "argmax on logits": mw.WeightedRule(Loss.argmax(k), labels, logit_map(1, k, 1.0), input="logits"),
        "weights on logits": mw.WeightedRule(weights, labels, logit_map(1, k, 0.7), input="logits"),
        "offsets on logits": mw.WeightedRule(offsets, labels, logit_map(1, k, 1.0), input="logits"),
        "full loss on scores": mw.WeightedRule(full, labels, logit_map(1, k, 0.03), input="scores"),
    }
    cases = [Case("multiclass, logits", name, rule, logits(rng, n, k), names) for name, rule in rules.items()]
    logs = mw.WeightedRule(full, labels, logit_map(1, k, 1.3), input="log_proba")
    shared = (np.array(["no", "yes"]), np.array(["low", "mid", "high"]))
    pair = mw.WeightedRule(Loss(full=quadratic(3)[None]), shared, logit_map(2, 3, 0.9), True, input="logits")
    mixed = np.zeros((n, 2, 3))
    mixed[:, 0, :2], mixed[:, 1] = logits(rng, n, 2), logits(rng, n, 3)
    return [
        *cases,
        Case("multiclass, log-probabilities", "full loss on log-probabilities", logs, log_proba(rng, n, k), names),
        Case("multioutput, logits", "full losses on logits", pair, mixed, [["no", "yes"], ["low", "mid", "high"]]),
    ]


def parts_on_logits(rng: np.random.Generator, n: int) -> list[Case]:
    """Mixtures, and rules by group."""
    classes = (np.array([3, 5, 8]),)
    loss = Loss(diagonal=-np.array([[1.0, 2.0, 3.0]]), offset=np.zeros((1, 3)))
    parts = [
        mw.WeightedRule(part, classes, logit_map(1, 3, t), input="logits")
        for part, t in ((Loss(full=quadratic(3)[None]), 0.8), (Loss.argmax(3), 1.0), (loss, 1.2))
    ]
    drawn = mw.MixtureRule(tuple(parts), np.array([0.2, 0.5, 0.3]), seed=7)
    strict, lenient = (
        mw.WeightedRule(Loss.from_tensor([[0.0, c], [1.0, 0.0]]), (np.arange(2),), logit_map(1, 2, 0.6), input="scores")
        for c in (1.5, 0.4)
    )
    names = np.array(["it's", 'b"', "c"])
    by_group = mw.GroupedRule((strict, lenient, strict), tuple(names.tolist()))
    edges = np.array([strict.threshold, lenient.threshold])
    groups = names[rng.integers(3, size=n)]
    return [
        Case("multiclass, logits", "mixture of three rules on logits", drawn, logits(rng, n, 3), ["z0", "z1", "z2"]),
        Case("binary, score", "scores by group", by_group, line(rng, n, edges), ["z"], groups),
    ]


FAMILIES: tuple[Callable[[np.random.Generator, int], list[Case]], ...] = (
    binary,
    multiclass,
    several,
    mixtures,
    abstaining,
    grouped,
    on_logits,
    several_on_logits,
    parts_on_logits,
    segmented,
)


def cases(n: int, seed: int = 0) -> list[Case]:
    """Return all cases with n rows."""
    rng = np.random.default_rng(seed)
    return [case for family in FAMILIES for case in family(rng, n)]
