"""The theory as tools: the loss at an optimum, monotonicity, regret, and the regret bound.

Owns what the paper proves *about* rules, for those who want to look at it in numbers. Nothing that fits or applies a
rule depends on this module. The paper is Wang, Li, Yan, Koyejo, "Consistent Classification with Generalized Metrics"
(arXiv:1908.09057).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import inputs
from .confusion import normalize
from .metrics.averages import group_outputs
from .metrics.base import Metric
from .metrics.objective import make_objective
from .metrics.scorers import Resolved, resolve
from .oracles import BlendedOracle, MemoryOracle
from .problem import Problem, Recipe, fit
from .rules import MixtureRule, WeightedRule

__all__ = [
    "Counterexample",
    "Monotonicity",
    "Regret",
    "RegretBound",
    "check_monotonic",
    "loss_from_gradient",
    "regret",
    "regret_bound",
]

FloatArray = NDArray[np.float64]
MetricLike = str | Metric | Callable[[FloatArray], float]


# ------------------------------------------------------------------------------------------ the loss at an optimum


def loss_from_gradient(
    metric: MetricLike | ArrayLike,
    confusion: ArrayLike | None = None,
    *,
    average: str | None = None,
    output_weight: ArrayLike | None = None,
    n_classes: ArrayLike | None = None,
    zero_division: float = 0.0,
) -> FloatArray:
    """Return the weighted loss ``-grad psi(C)``, scaled and shifted to [0, 1].

    If C maximises psi over all confusions that can be reached, then it minimises <L, C> for this loss L, and the
    weighted rule of L is optimal (up to rows that tie). For a fractional-linear metric this is the paper's
    ``psi* B - A``, scaled and shifted.

    The gradient is that at fixed class priors, which no rule changes; it is defined up to a constant per row, and so is
    the loss: such constants change no decision. Neither does the scale, which is one per output.

    Parameters
    ----------
    metric : str, Metric or callable; or array-like of shape (K, K) or (M, K, K)
        The metric psi, or its gradient.
    confusion : array-like of shape (K, K) or (M, K, K)
        Where the gradient is taken: shares, or counts. With counts, outputs weigh by their sums under micro. May be
        left out if `metric` is a gradient.
    average : {"micro", "macro", "instance"}, optional
        Over outputs; micro unless the name of the metric fixes it. Under micro all outputs share one loss, under macro
        each has its own. Instance-averaging is taken as micro, its population value.
    output_weight : array-like of shape (M,), optional
    n_classes : array-like of shape (M,), optional
        K_m, if the outputs have different numbers of classes and `confusion` is padded. The loss of padding is 1.
    zero_division : float, default=0.0
        Value at 0/0 of a metric given by name.

    Returns
    -------
    ndarray of the shape of `confusion`
        Zero throughout where the gradient is flat, since every decision is then as good; the loss of argmax for an
        output without a label under macro.

    Examples
    --------
    >>> import metricwise as mw
    >>> mw.theory.loss_from_gradient("ordinal", [[0.2, 0.1, 0.0], [0.1, 0.2, 0.1], [0.0, 0.1, 0.2]])
    array([[0. , 0.5, 1. ],
           [0.5, 0. , 0.5],
           [1. , 0.5, 0. ]])

    At an F1 of 2/3 the loss is 2/3 B - A with A = [[0, 0], [0, 2]] and B = [[0, 1], [1, 2]]. The best threshold is
    half the F1:

    >>> L = mw.theory.loss_from_gradient("f1", [[0.6, 0.1], [0.1, 0.2]])
    >>> L
    array([[0.5, 1. ],
           [1. , 0. ]])
    >>> float((L[0, 1] - L[0, 0]) / (L[0, 1] - L[0, 0] + L[1, 0] - L[1, 1]))
    0.333...
    """
    who = "loss_from_gradient"
    if not (isinstance(metric, (str, Metric)) or callable(metric)):
        slope = _read_tensor(metric, who, "the gradient")
        if confusion is not None and np.shape(confusion) != slope.shape:
            raise ValueError(
                f"{who}: the gradient must have the shape of confusion, {np.shape(confusion)}, got {slope.shape}."
            )
        single, slope = slope.ndim == 2, slope.reshape(-1, *slope.shape[-2:])
        sizes = _read_sizes(n_classes, slope, who)
        losses = _unit_losses(slope, np.arange(len(slope)), sizes)
        return losses[0] if single else losses
    if confusion is None:
        raise ValueError(f"{who}: confusion must be given with a metric; only a gradient goes without.")
    tensor = _read_tensor(confusion, who, "confusion")
    if (tensor < 0).any() or not tensor.any():
        raise ValueError(f"{who}: confusion must be non-negative and not all zero.")
    single = tensor.ndim == 2
    C, weight = normalize(tensor.reshape(-1, *tensor.shape[-2:]))
    sizes = _read_sizes(n_classes, C, who)
    resolved = resolve(metric, _kind(C.shape[-1], not single), average, zero_division)
    alpha = _support_weighted(resolved, inputs.read_output_weight(output_weight, len(C), who), weight, C)
    grouping = group_outputs(resolved.average, weight, sizes, alpha)
    objective = make_objective(resolved.metric, grouping, C.sum(axis=-1), sizes)
    slope = objective.gradient(grouping.pool(C))
    if not np.isfinite(slope).all():
        raise ValueError(f"{who}: {resolved.name} has no finite gradient at this confusion; take it at another one.")
    losses = _unit_losses(slope, grouping.group, grouping.n_classes)
    return losses[0] if single else losses


def _unit_losses(slope: FloatArray, group: NDArray[np.intp], sizes: NDArray[np.intp]) -> FloatArray:
    """Scale and shift the negative gradient of each group, and give it to the outputs of the group."""
    width = slope.shape[-1]
    units = np.ones_like(slope)
    for g, k in enumerate(sizes.tolist()):
        loss = -slope[g, :k, :k]
        low, high = loss.min(), loss.max()
        units[g, :k, :k] = (loss - low) / (high - low) if high > low else 0.0
    losses = units[np.maximum(group, 0)]
    losses[group < 0] = 1.0 - np.eye(width)
    return losses


def _support_weighted(resolved: Resolved, alpha: FloatArray, weight: FloatArray, C: FloatArray) -> FloatArray:
    """Weigh outputs by their positives where scikit-learn's "weighted" on multilabel targets asks for it."""
    support = weight * C[:, 1].sum(axis=-1)
    return alpha * support if resolved.support_weighted and support.any() else alpha


