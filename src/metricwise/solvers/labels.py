"""Tables of scores that maximise an aim over very many labels.

Without a budget every label has a threshold of its own; with one, labels of a row compete. Both are asked of the oracle
by tables, a scale and an offset a label. Must not know rows.

- Linear aims have one table, whatever is predicted: exact.
- Pooled ratios: Dinkelbach over the oracle of tables, exact for expected counts.
- Means of ratios over labels: without a budget each label by itself (exact for its ratio on expected counts); with one,
  row after row by the table of all decisions so far, a local optimum.
- Anything else: linearised at the counts so far, a local optimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import kernels
from ..metrics.label_aims import LabelAim, LabelCounts, LabelTable, RatioTerms
from ..oracles.labels import LabelOracle, Sweep
from .result import Outcome

__all__ = [
    "LabelSearch",
    "baseline_table",
    "label_form",
    "maximise_labels",
    "own_thresholds",
    "pooled_table",
    "shrunk_thresholds",
]

FloatArray = NDArray[np.float64]

_MAX_PASSES = 20  # of Dinkelbach's iteration, which needs five or so
_TOL = 1e-10
_ROW_PASSES = 2  # of single rows: the first has no table of all rows yet, and prototypes gained nothing by a third
_BATCH_PASSES = 8
_LINEAR_PASSES = 5  # 10 and 20 gave the same macro-F1 on the set hypernyms of benchmarks/many_labels
# With larger steps, on the simulated set of benchmarks/many_labels, labels were covered by turns, and fewer in the end.
_COVERAGE_STEPS = (0.1, 0.1, 0.05, 0.05, 0.05)
_LEAST_SCALE = 1e-6
# True rows with which a label's own threshold counts half. Of 3, 5, 10, 20 and 40, 10 had the highest mean rank of
# macro-F1 on the five sets of benchmarks/many_labels.
_THRESHOLD_ROWS = 10.0
_LEAST_IMPROVEMENT = 1e-5  # of the mean over labels, for which it is worth to read all rows once more


class LabelSearch(NamedTuple):
    """A table of scores, its value as the oracle counts, and how far it may be from the best.

    `counts` are those of the table by labels, if it was counted last.
    """

    table: LabelTable
    value: float
    outcome: Outcome
    status: str
    history: tuple[float, ...] = ()
    counts: LabelCounts | None = None


def baseline_table() -> LabelTable:
    """Return the table of labels that are more probable than not; with a budget, the most probable ones."""
    return LabelTable(np.ones(1), np.full(1, -0.5))


def label_form(ratio: RatioTerms | None, *, damped: bool = True) -> kernels.LabelForm:
    """Return the value of a label for passes of single rows; None is the chance of a hit.

    Parameters
    ----------
    ratio : RatioTerms or None
    damped : bool, default=True
        Whether the ratio is that of rows to come, of which a rare label may have none: hits times the expectation of
        one over a Poisson count, ``(1 - exp(-x)) / x``, in place of hits over expected counts.
    """
    if ratio is None:
        return kernels.LabelForm((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0), False, True)
    return kernels.LabelForm((*ratio.numerator,), (*ratio.denominator,), damped and ratio.has_hits_only, False)


def maximise_labels(oracle: LabelOracle, aim: LabelAim) -> LabelSearch:
    """Return the table that an oracle's counts are best with, or nearly so."""
    ratio = aim.ratio
    if aim.is_linear:
        return _closed_form(oracle, aim)
    if aim.is_pooled:
        return _dinkelbach(oracle, aim, ratio) if ratio is not None else _linearise(oracle, aim)
    if aim.is_coverage and not oracle.budget.is_limited:
        return _closed_form(oracle, aim)
    if ratio is not None and not oracle.budget.is_limited:
        return _each_label(oracle, aim, ratio)
    if aim.is_coverage:
        return _cover(oracle, aim)
    if ratio is not None and oracle.confusion == "expected":
        return _row_by_row(oracle, aim)
    return _linearise(oracle, aim)


