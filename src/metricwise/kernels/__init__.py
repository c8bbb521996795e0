"""Row passes on bare arrays: the only place where time is spent.

Owns every loop over rows. Knows arrays only: probabilities, integer codes, weights and the arrays of a loss; never a
metric, a solver or a label. All functions share these conventions:

eta : ndarray of shape (N, M, K), or (N, M) with the probability of class 1 of M binary outputs; float32 or float64,
    any strides, never copied whole.
codes : integer ndarray of shape (N, M), true classes, -1 where the label is missing.
weight : float64 ndarray of shape (N,), or None for ones; of shape (R, N) where rows are counted R times over, as R
    resamples of them are.
mass : bool or float64 ndarray of shape (N, M), what an entry counts for where probabilities are; None for ones.
n_classes : integer ndarray of shape (M,); classes at and beyond it are padding and never predicted.
n_decisions : integer ndarray of shape (M,), or None for as many as classes. A decision that is no class, such as to
    abstain, comes behind the classes of its output and has probability 0 in every row: losses and counts have a row and
    a column for it, the row of which is 0.
loss : ``(full,)`` with shape (1 or M, K, K), or ``(diagonal, offset)`` with shape (1 or M, K) each.
link : `LinkArrays` of M outputs and K classes, or None. Probabilities are recalibrated on the way, a tile at a time:
    ``softmax(temperature * log(max(eta, floor)) + bias)`` in float64, padding stays 0; of (N, M) arrays class 0 has
    what class 1 leaves. With floor 0 `eta` holds finite logits, ``softmax(temperature * eta + bias)``, and (N, M)
    arrays log-odds of class 1. No recalibrated copy of the array is made, and both twins see the same bits.

A `Block` is these arrays of some outputs, without the loss.

A score has one definition, whoever computes it: ``sum_i L[i, j] * eta_i`` over i = 0..K-1 in that order in float64,
or ``d_j * eta_j + v_j * s`` with s the sum of the row, taken in the same order; the lowest j wins ties. (Rows need not
sum to exactly 1. With the probability of class 1 alone s is 1, for ``(1 - p) + p`` is, in floating point too.)

Rows of very many labels, of which each stores few, are a `LabelBlock`: entries as in a CSR matrix, with the sign of
those whose label is true set. A label that is not stored has probability 0. The score of a label is ``scale *
probability + offset``, in float64 and not fused. Without a budget stored labels of positive score are predicted; with
one, ``(low, high)``, all labels of a row are ranked by score, the lower label first among equals, and the first `low`
are predicted, and the others before `high` whose score is positive.

Rows are drawn by numbers made of what they hold (`row_keys`, `scattered`): `low_rows` finds those of the lowest.

Fitting a link asks for sums of its likelihood over rows: `relative_logits` once, and `log_partition` for every step.
`fit_links` takes all steps of many fits; `minimise` is its method, for any likelihood.

A served rule decides few rows at a time: a `RowDecider` is made of it once, and checks and decides in one call.

Where an objective is a mean of ratios, `search_ratio_means` finds its maximum along many segments at once.

Where a metric of label sets is averaged over rows, `label_set_sizes` finds how many of its most probable labels a row
predicts; see `_label_sets` for the arrays of such rows.

Each function has two twins of one signature: `_numpy`, the reference, and `_compiled`, which is there where the package
was built with a C compiler. The environment variable METRICWISE_KERNELS says which serve: "compiled", "numpy", or
"auto", the compiled ones where they are. The twins agree in every decision and every count; sums of weights and of
probabilities agree to rounding.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from . import _few_rows, _numpy
from ._block import Block, LabelBlock, LabelForm, LineArrays, LinkArrays
from ._drawing import low_keys, row_keys, scattered
from ._newton import LinkFits, add_penalty, minimise
from ._segments import RatioMeans, search_segments

__all__ = [
    "Block",
    "LabelBlock",
    "LabelForm",
    "LineArrays",
    "LinkArrays",
    "LinkFits",
    "RatioMeans",
    "RowDecider",
    "add_penalty",
    "changes",
    "check_rows",
    "code_type",
    "count_expected",
    "count_labels",
    "decide",
    "encode",
    "fit_links",
    "in_use",
    "label_ascend",
    "label_calibrate",
    "label_check",
    "label_count",
    "label_decide",
    "label_mark",
    "label_set_choose",
    "label_set_sizes",
    "label_set_values",
    "label_sums",
    "label_sweep",
    "label_table",
    "log_partition",
    "low_keys",
    "low_rows",
    "max_threads",
    "minimise",
    "recalibrate",
    "relative_logits",
    "row_keys",
    "scattered",
    "search_ratio_means",
    "search_segments",
    "tally",
    "why_not_compiled",
    "work_alone",
    "working_alone",
]

VARIABLE = "METRICWISE_KERNELS"


def _choose(choice: str) -> tuple[ModuleType, str]:
    """Return the module of the twins that serve, and why the compiled ones do not where they were to be."""
    if choice not in ("auto", "compiled", "numpy"):
        raise ValueError(f"metricwise: {VARIABLE} must be 'auto', 'compiled' or 'numpy', got {choice!r}.")
    if choice == "numpy":
        return _numpy, ""
    try:
        compiled = import_module(f"{__name__}._compiled")  # a statement would blame circular imports
    except ImportError as error:
        if choice == "compiled":
            raise ImportError(
                f"metricwise: {VARIABLE} is 'compiled', but the compiled kernels are not available ({error}); "
                "reinstall metricwise with a C compiler, or leave the variable unset."
            ) from error
        return _numpy, str(error)
    return compiled, ""


_twins, _why_not_compiled = _choose(os.environ.get(VARIABLE) or "auto")

if TYPE_CHECKING:
    from ._few_rows import RowDecider
    from ._label_sets import label_set_choose, label_set_sizes, label_set_values
    from ._labels import (
        label_ascend,
        label_calibrate,
        label_check,
        label_count,
        label_decide,
        label_mark,
        label_sums,
        label_sweep,
        label_table,
    )
    from ._newton import fit_links
    from ._numpy import changes, check_rows, count_expected, count_labels, decide, encode, low_rows, recalibrate, tally
    from ._partition import log_partition, relative_logits
    from ._segments import search_ratio_means
else:
    RowDecider = (_few_rows if _twins is _numpy else _twins).RowDecider
    changes = _twins.changes
    check_rows = _twins.check_rows
    count_expected = _twins.count_expected
    count_labels = _twins.count_labels
    decide = _twins.decide
    encode = _twins.encode
    fit_links = _twins.fit_links
    label_ascend = _twins.label_ascend
    label_calibrate = _twins.label_calibrate
    label_check = _twins.label_check
    label_count = _twins.label_count
    label_decide = _twins.label_decide
    label_mark = _twins.label_mark
    label_set_choose = _twins.label_set_choose
    label_set_sizes = _twins.label_set_sizes
    label_set_values = _twins.label_set_values
    label_sums = _twins.label_sums
    label_sweep = _twins.label_sweep
    label_table = _twins.label_table
    log_partition = _twins.log_partition
    low_rows = _twins.low_rows
    recalibrate = _twins.recalibrate
    relative_logits = _twins.relative_logits
    search_ratio_means = _twins.search_ratio_means
    tally = _twins.tally

code_type = _numpy.code_type


def in_use() -> str:
    """Return which twins serve, "compiled" or "numpy"."""
    return "numpy" if _twins is _numpy else "compiled"


def why_not_compiled() -> str:
    """Return why the NumPy twins serve although nobody asked for them; empty if the others serve, or somebody did."""
    return _why_not_compiled


def max_threads() -> int:
    """Return how many threads a large pass would use now."""
    return 1 if _twins is _numpy else int(_twins.max_threads())


def work_alone() -> None:
    """Let passes that the calling thread makes from now on use no thread but itself."""
    if _twins is not _numpy:
        _twins.use_threads(1)


@contextmanager
def working_alone() -> Iterator[None]:
    """Let passes that the calling thread makes within this use no thread but itself."""
    n_threads = max_threads()
    work_alone()
    try:
        yield
    finally:
        if _twins is not _numpy:
            _twins.use_threads(n_threads)
