"""Each metric averaged over several outputs, from its value of one output in tests/laws/metric_records.py.

Nothing of metricwise is used to find an answer.
"""

import functools

import numpy as np

from laws.metric_records import EVERY, RECORDS

HUNTED = EVERY  # of metrics of one class, that of class 1, which every output has


# ------------------------------------------------------------------------------------------------- over outputs


def expected_value(case, predicted):
    """The metric of a case at predicted codes (N, M), by the definition of its average over outputs."""
    return AVERAGES[case.average](case, predicted)


def _one(case, y, p, w, k):
    seen = y >= 0
    weight = None if w is None else w[seen]
    return RECORDS[case.metric].value(y[seen], p[seen], weight, k=k, zero_division=case.zero_division, c=1)


def _pooled(case, predicted):
    """All outputs one below the other, each row weighing what its output weighs."""
    weight = case.row_weight[:, None] * case.alpha
    flat = None if case.weight is None and case.output_weight is None else weight.T.ravel()
    return _one(case, case.codes.T.ravel(), predicted.T.ravel(), flat, max(case.sizes))


def _mean_of_outputs(case, predicted):
    counted = ((case.codes >= 0) * case.row_weight[:, None]).sum(axis=0) * case.alpha > 0
    values = [
        _one(case, case.codes[:, m], predicted[:, m], case.weight, case.sizes[m]) for m in np.flatnonzero(counted)
    ]
    return np.average(values, weights=case.alpha[counted])


def _mean_of_rows(case, predicted):
    """Row by row over the outputs; few outputs have few rows that differ."""
    observed = ((case.codes >= 0) * case.alpha).any(axis=1)
    width = max(case.sizes)

    @functools.cache
    def of_row(y, p):
        return _one(case, np.array(y), np.array(p), case.output_weight, width)

    rows = zip(case.codes[observed].tolist(), predicted[observed].tolist(), strict=True)
    values = [of_row(tuple(y), tuple(p)) for y, p in rows]
    return np.average(values, weights=case.row_weight[observed])


AVERAGES = {"micro": _pooled, "macro": _mean_of_outputs, "instance": _mean_of_rows}