def _nothing(oracle: LabelOracle) -> LabelCounts:
    """Return the counts of a rule that predicts nothing."""
    return LabelCounts(np.zeros(oracle.n_labels), np.zeros(oracle.n_labels), oracle.true, oracle.total)


def _scaled(oracle: LabelOracle, table: LabelTable) -> LabelTable:
    """Return a table of calibrated probabilities as one of stored values, which the factors multiply."""
    if oracle.factor is None:
        return table
    return LabelTable(table.scale * oracle.factor, np.broadcast_to(table.offset, oracle.factor.shape))


def _closed_form(oracle: LabelOracle, aim: LabelAim) -> LabelSearch:
    """Return the one table of a linear aim."""
    ratio, nothing = aim.ratio, _nothing(oracle)
    if ratio is not None and ratio.has_hits_only and not aim.is_pooled:
        slopes = expected_table(ratio, nothing, _label_weight(aim, oracle.n_labels))
    else:
        slopes = aim.table(nothing)
    table = _scaled(oracle, slopes)
    counted, by_labels = oracle.count_both([table])[0]
    value = aim.value(counted)
    status = "Optimal: the metric is linear in the decisions."
    return LabelSearch(table, value, Outcome.OPTIMAL, status, (value,), by_labels)


def pooled_table(aim: LabelAim, ratio: RatioTerms, level: float) -> LabelTable:
    """Return the table of a pooled ratio at a level of it: the numerator less the level times the denominator."""
    weight = np.ones(1) if aim.weight is None else aim.weight
    above, below = ratio.numerator, ratio.denominator
    return LabelTable(weight * (above.hits - level * below.hits), weight * (above.predicted - level * below.predicted))


def _dinkelbach(oracle: LabelOracle, aim: LabelAim, ratio: RatioTerms) -> LabelSearch:
    """Return the table at the fixed point of the level: exact for expected counts."""
    table = _scaled(oracle, baseline_table())
    level = aim.value(oracle.count([table])[0])
    history = [level]
    for _ in range(_MAX_PASSES):
        table = _scaled(oracle, pooled_table(aim, ratio, level))
        counted, by_labels = oracle.count_both([table])[0]
        value = aim.value(counted)
        history.append(value)
        if abs(value - level) <= _TOL:
            break
        level = value
    exact = oracle.confusion == "expected"
    status = "Optimal over all rules, on expected counts." if exact else "A fixed point of Dinkelbach's iteration."
    outcome = Outcome.OPTIMAL if exact else Outcome.LOCAL
    return LabelSearch(table, history[-1], outcome, status, tuple(history), by_labels)


def _label_weight(aim: LabelAim, n_labels: int) -> FloatArray:
    weight = np.ones(n_labels) if aim.weight is None else aim.weight
    return np.asarray(weight / max(float(weight.sum()), 1e-300))


def _row_by_row(oracle: LabelOracle, aim: LabelAim) -> LabelSearch:
    """Return the table that is left when every row has been decided by the table of all others, twice."""
    weight = _label_weight(aim, oracle.n_labels)
    form = label_form(aim.ratio)
    start = expected_table(aim.ratio, _nothing(oracle), weight)
    ascent = oracle.ascend(form, weight, _scaled(oracle, start), _ROW_PASSES, true=oracle.true)
    counted, by_labels = oracle.count_both([ascent.table])[0]
    value = aim.value(counted)
    status = f"A local optimum, found row by row in {_ROW_PASSES} passes."
    return LabelSearch(ascent.table, value, Outcome.LOCAL, status, (value,), by_labels)


