"""Metrics of one class that are no ratio, and averages of metrics whose range is not [0, 1]."""

from dataclasses import dataclass

import numpy as np
import pytest

from metricwise import metrics
from metricwise.core.matrices import divide
from metricwise.metrics.base import Linear, Traits
from metricwise.metrics.one_vs_rest import ClassRatio, OneVsRest, Profile, Terms

CONFUSIONS = np.random.default_rng(0).dirichlet(np.full(9, 0.3), size=200).reshape(-1, 3, 3)


@dataclass(frozen=True, eq=False, kw_only=True)
class Informedness(OneVsRest):
    """Recall plus specificity minus 1: linear at fixed priors, and no ratio of two sums of shares."""

    declared = Traits(name="informedness", family="linear", range=(-1.0, 1.0), concave=True, monotone=True)

    def profile(self, hit, true, predicted):
        others = true.sum(axis=-1, keepdims=True) - true
        value = divide(hit, true) - divide(predicted - hit, others)
        return Profile(value, divide(1.0, true) + divide(1.0, others), -divide(1.0, others))


@dataclass(frozen=True, eq=False, kw_only=True)
class Lead(ClassRatio):
    """By how much hits are more than false alarms, among predictions of the class."""

    declared = Traits(name="lead", family="fractional-linear", range=(-1.0, 1.0))
    numerator = Terms(hit=2.0, predicted=-1.0)
    denominator = Terms(predicted=1.0)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("base", [Informedness, Lead, metrics.FBeta])
def test_an_average_has_the_range_of_what_is_averaged(base, average):
    if base is Informedness and average == "micro":
        pytest.skip("no ratio")
    metric = metrics.ClassAverage(base(), average)
    assert metric.range == base().range
    for C in CONFUSIONS:
        bound = metric.bind(C.sum(axis=1))
        assert base().range[0] - 1e-12 <= bound.range[0] <= bound.value(C) + 1e-12
        assert bound.value(C) - 1e-12 <= bound.range[1] <= base().range[1] + 1e-12
    if average != "micro":
        assert metric.value(CONFUSIONS).min() < 0 or base is metrics.FBeta


@pytest.mark.parametrize("k", [0, 2])
def test_a_linear_metric_of_one_class_is_bound_as_a_matrix(k):
    parts = [cls(index=k) for cls in (metrics.Recall, metrics.Specificity)]
    for C in CONFUSIONS[:50]:
        bound = Informedness(index=k).bind(C.sum(axis=1))
        assert isinstance(bound, Linear)
        assert bound.value(C) == pytest.approx(sum(part.value(C) for part in parts) - 1, abs=1e-12)


def test_a_linear_average_over_classes_is_bound_as_a_matrix():
    C = CONFUSIONS[0]
    bound = metrics.ClassAverage(Informedness()).bind(C.sum(axis=1))
    assert isinstance(bound, Linear)
    assert bound.value(C) == pytest.approx(np.mean([Informedness(index=k).value(C) for k in range(3)]), abs=1e-12)
