"""What every engine promises, beside rows in memory: checks that the tests of single engines share."""

import numpy as np

from engines import counts, source
from metricwise.core.inputs import Input
from metricwise.core.losses import Loss
from metricwise.core.rows import Rows
from metricwise.core.schema import Schema
from metricwise.data.probabilities import read_proba
from metricwise.oracles.base import Line
from metricwise.rules import TemperatureScaling


def rows_in_layout(rng, layout, n=37, *, of_logits=False):
    """Probabilities or logits with ties, as an array or a list of outputs, and codes with gaps."""
    sizes = {"binary": [2, 2], "array": [3, 3], "list": [2, 4, 3]}[layout]
    eta = [rng.dirichlet(np.ones(k), n).round(1) for k in sizes]
    eta = [np.where(part.sum(axis=1, keepdims=True) > 0, part, 1.0) for part in eta]
    eta = [part / part.sum(axis=1, keepdims=True) for part in eta]
    codes = np.column_stack([np.append(np.arange(k), rng.integers(-1, k, n - k)) for k in sizes]).astype(np.int8)
    options = {"multioutput": True, "row_input": Input.of("logits" if of_logits else "probabilities")}
    if of_logits:
        eta = [np.where(part == 0.1, -np.inf, 20 * part - 5).round() for part in eta]
    if layout == "binary":
        return read_proba(np.column_stack([part[:, 1] for part in eta]), **options), codes
    return read_proba(np.stack(eta, axis=1) if layout == "array" else eta, **options), codes


def check_agreement(engine, confusion, seed, layout, options, *, of_logits=False):
    """Counts, shares, walks, changes and samples are those of the rows in memory."""
    rng = np.random.default_rng(seed)
    weighted, linked, shifted = options
    proba, codes = rows_in_layout(rng, layout, of_logits=of_logits)
    k, sizes = proba.width, proba.n_classes
    weight = rng.integers(0, 3, len(codes)) / 2 + 0.25 if weighted else None
    floor = 0.0 if of_logits else TemperatureScaling.floor
    link = TemperatureScaling(rng.uniform(0.5, 2, len(sizes)), rng.normal(size=(len(sizes), k)), floor)
    link = link if linked else None
    prior = np.where(np.arange(k) < sizes[:, None], 1.0 / sizes[:, None], 0.0) if shifted else None
    one, other = (counts(proba, codes, weight, confusion, prior, link=link, engine=name) for name in ("memory", engine))
    exact = confusion == "labels" and not weighted
    same = np.testing.assert_array_equal if exact else close

    losses = [Loss.argmax(k), Loss(full=rng.normal(size=(1, k, k)).round(1))]
    for asked in (True, False):
        same(one.confusions(losses, linked=asked), other.confusions(losses, linked=asked))
    close(one.shares(losses), other.shares(losses))
    same(one.priors, other.priors)
    same(one.weight, other.weight)
    decided = rng.integers(0, 2, codes.shape)
    same(one.confusion_of(decided), other.confusion_of(decided))

    constant, slope = (Loss(full=rng.normal(size=(1, k, k)).round(1)) for _ in range(2))
    line = Line(np.zeros(len(sizes), dtype=np.intp), np.ones(len(sizes)), constant, slope, rng.random((1, 2, k, k)))
    walks = [oracle.walk(line, 0.0) for oracle in (one, other)]
    np.testing.assert_array_equal(walks[0].lower, walks[1].lower)
    np.testing.assert_array_equal(walks[0].upper, walks[1].upper)
    np.testing.assert_allclose(walks[0].values, walks[1].values, atol=1e-12)
    wanted = np.zeros((1, 10), dtype=bool)
    found = [oracle.changes(line, np.array([[-1.0, 4.0]]), 8, wanted, True) for oracle in (one, other)]
    np.testing.assert_array_equal(found[0].count, found[1].count)

    for small in (lambda oracle: oracle.sample(12), lambda oracle: oracle.glance(16)):
        np.testing.assert_array_equal(*(small(oracle).confusions(losses) for oracle in (one, other)))


def close(first, second):
    np.testing.assert_allclose(first, second, rtol=1e-12, atol=1e-14)


def check_samples(engine, *, of_logits=False):
    """Samples are the same rows, with all that belongs to them, as of the rows in memory."""
    rng = np.random.default_rng(1)
    proba, codes = rows_in_layout(rng, "list", 300, of_logits=of_logits)
    rows = Rows(proba, codes, rng.random(300), group=rng.integers(0, 2, 300), cost=rng.random((300, 4)))
    schema = Schema.of_codes(proba.n_classes)
    one, other = (source(rows, schema, name) for name in ("memory", engine))
    for n_rows in (50, 300, 1000):
        first, second = (of.sample(n_rows, seed=7) for of in (one, other))
        for name in ("codes", "weight", "frequency", "group", "cost"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        for block, again in zip(first.proba.blocks, second.proba.blocks, strict=True):
            np.testing.assert_array_equal(block, again)
        assert first.proba.of_logits == second.proba.of_logits == of_logits
    np.testing.assert_array_equal(one.class_rows, other.class_rows)