def _cover(oracle: LabelOracle, aim: LabelAim) -> LabelSearch:
    """Return the best of the tables of which each moves a little towards the labels that the last one did not cover.

    The first has one over the expected true rows of a label. A table that predicts no label that is covered already
    would cover less, because all rows share it.
    """
    scale = _label_weight(aim, oracle.n_labels) * _mean_inverse(oracle.true)
    offset = np.zeros(oracle.n_labels)
    searches: list[LabelSearch] = []
    for share in (*_COVERAGE_STEPS, 0.0):
        table = LabelTable(scale * oracle.factors, offset)
        counted, by_labels = oracle.count_both([table])[0]
        value = aim.expected_value(counted)
        searches.append(LabelSearch(table, value, Outcome.LOCAL, "A local optimum.", (), by_labels))
        scale = scale ** (1.0 - share) * np.maximum(np.exp(-counted.hits), _LEAST_SCALE) ** share
    best = max(searches, key=lambda search: search.value)
    return best._replace(history=tuple(search.value for search in searches))


def expected_table(ratio: RatioTerms | None, counts: LabelCounts, weight: FloatArray) -> LabelTable:
    """Return by how much one more prediction raises the expected value of each label on rows like those counted.

    None is the chance of a hit.
    """
    # Of a hit, kernels keep the logarithm of the chance that there is none.
    hits = -counts.hits if ratio is None else counts.hits
    ones = np.ones_like(weight)
    return LabelTable(
        *kernels.label_table(label_form(ratio), ones, counts.true, weight, hits, counts.predicted, counts.total)
    )


def _mean_inverse(size: FloatArray) -> FloatArray:
    """Return ``(1 - exp(-x)) / x``, about the expectation of one over a Poisson count of mean x, where it counts."""
    small = size < 1e-5
    size = np.where(small, 1.0, size)
    return np.where(small, 1.0, -np.expm1(-size) / size)


def _expected_values(ratio: RatioTerms, counts: LabelCounts) -> FloatArray:
    """Return the expected ratio of each label on rows like those counted."""
    if not ratio.has_hits_only:
        return ratio.values(counts)
    return np.asarray(counts.hits * _mean_inverse(ratio.denominator.of(counts) / ratio.numerator.hits))


def _each_label(oracle: LabelOracle, aim: LabelAim, ratio: RatioTerms) -> LabelSearch:
    """Return the threshold of each label at which its own ratio is best, by iterations that all labels share."""
    weight = _label_weight(aim, oracle.n_labels)
    table = _scaled(oracle, _pooled_start(ratio))
    table = LabelTable(*(np.broadcast_to(part, (oracle.n_labels,)).copy() for part in table))
    best, best_values, history = table, np.full(oracle.n_labels, -np.inf), []
    for _ in range(_BATCH_PASSES):
        counts = oracle.count([table])[0]
        values = _expected_values(ratio, counts)
        better = values > best_values
        history.append(aim.value(counts))
        best = LabelTable(*(np.where(better, new, old) for new, old in zip(table, best, strict=True)))
        moved = np.abs(values - best_values)[better]
        best_values = np.where(better, values, best_values)
        if not better.any() or float((weight[better] * np.minimum(moved, 1.0)).sum()) <= _LEAST_IMPROVEMENT:
            break
        table = _scaled(oracle, expected_table(ratio, counts, np.ones(oracle.n_labels)))
    status = "The best threshold of each label, on its expected counts."
    return LabelSearch(best, max(history), Outcome.LOCAL, status, tuple(history))


def _pooled_start(ratio: RatioTerms) -> LabelTable:
    """Return a common threshold to start from: that of the ratio when it is about a half."""
    above, below = ratio.numerator, ratio.denominator
    start = LabelTable(np.array([above.hits - 0.5 * below.hits]), np.array([above.predicted - 0.5 * below.predicted]))
    return start if start.scale[0] > 0 else baseline_table()