# ------------------------------------------------------------------------------------------------ monotonicity


@dataclass(frozen=True, eq=False)
class Counterexample:
    """A repair that lowers a metric.

    Parameters
    ----------
    confusion : ndarray of shape (K, K)
        Before the repair.
    true, predicted : int
        Rows of class `true` that were predicted as `predicted` are now predicted right.
    amount : float
        Their share.
    before, after : float
        The metric.
    """

    confusion: FloatArray
    true: int
    predicted: int
    amount: float
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Monotonicity:
    """What :func:`check_monotonic` found; true if no counterexample was.

    Parameters
    ----------
    monotonic : bool
        The verdict: False is a proof, True says that none of `n_moves` repairs lowered the metric.
    n_moves : int
        Repairs tried.
    counterexample : Counterexample or None
        The repair that lowers the metric most.
    """

    monotonic: bool
    n_moves: int
    counterexample: Counterexample | None = None

    def __bool__(self) -> bool:
        return self.monotonic


def check_monotonic(
    metric: MetricLike,
    n_classes: int,
    *,
    n_matrices: int = 500,
    tol: float = 1e-9,
    random_state: int | np.random.Generator | None = 0,
    zero_division: float = 0.0,
) -> Monotonicity:
    """Check with random matrices whether repairing errors never lowers a metric.

    A metric is *monotonic* if moving mass within row i of C from any j != i to i never lowers it. Rules can move mass
    within rows only, since the row sums are the class priors. The micro- and the macro-average of a monotonic metric
    are monotonic, so that one matrix is enough.

    The paper asks for more: that the metric not decrease in any diagonal entry and not increase in any other, each by
    itself. That would exclude the ordinal metric, which gives credit to near misses. It also says that all metrics
    in common use are monotonic. With three classes or more, kappa and the Matthews coefficient are not, since a
    repair changes the agreement expected by chance too. Optimal rules are weighted rules all the same.

    Parameters
    ----------
    metric : str, Metric or callable
    n_classes : int
        K.
    n_matrices : int, default=500
        Random confusion matrices; half of them are those of few rows, with many zeros.
    tol : float, default=1e-9
        A smaller loss of value, relative to 1 or the value, is rounding.
    random_state : int, Generator or None, default=0
    zero_division : float, default=0.0
        Value at 0/0 of a metric given by name.

    Returns
    -------
    Monotonicity

    Examples
    --------
    >>> import metricwise as mw
    >>> bool(mw.theory.check_monotonic("ordinal", 4))
    True
    >>> result = mw.theory.check_monotonic("quadratic_kappa", 4)
    >>> result.monotonic
    False
    >>> result.counterexample.after < result.counterexample.before
    True
    """
    who = "check_monotonic"
    _check_whole(n_classes, 2, who, "n_classes")
    _check_whole(n_matrices, 1, who, "n_matrices")
    _check_number(tol, who, "tol", low=0.0)
    found = resolve(metric, _kind(n_classes, False), None, zero_division).metric
    n_moves, worst, drop = 0, None, 0.0
    for C in _random_confusions(n_classes, n_matrices, np.random.default_rng(random_state)):
        moved, true, predicted, amount = _repairs(C)
        if not len(moved):
            continue
        n_moves += len(moved)
        before, after = float(found.value(C)), found.value(moved)
        r = int(np.argmin(after))
        fall = before - float(after[r])
        if fall > max(drop, tol * max(1.0, abs(before))):
            drop = fall
            worst = Counterexample(C, int(true[r]), int(predicted[r]), float(amount[r]), before, float(after[r]))
    return Monotonicity(worst is None, n_moves, worst)


