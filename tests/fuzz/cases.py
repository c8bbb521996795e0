"""Seeded cases: a target, its probabilities, labels and weights, a metric, and the guises that all of it comes in."""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

import metricwise as mw
from fuzz.guises import DTYPES, LAYOUTS, MARKS, dress_labels, dress_proba, proba_layouts
from fuzz.references import HUNTED
from laws.metric_records import RECORDS, make
from metricwise.metrics.scales import in_order

LABELS = {"confusion": "labels", "recalibrate": False}
TARGETS = ("binary", "multiclass", "multilabel", "multioutput")
WEIGHTS = ("none", "integer", "float", "zeros")
FORMS = {  # what probabilities look like: those of class 1 alone, rows of all classes, one array per output, one cube
    "binary": ("positive", "rows"),
    "multiclass": ("rows",),
    "multilabel": ("positive", "list", "cube"),
    "multioutput": ("list", "cube"),
}
# Classes in column order, which for words is not that of the alphabet; outputs of fewer classes have the first ones.
NAMES = {
    "int8": ([0, 1, 2, 3], [0, 2, 5, 9], [1, 2, 3, 4]),
    "int64": ([0, 1, 2, 3], [0, 3, 500, 7000], [3, 2, 1, 0]),
    "float": ([0.0, 1.0, 2.0, 3.0], [0.5, 1.0, 2.5, 4.0]),
    "bool": ([False, True],),
    "str": (["low", "mid", "high", "top"], ["a", "b", "c", "d"]),
    "object": (["no", 1, 2.5, "top"], [0, 1, 2, 3]),
}


@dataclass
class Case:
    """A problem, by codes; `proba` is what the layouts are made of, a list of M arrays or one array."""

    target: str
    seed: int
    metric: str
    average: str
    zero_division: float
    sizes: tuple
    form: str
    proba: list | np.ndarray
    codes: np.ndarray
    weights: str
    weight: np.ndarray | None
    output_weight: np.ndarray | None
    kind: str
    names: list
    mark: str
    label_layout: str
    proba_layout: str
    order: np.ndarray = field(repr=False)

    def __str__(self):
        return (
            f"draw({self.target!r}, {self.seed}): {self.metric}, {self.average}, zero_division={self.zero_division}, "
            f"{self.sizes} classes, {self.weights} weights, labels: {self.kind}, missing {self.mark}, "
            f"{self.label_layout}, proba: {self.form}, {self.dtype}, {self.proba_layout}"
        )

    @property
    def dtype(self):
        return str((self.proba[0] if isinstance(self.proba, list) else self.proba).dtype)

    @property
    def one_output(self):
        return self.target in ("binary", "multiclass")

    @property
    def row_weight(self):
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    @property
    def alpha(self):
        return np.ones(len(self.sizes)) if self.output_weight is None else self.output_weight

    @property
    def our_metric(self):
        return make(self.metric, max(self.sizes), self.zero_division, c=1)

    @property
    def named_metric(self):
        """The metric of labels, for which classes are in the order of their columns."""
        metric = in_order(self.our_metric, tuple(map(tuple, self.names)))
        if getattr(metric, "negative_index", 0) is None and metric.negative_label is None:
            metric = replace(metric, negative_index=0)
        return metric

    @property
    def column_class(self):
        """What single columns are of, the second classes; None where there are all columns."""
        if self.form != "positive":
            return None
        return self.names[0][1] if self.one_output else [own[1] for own in self.names]

    @property
    def y(self):
        return dress_labels(self.codes, self.names, self.kind, self.mark, self.label_layout, self.one_output)

    @cached_property
    def eta(self):
        """Probabilities of each output as float64 (N, K_m)."""
        if isinstance(self.proba, list):
            return [part.astype(np.float64) for part in self.proba]
        proba = self.proba.astype(np.float64)
        if self.form == "positive":
            return [np.column_stack([1 - p, p]) for p in proba.reshape(len(proba), -1).T]
        cube = proba[:, None] if proba.ndim == 2 else proba
        return [cube[:, m, :k] for m, k in enumerate(self.sizes)]

    @property
    def plain_argmax(self):
        return np.column_stack([part.argmax(axis=1) for part in self.eta])

    @property
    def inferable(self):
        """Whether the classes follow from labels and probabilities: all of 0..K-1 occur, and nothing is padded."""
        padded = self.form == "cube" and len(set(self.sizes)) > 1
        ranges = all(labels == list(range(len(labels))) for labels in self.names)
        seen = [len(np.unique(column[column >= 0])) for column in self.codes.T]
        return ranges and not padded and tuple(seen) == self.sizes

    def options(self, *, infer=True):
        """Keyword arguments that `optimize` and `score` share."""
        classes = self.names[0] if self.one_output else self.names
        return {
            "average": self.average,
            "sample_weight": self.weight,
            "output_weight": self.output_weight,
            "classes": None if infer and self.inferable and self.seed % 2 else classes,
        }

    @property
    def _column_order(self):
        """The order of the columns of a frame; never 0, 1, 2, ... unless they are the classes in that order."""
        turned = [self.names[0][k] for k in self.order]
        return None if turned == list(range(len(turned))) else self.order

    def dressed(self, layout, rows=slice(None)):
        """Some rows of the probabilities in a layout."""
        part = [block[rows] for block in self.proba] if isinstance(self.proba, list) else self.proba[rows]
        if self.form == "rows":
            return dress_proba(part, layout, self.names[0], self._column_order)
        if self.form == "list":
            return dress_proba(part, layout, self.names)
        if self.target == "multilabel" and self.form == "positive":
            # Columns are found by name where y had names too, else they are taken as they come.
            order = self.order if hasattr(self.y, "columns") else None
            return dress_proba(part, layout, [f"out{m}" for m in range(len(self.sizes))], order)
        return dress_proba(part, layout)


