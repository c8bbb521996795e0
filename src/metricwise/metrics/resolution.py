"""From a name, a metric, a scorer or a function to the metric and its average over outputs.

Names of scikit-learn's scorers mean what they mean there for the kind of target; those that are not functions of the
confusion matrix are refused with the reason. Must not import scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..core.errors import InvalidParameter, InvalidType, argument, entry_point, mention
from .averages import AverageName, check_average
from .base import Metric, negated
from .class_names import NamedClass, read_name
from .functions import function_name
from .naming import with_positive
from .one_vs_rest import ClassAverage, OneVsRest
from .recognised import Known, known_function, known_loss, unwrap
from .registry import get_metric, is_metric_name, metric_names, number_in, unknown_name
from .user_functions import from_callable

__all__ = ["Resolved", "resolve", "scorer_names"]

KINDS = ("binary", "multiclass", "multilabel", "multioutput")

_OF_ONE_CLASS = ("f1", "jaccard", "precision", "recall")
# On multilabel a suffix is the average over outputs, and whether that is weighted by support.
_OVER_OUTPUTS: dict[str, tuple[AverageName, bool]] = {
    "micro": ("micro", False),
    "macro": ("macro", False),
    "weighted": ("macro", True),
    "samples": ("instance", False),
}
SUFFIXES = tuple(_OVER_OUTPUTS)
_ALIASES = {"matthews_corrcoef": "mcc"}
_WHOLE_ROWS = ("accuracy", "accuracy_score", "zero_one_loss")

_RANKING = "evaluates the order of the scores, not decisions; choose a metric of decisions, such as 'f1'"
_PROBABILITY = "evaluates the probabilities themselves, not decisions; choose a metric of decisions, such as 'f1'"
_CLUSTERING = "compares clusterings and ignores the labels; for agreement of labels use 'kappa' or 'mcc'"
_REGRESSION = "is for numbers, not classes; for ordered classes use 'ordinal', 'squared_ordinal' or 'quadratic_kappa'"

_REFUSED = {
    **dict.fromkeys(
        ("average_precision", "roc_auc", "roc_auc_ovo", "roc_auc_ovo_weighted", "roc_auc_ovr", "roc_auc_ovr_weighted"),
        _RANKING,
    ),
    "top_k_accuracy": "evaluates the k most probable classes of a row, not one decision; use 'accuracy'",
    **dict.fromkeys(("d2_brier_score", "d2_log_loss_score", "neg_brier_score", "neg_log_loss"), _PROBABILITY),
    "positive_likelihood_ratio": (
        "has no maximum: it grows without bound as false positives vanish; use 'f1' or 'precision'"
    ),
    "neg_negative_likelihood_ratio": (
        "is undefined if every row is predicted positive, close to its maximum; use 'balanced_accuracy'"
    ),
    **dict.fromkeys(
        (
            "adjusted_mutual_info_score",
            "adjusted_rand_score",
            "completeness_score",
            "homogeneity_score",
            "mutual_info_score",
            "normalized_mutual_info_score",
            "rand_score",
            "v_measure_score",
        ),
        _CLUSTERING,
    ),
    "fowlkes_mallows_score": (
        "compares clusterings by pairs of rows; 'fowlkes_mallows' is the geometric mean of precision and recall"
    ),
    **dict.fromkeys(
        (
            "d2_absolute_error_score",
            "explained_variance",
            "max_error",
            "neg_max_error",
            "neg_mean_absolute_error",
            "neg_mean_absolute_percentage_error",
            "neg_mean_gamma_deviance",
            "neg_mean_poisson_deviance",
            "neg_mean_squared_error",
            "neg_mean_squared_log_error",
            "neg_median_absolute_error",
            "neg_root_mean_squared_error",
            "neg_root_mean_squared_log_error",
            "r2",
        ),
        _REGRESSION,
    ),
}


@dataclass(frozen=True, eq=False)
class Resolved:
    """A metric that has been identified, and how it is averaged over outputs.

    Parameters
    ----------
    metric : Metric
        The metric of one confusion matrix.
    average : {"micro", "macro", "instance"}
        The average over outputs.
    support_weighted : bool
        Whether "macro" weights each output by the rows of its positive class (scikit-learn's "weighted" for
        multilabel).
    name : str
        The name that the user gave.
    fixed : bool
        Whether this name fixes the average.
    average_given : bool
        Whether the user or the name gave the average; otherwise it is "micro" if outputs have the same classes.

    See Also
    --------
    resolve : Returns it.

    Examples
    --------
    >>> from metricwise.metrics import resolve
    >>> resolved = resolve("f1_macro", "multilabel")
    >>> resolved.name, resolved.average, resolved.fixed
    ('f1_macro', 'macro', True)
    """

    metric: Metric
    average: AverageName
    support_weighted: bool
    name: str
    fixed: bool = False
    average_given: bool = True


def target_kind(n_classes: int, several: bool) -> str:
    """Return the kind of a target of at most `n_classes` classes, over several outputs or one.

    Examples
    --------
    >>> from metricwise.metrics.resolution import target_kind
    >>> target_kind(2, True), target_kind(5, False)
    ('multilabel', 'multiclass')
    """
    if several:
        return "multilabel" if n_classes <= 2 else "multioutput"
    return "binary" if n_classes <= 2 else "multiclass"


def scorer_names() -> list[str]:
    """Return the scikit-learn scorer names that are accepted, for at least one kind of target.

    Returns
    -------
    list of str

    See Also
    --------
    metric_names : Names of all metrics.
    resolve : Find what a name means.

    Examples
    --------
    >>> from metricwise.metrics import scorer_names
    >>> "f1_macro" in scorer_names(), "roc_auc" in scorer_names()
    (True, False)
    """
    suffixed = [f"{base}_{suffix}" for base in _OF_ONE_CLASS for suffix in _OVER_OUTPUTS]
    return sorted(["accuracy", "balanced_accuracy", *_OF_ONE_CLASS, *suffixed, *_ALIASES])


@entry_point("metric")
def resolve(
    metric: str | Metric | Callable[..., float],
    kind: str,
    average: str | None = None,
    zero_division: float = 0.0,
    pos_label: Any = None,
    *,
    wanted_only: bool = False,
) -> Resolved:
    """Find the metric and the average over outputs for a name or another specification.

    Parameters
    ----------
    metric : str, Metric or callable
        A metricwise or scikit-learn scorer name, either with a class in brackets (``recall[urgent]``), a metric object,
        a scorer object of scikit-learn, or a function: f(C) with one required argument, f(y_true, y_pred) with two.
        Functions of scikit-learn that are metricwise metrics are recognised.
    kind : {"binary", "multiclass", "multilabel", "multioutput"}
        Kind of the target.
    average : {"micro", "macro", "instance"}, optional
        Average over outputs; "micro" unless a scikit-learn name fixes it.
    zero_division : float, default=0.0
        The value at 0/0, for metrics given by name.
    pos_label : object, or list of M objects, optional
        The positive class of a metric of one class, for all outputs or for each.
    wanted_only : bool, default=False
        Whether `pos_label` is ignored, rather than an error, for metrics that have no positive class or name it.

    Returns
    -------
    Resolved

    Raises
    ------
    ValueError
        If the name is unknown, is not a function of the confusion matrix, or does not fit the kind or the average.

    See Also
    --------
    get_metric : Return the metric of a name.
    scorer_names : Names of scikit-learn that are accepted.

    Examples
    --------
    >>> from metricwise.metrics.resolution import resolve
    >>> resolve("f1_macro", "multilabel").average
    'macro'
    >>> resolve("f1_micro", "multiclass").metric.bind([0.2, 0.3, 0.5]).traits.family
    'linear'
    """
    if kind not in KINDS:
        raise InvalidParameter("kind", f"be one of {list(KINDS)}", repr(kind))
    if average is not None:
        check_average(average)
    resolved = metric_meant(metric, kind, average, zero_division, pos_label is not None)
    if pos_label is None or (wanted_only and not resolved.metric.traits.needs_positive):
        return resolved
    several = kind in ("multilabel", "multioutput")
    return replace(resolved, metric=with_positive(resolved.metric, pos_label, several=several))


def metric_meant(
    metric: Any, kind: str, average: str | None = None, zero_division: float = 0.0, class_named: bool = False
) -> Resolved:
    """Find metric and average, without the positive class; `class_named` is whether it is given elsewhere."""
    if isinstance(metric, str):
        return _resolve_name(metric, kind, average, zero_division, class_named)
    if isinstance(metric, Metric):
        return Resolved(metric, _or_micro(average), False, metric.name, average_given=average is not None)
    return _resolve_callable(metric, kind, average, zero_division, class_named)


def _or_micro(average: str | None) -> AverageName:
    return "micro" if average is None else average  # type: ignore[return-value]  # checked by resolve


def _resolve_callable(metric: Any, kind: str, average: str | None, zero_division: float, class_named: bool) -> Resolved:
    if isinstance(metric, type):
        raise InvalidType(
            "metric",
            problem="must be a metric object, got its class",
            remedy=f"use {metric.__name__}(...)",
            owner="metric",
        )
    if not callable(metric):
        costs = "; for a table of costs, use mw.metrics.Cost(...)" if getattr(metric, "ndim", 0) == 2 else ""
        raise InvalidType(
            "metric",
            problem=(
                "must be a name, a Metric, a scorer, a function f(y_true, y_pred) of labels or f(C) of the "
                f"confusion matrix, got {type(metric).__name__}{costs}"
            ),
            owner="metric",
        )
    function, parameters, sign, scorer = unwrap(metric)
    if hasattr(function, "as_metric"):  # a scorer that make_scorer of ours has made
        inner, inner_average, inner_label = function.as_metric()
        return resolve(inner, kind, inner_average if average is None else average, pos_label=inner_label)
    match = known_function(function, parameters, zero_division)
    if match is None:
        metric = from_callable(function, parameters, sign)
        return Resolved(metric, _or_micro(average), False, metric.name, average_given=average is not None)
    if match.loss is not None and scorer and sign > 0:
        raise InvalidParameter(
            "metric",
            problem=f"the scorer of {match.loss} says that a greater loss is better",
            remedy="pass greater_is_better=False to make_scorer, or pass the function itself",
            owner="metric",
        )
    resolved = _resolve_known(function_name(function), match, kind, average, class_named)
    return resolved if sign > 0 else negative(resolved)


def _resolve_known(name: str, match: Known, kind: str, average: str | None, class_named: bool) -> Resolved:
    """Read a function of scikit-learn as its scorer names are read."""
    metric = match.metric
    if match.suffix is None:
        _check_kind(name, metric, kind, "set average='macro', for example with functools.partial", class_named)
        resolved = Resolved(metric, _or_micro(average), False, name, average_given=average is not None)
    elif kind != "multilabel":
        assert isinstance(metric, OneVsRest)
        resolved = _over_classes(name, match.suffix, metric, kind, average)
        resolved = replace(resolved, metric=match.over_classes())
    elif match.labels is not None:
        raise InvalidParameter(
            "metric",
            problem=f"for multilabel targets, labels= of {name} selects outputs",
            remedy=f"pass {mention('output_weight')} to optimize instead",
            owner="metric",
        )
    else:
        assert isinstance(metric, OneVsRest)
        resolved = _over_outputs(name, match.suffix, metric, kind, average)
    return replace(resolved, metric=match.meant(resolved.metric))


def negative(resolved: Resolved) -> Resolved:
    """Return minus a metric, named as scikit-learn names such scorers."""
    return replace(resolved, metric=negated(resolved.metric, resolved.name), name=f"neg_{resolved.name}")


def to_maximise(resolved: Resolved) -> Resolved:
    """Return what is maximised where a metric is the aim: minus a loss, anything else as it is."""
    metric = resolved.metric._maximised()
    return resolved if metric is resolved.metric else replace(resolved, metric=metric, name=metric.name)


def _resolve_name(name: str, kind: str, average: str | None, zero_division: float, class_named: bool) -> Resolved:
    if name in _REFUSED:
        raise InvalidParameter(
            "metric",
            problem=f"{name!r} is not a function of the confusion matrix that can be maximised: it {_REFUSED[name]}",
            owner="metric",
        )
    about = read_name(name)
    if about is not None:
        return _resolve_about(name, about, kind, average, zero_division)
    base, _, suffix = name.rpartition("_")
    of_class = _of_one_class(base, zero_division)
    if of_class is not None and suffix in _OVER_OUTPUTS:
        return (_over_outputs if kind == "multilabel" else _over_classes)(name, suffix, of_class, kind, average)
    loss_name = name.removeprefix("neg_")
    loss = known_loss(loss_name)
    if loss is not None:
        resolved = _resolve_known(loss_name, loss, kind, average, class_named)
        return resolved if name == loss_name else negative(resolved)
    ours = _ALIASES.get(name, name)
    if not is_metric_name(ours):
        raise unknown_name(
            name, [*metric_names(), *scorer_names()], lambda near: _serves(near, kind, class_named), _REFUSED
        )
    metric = get_metric(ours, zero_division=zero_division)
    _check_kind(name, metric, kind, f"use {_class_average_of(metric)!r}", class_named)
    return Resolved(metric, _or_micro(average), False, name, average_given=average is not None)


def _resolve_about(name: str, about: NamedClass, kind: str, average: str | None, zero_division: float) -> Resolved:
    """Read a name with a class in it: ``recall[urgent]``."""
    resolved = _resolve_name(about.name, kind, average, zero_division, class_named=True)
    if not resolved.metric.traits.needs_positive:
        raise InvalidParameter(
            "metric",
            problem=f"{name!r} names a class, but {about.name!r} is not about one class",
            remedy="leave the brackets out, or use a metric of one class, such as 'recall', 'precision' or 'f1'",
            owner="metric",
        )
    several = kind in ("multilabel", "multioutput")
    return replace(resolved, metric=with_positive(resolved.metric, about.label, several=several), name=name)


def _of_one_class(base: str, zero_division: float) -> OneVsRest | None:
    """Return the metric of one class of a name that a suffix may follow."""
    if base not in _OF_ONE_CLASS and number_in(base, "f") is None:
        return None
    metric = get_metric(base, zero_division=zero_division)
    assert isinstance(metric, OneVsRest)
    return metric


def _serves(name: str, kind: str, class_named: bool) -> bool:
    """Whether a name would be taken for this kind of target."""
    try:
        _resolve_name(name, kind, None, 0.0, class_named)
    except ValueError:
        return False
    return True


def _over_outputs(name: str, suffix: str, of_class: OneVsRest, kind: str, average: str | None) -> Resolved:
    fixed, support_weighted = _OVER_OUTPUTS[suffix]
    if average not in (None, fixed):
        raise InvalidParameter(
            "metric",
            problem=(
                f"for {kind} targets, {name!r} fixes {argument('average', fixed)}, got {argument('average', average)}"
            ),
            remedy=f"leave it out, or use {of_class.name!r} with the average you want",
            owner="metric",
        )
    return Resolved(of_class, fixed, support_weighted, name, fixed=True)


def _over_classes(name: str, suffix: str, of_class: OneVsRest, kind: str, average: str | None) -> Resolved:
    if suffix == "samples":
        raise InvalidParameter(
            "metric",
            problem=f"{name!r} is for multilabel targets, but this target is {kind}",
            remedy=f"use '{of_class.name}_macro', '{of_class.name}_weighted' or '{of_class.name}_micro'",
            owner="metric",
        )
    return Resolved(ClassAverage(of_class, suffix), _or_micro(average), False, name, average_given=average is not None)


def _check_kind(name: str, metric: Metric, kind: str, remedy: str, class_named: bool) -> None:
    """Refuse names and functions where their plain reading is not what the user will have meant."""
    if kind == "multiclass" and isinstance(metric, OneVsRest) and not (class_named or metric.names_class):
        raise InvalidParameter(
            "metric",
            problem=f"{name!r} is about one class, but a multiclass target has no positive one",
            remedy=f"{remedy}, or name the class: {argument('pos_label', text='...')}",
            owner="metric",
        )
    if kind != "multilabel":
        return
    if name in _WHOLE_ROWS:
        raise InvalidParameter(
            "metric",
            problem=(
                f"for multilabel targets, scikit-learn's {name!r} is that of whole rows, which is not a "
                "function of the confusion matrices"
            ),
            remedy="use 'hamming_accuracy', the share of right decisions",
            owner="metric",
        )
    if isinstance(metric, ClassAverage):
        raise InvalidParameter(
            "metric",
            problem=f"{name!r} averages over the classes of one output, which for multilabel targets are 0 and 1",
            remedy=(
                f"use '{metric.base.name}_{metric.average}' for the average over labels, or pass "
                "metrics.ClassAverage(...) if you mean both classes"
            ),
            owner="metric",
        )


def _class_average_of(metric: Metric) -> str:
    name = f"{metric.name}_macro"
    return (
        name
        if metric.name in _OF_ONE_CLASS or number_in(metric.name, "f") is not None
        else f"metrics.ClassAverage(metrics.{type(metric).__name__}())"
    )
