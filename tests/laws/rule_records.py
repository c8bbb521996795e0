"""One record for each kind and variant of rule: how it is made, the rows it decides, and what it decides by definition.

Every law of rules takes them from here. Probabilities, losses, costs and shares are multiples of powers of two, so that
ties are ties in floats of any size, and references are loops in exact arithmetic that use nothing of metricwise.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from pandas import DataFrame

import metricwise as mw
from metricwise.core.losses import Loss
from metricwise.rules import (
    CostRule,
    CutPointRule,
    GroupedRule,
    LabelRule,
    LabelSetRule,
    MixtureRule,
    SegmentedRule,
    TemperatureScaling,
    WeightedRule,
)

EXPORTS = {"python": mw.export.to_python, "sql": mw.export.to_sql, "onnx": mw.export.to_onnx}
TEXT = ("<i>it's</i>", 'a "b" & c', "e;--", "ü")  # labels that HTML, SQL and Python must escape


@dataclass(frozen=True)
class Rows:
    """What is decided: probabilities of M outputs, and what a rule needs besides.

    eta : list of M arrays (N, K_m); group : list of N names, or of tuples of names; cost : array (N, ...);
    single : whether the number of the second class is given alone, which is one score of all classes if there are more
    than two; scale : scores per probability (N,).
    """

    eta: list
    group: list | None = None
    cost: np.ndarray | None = None
    single: bool = False
    scale: np.ndarray | None = None
    parameter: str = "sensitive_features"  # what groups are given by

    @property
    def n_rows(self):
        return len(self.eta[0])

    def take(self, places):
        """Return the rows at these places."""
        places = np.arange(self.n_rows)[places]
        return replace(
            self,
            eta=[eta[places] for eta in self.eta],
            group=None if self.group is None else [self.group[n] for n in places],
            cost=None if self.cost is None else self.cost[places],
            scale=None if self.scale is None else self.scale[places],
        )

    @property
    def columns(self):
        """Numbers of each output, (N, K_m) or, of a single column, (N, 1)."""
        eta = self.eta if self.scale is None else [numbers * self.scale[:, None] for numbers in self.eta]
        return [numbers[:, 1:2] for numbers in eta] if self.single else eta

    @property
    def needs(self):
        """The arguments of `predict` besides probabilities."""
        if self.group is not None:
            group = np.empty(self.n_rows, dtype=object)
            group[:] = self.group
            several = isinstance(self.group[0], tuple)
            return {self.parameter: np.array(self.group, dtype=object) if several else group}
        return {} if self.cost is None else {"cost": self.cost}


@dataclass(frozen=True)
class Record:
    """A rule, and what the laws hold it to; the defaults are what most rules are.

    Parameters
    ----------
    build : callable
        Returns the rule, the same one on every call.
    rows : Rows
    definition : callable
        From the probabilities of a row, M lists of Fraction, and what else is known of it (:class:`Row`) to the
        distribution of each output: a dict from positions among its decisions to Fraction.
    drawn : bool
        Whether some decisions are drawn at random.
    refused : dict
        From what cannot be done with the rule ("python", "sql", "onnx", "report", "table", "dask", "dask_frame") to
        what the refusal says.
    hidden : sequence of labels
        Classes that neither words nor the card name, because the rule never predicts them or there are too many.
    """

    build: Callable
    rows: Rows
    definition: Callable
    drawn: bool = False
    refused: dict = field(default_factory=dict)
    hidden: Sequence[Any] = ()

    @property
    def rule(self):
        return _built(self.build)


@cache
def _built(build):
    return build()


@dataclass(frozen=True)
class Row:
    """What a definition may know of a row besides its probabilities."""

    group: Any = None
    cost: Any = None


# ------------------------------------------------------------------------------------------------------ definitions


def _surely(code):
    return {code: Fraction(1)}


def above(*thresholds):
    """The second class of each output above its threshold."""
    return lambda eta, row: [_surely(int(p[1] > Fraction(t))) for p, t in zip(eta, thresholds, strict=True)]


def heaviest(*weights):
    """The class of the largest weighted probability, the lowest of them where several are."""

    def decide(eta, row):
        scores = [
            [Fraction(w) * p for w, p in zip(factors, numbers, strict=True)]
            for numbers, factors in zip(eta, weights, strict=True)
        ]
        return [_surely(values.index(max(values))) for values in scores]

    return decide


def least(*losses):
    """The decision of least expected loss, by K x D tables for each output, the lowest of them where several are."""

    def decide(eta, row):
        scores = [
            [
                sum(p * Fraction(float(line[j])) for p, line in zip(numbers, table, strict=True))
                for j in range(len(table[0]))
            ]
            for numbers, table in zip(eta, losses, strict=True)
        ]
        return [_surely(values.index(min(values))) for values in scores]

    return decide


def rounded(cuts, grades):
    """As many classes up as cut points lie below the expected grade."""

    def decide(eta, row):
        expected = sum(g * p for g, p in zip(grades, eta[0], strict=True))
        return [_surely(sum(expected > Fraction(cut) for cut in cuts))]

    return decide


def behind(temperature, bias, decide, floor=1e-6):
    """A definition on recalibrated probabilities of one output: softmax(temperature * log(eta) + bias)."""

    def decided(eta, row):
        powers = [math.exp(temperature * math.log(max(p, floor)) + b) for p, b in zip(eta[0], bias, strict=True)]
        return decide([[Fraction(power / sum(powers)) for power in powers]], row)

    return decided


def of_scores(temperature, bias, decide):
    """A definition on the probabilities of one output that scores stand for: softmax(temperature * score + bias)."""

    def decided(eta, row):
        powers = [math.exp(temperature * score + b) for score, b in zip(eta[0], bias, strict=True)]
        return decide([[Fraction(power / sum(powers)) for power in powers]], row)

    return decided


def graded(*cuts):
    """As many classes up as cut points lie below the second number of the row."""
    return lambda eta, row: [_surely(sum(eta[0][1] > Fraction(cut) for cut in cuts))]


def mixed(shares, *definitions):
    """One of several definitions, by shares for all outputs or for each."""

    def decide(eta, row):
        parts = [definition(eta, row) for definition in definitions]
        distributions = []
        for m in range(len(eta)):
            shares_here, total = shares[m] if np.ndim(shares) == 2 else shares, {}
            for share, part in zip(shares_here, parts, strict=True):
                for code, probability in part[m].items():
                    total[code] = total.get(code, 0) + Fraction(float(share)) * probability
            distributions.append(total)
        return distributions

    return decide


def by_group(definitions, other=None):
    return lambda eta, row: definitions.get(row.group, other)(eta, row)


def cheapest(abstain_cost=None):
    """The decision of least expected cost, by the costs of the row."""

    def decide(eta, row):
        table = np.asarray(row.cost)
        if table.ndim == 1:
            table = table[:, None] * (1 - np.eye(len(table)))
        if abstain_cost is not None:
            table = np.column_stack([table, np.full(len(table), abstain_cost)])
        return least(table)(eta, row)

    return decide


def ranked(scales, offsets, low, high):
    """Of all outputs, the best `low` by scale * probability + offset, and others up to `high` if that is positive."""

    def decide(eta, row):
        scores = [Fraction(a) * p[1] + Fraction(b) for p, a, b in zip(eta, scales, offsets, strict=True)]
        order = sorted(range(len(eta)), key=lambda m: (-scores[m], m))
        taken = {m for rank, m in enumerate(order) if rank < low or (rank < high and scores[m] > 0)}
        return [_surely(int(m in taken)) for m in range(len(eta))]

    return decide


def best_set(value, low, high):
    """The most probable outputs, as many as have the highest expectation of a function of hits, true and predicted."""

    def decide(eta, row):
        chances = [p[1] for p in eta]
        order = sorted(range(len(eta)), key=lambda m: (-chances[m], m))
        expected = {}
        for size in range(low, max(low, min(high, sum(p > 0 for p in chances))) + 1):
            expected[size] = sum(
                math.prod(p if is_true else 1 - p for p, is_true in zip(chances, true, strict=True))
                * value(sum(true[m] for m in order[:size]), sum(true), size)
                for true in product((0, 1), repeat=len(eta))
            )
        best = max(expected, key=lambda size: (expected[size], -size))
        return [_surely(int(m in order[:best])) for m in range(len(eta))]

    return decide


def f1_of(hits, true, predicted):
    """F1 of a set, where two empty sets have 1/2."""
    return Fraction(2 * hits, true + predicted) if true + predicted else Fraction(1, 2)


# -------------------------------------------------------------------------------------------------------------- rows


def simplex(seed, k):
    """Rows in quarters, where many tie, in parts of 64, and all on one class."""
    rng = np.random.default_rng(seed)
    coarse = rng.multinomial(4, rng.dirichlet(np.ones(k), 24)) / 4
    fine = rng.multinomial(64, rng.dirichlet(np.ones(k), 12)) / 64
    ends = np.eye(k)[np.arange(4) % k]
    return np.concatenate([coarse, fine, ends])


def outputs(*sizes, seed=0, **others):
    return Rows([simplex(seed + m, k) for m, k in enumerate(sizes)], **others)


def named(rows, *names):
    """The rows with groups, in turn."""
    return replace(rows, group=[names[n % len(names)] for n in range(rows.n_rows)])


def in_segments(rows, *names):
    """The rows with segments, in turn."""
    return replace(named(rows, *names), parameter="segments")


def priced(rows, *shape, seed=0):
    """The rows with costs, among which many are equal."""
    cost = np.random.default_rng(seed).integers(0, 4, (rows.n_rows, *shape)).astype(float)
    return replace(rows, cost=cost)


PAIR, THREE = outputs(2), outputs(3)
SINGLE = replace(PAIR, single=True)
MIXED_SIZES = outputs(2, 3, 4)
LABELS = outputs(2, 2, seed=5, single=True)
FIVE_LABELS = outputs(2, 2, 2, 2, 2, seed=9, single=True)
SCORES = replace(THREE, scale=2.0 ** (np.arange(40) % 4 - 1))

# -------------------------------------------------------------------------------------------------------------- rules

FULL = np.array([[0.0, 1.0, 2.0], [0.75, -0.25, 1.0], [2.5, 1.5, 0.0]])
SKEWED = np.array([[0.5, 1.0, 0.25], [1.0, 0.0, 1.0], [0.25, 2.0, 0.5]])
PRICED = np.array([[0.0, 1.0, 1.0, 0.25], [1.0, 0.0, 1.0, 0.25], [2.0, 1.0, 0.0, 0.25], [9.0, 9.0, 9.0, 9.0]])
TWO_PRICED = np.array([[0.0, 1.0, 0.25], [2.0, 0.0, 0.25], [9.0, 9.0, 9.0]])
DIAGONAL = np.array([[-1.0, -2.0, -1.5], [-1.0, -1.0, -3.0]])
OFFSET = np.array([[0.0, 0.25, 0.0], [0.0, 0.0, 0.5]])
TEMPERATURE, BIAS = 0.7, (0.1, -0.3, 0.45)
LINK = TemperatureScaling(np.array([TEMPERATURE]), np.array([BIAS]), floor=1e-6)
SEGMENT_T, SEGMENT_C = np.array([0.9, 1.2]), np.array([[0.4, 0.1, -0.5], [-0.2, 0.0, 0.2]])
SCORE_MAP = TemperatureScaling(np.array([2.5]), np.array([BIAS]), floor=0.0)
SHARES, BY_OUTPUT = np.array([0.5, 0.375, 0.125]), np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])


def diagonal(m):
    """The table of the diagonal loss of output m."""
    return np.diag(DIAGONAL[m]) + OFFSET[m]


def weighted(table, link=None, labels=TEXT[:3], **options):
    return WeightedRule(Loss(full=table[None]), (np.array(labels),), link, **options)


def of_outputs(turned=False):
    """A rule of three outputs of their own classes."""
    full = np.stack([np.pad(table, ((0, 4 - len(table)),) * 2) for table in tables_of_outputs(turned)])
    classes = (np.array(["no", "yes"]), np.array(TEXT[:3]), np.array([3, 1, 4, 2]))
    return WeightedRule(Loss(full=full), classes, multioutput=True, output_names=("first", "<second>", "third"))


def tables_of_outputs(turned=False):
    distance = np.abs(np.arange(4)[:, None] - np.arange(4)) / 4
    tables = np.array([[0.0, 1.0], [3.0, 0.0]]), FULL, distance * [1.0, 1.0, 2.0, 1.0]
    return tuple(table.T for table in tables) if turned else tables


def abstaining_outputs():
    full = np.zeros((2, 4, 4))
    full[0, :3, :3], full[1] = TWO_PRICED, PRICED
    classes = (np.array(["no", "yes"]), np.array(TEXT[:3]))
    return WeightedRule(Loss(full=full), classes, multioutput=True, abstain_label="<ask>")


def thresholds(*cuts):
    return tuple(WeightedRule.from_thresholds(t, classes=TEXT[:2], pos_label=TEXT[1]) for t in cuts)


def fitted():
    """A rule that `optimize` finds, with all that it knows of itself."""
    rng = np.random.default_rng(0)
    eta = rng.dirichlet(np.ones(3), 200)
    y = (eta.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    frame = DataFrame(eta, columns=["low", "mid", "top"])
    options = {
        "subject_to": "share[top] <= 0.3",
        "confidence": None,
        "strategy": mw.Strategy(confusion="labels", recalibrate=False),
    }
    return mw.optimize(frame, np.array(["low", "mid", "top"])[y], "kappa", record=["accuracy"], **options).rule


def of_fitted(eta, row):
    return least(fitted_loss())(eta, row)


@cache
def fitted_loss():
    return fitted().loss.tensor()[0]


IN_MEMORY = "proba must be in memory, got a Dask"
ALONE = "rule must be a rule that decides by probabilities alone, got a"
BY_GROUP = {
    "onnx": "to_onnx: rule must not be a GroupedRule, because the graph has no input for the group of a row",
    "report": "report: rule must be one rule for all groups, got a rule by group",
    "table": f"{ALONE} GroupedRule, which needs sensitive_features",
    "dask": IN_MEMORY,
    "dask_frame": IN_MEMORY,
}
BY_SEGMENT = {
    "onnx": "to_onnx: rule must not be a SegmentedRule, because the graph has no input for the segment of a row",
    "report": "report: rule must be one rule for all segments, got a rule by segment",
    "table": f"{ALONE} SegmentedRule, which needs segments",
    "dask": IN_MEMORY,
    "dask_frame": IN_MEMORY,
}
BY_COSTS = {
    **dict.fromkeys(
        ["python", "sql", "onnx"], "rule must not be a CostRule, because exports do not support costs per row"
    ),
    "report": f"{ALONE} CostRule, which needs cost",
    "table": f"{ALONE} CostRule, which needs cost",
    "dask": IN_MEMORY,
    "dask_frame": IN_MEMORY,
}
DRAWN = {"dask_frame": "the rule draws by row position, but the partitions of a Dask data frame do not know"}
LIST_OF_FRAMES = {"dask_frame": "proba given as a list of Dask collections must hold Dask arrays, got data frames"}
OF_ONE_TYPE = "the labels of an output must have a single type in"

NO_TABLE = dict.fromkeys(
    EXPORTS, "rule must not be a LabelSetRule, because the best set of labels of a row is found by"
)
MANY_LABELS = dict.fromkeys(
    EXPORTS, "rule must not be a LabelRule, because exports do not support rules for very many labels"
)
LIMITED = MANY_LABELS | dict.fromkeys(
    EXPORTS, r"rule must not be a LabelRule, because .* does not support labels_per_row, by which .*; use rule.predict"
)

RECORDS = {
    # by hand
    "threshold": Record(lambda: thresholds(0.25)[0], SINGLE, above(0.25)),
    "threshold, both columns": Record(lambda: thresholds(0.25)[0], PAIR, above(0.25)),
    "thresholds": Record(
        lambda: WeightedRule.from_thresholds({"<b>news</b>": 0.25, "sport": 0.625}), LABELS, above(0.25, 0.625)
    ),
    "always": Record(lambda: thresholds(-np.inf)[0], SINGLE, above(-1), hidden=TEXT[:1]),
    "class weights": Record(
        lambda: WeightedRule.from_weights(dict(zip(TEXT[:3], [1, 2, 1.5], strict=True)), classes=TEXT[:3]),
        THREE,
        heaviest([1, 2, 1.5]),
    ),
    "class weights of outputs": Record(
        lambda: WeightedRule.from_weights([[1, 3, 1], [1, 1, 2]], classes=TEXT[:3], output_names=["x", "y"]),
        outputs(3, 3),
        heaviest([1, 3, 1], [1, 1, 2]),
        refused=LIST_OF_FRAMES,
    ),
    "cut points": Record(
        lambda: WeightedRule.from_cut_points([1.5, 2.25, 3.5], grades=[1, 2, 3, 4], classes=[1, 2, 3, 4]),
        outputs(4),
        rounded([1.5, 2.25, 3.5], [1, 2, 3, 4]),
    ),
    # one loss
    "diagonal": Record(
        lambda: WeightedRule(Loss(diagonal=DIAGONAL[:1], offset=OFFSET[:1]), (np.array([5, 3, 4]),)),
        THREE,
        least(diagonal(0)),
    ),
    "full": Record(lambda: weighted(FULL), THREE, least(FULL)),
    "inverted": Record(  # the second class below a probability
        lambda: WeightedRule(Loss(full=np.array([[[1.0, 0.0], [0.0, 1.0]]])), (np.array([False, True]),)),
        PAIR,
        least(np.array([[1.0, 0.0], [0.0, 1.0]])),
    ),
    "labels of several types": Record(
        lambda: weighted(FULL, labels=np.array(["one", 2, 3.5], dtype=object)),
        THREE,
        least(FULL),
        refused={"sql": OF_ONE_TYPE, "onnx": OF_ONE_TYPE},
    ),
    "scores": Record(lambda: weighted(SKEWED, normalize=True), SCORES, least(SKEWED)),
    "linked": Record(lambda: weighted(FULL, LINK), THREE, behind(TEMPERATURE, BIAS, least(FULL))),
    "fitted": Record(fitted, THREE, of_fitted),
    # scores
    "threshold of a score": Record(lambda: CutPointRule([[0.25]], (np.array(TEXT[:2]),)), SINGLE, above(0.25)),
    "thresholds of scores": Record(
        lambda: CutPointRule([[0.25], [0.625]], (np.arange(2),) * 2, "scores", True, ("<b>news</b>", "sport")),
        LABELS,
        above(0.25, 0.625),
    ),
    "grades": Record(
        lambda: CutPointRule([[0.125, 0.25, 0.5]], (np.array(TEXT),)),
        replace(outputs(4), single=True),
        graded(0.125, 0.25, 0.5),
    ),
    "scores of all classes": Record(
        lambda: weighted(FULL, SCORE_MAP, input="scores"), THREE, of_scores(2.5, BIAS, least(FULL))
    ),
    # several outputs
    "outputs": Record(of_outputs, MIXED_SIZES, least(*tables_of_outputs()), refused=LIST_OF_FRAMES),
    "outputs of as many classes": Record(
        lambda: WeightedRule(Loss(diagonal=DIAGONAL, offset=OFFSET), (np.array(TEXT[:3]),) * 2, multioutput=True),
        outputs(3, 3),
        least(diagonal(0), diagonal(1)),
        refused=LIST_OF_FRAMES,
    ),
    # abstentions
    "abstaining": Record(lambda: weighted(PRICED, abstain_label="<ask>"), THREE, least(PRICED[:3])),
    "abstaining, one column": Record(
        lambda: WeightedRule(Loss(full=TWO_PRICED[None]), (np.array([0, 1]),), abstain_label=-1),
        SINGLE,
        least(TWO_PRICED[:2]),
    ),
    "abstaining outputs": Record(
        abstaining_outputs, outputs(2, 3), least(TWO_PRICED[:2], PRICED[:3]), refused=LIST_OF_FRAMES
    ),
    # mixtures
    "mixture": Record(
        lambda: MixtureRule((weighted(FULL), weighted(SKEWED), weighted(FULL.T)), SHARES, seed=7),
        THREE,
        mixed(SHARES, least(FULL), least(SKEWED), least(FULL.T)),
        drawn=True,
        refused=DRAWN,
    ),
    "mixture of thresholds": Record(
        lambda: MixtureRule(thresholds(0.25, 0.75), np.array([0.5, 0.5]), seed=2**64 - 1),
        SINGLE,
        mixed([0.5, 0.5], above(0.25), above(0.75)),
        drawn=True,
        refused=DRAWN,
    ),
    "mixture of outputs": Record(
        lambda: MixtureRule((of_outputs(), of_outputs(turned=True)), BY_OUTPUT, seed=3),
        MIXED_SIZES,
        mixed(BY_OUTPUT, least(*tables_of_outputs()), least(*tables_of_outputs(turned=True))),
        drawn=True,
        refused=LIST_OF_FRAMES,
    ),
    "mixture that abstains": Record(
        lambda: MixtureRule(
            (weighted(PRICED, abstain_label="<ask>"), weighted(PRICED.T, abstain_label="<ask>")), np.array([0.75, 0.25])
        ),
        THREE,
        mixed([0.75, 0.25], least(PRICED[:3]), least(PRICED.T[:3])),
        drawn=True,
        refused=DRAWN,
    ),
    "mixture with links": Record(
        lambda: MixtureRule((weighted(FULL, LINK), weighted(FULL)), np.array([0.25, 0.75])),
        THREE,
        mixed([0.25, 0.75], behind(TEMPERATURE, BIAS, least(FULL)), least(FULL)),
        drawn=True,
        refused=DRAWN,
    ),
    # rules by group
    "grouped": Record(
        lambda: GroupedRule(thresholds(0.25, 0.625), ("<f>", "m"), ("sex",)),
        named(SINGLE, "<f>", "m"),
        by_group({"<f>": above(0.25), "m": above(0.625)}),
        refused=BY_GROUP,
    ),
    "grouped of mixtures": Record(
        lambda: GroupedRule(
            (MixtureRule((weighted(FULL), weighted(SKEWED)), np.array([0.25, 0.75]), seed=5), weighted(FULL.T)),
            (1, 2),
            ("region",),
        ),
        named(THREE, 1, 2),
        by_group({1: mixed([0.25, 0.75], least(FULL), least(SKEWED)), 2: least(FULL.T)}),
        drawn=True,
        refused=BY_GROUP,
    ),
    "grouped with a rule for others": Record(
        lambda: GroupedRule(
            tuple(weighted(table) for table in (FULL, SKEWED)),
            (("f", 1), ("m", 2)),
            ("sex", "region"),
            other=weighted(FULL.T),
        ),
        named(THREE, ("f", 1), ("m", 2), ("m", 1), ("x", 3)),
        by_group({("f", 1): least(FULL), ("m", 2): least(SKEWED)}, other=least(FULL.T)),
        refused=BY_GROUP,
    ),
    "grouped that abstains of others": Record(
        lambda: GroupedRule(
            (weighted(PRICED, abstain_label="<ask>"), weighted(PRICED.T, abstain_label="<ask>")),
            ("a", "b"),
            ("kind",),
            other=weighted(np.ones((4, 4)) - np.eye(4)[3], abstain_label="<ask>"),
        ),
        named(THREE, "a", "b", "z"),
        by_group({"a": least(PRICED[:3]), "b": least(PRICED.T[:3])}, other=lambda eta, row: [_surely(3)]),
        refused=BY_GROUP,
    ),
    "grouped outputs": Record(
        lambda: GroupedRule((of_outputs(), of_outputs(turned=True)), ("a", "b"), ("kind",)),
        named(MIXED_SIZES, "a", "b"),
        by_group({"a": least(*tables_of_outputs()), "b": least(*tables_of_outputs(turned=True))}),
        refused=BY_GROUP,
    ),
    # rules by segment
    "segmented": Record(
        lambda: SegmentedRule(weighted(FULL, LINK), ("DE", "<x>"), SEGMENT_T[:, None], SEGMENT_C[:, None], ("land",)),
        in_segments(THREE, "DE", "<x>", "FR"),
        by_group(
            {name: behind(t, c, least(FULL)) for name, t, c in zip(("DE", "<x>"), SEGMENT_T, SEGMENT_C, strict=True)},
            other=behind(TEMPERATURE, BIAS, least(FULL)),
        ),
        refused=BY_SEGMENT,
    ),
    "segmented mixture": Record(
        lambda: SegmentedRule(
            MixtureRule((weighted(FULL, LINK), weighted(SKEWED, LINK)), np.array([0.25, 0.75]), seed=5),
            (("a", 1), ("b", 2)),
            SEGMENT_T[:, None],
            SEGMENT_C[:, None],
            ("kind", "size"),
        ),
        in_segments(THREE, ("a", 1), ("b", 2), ("b", 1)),
        by_group(
            {
                name: mixed([0.25, 0.75], behind(t, c, least(FULL)), behind(t, c, least(SKEWED)))
                for name, t, c in zip((("a", 1), ("b", 2)), SEGMENT_T, SEGMENT_C, strict=True)
            },
            other=mixed([0.25, 0.75], *(behind(TEMPERATURE, BIAS, least(table)) for table in (FULL, SKEWED))),
        ),
        drawn=True,
        refused=BY_SEGMENT,
    ),
    # costs of each row
    "costs": Record(lambda: CostRule((np.array(TEXT[:3]),)), priced(THREE, 3), cheapest(), refused=BY_COSTS),
    "cost tables": Record(lambda: CostRule((np.array([0, 1]),)), priced(SINGLE, 2, 2), cheapest(), refused=BY_COSTS),
    "costs with a price of abstaining": Record(
        lambda: CostRule((np.array(TEXT[:3]),), abstain_label="<ask>", abstain_cost=0.75),
        priced(THREE, 3),
        cheapest(0.75),
        refused=BY_COSTS,
    ),
    "costs of abstaining": Record(
        lambda: CostRule((np.array(TEXT[:3]),), abstain_label="<ask>"),
        priced(THREE, 3, 4),
        cheapest(),
        refused=BY_COSTS,
    ),
    "costs behind a link": Record(
        lambda: CostRule((np.array(TEXT[:3]),), LINK),
        priced(THREE, 3, 3),
        behind(TEMPERATURE, BIAS, cheapest()),
        refused=BY_COSTS,
    ),
    # very many labels
    "labels": Record(
        lambda: LabelRule.from_thresholds([0.25, 0.625], output_names=("<b>news</b>", "sport")),
        LABELS,
        above(0.25, 0.625),
        refused=MANY_LABELS,
    ),
    "labels, at most two": Record(
        lambda: LabelRule(
            [1.0, 2.0, 0.5, 1.0, 1.0],
            [-0.25, -1.0, -0.125, 0.125, -0.25],
            2,
            classes=(False, True),
            output_names=tuple("abcde"),
            form={"numerator": (2, 0, 0, 0), "denominator": (0, 1, 1, 0), "damped": True},
            label_weight=[1.0, 2.0, 1.0, 1.0, 1.0],
        ),
        FIVE_LABELS,
        ranked([1, 2, 0.5, 1, 1], [-0.25, -1, -0.125, 0.125, -0.25], 0, 2),
        refused=LIMITED,
    ),
    "labels, two to three, recalibrated": Record(
        lambda: LabelRule(
            [1.0] * 5, [-0.5] * 5, (2, 3), temperature=0.5, bias=0.0, factor=[1.0] * 5, output_names=tuple("abcde")
        ),
        FIVE_LABELS,
        ranked([1] * 5, [-0.5] * 5, 2, 3),
        refused=LIMITED,
    ),
    "label sets": Record(
        lambda: LabelSetRule(5, zero_division=0.5, output_names=tuple("abcde")),
        FIVE_LABELS,
        best_set(f1_of, 0, 5),
        refused=NO_TABLE,
    ),
    "label sets, one to two, by Jaccard": Record(
        lambda: LabelSetRule(5, jaccard=True, labels_per_row=(1, 2), factor=[0.5] * 5, output_names=tuple("abcde")),
        FIVE_LABELS,
        lambda eta, row: best_set(lambda hits, true, size: Fraction(hits, true + size - hits), 1, 2)(
            [[1 - p[1] / 2, p[1] / 2] for p in eta], row
        ),
        refused=NO_TABLE,
    ),
}  # fmt: skip


def array_of(rule, rows):
    """The probabilities as arrays, in the shape that is usual for the target."""
    columns = rows.columns
    if rule.schema.multioutput:
        return np.hstack(columns) if rows.single else columns
    return columns[0][:, 0] if rows.single else columns[0]


def distribution_by_definition(record):
    """The distribution (N, M, D) of each row by its definition, abstentions in the last column."""
    rows, schema = record.rows, record.rule.schema
    distribution = np.zeros((rows.n_rows, len(rows.eta), schema.decision_width))
    for n in range(rows.n_rows):
        row = Row(None if rows.group is None else rows.group[n], None if rows.cost is None else rows.cost[n])
        eta = [[Fraction(p) for p in numbers[n].tolist()] for numbers in rows.eta]
        for m, shares in enumerate(record.definition(eta, row)):
            for code, share in shares.items():
                distribution[n, m, -1 if code == len(eta[m]) else code] += float(share)
    return distribution
