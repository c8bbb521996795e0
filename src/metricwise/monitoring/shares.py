"""``estimate_shares``: class shares of rows without labels, behind the calibration that a rule keeps.

Must not know metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .. import kernels
from ..core.cached import cached_property
from ..core.confusion import distributions
from ..core.errors import InvalidParameter, InvalidType, entry_point, shown
from ..core.labels import python_labels
from ..core.probabilities import Probabilities
from ..data.keeping import keeping_rows
from ..data.open import open_unlabelled
from ..data.sources.base import SourceBase
from ..data.sources.memory import MemorySource
from ..evaluation.arguments import read_rule
from ..rules.base import PARTITIONS, Rule
from ..rules.calibration import TemperatureScaling
from ..rules.class_shares import UNCHANGED
from ..rules.stored_calibration import StoredCalibration, require_calibration
from .mixing import InfluenceSums, LikelihoodRatio, LikelihoodSums, maximise_shares

__all__ = ["ShareEstimate", "estimate_shares"]

FloatArray = NDArray[np.float64]

PRIOR_ROWS = 3.0  # rows that the prior is worth for each class: chosen on twelve real sets, see docs/life.md
_MIN_ROWS = 100  # of the benchmark, where intervals held
LEVEL = 0.01  # of the test; of several outputs all together
_QUANTILE = float(ndtri(0.975))
_LEAST_SHARE = 1e-6  # that an interval of a logarithm of odds is taken around
CAVEAT = (
    "Any movement of the rows is taken for a movement of the class shares: nothing here can tell moved shares from "
    "rows that look different, or from probabilities that have become wrong. Where labels come, even late, use them "
    "first."
)


@dataclass(frozen=True, eq=False, repr=False)
class ShareEstimate:
    """Class shares of rows without labels, returned by :func:`metricwise.estimate_shares`.

    Can be passed as `prior` to :func:`metricwise.optimize` and to ``rule.with_prior``. Arrays are (K,) for one output,
    and (M, K) for several, padded with 0.

    Parameters
    ----------
    classes : tuple of M ndarrays
        Labels of the classes of each output.
    estimate : ndarray of shape (K,) or (M, K)
        The estimated shares: the old ones where these have not moved.
    low, high : ndarray of shape (K,) or (M, K)
        Ends of 95 % intervals, for each class by itself.
    old : ndarray of shape (K,) or (M, K)
        Class shares of the rows that the rule was fitted to.
    p_value : float, or ndarray of shape (M,)
        Of the likelihood-ratio test that shares have not moved.
    moved : bool, or ndarray of shape (M,)
        Whether the test says that they have.
    n_rows : int
        Number of rows without labels.
    notes : tuple of str
        What should be known about the estimate.
    output_names : tuple of str, optional
        Names of the outputs.

    See Also
    --------
    metricwise.estimate_shares : Estimates shares.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 3000)
    >>> y = (rng.random(3000) < p).astype(int)
    >>> rule = mw.optimize(p, y, "f1").rule
    >>> rows = rng.permutation(np.r_[np.flatnonzero(y == 1), np.flatnonzero(y == 0)[:700]])
    >>> shares = mw.estimate_shares(rule, p[rows])
    >>> shares.moved, np.asarray(shares).round(1)
    (True, array([0.5, 0.5]))
    """

    classes: tuple[NDArray[Any], ...]
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    old: FloatArray
    p_value: Any
    moved: Any
    n_rows: int
    notes: tuple[str, ...] = ()
    output_names: tuple[str, ...] | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.estimate, dtype=dtype)

    @property
    def any_moved(self) -> bool:
        """Whether the shares of any output have moved."""
        return bool(np.any(self.moved))

    def as_prior(self, classes: Sequence[NDArray[Any]]) -> list[FloatArray]:
        """Return the estimates as `prior` of outputs with these classes (M arrays); refused if they are others."""
        rows = np.atleast_2d(self.estimate)
        if len(rows) != len(classes):
            raise InvalidParameter("prior", f"be of {len(classes)} outputs", f"shares of {len(rows)}")
        result = []
        for mine, theirs, shares in zip(self.classes, classes, rows, strict=True):
            names, wanted_names = python_labels(mine), python_labels(theirs)
            if set(names) != set(wanted_names):
                raise InvalidParameter("prior", f"be shares of the classes {wanted_names}", f"those of {names}")
            result.append(np.array([shares[names.index(label)] for label in wanted_names]))
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON types, with a table of classes for each output."""
        outputs = []
        tables = [np.atleast_2d(values) for values in (self.estimate, self.low, self.high, self.old)]
        for m, labels in enumerate(self.classes):
            rows = [
                {"class": label} | {name: float(table[m, k]) for name, table in zip(_COLUMNS, tables, strict=True)}
                for k, label in enumerate(python_labels(labels))
            ]
            moved, p_value = bool(np.atleast_1d(self.moved)[m]), float(np.atleast_1d(self.p_value)[m])
            name = None if self.output_names is None else self.output_names[m]
            outputs.append({"output": name, "moved": moved, "p_value": p_value, "shares": rows})
        return {"rows": self.n_rows, "outputs": outputs, "notes": list(self.notes)}

    def plot(self, ax: Any = None) -> Any:
        """Draw old and new shares with their intervals, as a :class:`metricwise.displays.SharesDisplay`."""
        from ..inspection.displays.shares import SharesDisplay

        return SharesDisplay(self.to_dict()["outputs"]).plot(ax=ax)

    def __repr__(self) -> str:
        lines = [f"{self.n_rows} rows without labels, with 95 % intervals:"]
        for m, output in enumerate(self.to_dict()["outputs"]):
            said = "moved" if output["moved"] else "not moved"
            name = f"output {m}: " if len(self.classes) > 1 else ""
            name = name if output["output"] is None else f"{output['output']}: "
            lines.append(f"{name}class shares {said} (p = {output['p_value']:.3g})")
            for row in output["shares"][:_MAX_PRINTED]:
                interval = f"[{row['low']:.4f}, {row['high']:.4f}]"
                lines.append(f"  {row['class']!s}: {row['old']:.4f} -> {row['estimate']:.4f} {interval}")
            if len(output["shares"]) > _MAX_PRINTED:
                lines.append(f"  ... {len(output['shares']) - _MAX_PRINTED} more classes")
            if len(lines) > _MAX_LINES:
                lines.append(f"... {len(self.classes)} outputs")
                break
        return "\n".join([*lines, *self.notes])


