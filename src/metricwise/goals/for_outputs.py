"""What a user's words for a metric mean for outputs whose classes are known: one metric for all, or one for each.

Owns the reading of ``metric={"grade": "quadratic_kappa", "spam": "f1"}``, and the refusal of what nobody has said of
the classes. Must not know names of metrics, data or solvers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import InvalidParameter, argument, mention, shown
from ..core.labels import Scales
from ..data.single_column import positive_labels
from ..metrics.base import Metric
from ..metrics.functions import with_caches
from ..metrics.naming import PerOutput, check_classes, check_same_classes, pooled, with_positive
from ..metrics.recognised import unwrap
from ..metrics.resolution import SUFFIXES, Resolved, metric_meant, resolve, target_kind
from ..metrics.scales import in_order

__all__ = [
    "MetricSpec",
    "are_for_outputs",
    "by_output",
    "check_macro",
    "resolve_for",
    "resolve_outputs",
    "settle",
    "unused_positive",
]

MetricSpec = str | Metric | Callable[..., float] | Mapping[Any, Any] | Sequence[Any]

_SEVERAL = (Mapping, list, tuple)


def resolve_for(
    metric: Any,
    classes: Sequence[NDArray[Any]],
    *,
    several: bool,
    average: str | None = None,
    pos_label: Any = None,
    wanted_only: bool = False,
    scales: Scales | None = None,
    outputs: Sequence[Any] | None = None,
) -> Resolved:
    """Find what a user means for outputs whose classes are known, and refuse what would have to be guessed.

    Parameters
    ----------
    metric, average, pos_label, wanted_only, several, outputs
        See :func:`resolve_outputs`.
    classes, scales
        See :func:`settle`.

    Returns
    -------
    Resolved
    """
    resolved = resolve_outputs(
        metric, classes, several=several, average=average, pos_label=pos_label, wanted_only=wanted_only, outputs=outputs
    )
    if not resolved.average_given:
        check_same_classes(classes)
    return settle(resolved, classes, scales=scales)


def resolve_outputs(
    metric: Any,
    classes: Sequence[NDArray[Any]],
    *,
    several: bool,
    average: str | None = None,
    pos_label: Any = None,
    wanted_only: bool = False,
    outputs: Sequence[Any] | None = None,
) -> Resolved:
    """Find the metric that a user means for all outputs, or for each of them.

    Parameters
    ----------
    metric : str, Metric, callable, dict or list
        As in :func:`resolve`; a dict by output or a list has one such metric for each output, which is read as if that
        output were all there is.
    classes : sequence of M ndarrays
    several : bool
        Whether y is 2-D.
    average, pos_label, wanted_only
        See :func:`resolve`. Metrics of one each are averaged by "macro"; the positive class is for those that want one.
    outputs : sequence, optional
        Names of the outputs.

    Returns
    -------
    Resolved

    Examples
    --------
    >>> import numpy as np
    >>> from metricwise.goals.for_outputs import resolve_outputs
    >>> classes = (np.array([1, 2, 3]), np.array([0, 1]))
    >>> found = resolve_outputs({"spam": "f1", "grade": "qwk"}, classes, several=True, outputs=["grade", "spam"])
    >>> found.name, found.average
    ('qwk (grade), f1 (spam)', 'macro')
    """
    kind = target_kind(max(map(len, classes)), several)
    if not are_for_outputs(metric):
        return resolve(metric, kind, average, pos_label=pos_label, wanted_only=wanted_only)
    metric, average, pos_label = _opened(metric, average, pos_label)
    check_macro(average)
    by_position = by_output(metric, len(classes), outputs, several=several)
    titles = _titles(len(classes), outputs)
    labels = positive_labels(pos_label, len(classes), hint=" (None if its metric needs none)")
    sizes = [len(labels_of_output) for labels_of_output in classes]
    resolved = [_read_own(*arguments, kind) for arguments in zip(by_position, sizes, labels, titles, strict=True)]
    if pos_label is not None and not (
        wanted_only or any(metric_of_output.metric.traits.needs_positive for metric_of_output in resolved)
    ):
        raise unused_positive()
    return _joined(resolved, labels, titles)


def unused_positive() -> InvalidParameter:
    """Return the refusal of a positive class that no metric asks for."""
    problem = (
        f"{mention('pos_label')} is only for metrics of one class that do not name it, and none of the metrics is one"
    )
    return InvalidParameter("pos_label", problem=problem, remedy="leave it out")


def check_macro(average: str | None) -> None:
    """Refuse to pool outputs that have a metric each."""
    if average not in (None, "macro"):
        raise InvalidParameter(
            "average",
            "be 'macro' or None if every output has its own metric, because pooled outputs share one metric",
            shown(average),
        )


def _opened(metric: Any, average: str | None, pos_label: Any) -> tuple[Any, str | None, Any]:
    """Take metrics for each output out of a scorer that make_scorer of ours has made of them."""
    if isinstance(metric, _SEVERAL):
        return metric, average, pos_label
    inner, inner_average, inner_label = unwrap(metric).function.as_metric()
    return inner, inner_average if average is None else average, inner_label if pos_label is None else pos_label


def _read_own(metric: Any, n_classes: int, label: Any, title: str, kind: str) -> Resolved:
    """Find the metric of one of several outputs, as if it were all there is."""
    try:
        _refuse_average(metric, kind)
        resolved = metric_meant(metric, target_kind(n_classes, False), class_named=label is not None)
        if resolved.average_given and resolved.average != "macro":
            raise InvalidParameter(
                "metric",
                problem=(
                    f"{resolved.name} fixes {argument('average', resolved.average)}, but outputs with their own "
                    "metrics are averaged by 'macro'"
                ),
                remedy="leave the average out",
                owner="metric",
            )
    except InvalidParameter as error:
        raise error.within(after=f" ({title})") from None
    return resolved


def _refuse_average(metric: Any, kind: str) -> None:
    """Refuse names such as "f1_micro" on multilabel, where they say how outputs are averaged."""
    base, _, suffix = metric.rpartition("_") if isinstance(metric, str) else ("", "", "")
    if kind == "multilabel" and base and suffix in SUFFIXES and metric_meant(metric, kind).fixed:
        raise InvalidParameter(
            "metric",
            problem=(
                f"for multilabel targets, {metric!r} is an average over outputs, but here each output has "
                "its own metric"
            ),
            remedy=f"use {base!r}, or metrics.ClassAverage(...) for an average over both classes",
            owner="metric",
        )


def _joined(resolved: Sequence[Resolved], labels: Sequence[Any], titles: tuple[str, ...]) -> Resolved:
    """Return the metrics of all outputs as one; equal ones become the same object."""
    distinct: list[Resolved] = []
    kinds, metrics = [], []
    made: dict[tuple[int, Any], Metric] = {}
    for candidate, label in zip(resolved, labels, strict=True):
        same = (
            kind
            for kind, other in enumerate(distinct)
            if other.name == candidate.name and other.metric == candidate.metric
        )
        kind = next(same, len(distinct))
        if kind == len(distinct):
            distinct.append(candidate)
        label = label if candidate.metric.traits.needs_positive else None
        if (kind, label) not in made:
            bare = distinct[kind].metric
            made[kind, label] = bare if label is None else with_positive(bare, label, several=False)
        kinds.append(kind)
        metrics.append(made[kind, label])
    metric = PerOutput(tuple(metrics), tuple(kinds), tuple([candidate.name for candidate in distinct]), titles)
    return Resolved(metric, "macro", False, metric.name)


def settle(resolved: Resolved, classes: Sequence[NDArray[Any]], *, scales: Scales | None = None) -> Resolved:
    """Give a metric the order of the classes, and caches of its own; refuse what nobody has said of the classes.

    Parameters
    ----------
    resolved : Resolved
    classes : sequence of M ndarrays
    scales : tuple of M tuples or None, optional
        The classes of each output from the lowest to the highest; see :func:`metricwise.metrics.scales.in_order`.

    Returns
    -------
    Resolved
    """
    metric = with_caches(in_order(resolved.metric, scales))
    check_classes(metric, classes)
    if resolved.average != "macro" and len(classes) > 1:
        pooled(metric, classes)
    return replace(resolved, metric=metric)


# -------------------------------------------------------------------------------------------- a metric for each output


def are_for_outputs(metric: Any) -> bool:
    """Whether what is given for a metric is one for each output: a dict by name, a list, or a scorer of ours of these.

    Examples
    --------
    >>> from metricwise.goals.for_outputs import are_for_outputs
    >>> are_for_outputs({"grade": "quadratic_kappa"}), are_for_outputs("quadratic_kappa")
    (True, False)
    """
    if isinstance(metric, (str, Metric)):
        return False
    inside = unwrap(metric).function
    return isinstance(inside.as_metric()[0] if hasattr(inside, "as_metric") else inside, _SEVERAL)


def _titles(n_outputs: int, names: Sequence[Any] | None) -> tuple[str, ...]:
    """Return what to call each output in words; by position where they have no names."""
    return tuple(f"output {m}" for m in range(n_outputs)) if names is None else tuple(map(str, names))


def by_output(
    metric: Mapping[Any, Any] | Sequence[Any], n_outputs: int, names: Sequence[Any] | None, *, several: bool
) -> list[Any]:
    """Return the metrics in the order of the outputs.

    Parameters
    ----------
    metric : dict or list
        By the name of the output, or by position where outputs have none; or in their order.
    n_outputs : int
    names : sequence, optional
        Of the outputs.
    several : bool
        Whether y is 2-D.

    Returns
    -------
    list of M objects

    Examples
    --------
    >>> from metricwise.goals.for_outputs import by_output
    >>> by_output({"spam": "f1", "grade": "qwk"}, 2, ["grade", "spam"], several=True)
    ['qwk', 'f1']
    """
    if not several:
        table = isinstance(metric, Sequence) and len(metric) > 0 and isinstance(metric[0], (list, tuple, np.ndarray))
        remedy = (
            "for a table of costs, use mw.metrics.Cost(...)"
            if table
            else "leave out the brackets, or pass y with a column for each output"
        )
        raise InvalidParameter("metric", "be a single metric if there is one output", shown(metric), f"{remedy}")
    if isinstance(metric, Mapping):
        named = names is not None and len(set(map(str, names))) == n_outputs
        return _by_key(metric, list(names) if names is not None and named else list(range(n_outputs)), named)
    if len(metric) != n_outputs:
        raise InvalidParameter(
            "metric",
            problem=(
                f"metric as a list must hold one metric for each of the {n_outputs} outputs, got "
                f"{len(metric)}: {shown(list(metric))}"
            ),
        )
    return list(metric)


def _by_key(metric: Mapping[Any, Any], outputs: list[Any], named: bool) -> list[Any]:
    """Look up the metric of each output, by its name or by how that is written."""
    place = {str(name): m for m, name in enumerate(outputs)}
    by_output: dict[int, Any] = {}
    for key, value in metric.items():
        m = outputs.index(key) if key in outputs else place.get(str(key))
        if m is None:
            raise _unknown_key(key, outputs, named)
        if m in by_output:
            raise InvalidParameter("metric", "name each output once", f"{outputs[m]!r} twice")
        by_output[m] = value
    missing = [name for m, name in enumerate(outputs) if m not in by_output]
    if missing:
        raise InvalidParameter(
            "metric",
            problem=f"metric as a dict must have a metric for every output, but has none for {shown(missing)}",
            remedy=f"to exclude an output from the objective, set its {mention('output_weight')} to 0",
        )
    return [by_output[m] for m in range(len(outputs))]


def _unknown_key(key: Any, outputs: list[Any], named: bool) -> ValueError:
    import difflib  # for those who mistype alone

    if not named:
        return InvalidParameter(
            "metric",
            problem=(
                f"metric as a dict must have the positions of the outputs as keys, 0 to {len(outputs) - 1}, "
                f"because the outputs have no distinct names, got {shown(key)}"
            ),
            remedy="pass y as a data frame to name them",
        )
    lower = {str(name).lower(): name for name in outputs}
    near = difflib.get_close_matches(str(key).lower(), list(lower), n=1)
    hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
    return InvalidParameter(
        "metric",
        problem=(
            f"metric as a dict must have the names of the outputs as keys, {shown(outputs)}, got {shown(key)}.{hint}"
        ),
    )
