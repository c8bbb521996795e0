"""Rules and rows at random, of few digits, so that scores tie often.

Unlike its siblings, this module imports the library.
"""

import numpy as np
from hypothesis import strategies as st

from metricwise.core.losses import Loss
from metricwise.rules import TemperatureScaling, WeightedRule

LABELS = {
    "text": lambda k: np.array(["it's", 'a "b"', "c\\d", "e;--", "ü"][:k]),
    "integers": lambda k: np.arange(k) * 3 - 1,
    "floats": lambda k: np.arange(k) / 8 - 0.1,
    "booleans": lambda k: np.array([False, True]) if k == 2 else np.arange(k),
}

ABSTAIN = {"text": "ask 'em", "integers": -7, "floats": -0.75}


@st.composite
def rules_and_rows(draw, links=True, several=True, abstain=True):
    """A weighted rule, and probabilities (N, M, K) padded with 0, or (N, K)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    multioutput = several and draw(st.booleans())
    sizes = draw(st.lists(st.integers(2, 5), min_size=1, max_size=3 if multioutput else 1))
    kind = draw(st.sampled_from(sorted(LABELS)))
    m, k, lead = len(sizes), max(sizes), draw(st.sampled_from([1, len(sizes)]))
    may = abstain and draw(st.booleans())
    d = k + may
    digits = draw(st.integers(0, 2)) if draw(st.booleans()) else 15
    if draw(st.booleans()):
        loss = Loss(full=rng.normal(size=(lead, d, d)).round(digits))
    else:
        loss = Loss(
            diagonal=rng.normal(-1, 0.7, (lead, d)).round(digits), offset=rng.normal(0, 0.3, (lead, d)).round(digits)
        )
    link = None
    if links and draw(st.booleans()):
        link = TemperatureScaling(rng.uniform(0.5, 2, m).round(2), rng.normal(0, 0.5, (m, k)).round(2))
    normalize = draw(st.booleans())
    classes = tuple(LABELS[kind](size) for size in sizes)
    label = ABSTAIN[kind] if may and (kind != "booleans") else None
    if may and label is None:  # there is no third boolean
        loss = loss.map(lambda a: a[:, :k] if a.ndim == 2 else a[:, :k, :k])
    rule = WeightedRule(loss, classes, link, multioutput, normalize, abstain_label=label)
    proba = np.zeros((40, m, k))
    for place, size in enumerate(sizes):
        smooth = rng.dirichlet(np.ones(size), 40)
        tied = rng.multinomial(4, np.full(size, 1 / size), 40) / 4
        proba[:, place, :size] = np.where(rng.random((40, 1)) < 0.5, smooth.round(2), tied)
    if normalize:
        proba *= rng.choice([0.5, 1.0, 3.0], (40, 1, 1))
    return rule, proba if multioutput else proba[:, 0]


@st.composite
def rules_and_logits(draw):
    """A weighted rule on logits, and logits (N, M, K) padded with 0, or (N, K): near, far apart, and -inf."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    multioutput = draw(st.booleans())
    sizes = draw(st.lists(st.integers(2, 4), min_size=1, max_size=3 if multioutput else 1))
    m, k, lead = len(sizes), max(sizes), draw(st.sampled_from([1, len(sizes)]))
    label = draw(st.sampled_from([None, -7]))
    d = k + (label is not None)
    shape = draw(st.sampled_from(["weights", "offsets", "full"]))
    if shape == "full":
        loss = Loss(full=rng.normal(size=(lead, d, d)))
    else:
        offset = rng.normal(0, 0.3, (lead, d)) * (shape == "offsets")
        loss = Loss(diagonal=-rng.uniform(0.2, 3, (lead, d)), offset=offset)
    link = TemperatureScaling(rng.uniform(0.01, 3, m), rng.normal(0, 2, (m, k)), 0.0)
    classes = tuple(np.arange(size) * 3 for size in sizes)
    kind = draw(st.sampled_from(["logits", "scores"]))
    rule = WeightedRule(loss, classes, link, multioutput, abstain_label=label, input=kind)
    z = np.zeros((40, m, k))
    for place, size in enumerate(sizes):
        near = rng.normal(0, 3, (40, size)) * rng.choice([1.0, 1.0, 1e3, 1e5], (40, 1))
        near[1:, 1:][rng.random((39, size - 1)) < 0.1] = -np.inf
        z[:, place, :size] = near
    return rule, z if multioutput else z[:, 0]


def columns_of(rule):
    """Names of columns for a rule."""
    names = [[f"p{m}_{j}" for j in range(k)] for m, k in enumerate(rule.n_classes)]
    return names if rule.multioutput else names[0]


def table_of(rule, proba, columns):
    """Columns by name."""
    blocks = [proba[:, m] for m in range(rule.n_outputs)] if rule.multioutput else [proba]
    each = columns if rule.multioutput else [columns]
    return {name: block[:, j] for block, names in zip(blocks, each, strict=True) for j, name in enumerate(names)}