_COLUMNS = ("estimate", "low", "high", "old")
_MAX_PRINTED = 20  # classes of an output
_MAX_LINES = 60


@entry_point("estimate_shares")
@keeping_rows
def estimate_shares(
    rule: Any, proba: Any, *, level: float = LEVEL, prior_rows: float = PRIOR_ROWS, pos_label: Any = None
) -> ShareEstimate:
    """Estimate the class shares of rows without labels, if they have moved from those of the rows of the fit.

    The shares of maximum likelihood behind the calibration that the rule keeps (the EM algorithm of [1]_) are tested
    against the old ones by their likelihood ratio. If they have moved, the estimate is shrunk towards the old shares by
    a prior worth a few rows for each class; if not, it is the old shares.

    The assumption is that the rows of each class look as before, and only the shares of the classes move. Any other
    movement is taken for that as well: rows from elsewhere, or probabilities that have become wrong.

    Parameters
    ----------
    rule : rule, Solution, path, str or dict
        A rule that was fitted to labels, as in :func:`evaluate`. Rules by hand, rules fitted without labels and files
        of earlier versions are refused: they keep no calibration. So are rules by sensitive group.
    proba : array-like, Table or Dask collection
        Class probabilities, logits or scores of the rows, as ``rule.predict`` takes them. Those of a
        :class:`metricwise.Table` or a Dask collection are read batch by batch, in some twenty passes.
    level : float, default=0.01
        Level of the test, for all outputs together. 1: shares are always taken to have moved.
    prior_rows : float, default=3.0
        Number of rows that the old shares are worth for each class.
    pos_label : object, or list of M objects, optional
        The class that a single column of probabilities is of, as in ``rule.predict``.

    Returns
    -------
    ShareEstimate

    See Also
    --------
    Rule.with_prior : Move a rule to other shares.
    Rule.adapted : Fit a rule to rows without labels.
    expect : Values of metrics on rows without labels.

    Notes
    -----
    Log-likelihoods are deflated by ``1 / (1 + n_new / n_labelled)``, because the calibration was fitted to finitely
    many labels. Intervals follow from the observed information and the sandwich covariance of the calibration, on the
    scale of log-odds; where shares have not moved, they reach to the old share of the class. A class without labelled
    rows keeps share 0.

    References
    ----------
    .. [1] Saerens, Latinne, Decaestecker (2002), "Adjusting the Outputs of a Classifier to New a Priori Probabilities",
       Neural Computation.

    Examples
    --------
    >>> import numpy as np
    >>> import metricwise as mw
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 3, 4000)
    >>> y = (rng.random(4000) < p).astype(int)
    >>> rule = mw.optimize(p[:2000], y[:2000], "f1").rule
    >>> mw.estimate_shares(rule, p[2000:]).moved
    False
    """
    read = read_rule(rule, inputs=("cost", *PARTITIONS))
    check_groups(read)
    check_level(level)
    if not 0 <= read_number(prior_rows, "prior_rows", "be a number of rows, at least 0") < np.inf:
        raise InvalidParameter("prior_rows", "be a number of rows, at least 0", shown(prior_rows))
    calibration = require_calibration(read.metadata.calibration, read.schema, "estimate_shares")
    rows = read_unlabelled(read, proba, pos_label)
    return shares_of_rows(read, rows, calibration, float(level), float(prior_rows))


