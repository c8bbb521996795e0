"""One record for each kind of constraint: as text, as an object, and the bounded quantity by somebody else's count.

Quantities are computed of tables of counts, which the tests fill by loops over rows and hold to scikit-learn; they use
nothing of metricwise.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
from sklearn import metrics as sk

import metricwise as mw

# ------------------------------------------------------------------------------------------------------------- scores
#
# From tables (..., K, D) of counts, true classes by decisions, to numerator and denominator (...). A decision beyond
# the classes is to abstain.


def recall(j):
    return lambda C: (C[..., j, j], C[..., j, :].sum(axis=-1))


def precision(j):
    return lambda C: (C[..., j, j], C[..., :, j].sum(axis=-1))


def share(j):
    return lambda C: (C[..., :, j].sum(axis=-1), C.sum(axis=(-2, -1)))


def decided_as(i, j):
    """The share of the rows of class i that are decided as j."""
    return lambda C: (C[..., i, j], C[..., i, :].sum(axis=-1))


def specificity(j):
    def score(C):
        others = np.delete(C, j, axis=-2)
        return np.delete(others, j, axis=-1).sum(axis=(-2, -1)), others.sum(axis=(-2, -1))

    return score


def false_positive_rate(j):
    def score(C):
        others = np.delete(C, j, axis=-2)
        return others[..., j].sum(axis=-1), others.sum(axis=(-2, -1))

    return score


def f1(j):
    return lambda C: (2 * C[..., j, j], C[..., :, j].sum(axis=-1) + C[..., j, :].sum(axis=-1))


def accuracy(C):
    """Of the rows that are decided."""
    k = C.shape[-2]
    return np.trace(C[..., :k], axis1=-2, axis2=-1), C[..., :k].sum(axis=(-2, -1))


def abstained(C):
    return C[..., -1].sum(axis=-1), C.sum(axis=(-2, -1))


def coverage(C):
    return C[..., :-1].sum(axis=(-2, -1)), C.sum(axis=(-2, -1))


def mean_cost(table):
    return lambda C: ((C * table).sum(axis=(-2, -1)), C.sum(axis=(-2, -1)))


def kappa(C):
    total, hits = C.sum(axis=(-2, -1)), np.trace(C, axis1=-2, axis2=-1)
    chance = (C.sum(axis=-1) * C.sum(axis=-2)).sum(axis=-1) / total
    return hits - chance, total - chance


def balanced_accuracy(C):
    return _recalls(C).mean(axis=-1), np.ones(C.shape[:-2])


def min_recall(C):
    return _recalls(C).min(axis=-1), np.ones(C.shape[:-2])


def g_mean(C):
    return _recalls(C).prod(axis=-1) ** (1 / C.shape[-2]), np.ones(C.shape[:-2])


def _recalls(C):
    return np.diagonal(C, axis1=-2, axis2=-1) / C.sum(axis=-1)


# What scikit-learn says of the same, of codes and weights.
SCIKIT_LEARN = {
    "recall": (recall(1), lambda y, d, w: sk.recall_score(y, d, labels=[1], average="macro", sample_weight=w)),
    "precision": (precision(1), lambda y, d, w: sk.precision_score(y, d, labels=[1], average="macro", sample_weight=w)),
    "share": (share(1), lambda y, d, w: np.average(d == 1, weights=w)),
    "decided_as": (decided_as(0, 1), lambda y, d, w: np.average(d[y == 0] == 1, weights=w[y == 0])),
    "specificity": (specificity(1), lambda y, d, w: sk.recall_score(y != 1, d != 1, sample_weight=w)),
    "false_positive_rate": (false_positive_rate(1), lambda y, d, w: np.average(d[y != 1] == 1, weights=w[y != 1])),
    "f1": (f1(1), lambda y, d, w: sk.f1_score(y, d, labels=[1], average="macro", sample_weight=w)),
    "accuracy": (accuracy, lambda y, d, w: sk.accuracy_score(y, d, sample_weight=w)),
    "mean_cost": (mean_cost([[0, 1, 2], [3, 0, 1], [1, 5, 0]]),
                  lambda y, d, w: np.average(np.array([[0, 1, 2], [3, 0, 1], [1, 5, 0]])[y, d], weights=w)),
    "kappa": (kappa, lambda y, d, w: sk.cohen_kappa_score(y, d, sample_weight=w)),
    "balanced_accuracy": (balanced_accuracy, lambda y, d, w: sk.balanced_accuracy_score(y, d, sample_weight=w)),
    "min_recall": (min_recall, lambda y, d, w: sk.recall_score(y, d, average=None, sample_weight=w).min()),
    "g_mean": (g_mean, lambda y, d, w: np.prod(sk.recall_score(y, d, average=None, sample_weight=w)) ** (1 / 3)),
}  # fmt: skip

# ------------------------------------------------------------------------------------------------------------- worlds


@dataclass(frozen=True)
class World:
    """Rows with labels: probabilities of M outputs, their classes, codes (N, M), and a group for each row or None."""

    eta: list
    classes: list
    codes: np.ndarray
    group: np.ndarray | None = None
    average: str | None = None

    @property
    def proba(self):
        return self.eta if len(self.eta) > 1 else self.eta[0]

    @property
    def y(self):
        labels = [np.array(names, dtype=object)[self.codes[:, m]] for m, names in enumerate(self.classes)]
        return np.stack(labels, axis=1) if len(labels) > 1 else np.array(labels[0].tolist())

    @property
    def options(self):
        """What `optimize` is told besides."""
        options = {} if self.group is None else {"sensitive_features": self.group}
        return options if self.average is None else {**options, "average": self.average}

    @property
    def groups(self):
        return [None] if self.group is None else sorted(set(self.group.tolist()))


def drawn(seed, *classes, n=60, groups=None, average=None):
    """Rows of few digits, whose labels are drawn by their probabilities; later groups have later classes more often."""
    rng = np.random.default_rng(seed)
    group = None if groups is None else np.array(groups)[np.arange(n) % len(groups)]
    eta, codes = [], []
    for names in classes:
        lean = np.linspace(1.6, 0.8, len(names)) * np.ones((n, 1))
        if groups is not None:
            lean[:, -1] += (np.arange(n) % len(groups)) * 0.8
        eta.append(np.array([rng.multinomial(20, rng.dirichlet(row)) / 20 for row in lean]))
        codes.append((eta[-1].cumsum(axis=1) < rng.random((n, 1)) * 0.9999).sum(axis=1))
    return World(eta, [list(names) for names in classes], np.stack(codes, axis=1), group, average)


WORLDS = {
    "binary": drawn(1, [0, 1]),
    "three": drawn(2, ["low", "mid", "top"]),
    "outputs": drawn(3, ["no", "yes"], ["low", "mid", "top"], average="macro"),
    "groups": drawn(18, [0, 1], groups=["a", "b"], n=40),
    "three groups": drawn(5, ["low", "mid", "top"], groups=["a", "b"], n=45),
}

# ------------------------------------------------------------------------------------------------------------ records


@dataclass(frozen=True)
class Record:
    """A kind of constraint, and what the laws hold it to.

    Parameters
    ----------
    world : str
    text : str
        With places for bounds.
    written : callable
        From bounds to the object that says the same.
    scores : tuple of callables
        What is bounded, of tables of counts.
    tight : tuple of float
        Bounds that the best rule without them breaks, and some rule keeps.
    sense : {"floor", "ceiling", "both"}
    over : {"gap", "every"} or name of a group, optional
        Whether the largest difference between groups is bounded, the score of every group, or that of one.
    loose : tuple of float, optional
        Bounds that the best rule without them keeps.
    unreachable : tuple of float, optional
        Bounds that no rule keeps.
    advised : {"proved", "about"}, optional
        Whether the refusal of these says what is reached, and if so, as what.
    output : int
        Which output it is about.
    near_prior : bool
        Whether the score, the share of the last class, must be near the share of rows that are of it.
    linear : bool
        Whether the score is linear, or a ratio, in the counts.
    options : dict
        What `optimize` is told besides.
    """

    world: str
    text: str
    written: Callable
    scores: tuple
    tight: tuple
    sense: str = "floor"
    over: Any = None
    loose: tuple | None = None
    unreachable: tuple | None = None
    advised: str | None = None
    output: int = 0
    near_prior: bool = False
    linear: bool = True
    options: dict = field(default_factory=dict)

    def values(self, tables):
        """The bounded quantities (..., Q) of tables (..., G, K, D), NaN at 0/0."""
        parts = []
        for score in self.scores:
            if self.over is None:
                parts.append(self._value(score, tables.sum(axis=-3)))
                continue
            each = [self._value(score, tables[..., g, :, :]) for g in range(tables.shape[-3])]
            if self.over == "gap":
                parts += [left - right for left, right in permutations(each, 2)]
            else:
                names = WORLDS[self.world].groups
                parts += each if self.over == "every" else [each[names.index(self.over)]]
        return np.stack(parts, axis=-1)

    def _value(self, score, tables):
        numerator, denominator = score(tables)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(denominator > 0, numerator / denominator, np.nan)

    def ends(self, bounds):
        """The numbers between which the quantity must lie."""
        if self.near_prior:  # of the last class
            world = WORLDS[self.world]
            prior = np.mean(world.codes[:, self.output] == len(world.classes[self.output]) - 1)
            return prior - bounds[0], prior + bounds[0]
        if self.sense == "both":
            return bounds
        return (bounds[0], np.inf) if self.sense == "floor" else (-np.inf, bounds[0])

    def keeps(self, tables, bounds, tol=1e-9):
        """Whether tables (..., G, K, D) keep bounds; 0/0 keeps none."""
        low, high = self.ends(bounds)
        values = self.values(tables)
        with np.errstate(invalid="ignore"):
            return ((values >= low - tol) & (values <= high + tol)).all(axis=-1)

    def worst(self, tables):
        """The least of what has a floor, the largest of what has a ceiling."""
        values = self.values(tables)
        return values.min(axis=-1) if self.sense == "floor" else values.max(axis=-1)


def floor(name, *labels):
    return lambda bound: mw.at_least(name, bound, *labels)


def ceiling(name, *labels):
    return lambda bound: mw.at_most(name, bound, *labels)


def gap(name, *labels):
    return lambda bound: mw.at_most(mw.gap(name, *labels), bound)


def every(written):
    return lambda *bounds: mw.in_every_group(written(*bounds))


COSTS = [[0, 1, 2], [3, 0, 1], [1, 5, 0]]
ABSTAIN = {"abstain": mw.Abstention(label="?")}
PARITY = {"sense": "ceiling", "over": "gap", "loose": (0.99,)}

RECORDS = {
    # a metric of two classes
    "recall": Record("binary", "recall >= {}", floor("recall"), (recall(1),), (0.9,), loose=(0.05,)),
    "precision": Record(
        "binary", "precision >= {}", floor("precision"), (precision(1),), (0.9,), loose=(0.1,)
    ),
    "specificity": Record(
        "binary", "specificity >= {}", floor("specificity"), (specificity(1),), (0.99,), loose=(0.1,)
    ),
    "false positive rate": Record(
        "binary", "false_positive_rate <= {}", ceiling("false_positive_rate"), (false_positive_rate(1),), (0.01,),
        "ceiling", loose=(0.9,),
    ),
    "share, at most": Record("binary", "share <= {}", ceiling("share"), (share(1),), (0.1,), "ceiling", loose=(0.95,)),
    "share, at least": Record("binary", "share >= {}", floor("share"), (share(1),), (0.7,), loose=(0.05,)),
    "share, between": Record(
        "binary", "{} <= share <= {}", lambda low, high: mw.between("share", low, high), (share(1),), (0.15, 0.35),
        "both", loose=(0.05, 0.95),
    ),
    "share near the prior": Record(
        "binary", "share within {} of prior", mw.near_prior, (share(1),), (0.15,), "both", loose=(0.4,),
        near_prior=True, options={"metric": "recall"},
    ),
    "f1": Record(
        "binary", "f1 >= {}", floor("f1"), (f1(1),), (0.6,), loose=(0.1,), unreachable=(0.99,), advised="proved",
        options={"metric": "precision"},
    ),
    "f1, at most": Record("binary", "f1 <= {}", ceiling("f1"), (f1(1),), (0.5,), "ceiling", loose=(0.99,)),
    "kappa": Record(
        "binary", "kappa >= {}", floor("kappa"), (kappa,), (0.3,), loose=(0.01,), unreachable=(0.99,), advised="proved",
        options={"metric": "recall"},
    ),
    "accuracy": Record(
        "binary", "accuracy >= {}", floor("accuracy"), (accuracy,), (0.7,), loose=(0.1,), unreachable=(0.99,),
        advised="proved", options={"metric": "recall"},
    ),
    "smallest recall": Record(
        "binary", "min_recall >= {}", floor("min_recall"), (min_recall,), (0.7,), loose=(0.01,), unreachable=(0.99,),
        advised="proved", linear=False,
    ),
    # of a class of three
    "recall of a class": Record(
        "three", "recall[top] >= {}", floor("recall", "top"), (recall(2),), (0.9,), loose=(0.05,)
    ),
    "precision of a class": Record(
        "three", "precision[mid] >= {}", floor("precision", "mid"), (precision(1),), (0.85,), loose=(0.1,),
    ),
    "share of a class": Record(
        "three", "share[low] <= {}", ceiling("share", "low"), (share(0),), (0.3,), "ceiling", loose=(0.95,)
    ),
    "share of a class, between": Record(
        "three", "{} <= share[mid] <= {}", lambda low, high: mw.between("share", low, high, "mid"), (share(1),),
        (0.4, 0.5), "both", loose=(0.05, 0.95),
    ),
    "share of a class near the prior": Record(
        "three", "share[top] within {} of prior", lambda t: mw.near_prior(t, "top"), (share(2),), (0.02,), "both",
        loose=(0.5,), near_prior=True, options={"metric": "recall[top]"},
    ),
    "false positive rate of a class": Record(
        "three", "false_positive_rate[low] <= {}", ceiling("false_positive_rate", "low"), (false_positive_rate(0),),
        (0.05,), "ceiling", loose=(0.9,),
    ),
    "f1 of a class": Record(
        "three", "f1[mid] >= {}", floor("f1", "mid"), (f1(1),), (0.6,), loose=(0.05,), unreachable=(0.99,),
        options={"metric": "recall[low]"}, advised="about",
    ),
    "accuracy of three classes": Record(
        "three", "accuracy >= {}", floor("accuracy"), (accuracy,), (0.6,), loose=(0.2,), unreachable=(0.99,),
        options={"metric": "recall[top]"}, advised="about",
    ),
    "balanced accuracy": Record(
        "three", "balanced_accuracy >= {}", floor("balanced_accuracy"), (balanced_accuracy,), (0.6,), loose=(0.2,),
        options={"metric": "recall[low]"}, linear=False,
    ),
    "concave": Record(
        "three", "g_mean >= {}", floor("g_mean"), (g_mean,), (0.6,), loose=(0.01,), linear=False,
        options={"metric": "recall[low]"},
    ),
    # of one of several outputs
    "recall of an output": Record(
        "outputs", "recall[0, yes] >= {}", floor("recall", 0, "yes"), (recall(1),), (0.9,), loose=(0.05,)
    ),
    "share of an output": Record(
        "outputs", "share[1, low] <= {}", ceiling("share", 1, "low"), (share(0),), (0.3,), "ceiling", loose=(0.95,),
        output=1,
    ),
    "accuracy of an output": Record(
        "outputs", "accuracy[1] >= {}", floor("accuracy", 1), (accuracy,), (0.6,), loose=(0.1,), output=1,
        options={"metric": ["accuracy", "recall[top]"]},
    ),
    # of sensitive groups
    "demographic parity": Record(
        "groups", "demographic_parity <= {}", ceiling("demographic_parity"), (share(1),), (0.05,), **PARITY
    ),
    "equal opportunity": Record(
        "groups", "equal_opportunity <= {}", ceiling("equal_opportunity"), (recall(1),), (0.05,), **PARITY
    ),
    "equalized odds": Record(
        "groups", "equalized_odds <= {}", ceiling("equalized_odds"), (recall(0), recall(1)), (0.1,), **PARITY
    ),
    "predictive parity": Record(
        "groups", "predictive_parity <= {}", ceiling("predictive_parity"), (precision(1),), (0.1,), linear=False,
        **PARITY,
    ),
    "gap of a metric": Record("groups", "accuracy gap <= {}", gap("accuracy"), (accuracy,), (0.05,), **PARITY),
    "gap of a ratio": Record("groups", "f1 gap <= {}", gap("f1"), (f1(1),), (0.12,), linear=False, **PARITY),
    "in every group": Record(
        "groups", "recall >= {} in every group", every(floor("recall")), (recall(1),), (0.7,), over="every",
        loose=(0.05,),
    ),
    "at most in every group": Record(
        "groups", "share <= {} in every group", every(ceiling("share")), (share(1),), (0.3,), "ceiling", over="every",
        loose=(0.99,),
    ),
    "in a group": Record(
        "groups", "precision >= {} in group a", lambda b: mw.in_group(mw.at_least("precision", b), "a"),
        (precision(1),), (0.85,), over="a", loose=(0.05,),
    ),
    "demographic parity of three classes": Record(
        "three groups", "demographic_parity <= {}", ceiling("demographic_parity"), tuple(map(share, range(3))), (0.1,),
        **PARITY,
    ),
    "demographic parity of a class": Record(
        "three groups", "demographic_parity[top] <= {}", ceiling("demographic_parity", "top"), (share(2),), (0.05,),
        **PARITY,
    ),
    "equal opportunity of three classes": Record(
        "three groups", "equal_opportunity <= {}", ceiling("equal_opportunity"), tuple(map(recall, range(3))), (0.1,),
        **PARITY,
    ),
    "equalized odds of three classes": Record(
        "three groups", "equalized_odds <= {}", ceiling("equalized_odds"),
        tuple(decided_as(i, j) for i in range(3) for j in range(3)), (0.15,), **PARITY,
    ),
    "gap of a class": Record(
        "three groups", "recall[top] gap <= {}", gap("recall", "top"), (recall(2),), (0.05,), **PARITY
    ),
    # abstentions
    "abstained": Record(
        "three", "abstained <= {}", ceiling("abstained"), (abstained,), (0.1,), "ceiling", loose=(0.9,), options=ABSTAIN
    ),
    "coverage": Record(
        "three", "coverage >= {}", floor("coverage"), (coverage,), (0.9,), loose=(0.1,), options=ABSTAIN
    ),
    "accuracy of what is decided, the most": Record(
        "three", "accuracy >= {}", floor("accuracy"), (accuracy,), (0.75,), loose=(0.2,),
        options={**ABSTAIN, "metric": "coverage"},
    ),
    "accuracy of what is decided": Record(
        "three", "accuracy >= {} and abstained <= 0.5",
        lambda b: [mw.at_least("accuracy", b), mw.at_most("abstained", 0.5)], (accuracy,), (0.75,), loose=(0.2,),
        options={**ABSTAIN, "metric": "recall[top]"},
    ),
}  # fmt: skip


def having(**traits):
    """Names of the records with these traits."""
    return [
        name for name, record in RECORDS.items() if all(getattr(record, key) == trait for key, trait in traits.items())
    ]