def _random_confusions(k: int, n: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield matrices from even to extreme, every other one as of few rows."""
    for t in range(n):
        spread = (0.2, 1.0)[t // 2 % 2]
        C = rng.dirichlet(np.full(k, spread))[:, None] * rng.dirichlet(np.full(k, spread), size=k)
        if t % 2:
            n_rows = int(rng.integers(3, 60))
            C = rng.multinomial(n_rows, (C / C.sum()).ravel()).reshape(k, k) / n_rows
        C = np.where(C > 1e-9, C, 0.0)  # below, a sum of shares cannot be told from an empty one
        yield C / C.sum()


def _repairs(C: FloatArray) -> tuple[FloatArray, NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Return what C becomes if all, half or a little of one entry off the diagonal moves to the diagonal."""
    cells = np.argwhere((C > 0) & ~np.eye(len(C), dtype=bool))
    true, predicted = np.tile(cells, (3, 1)).T
    amount = C[true, predicted] * np.repeat([1.0, 0.5, 0.01], len(cells))
    moved = np.repeat(C[None], len(true), axis=0)
    row = np.arange(len(true))
    moved[row, true, predicted] -= amount
    moved[row, true, true] += amount
    return moved, true, predicted, amount


# ------------------------------------------------------------------------------------------------------ regret


@dataclass(frozen=True, eq=False)
class Regret:
    """What a rule loses for want of the best one; ``float()`` of it is the regret.

    Parameters
    ----------
    value : float
        The metric of the rule, under the true probabilities.
    best : float
        The metric of the best rule found that knows the true probabilities.
    upper_bound : float or None
        No rule is better than this, randomised ones included; None where nothing is known. Where the solver is exact
        it equals `best`; else the true regret is between `regret` and ``upper_bound - value``.
    best_rule : WeightedRule or MixtureRule
        It takes the true probabilities.
    """

    value: float
    best: float
    upper_bound: float | None
    best_rule: WeightedRule | MixtureRule

    @property
    def regret(self) -> float:
        """``best - value``."""
        return self.best - self.value

    def __float__(self) -> float:
        return self.regret

    def __repr__(self) -> str:
        return f"Regret(regret={self.regret:.6g}, value={self.value:.6g}, best={self.best:.6g})"


def regret(
    rule: WeightedRule | MixtureRule,
    proba: Any,
    eta: Any,
    metric: MetricLike,
    *,
    average: str | None = None,
    sample_weight: ArrayLike | None = None,
    output_weight: ArrayLike | None = None,
    zero_division: float = 0.0,
) -> Regret:
    """Compare a rule with the best one for known class probabilities.

    The rule decides by `proba`, which may be any estimate. Its confusion is the expected one under `eta`, the true
    probabilities: nothing is drawn, and for a randomised rule its exact distribution counts. The best rule is found
    with `eta` in the hand; for a concave metric it may be a mixture. This is the paper's psi-regret, with the rows
    given as the distribution of x.

    Parameters
    ----------
    rule : WeightedRule or MixtureRule
    proba : array-like
        What the rule decides by, in any shape that it predicts for.
    eta : array-like
        True class probabilities of the same rows, in any such shape.
    metric : str, Metric or callable
    average : {"micro", "macro", "instance"}, optional
        Over outputs; micro unless the name of the metric fixes it. The population value of instance-averaging is
        micro's.
    sample_weight : array-like of shape (N,), optional
    output_weight : array-like of shape (M,), optional
    zero_division : float, default=0.0
        Value at 0/0 of a metric given by name.

    Returns
    -------
    Regret

    Examples
    --------
    Argmax is a threshold of 0.5. The best F1 has a lower one, half the F1:

    >>> import numpy as np
    >>> import metricwise as mw
    >>> from metricwise.losses import Loss
    >>> eta = np.linspace(0.0, 1.0, 1001) ** 3
    >>> argmax = mw.WeightedRule(Loss.argmax(2), classes=(np.array([0, 1]),))
    >>> found = mw.theory.regret(argmax, eta, eta, "f1")
    >>> found
    Regret(regret=0.0295837, value=0.661805, best=0.691389)
    >>> abs(found.best_rule.threshold - found.best / 2) < 0.01
    True
    """
    who = "regret"
    if not isinstance(rule, (WeightedRule, MixtureRule)):
        raise TypeError(f"{who}: rule must be a WeightedRule or a MixtureRule, got {type(rule).__name__}.")
    reader = rule if isinstance(rule, WeightedRule) else rule.rules[0]
    estimate, truth = reader.read(proba, who), reader.read(eta, who)
    if estimate.n_rows != truth.n_rows:
        raise ValueError(f"{who}: eta must have the rows of proba, {estimate.n_rows}, got {truth.n_rows}.")
    resolved = resolve(metric, _kind(rule.width, rule.multioutput), average, zero_division)
    problem = Problem(
        proba=truth,
        codes=None,
        classes=rule.classes,
        metric=resolved.metric,
        average=resolved.average,
        support_weighted=resolved.support_weighted,
        sample_weight=inputs.read_sample_weight(sample_weight, truth.n_rows, who),
        output_weight=inputs.read_output_weight(output_weight, truth.n_outputs, who),
        multioutput=rule.multioutput,
        output_names=reader.output_names,
    )
    oracle = problem.oracle("expected")
    objective = problem.objective(oracle)
    value = objective.value(_expected_confusion(rule, estimate, oracle))
    # Only for concave metrics can a mixture be found that is sure to be best.
    recipe = Recipe(confusion="expected", recalibrate=False)
    solution = fit(problem, recipe, randomized=objective.concave)
    if solution.value < value:  # by rounding, or because the solver is no exact one
        bound = None if solution.upper_bound is None else max(solution.upper_bound, value)
        return Regret(value, value, bound, rule)
    return Regret(value, solution.value, solution.upper_bound, solution.rule)


def _expected_confusion(
    rule: WeightedRule | MixtureRule, proba: inputs.Probabilities, oracle: MemoryOracle | BlendedOracle
) -> FloatArray:
    """Return the confusion of a rule that decides by `proba`, as the oracle counts."""
    if isinstance(rule, WeightedRule):
        return oracle.confusion_of(rule.decide(proba))
    weights = np.broadcast_to(rule.weights, (rule.n_outputs, len(rule.rules)))
    parts = [oracle.confusion_of(component.decide(proba)) for component in rule.rules]
    mixed: FloatArray = np.einsum("mr,rmij->mij", weights, np.array(parts))
    return mixed


# ------------------------------------------------------------------------------------------------ the regret bound


@dataclass(frozen=True)
class RegretBound:
    """The terms of the regret bound.

    Parameters
    ----------
    tau : float
        ``(||A||_1 + ||B||_1) / b``, with the sum of absolute entries as norm.
    estimation : float
        From the error of the estimated probabilities, ``2 tau`` times its mean over outputs.
    sampling : float
        From counting confusions on finitely many rows.
    bisection : float
        From stopping after finitely many halvings.
    """

    tau: float
    estimation: float
    sampling: float
    bisection: float

    @property
    def total(self) -> float:
        """The bound."""
        return self.estimation + self.sampling + self.bisection

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing: the metric is between 0 and 1, so that no regret exceeds 1."""
        return self.total >= 1.0


def regret_bound(
    A: ArrayLike,
    B: ArrayLike,
    b: float,
    *,
    n_rows: int,
    n_outputs: int = 1,
    eta_error: float | ArrayLike,
    delta: float = 0.05,
    kappa: float = 1.0,
    constant: float = 1.0,
    independent_outputs: bool = True,
) -> RegretBound:
    r"""Bound the regret of the paper's bisection algorithm for a fractional-linear metric.

    The algorithm estimates eta on one half of N rows and bisects on the other half. For
    ``psi(C) = <A, C> / <B, C>``, micro-averaged over M outputs of K classes, its regret is with probability at least
    1 - delta (over the draw of the rows) at most

    .. math::

        \frac{2 \tau}{M} \sum_m \mathbb{E} \lVert \hat\eta_m(X) - \eta_m(X) \rVert_1
        + 2 \sqrt{2} \, c \, \tau \sqrt{\frac{K^2 \log K \, \log(MN) + \log(K^2 / \delta)}{MN}}
        + 2^{-\kappa N},
        \qquad \tau = \frac{\lVert A \rVert_1 + \lVert B \rVert_1}{b} .

    Parameters
    ----------
    A, B : array-like of shape (K, K)
        Numerator and denominator of the metric, both non-negative; K is read off them. The theorem also needs psi to
        be at most 1 for every confusion that can be reached, which holds wherever A <= B.
    b : float
        Positive lower bound of the denominator <B, C> over all confusions that can be reached.
    n_rows : int
        N, all rows of both halves.
    n_outputs : int, default=1
        M.
    eta_error : float or array-like of shape (M,)
        The expected L1 distance of estimated and true class probabilities: its mean over outputs, or each output's.
    delta : float, default=0.05
        In (0, 1].
    kappa : float, default=1.0
        The algorithm halves its interval kappa N times.
    constant : float, default=1.0
        c, which the theorem says exists and does not depend on the distribution. Nobody knows it; it scales the
        sampling term.
    independent_outputs : bool, default=True
        The paper counts M N independent observations. The M outputs of a row share one x and may depend on one
        another as they like, so that only N are independent: False has N in the place of M N in the sampling term.

    Returns
    -------
    RegretBound
        Each term, and their ``total``.

    Notes
    -----
    The paper prints ``2 tau / m`` for ``2 tau / M``, and :math:`2^{-\kappa M N}` for the last term, although its
    algorithm halves kappa N times whatever M; see the errata. The bound is for understanding rates: at common sizes
    it is far above 1.

    Examples
    --------
    >>> import metricwise as mw
    >>> bound = mw.theory.regret_bound(
    ...     [[0, 0], [0, 2]], [[0, 1], [1, 2]], 0.5, n_rows=10**9, eta_error=0.001, constant=0.1
    ... )
    >>> bound.tau
    12.0
    >>> round(bound.estimation, 6), round(bound.sampling, 6), bound.bisection
    (0.024, 0.000844, 0.0)
    >>> bound.vacuous
    False
    """
    who = "regret_bound"
    top, bottom = (_read_tensor(part, who, name) for part, name in ((A, "A"), (B, "B")))
    if top.ndim != 2 or top.shape != bottom.shape or len(top) < 2:
        raise ValueError(f"{who}: A and B must have one shape (K, K) with K >= 2, got {np.shape(A)} and {np.shape(B)}.")
    for name, part in (("A", top), ("B", bottom)):
        if (part < 0).any():
            raise ValueError(
                f"{who}: {name} must be non-negative, as the theorem asks, got {part.min():.6g}; if <B, C> = 1 for "
                "all C, adding a constant to A only shifts the metric."
            )
    _check_number(b, who, "b", low=0.0, high=float(bottom.max()))
    _check_whole(n_rows, 1, who, "n_rows")
    _check_whole(n_outputs, 1, who, "n_outputs")
    _check_number(delta, who, "delta", low=0.0, high=1.0)
    _check_number(kappa, who, "kappa", low=0.0)
    _check_number(constant, who, "constant", low=0.0)
    tau = float(top.sum() + bottom.sum()) / b
    k, size = len(top), n_rows * (n_outputs if independent_outputs else 1)
    deviation = math.sqrt((k * k * math.log(k) * math.log(size) + math.log(k * k / delta)) / size)
    return RegretBound(
        tau=tau,
        estimation=2.0 * tau * _mean_error(eta_error, n_outputs, who),
        sampling=2.0 * math.sqrt(2.0) * constant * tau * deviation,
        bisection=2.0 ** (-kappa * n_rows),
    )


def _mean_error(eta_error: float | ArrayLike, n_outputs: int, who: str) -> float:
    error = np.asarray(eta_error, dtype=np.float64)
    if error.ndim and error.shape != (n_outputs,):
        raise ValueError(
            f"{who}: eta_error must be one number or one for each of {n_outputs} outputs, got shape {error.shape}."
        )
    if not ((error >= 0) & (error <= 2)).all():
        raise ValueError(
            f"{who}: eta_error must be between 0 and 2, as L1 distances of probabilities are, got {error}."
        )
    return float(error.mean())


# ------------------------------------------------------------------------------------------------------ checks


def _kind(n_classes: int, several: bool) -> str:
    """What scikit-learn's names are to be read for."""
    if several:
        return "multilabel" if n_classes == 2 else "multioutput"
    return "binary" if n_classes == 2 else "multiclass"


def _read_tensor(values: Any, who: str, parameter: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{who}: {parameter} must be an array of numbers, got {type(values).__name__}.") from None
    if array.ndim not in (2, 3) or array.shape[-1] != array.shape[-2] or not array.size:
        raise ValueError(f"{who}: {parameter} must have shape (K, K) or (M, K, K), got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{who}: {parameter} must be finite, got NaN or infinity.")
    return array


def _read_sizes(n_classes: ArrayLike | None, tensor: FloatArray, who: str) -> NDArray[np.intp]:
    width, shape = tensor.shape[-1], (len(tensor),)
    if n_classes is None:
        return np.full(shape, width, dtype=np.intp)
    sizes = np.asarray(n_classes)
    if sizes.shape != shape or sizes.dtype.kind not in "iu" or sizes.min() < 2 or sizes.max() != width:
        raise ValueError(
            f"{who}: n_classes must be {shape[0]} integers from 2 to {width}, which one has, got {n_classes!r}."
        )
    return sizes.astype(np.intp)


def _check_whole(value: Any, least: int, who: str, parameter: str) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{who}: {parameter} must be an integer of at least {least}, got {value!r}.")


def _check_number(value: Any, who: str, parameter: str, *, low: float, high: float = math.inf) -> None:
    """Refuse what is not a finite number above `low` and at most `high`."""
    good = isinstance(value, (int, float, np.number)) and math.isfinite(value) and low < value <= high
    if not good:
        top = "" if high == math.inf else f" and at most {high:g}"
        raise ValueError(f"{who}: {parameter} must be a finite number above {low:g}{top}, got {value!r}.")