def read_unlabelled(rule: Rule, proba: Any, pos_label: Any = None) -> SourceBase:
    """Read rows without labels as a rule takes them; those of a table or a Dask collection stay where they are."""
    source = open_unlabelled(proba, rule.schema, partial(rule.read, pos_label=pos_label))
    if source.n_rows == 0:
        raise InvalidParameter("proba", "have at least one row", "none")
    return source


def check_level(level: Any) -> None:
    """Refuse what is no level of a test."""
    if not 0 < read_number(level, "level", "be above 0 and at most 1") <= 1:
        raise InvalidParameter("level", "be above 0 and at most 1", shown(level))


def read_number(value: Any, parameter: str, must: str) -> float:
    """Return a number; refused for everything else."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        raise InvalidType(parameter, must, shown(value))
    return float(value)


def check_groups(rule: Rule) -> None:
    """Refuse rules by sensitive group or by segment."""
    if rule.is_partitioned:
        parts, part = ("segments", "segment") if "segments" in rule.needs else ("sensitive groups", "group")
        raise InvalidType(
            "rule",
            f"decide all {parts} alike, because it is not known how the class shares of each {part} move",
            type(rule).__name__,
            f"fit a rule without {part}s, or one for each {part}",
        )


def shares_of_rows(
    rule: Rule,
    source: SourceBase,
    calibration: StoredCalibration,
    level: float = LEVEL,
    prior_rows: float = PRIOR_ROWS,
) -> ShareEstimate:
    """Estimate the shares of rows that have been read."""
    schema = rule.schema
    outputs = [
        _estimate_output(source, calibration, m, level / schema.n_outputs, prior_rows) for m in range(schema.n_outputs)
    ]
    padded = np.zeros((4, schema.n_outputs, schema.width))
    for m, output in enumerate(outputs):
        padded[:, m, : schema.n_classes[m]] = output.table
    estimate, low, high, old = padded if schema.multioutput else padded[:, 0]
    p_value, moved = np.array([o.p_value for o in outputs]), np.array([o.moved for o in outputs])
    return ShareEstimate(
        schema.classes,
        estimate,
        low,
        high,
        old,
        p_value if schema.multioutput else float(p_value[0]),
        moved if schema.multioutput else bool(moved[0]),
        source.n_rows,
        tuple(_notes(rule, calibration, bool(moved.any()), source.n_rows)),
        schema.output_names,
    )


def _notes(rule: Rule, calibration: StoredCalibration, moved: bool, n_rows: int) -> list[str]:
    """Say what should be known about the estimate."""
    notes = [CAVEAT]
    if n_rows < _MIN_ROWS:
        notes.append(
            f"There are fewer than {_MIN_ROWS} rows: only strong shifts are found, and intervals may be too short."
        )
    for m, (labels, shares) in enumerate(zip(rule.classes, calibration.shares, strict=True)):
        missing = [label for label, share in zip(python_labels(labels), shares, strict=False) if share == 0]
        if missing:
            where = f" of output {m}" if rule.n_outputs > 1 else ""
            names = ", ".join(map(repr, missing))
            notes.append(f"No labelled row of the fit had the class {names}{where}: its share stays 0.")
    if moved and rule.metadata.under_new_shares == UNCHANGED:
        notes.append(f"{rule.metadata.metric} is a function of recalls and does not change with shares: keep the rule.")
    return notes


@dataclass(frozen=True, eq=False)
class _OutputShares:
    """Estimate, low, high and old shares (4, K) of one output, and its test."""

    table: FloatArray
    p_value: float
    moved: bool


@dataclass(frozen=True, eq=False)
class _SourceMixing:
    """The rows of a source whose shares of the classes of output m that occur, `shown` (K,), are looked for.

    Sums are taken pass by pass, and kept: they are asked for at the same shares more than once.
    """

    source: SourceBase
    calibration: StoredCalibration
    m: int
    shown: NDArray[np.bool_]

    @property
    def n_rows(self) -> int:
        """N."""
        return self.source.n_rows

    @cached_property
    def old(self) -> FloatArray:
        """Class shares (K,) of the rows of the fit."""
        return self.calibration.shares[self.m, : len(self.shown)][self.shown]

    @property
    def deflation(self) -> float:
        """What a row counts for, because the calibration was fitted to finitely many."""
        labelled = max(float(self.calibration.n_rows[self.m]), 1.0)
        return 1.0 / (1.0 + self.n_rows / labelled)

    @cached_property
    def _held(self) -> FloatArray | None:
        """Density ratios of rows in memory, which are wanted again and again; None of others."""
        return self._ratios_of(self.source.rows.proba) if isinstance(self.source, MemorySource) else None

    @cached_property
    def _sums(self) -> dict[bytes, LikelihoodSums]:
        return {}

    def at(self, shares: FloatArray) -> LikelihoodSums:
        """Return the log-likelihood of shares (K,) and its slopes."""
        key = shares.tobytes()
        if key not in self._sums:
            self._sums[key] = self._likelihood(shares)
        return self._sums[key]

    def _likelihood(self, shares: FloatArray) -> LikelihoodSums:
        if self._held is not None:
            return LikelihoodSums.of(self._held, shares)
        return self.source.reduce(partial(_likelihood, self._ratios_of, shares), LikelihoodSums.add, n_outputs=1)

    def influences(self, shares: FloatArray) -> InfluenceSums:
        """Return what the influences on shares (K,) are made of."""
        logits = partial(_shown_logits, self.calibration, self.m, self.shown)
        if self._held is not None and isinstance(self.source, MemorySource):
            return InfluenceSums.of(self._held, shares, logits(self.source.rows.proba))
        ask = partial(_influences, self._ratios_of, logits, shares)
        return self.source.reduce(ask, InfluenceSums.add, n_outputs=1)

    @property
    def _ratios_of(self) -> Callable[[Probabilities], FloatArray]:
        return partial(_density_ratios, self.calibration, self.m, self.shown, self.old)


def _density_ratios(
    calibration: StoredCalibration, m: int, shown: NDArray[np.bool_], old: FloatArray, proba: Probabilities
) -> FloatArray:
    """Return the density ratios (N, K) of the classes of output m that occur."""
    eta = calibrated_output(proba, calibration.link, m)[:, shown]
    return np.asarray(np.maximum(eta, np.finfo(float).tiny) / old)


def _shown_logits(calibration: StoredCalibration, m: int, shown: NDArray[np.bool_], proba: Probabilities) -> FloatArray:
    return logits_of(proba, calibration.link, m)[:, shown]


def _likelihood(ratios_of: Callable[[Probabilities], FloatArray], shares: FloatArray, rows: Any) -> LikelihoodSums:
    return reduce(LikelihoodSums.add, (LikelihoodSums.of(ratios_of(part.proba), shares) for part in rows.chunks()))


def _influences(
    ratios_of: Callable[[Probabilities], FloatArray],
    logits: Callable[[Probabilities], FloatArray],
    shares: FloatArray,
    rows: Any,
) -> InfluenceSums:
    parts = (InfluenceSums.of(ratios_of(part.proba), shares, logits(part.proba)) for part in rows.chunks())
    return reduce(InfluenceSums.add, parts)


def calibrated_output(proba: Probabilities, link: TemperatureScaling, m: int) -> FloatArray:
    """Return the probabilities (N, K) of output m behind a link."""
    return distributions(link.view(proba).output(m)[:, 0])[:, : int(proba.n_classes[m])]


def logits_of(proba: Probabilities, link: TemperatureScaling, m: int) -> FloatArray:
    """Return the numbers (N, K) that a link maps, relative to the first class: logarithms of odds, or logits."""
    single = proba.of_outputs(np.array([m])).blocks[0]
    z = kernels.relative_logits(single, np.zeros(1, dtype=np.intp), int(proba.n_classes[m]), link.floor)[0].T
    return np.column_stack([np.zeros(len(z)), z])


def _estimate_output(
    source: SourceBase, calibration: StoredCalibration, m: int, level: float, prior_rows: float
) -> _OutputShares:
    """Estimate the shares of one output."""
    shown = calibration.shares[m, : int(source.schema.n_classes[m])] > 0
    mixing = _SourceMixing(source, calibration, m, shown)
    table = np.zeros((4, len(shown)))
    table[3] = calibration.shares[m, : len(shown)]
    if shown.sum() < 2:
        table[:3] = table[3]
        return _OutputShares(table, 1.0, False)
    test = LikelihoodRatio.of(mixing)
    moved = test.p_value < level or level >= 1
    shrunk = maximise_shares(mixing, prior_rows)
    covariance = calibration.covariance[m]
    of_calibration = None if covariance is None else _of_shown(covariance, shown)
    spread = mixing.influences(shrunk).covariance(shrunk, of_calibration)
    low, high = _interval(shrunk, np.sqrt(np.maximum(np.diag(spread), 0.0)))
    estimate = shrunk if moved else mixing.old
    table[:3, shown] = estimate, np.minimum(low, estimate), np.maximum(high, estimate)
    return _OutputShares(table, test.p_value, bool(moved))


def _of_shown(covariance: FloatArray, shown: NDArray[np.bool_]) -> FloatArray:
    """Return the covariance of the parameters of the classes that occur, relative to the first of these."""
    k = len(shown)
    first = int(np.argmax(shown))
    change = np.zeros((int(shown.sum()), k))
    change[0, 0] = 1.0
    for row, j in enumerate(np.flatnonzero(shown)[1:], start=1):
        change[row, j] = 1.0
        if first > 0:
            change[row, first] -= 1.0
    return np.asarray(change @ covariance @ change.T)


def _interval(shares: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return 95 % intervals on the scale of log-odds, within 0 and 1."""
    shares = np.clip(shares, _LEAST_SHARE, 1 - _LEAST_SHARE)
    log_odds, half = np.log(shares / (1 - shares)), _QUANTILE * errors / (shares * (1 - shares))
    return tuple(1 / (1 + np.exp(-np.clip(log_odds + sign * half, -700, 700))) for sign in (-1, 1))  # type: ignore[return-value]