@contextmanager
def named(case):
    """Let a failure say which case it is."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the case {case}")
        raise


# --------------------------------------------------------------------------------------------------------- draws


def draw(target, seed):
    """The case of a target and a seed."""
    step = TARGETS.index(target)
    rng = np.random.default_rng([step, seed])
    sizes = _draw_sizes(rng, target)
    known = [name for name in HUNTED if len(set(sizes)) == 1 or not RECORDS[name].sized]
    # Four times round all metrics and targets, each metric meets everything there is to rotate, however many there are.
    lap, place = divmod(seed, len(known))
    average = "micro" if len(sizes) == 1 else str(rng.choice(["micro", "macro", "instance"], p=[0.45, 0.45, 0.1]))
    n = int(rng.integers(8, 13)) if average == "instance" else int(rng.integers(8, 41))
    form = str(rng.choice(FORMS[target]))
    proba = _draw_proba(rng, sizes, n, form)
    kind = _rotate(list(DTYPES), lap + 2 * step + place)
    if kind == "bool" and max(sizes) > 2:
        kind = "int64"
    mark = _rotate(MARKS, 3 * lap + 2 * step + place)
    names = NAMES[kind][rng.integers(len(NAMES[kind]))]
    weights = _rotate(WEIGHTS, lap + step + place // 4)
    weight = _draw_weight(rng, weights, n)
    case = Case(
        target=target,
        seed=seed,
        metric=known[place],
        average=average,
        zero_division=float(rng.integers(2)),
        sizes=sizes,
        form=form,
        proba=proba,
        codes=np.zeros((n, len(sizes)), dtype=int),
        weights=weights,
        weight=weight,
        output_weight=rng.integers(1, 5, size=len(sizes)) / 2 if len(sizes) > 1 and rng.random() < 0.3 else None,
        kind=kind,
        names=[names[:k] for k in sizes],
        mark=mark,
        label_layout=_rotate(LAYOUTS, 2 * lap + step + place),
        proba_layout=str(rng.choice(proba_layouts(proba))),
        order=rng.permutation(len(sizes) if target == "multilabel" else sizes[0]),
    )
    case.codes = _draw_codes(rng, case)
    return case


def _draw_sizes(rng, target):
    if target == "binary":
        return (2,)
    if target == "multiclass":
        return (int(rng.integers(3, 5)),)
    if target == "multilabel":
        return (2,) * int(rng.integers(2, 4))
    return ((2, 3), (3, 2, 4), (4, 2))[rng.integers(3)]


def _rotate(choices, turn):
    return choices[turn % len(choices)]


def _draw_proba(rng, sizes, n, form):
    """Smooth, or multiples of 1/8, which tie; in float64 or float32, exactly normalised only where they tie."""
    tied, dtype = rng.random() < 0.5, rng.choice([np.float32, np.float64])
    blocks = [
        (rng.multinomial(8, np.full(k, 1 / k), size=n) / 8 if tied else rng.dirichlet(np.ones(k), size=n)).astype(dtype)
        for k in sizes
    ]
    if form == "list":
        return blocks
    if form == "positive":
        columns = np.column_stack([block[:, 1] for block in blocks])
        return columns[:, 0] if len(sizes) == 1 else columns
    if form == "rows":
        return blocks[0]
    cube = np.zeros((n, len(sizes), max(sizes)), dtype=dtype)
    for m, block in enumerate(blocks):
        cube[:, m, : sizes[m]] = block
    return cube


def _draw_weight(rng, weights, n):
    """Weights of rows; the first two rows, which have two classes, always weigh something."""
    if weights == "none":
        return None
    if weights == "integer":
        return rng.integers(1, 5, size=n)
    weight = rng.uniform(0.1, 3.0, size=n)
    if weights == "zeros":
        weight[2:][rng.random(n - 2) < 0.4] = 0.0
    return weight


def _draw_codes(rng, case):
    """Labels that the probabilities know something of, some of them missing, now and then a whole output's."""
    n = len(case.row_weight)
    codes = np.empty((n, len(case.sizes)), dtype=int)
    for m, eta in enumerate(case.eta):
        drawn = (rng.random((n, 1)) > eta.cumsum(axis=1)).sum(axis=1)
        codes[:, m] = np.minimum(drawn, case.sizes[m] - 1)
    codes[0], codes[1] = 0, 1
    if case.mark != "none":
        gaps = rng.random(codes.shape) < 0.25
        if not case.one_output and rng.random() < 0.1:
            gaps[:, -1] = True
        gaps[:2, 0] = False
        codes[gaps] = -1
    return codes


def optimize(case, proba):
    """Fit the metric of a case to its labels."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="optimize: .* alone is highest")  # recall and precision of one class
        options = {**case.options(), "pos_label": case.column_class}
        return mw.optimize(proba, case.y, case.named_metric, strategy=mw.Strategy(**LABELS), **options)
