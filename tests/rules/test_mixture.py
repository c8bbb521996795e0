"""MixtureRule: its distribution is exact, its draws follow it and do not depend on chunks."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from metricwise.core.losses import Loss
from metricwise.core.schema import Schema
from metricwise.data.probabilities import read_proba
from metricwise.rules import MixtureRule, RuleRows, TemperatureScaling, WeightedRule, anonymous_rule
from metricwise.rules.mixture import uniforms


def random_rules(rng, n_rules, n_outputs, k, link=None):
    classes = (np.arange(k),) * n_outputs
    return tuple(
        WeightedRule(Loss(full=rng.random((n_outputs, k, k))), classes, link, multioutput=True) for _ in range(n_rules)
    )


def constant_rules(k):
    """Rule j always predicts class j."""
    return tuple(anonymous_rule(Loss.from_tensor(1.0 - np.eye(k)[[j] * k]), np.array([k])) for j in range(k))


def test_draws_follow_the_distribution():
    n = 40_000
    weights = np.array([0.5, 0.3, 0.15, 0.05])
    rule = MixtureRule(constant_rules(4), weights, seed=3)
    eta = np.full((n, 4), 0.25)
    np.testing.assert_allclose(rule.distribution(eta[:3]), [weights] * 3)
    counts = np.bincount(rule.predict(eta), minlength=4)
    assert stats.chisquare(counts, weights * n).pvalue > 1e-3


@pytest.mark.parametrize("seed", [0, 1, 2, 12345, 2**64 - 1])
def test_uniforms_are_uniform_and_independent(seed):
    drawn = uniforms(seed, 0, 4000, 5)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert len(np.unique(drawn)) == drawn.size
    assert stats.kstest(drawn.ravel(), "uniform").pvalue > 1e-3
    pairs = [(drawn[:-1], drawn[1:]), (drawn[:, :-1], drawn[:, 1:]), (drawn, uniforms(seed ^ 1, 0, 4000, 5))]
    for one, other in pairs:
        table = np.histogram2d(one.ravel(), other.ravel(), bins=8, range=[[0, 1]] * 2)[0]
        assert stats.chisquare(table.ravel()).pvalue > 1e-3


def test_uniforms_are_the_published_splitmix64():
    """One step of the reference generator, in Python integers."""

    def mixed(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    step = 0x9E3779B97F4A7C15
    assert mixed(step) == 0xE220A8397B1DCDAF  # first output for seed 0
    for seed, row, output in [(0, 0, 0), (7, 123, 4), (2**64 - 1, 10**12, 1)]:
        state = mixed((mixed((seed + step) % 2**64) + row * step) % 2**64)
        expected = (mixed((state + (output + 1) * step) % 2**64) >> 11) / 2**53
        assert uniforms(seed, row, 1, output + 1)[0, output] == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("linked", [True, False])
def test_chunks_draw_what_the_whole_does(dtype, linked, monkeypatch):
    rng = np.random.default_rng(1)
    link = TemperatureScaling(np.array([0.6, 1.3]), rng.normal(0, 0.4, (2, 3))) if linked else None
    rule = MixtureRule(random_rules(rng, 3, 2, 3, link), np.array([0.2, 0.5, 0.3]), seed=11)
    eta = np.asarray(rng.dirichlet(np.ones(3), (400, 2)), dtype=dtype, order="F")[::2]
    whole, exact = rule.predict(eta), rule.distribution(eta)
    for size in (1, 7, 64):
        parts = [rule.predict(eta[start : start + size], start=start) for start in range(0, 200, size)]
        np.testing.assert_array_equal(np.concatenate(parts), whole)
    monkeypatch.setattr("metricwise.core.probabilities._CHUNK_ENTRIES", 32)
    np.testing.assert_array_equal(rule.predict(eta), whole)
    np.testing.assert_array_equal(rule.distribution(eta), exact)
    assert (np.take_along_axis(exact, whole[:, :, None], axis=2) > 0).all()


def test_seed_decides_the_draw():
    eta = np.full((200, 4), 0.25)
    rules, weights = constant_rules(4), np.full(4, 0.25)
    one, again, other = (MixtureRule(rules, weights, seed).predict(eta) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).mean() > 0.5


def test_rules_of_weight_zero_are_never_drawn(monkeypatch):
    rules = constant_rules(4)
    third = 1 / 3
    rule = MixtureRule(rules, np.array([third, third, 1 - 2 * third, 0.0]))
    edge = np.nextafter(1.0, 0.0)
    monkeypatch.setattr("metricwise.rules.mixture.uniforms_at", lambda *a: np.array([[0.0], [edge]]))
    assert rule.predict(np.full((2, 4), 0.25)).tolist() == [0, 2]
    behind = MixtureRule(rules, np.array([0.0, 1.0, 0.0, 0.0]))
    assert behind.predict(np.full((2, 4), 0.25)).tolist() == [1, 1]


def test_labels_names_and_shapes():
    rules = constant_rules(2)
    rule = MixtureRule(rules, np.array([0.5, 0.5]), seed=5)
    named = rule.named(Schema((np.array(["no", "yes"]),)), TemperatureScaling.identity(1, 2), {"metric": "min_recall"})
    assert isinstance(named, MixtureRule)
    assert set(named.predict(np.full(100, 0.5))) == {"no", "yes"}
    assert named.seed == 5
    assert named.metadata.to_dict() == {"metric": "min_recall"}
    assert all(component.link == TemperatureScaling.identity(1, 2) for component in named.rules)
    assert (named.n_outputs, named.width, named.n_classes.tolist(), named.multioutput) == (1, 2, [2], False)
    text = named.describe()
    assert text.startswith("Rule for min_recall.\nFor each row, one of 2 rules is drawn")
    assert "- with probability 0.5:\n  Always predict 'no'." in text
    by_output = MixtureRule(random_rules(np.random.default_rng(0), 2, 2, 3), np.array([[0.1, 0.9], [0.4, 0.6]]))
    assert "with probability 0.1 to 0.4, by output" in by_output.describe()


def test_equality():
    rules, weights = constant_rules(2), np.array([0.5, 0.5])
    rule = MixtureRule(rules, weights)
    assert rule == MixtureRule(constant_rules(2), weights.tolist(), metadata={"a": 1})
    assert rule != MixtureRule(rules, weights, seed=1)
    assert rule != MixtureRule(rules, np.array([0.4, 0.6]))
    assert rule != MixtureRule(rules[::-1], weights)
    assert rule != rules[0]


def test_low_level_decisions_are_codes():
    rng = np.random.default_rng(3)
    rule = MixtureRule(random_rules(rng, 2, 2, 3), np.array([0.5, 0.5]))
    eta = rng.dirichlet(np.ones(3), (30, 2))
    np.testing.assert_array_equal(
        rule.decide(RuleRows(read_proba(eta, multioutput=True), start=4)), rule.predict(eta, start=4)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rules": ()}, "rules must hold at least one WeightedRule, got"),
        ({"rules": ("rule", "rule")}, r"rules must hold at least one WeightedRule, got \['str', 'str'\]"),
        ({"weights": [1.0]}, r"weights must have shape \(2,\) or \(1, 2\), .* got \(1,\)"),
        ({"weights": [0.5, 0.6]}, r"weights must sum to 1, got 1\.1"),
        ({"weights": [-0.5, 1.5]}, "weights must be non-negative and finite, got -0.5"),
        ({"weights": [np.nan, 1.0]}, "weights must be non-negative and finite, got nan"),
        ({"seed": -1}, r"seed must be an integer from 0 to 2\*\*64 - 1, got -1"),
        ({"seed": 2**64}, "seed must be an integer"),
        ({"seed": 0.5}, "seed must be an integer"),
        ({"seed": True}, "seed must be an integer"),
        (
            {"rules": (constant_rules(2)[0], WeightedRule(Loss.argmax(2), (np.array(["a", "b"]),)))},
            r"rules must share their classes, but those of rules\[1\] differ",
        ),
        (
            {"rules": (constant_rules(2)[0], WeightedRule(Loss.argmax(2), (np.arange(2),), normalize=True))},
            r"rules must share normalize, got False in rules\[0\] and True in rules\[1\]",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^MixtureRule: {message}"):
        MixtureRule(**{"rules": constant_rules(2), "weights": [0.5, 0.5], **arguments})


@pytest.mark.parametrize("start", [-1, 0.5, True, None])
def test_start_is_a_row_position(start):
    with pytest.raises(ValueError, match="start must be a row position from 0"):
        MixtureRule(constant_rules(2), np.array([0.5, 0.5])).predict([0.5], start=start)


def test_errors_name_the_mixture():
    with pytest.raises(ValueError, match=r"^MixtureRule\.predict: proba must be finite"):
        MixtureRule(constant_rules(2), np.array([0.5, 0.5])).predict([np.nan])


def test_calibrated_probabilities_are_those_that_all_components_decide_by():
    link, p = TemperatureScaling(np.array([0.6]), np.array([[0.2, -0.1]])), np.random.default_rng(0).random(30)
    low, high = (replace(WeightedRule.from_thresholds(t), link=link) for t in (0.2, 0.6))
    rule = MixtureRule((low, high), np.array([0.5, 0.5]))
    np.testing.assert_array_equal(rule.calibrated(p), low.calibrated(p))
    apart = MixtureRule((low, replace(high, link=None)), np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match=r"recalibrate differently; use rule\.rules\[r\]\.calibrated\(proba\)"):
        apart.calibrated(p)