def _linearise(oracle: LabelOracle, aim: LabelAim) -> LabelSearch:
    """Return the best of the tables of slopes at counts that follow what the last tables counted."""
    table = _scaled(oracle, baseline_table())
    counts, best_counts = oracle.count_both([table])[0]
    best, best_value = table, aim.value(counts)
    history = [best_value]
    weight = _label_weight(aim, oracle.n_labels)
    for step in range(_LINEAR_PASSES):
        if aim.is_pooled or (aim.ratio is None and not aim.is_coverage):
            slopes = aim.table(counts)
        else:
            slopes = expected_table(aim.ratio, counts, weight)
        table = _scaled(oracle, slopes)
        new, by_labels = oracle.count_both([table])[0]
        value = aim.value(new)
        history.append(value)
        if value > best_value:
            best, best_value, best_counts = table, value, by_labels
        share = 1.0 if step == 0 else 0.5
        counts = counts.towards(new, share)
    return LabelSearch(best, best_value, Outcome.LOCAL, "A local optimum.", tuple(history), best_counts)


# ---------------------------------------------------------------------------------------------- thresholds by labels


def shrunk_thresholds(oracle: LabelOracle, aim: LabelAim, ratio: RatioTerms) -> LabelSearch:
    """Return a threshold for each label by its true labels, shrunk towards the one that is best for all labels.

    A label with n true rows has the logarithm of its own threshold with weight n / (n + 10).
    """
    assert oracle.labels_true is not None
    sweep = oracle.sweep()
    true = oracle.labels_true
    common = _common_threshold(oracle, aim)
    label = np.repeat(np.arange(oracle.n_labels), np.diff(sweep.label_ptr))
    own = own_thresholds(sweep, ratio.values(LabelCounts(sweep.hits, sweep.predicted, true[label], oracle.total)))
    share = true / (true + _THRESHOLD_ROWS)
    log_common = np.log(common)
    shrunk = np.exp(log_common + share * (np.log(np.maximum(own, 1e-12)) - log_common))
    thresholds = np.where(np.isnan(own), common, shrunk)
    table = LabelTable(np.ones(oracle.n_labels), -thresholds)
    counted, by_labels = oracle.count_both([table])[0]
    value = aim.value(counted)
    status = "Thresholds of the labels by their true rows, shrunk towards a common one."
    return LabelSearch(table, value, Outcome.LOCAL, status, (value,), by_labels)


def own_thresholds(sweep: Sweep, worth: FloatArray) -> FloatArray:
    """Return the threshold of each label at which it is worth most, (M,); NaN if none is worth more than -inf."""
    n_labels = len(sweep.label_ptr) - 1
    lengths = np.diff(sweep.label_ptr)
    label = np.repeat(np.arange(n_labels), lengths)
    shown = np.flatnonzero(lengths)
    out = np.full(n_labels, np.nan)
    if not len(shown):
        return out
    best = np.maximum.reduceat(worth, sweep.label_ptr[shown])
    # Of equal ones the lowest threshold, which predicts most.
    at_best = np.flatnonzero((worth == np.repeat(best, lengths[shown])) & (worth > -np.inf))
    last = np.zeros(n_labels, dtype=np.intp)
    last[label[at_best]] = at_best
    some = np.unique(label[at_best])
    # An entry at the threshold is not predicted: the cut lies below the last one that is.
    out[some] = sweep.value[last[some]] * (1.0 - 1e-6)
    return out


def _common_threshold(oracle: LabelOracle, aim: LabelAim) -> float:
    """Return the threshold for all labels with the largest value, of a grid that is refined once."""
    grid = np.exp(np.linspace(np.log(0.01), np.log(0.9), 12))
    for _ in range(2):
        tables = [LabelTable(np.ones(1), np.full(1, -threshold)) for threshold in grid]
        values = [aim.value(counts) for counts in oracle.count(tables)]
        best = int(np.argmax(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        chosen = float(grid[best])
        grid = np.exp(np.linspace(np.log(low), np.log(high), 7))
    return chosen
