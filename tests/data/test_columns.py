"""No silent guess in reading: columns by name, labels never off by one, order as declared, rows as they come."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import metricwise as mw
from data.graded_rows import CODES, LABELS, PROBA, RNG, SCALE, solve
from metricwise.data.labels import read_labels
from metricwise.data.probabilities import read_proba
from profiles import examples

# --------------------------------------------------------------------------------------------------- columns have names


def arrow(array, columns):
    return pa.table({name: array[:, k] for k, name in enumerate(columns)})


FRAMES = pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda a, columns: pl.DataFrame(a, schema=list(columns)), arrow], ids=["pd", "pl", "pa"]
)


@FRAMES
@examples(15)
@given(data=st.data())
def test_a_list_of_frames_is_read_by_name_on_both_sides(frame, data):
    """Whatever the order of columns, the value and the decisions are those of the arrays."""
    names = [["a", "b", "c"], ["x", "y"]]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    parts = [rng.dirichlet(np.ones(len(own)), size=30) for own in names]
    y = np.empty((30, 2), dtype=object)
    for m, own in enumerate(names):
        y[:, m] = np.array(own)[np.arange(30) % len(own)]
    orders = [data.draw(st.permutations(range(len(own)))) for own in names]
    turned = [
        frame(part[:, order], columns=[own[k] for k in order])
        for part, own, order in zip(parts, names, orders, strict=True)
    ]
    reference = solve(parts, y, average="macro")
    solution = solve(turned, y, average="macro")
    assert solution.value == reference.value
    assert [labels.tolist() for labels in solution.rule.classes] == names
    np.testing.assert_array_equal(solution.rule.predict(turned), reference.rule.predict(parts))
    bare = [part[:, order] for part, order in zip(parts, orders, strict=True)]  # in the order of the frames
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "WeightedRule.predict: the rule was fitted to named columns", UserWarning)
        np.testing.assert_array_equal(solution.rule.predict(bare), reference.rule.predict(parts))


@FRAMES
def test_one_frame_is_read_by_name(frame):
    y = np.array(SCALE)[CODES]
    reference = solve(PROBA, y, classes=SCALE)
    solution = solve(frame(PROBA[:, [2, 0, 1]], columns=["high", "low", "mid"]), y)
    assert solution.value == pytest.approx(reference.value)
    assert solution.rule.classes[0].tolist() == sorted(SCALE)


def test_a_list_may_mix_frames_and_arrays():
    y = np.column_stack([np.array(SCALE)[CODES], CODES.astype(str)])
    frames = [pd.DataFrame(PROBA[:, ::-1], columns=SCALE[::-1]), PROBA]
    solution = solve(frames, y, average="macro")
    assert solution.value == pytest.approx(
        solve([PROBA, PROBA], y, average="macro", classes=[SCALE, list("012")]).value
    )
    assert [labels.tolist() for labels in solution.rule.classes] == [sorted(SCALE), ["0", "1", "2"]]


def test_names_in_a_list_that_are_no_labels_are_refused():
    frames = [pd.DataFrame(PROBA, columns=["p", "q", "r"]), PROBA]
    with pytest.raises(ValueError, match=r"optimize: the columns of proba\[0\] must be named like the classes"):
        solve(frames, np.column_stack([np.array(SCALE)[CODES]] * 2), average="macro")


def test_a_list_of_frames_without_labels():
    frames = [pd.DataFrame(PROBA, columns=SCALE), pd.DataFrame(PROBA)]
    rule = mw.optimize(frames, None, "kappa", average="macro").rule
    assert [labels.tolist() for labels in rule.classes] == [SCALE, [0, 1, 2]]
    turned = [frames[0][SCALE[::-1]], frames[1]]
    np.testing.assert_array_equal(rule.predict(turned), rule.predict(frames))


def test_a_class_that_no_label_shows_has_its_name_from_its_column():
    seen = CODES < 2
    y = np.column_stack([np.array(SCALE)[CODES[seen]]] * 2)
    frames = [pd.DataFrame(PROBA[seen][:, ::-1], columns=SCALE[::-1])] * 2
    assert [labels.tolist() for labels in solve(frames, y, average="macro").rule.classes] == [sorted(SCALE)] * 2


def test_multilabel_names_come_from_proba_where_y_has_none():
    proba = pd.DataFrame(PROBA, columns=["news", "sport", "arts"])
    y = (RNG.random(PROBA.shape) < PROBA).astype(int)
    rule = solve(proba, y, "f1", average="macro").rule
    assert rule.output_names == ("news", "sport", "arts")
    turned = proba[["arts", "news", "sport"]]
    np.testing.assert_array_equal(rule.predict(turned), rule.predict(proba))


class NamedColumns(LogisticRegression):
    """A classifier whose probabilities are a frame, with the columns the other way round."""

    def predict_proba(self, X):
        return pd.DataFrame(super().predict_proba(X), columns=self.classes_)[self.classes_[::-1]]


def test_frames_of_an_estimator_are_read_by_name():
    X, y = np.log(PROBA + 1e-3), np.array(SCALE)[CODES]
    options = {"metric": "kappa", "strategy": mw.Strategy(**LABELS)}
    plain = mw.MetricOptimalClassifierCV(LogisticRegression(), **options).fit(X, y)
    framed = mw.MetricOptimalClassifierCV(NamedColumns(), **options).fit(X, y)
    assert framed.best_score_ == plain.best_score_
    np.testing.assert_array_equal(framed.predict(X), plain.predict(X))


# ----------------------------------------------------------------------------------------------------------- off by one


@pytest.mark.parametrize("kind", [np.int8, np.int64, float, object])
def test_ratings_from_one_on_are_asked_for(kind):
    proba = RNG.dirichlet(np.ones(4), size=30)
    ratings = (np.arange(30) % 3 + 1).astype(kind)
    words = r"y has 3 distinct labels .*, but proba has 4 classes; pass classes= .* classes=range\(1, 5\)"
    with pytest.raises(ValueError, match=words):
        solve(proba, ratings)
    assert solve(proba, ratings, classes=range(1, 5)).rule.classes[0].tolist() == [1, 2, 3, 4]
    codes = ratings.astype(int) - 1
    assert solve(proba, ratings, classes=[1, 2, 3, 4]).value == solve(proba, codes.astype(kind)).value


@given(
    seen=st.lists(st.sets(st.integers(0, 4), max_size=5), min_size=1, max_size=4),
    k=st.integers(2, 5),
    kind=st.sampled_from([np.int8, np.int64, np.float64, object]),
)
def test_whole_numbers_are_codes_only_with_a_zero(seen, k, kind):
    """All ways of reading agree with the rule: K labels, or none, or whole numbers below K with 0 among them."""
    rows = 5
    table = np.array([[sorted(own)[n % len(own)] if own else np.nan for own in seen] for n in range(rows)])
    if kind is not np.float64 and np.isnan(table).any():
        kind = object
    y = (
        np.array([[None if v != v else int(v) for v in row] for row in table], dtype=object)
        if kind is object
        else table
    )
    read = read_proba(np.full((rows, len(seen), k), 1 / k), multioutput=True)

    def codes(own):
        zero = 0 in own or (k == 2 and (len(seen) == 1 or any(0 in other for other in seen)))
        return not own or (zero and max(own) < k)

    good = all(len(own) == k or codes(own) for own in seen)
    if not good:
        with pytest.raises(ValueError, match="pass classes="):
            read_labels(y.astype(kind), read, None)
        return
    if not any(seen) or (len(seen) == 1 and len(seen[0]) == 1):
        return
    expected = [sorted(own) if len(own) == k else list(range(k)) for own in seen]
    labels = read_labels(y.astype(kind), read, None)
    assert [own.tolist() for own in labels.classes] == expected


def test_an_indicator_column_of_ones_is_still_an_indicator():
    y = np.column_stack([np.ones(200, int), CODES > 0])
    for proba in (PROBA[:, :2], np.stack([np.column_stack([1 - p, p]) for p in PROBA.T[:2]], axis=1)):
        rule = solve(proba, y, "f1", average="macro").rule
        assert [labels.tolist() for labels in rule.classes] == [[0, 1], [0, 1]]
    ones = np.ones((200, 2), int)
    read = read_proba(PROBA[:, :2], multioutput=True)
    assert [labels.tolist() for labels in read_labels(ones, read, None).classes] == [[0, 1], [0, 1]]
    both = read_proba(np.full((200, 2, 2), 0.5), multioutput=True)
    with pytest.raises(ValueError, match=r"output 0 of y has 1 distinct label \[1\], .* pass classes="):
        read_labels(ones, both, None)  # ones and zeros, or ones and twos?


@pytest.mark.parametrize("proba", [PROBA[:, 0], np.column_stack([1 - PROBA[:, 0], PROBA[:, 0]])])
def test_a_single_output_of_ones_has_one_class(proba):
    with pytest.raises(ValueError, match="y must have at least two classes, got only 1"):
        solve(proba, np.ones(200, int), "f1")


def test_booleans_are_no_codes_of_three_classes():
    for y in (CODES > 0, (CODES > 0).astype(object)):
        with pytest.raises(ValueError, match=r"y has 2 distinct labels \[False, True\], but proba has 3 classes"):
            solve(PROBA, y)
    gaps = np.array([None, *(CODES[1:] > 0).tolist()], dtype=object)
    assert solve(PROBA[:, 0], gaps, "f1").rule.predict(PROBA[:, 0]).dtype == bool


# -------------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("scale", [1e306, 1e200, 5e-324])
def test_weights_that_overflow_are_refused(scale):
    weight = np.full(200, scale)
    words = r"sample_weight must have a sum between 1e-140 and 1e\+140, .*divide the weights by the largest"
    with pytest.raises(ValueError, match=f"optimize: {words}"):
        solve(PROBA, CODES, sample_weight=weight)
    with pytest.raises(ValueError, match=f"Accuracy.score: {words}"):
        mw.metrics.Accuracy().score(CODES, CODES, sample_weight=weight)
    y = np.column_stack([CODES, CODES])
    with pytest.raises(ValueError, match="output_weight must have a sum between"):
        solve([PROBA, PROBA], y, output_weight=[scale, scale])
    with pytest.raises(ValueError, match="output_weight must have a sum between"):
        mw.metrics.Accuracy().score(y, y, output_weight=[scale, scale])


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize(("rows", "outputs"), [(1e137, 1e139), (1e-141, 1e-140)])
def test_products_of_weights_are_numbers(rows, outputs, average):
    y = np.column_stack([CODES, CODES])
    options = {"sample_weight": np.full(200, rows), "output_weight": [outputs, 2 * outputs], "average": average}
    solution = mw.optimize([PROBA, PROBA], y, "macro_f1", **options)
    assert np.isfinite([solution.value, solution.baseline, solution.gain.low, solution.gain.high]).all()
    plain = solve([PROBA, PROBA], y, "macro_f1", output_weight=[1, 2], average=average)
    assert solve([PROBA, PROBA], y, "macro_f1", **options).value == pytest.approx(plain.value)


# ------------------------------------------------------------------------------------------------------------- messages


@pytest.mark.parametrize(
    "proba",
    [PROBA, PROBA[:, 0], pd.DataFrame(PROBA, columns=SCALE), pd.DataFrame(PROBA)],
    ids=["NK", "N", "named", "pd"],
)
def test_a_frame_of_one_column_says_how_to_pass_it(proba):
    y = pd.DataFrame({"grade": np.array(SCALE)[CODES]})
    with pytest.raises(ValueError, match=r"optimize: y must be 1-D for a single output, .* pass y\['grade'\]\."):
        solve(proba, y)


def test_one_column_of_several_outputs_is_one_output():
    y = pd.DataFrame({"sport": (CODES > 0).astype(int)})
    assert solve(PROBA[:, :1], y, "f1").rule.predict(PROBA[:, :1]).shape == (200, 1)
    assert solve([PROBA], pd.DataFrame({"grade": CODES})).rule.predict([PROBA]).shape == (200, 1)
    assert solve(PROBA[:, None], CODES[:, None]).rule.predict(PROBA[:, None]).shape == (200, 1)


@pytest.mark.parametrize("columns", [None, ["0", "1", "2"]])
def test_missing_probabilities_say_where(columns):
    proba = pd.DataFrame(PROBA, columns=columns).astype("Float64")
    proba.iloc[[7, 9], 1] = pd.NA
    with pytest.raises(
        ValueError, match=r"optimize: proba must be finite, got NA in row 7; probabilities must not be missing"
    ):
        solve(proba, CODES)
    with pytest.raises(ValueError, match=r"predict: proba must be finite, got NA in row 7"):
        solve(PROBA, CODES).rule.predict(proba)
    with pytest.raises(ValueError, match=r"got (NaN or infinity|NA) in row 1; probabilities must not be missing"):
        solve(pd.Series([0.5, pd.NA, 0.5], dtype="Float64"), [0, 1, 1], "f1")


# -------------------------------------------------------------------------------------------------------- order of rows


def test_rows_in_another_order_warn():
    y, proba = pd.Series(CODES), pd.DataFrame(PROBA)
    shuffled = RNG.permutation(200)
    with pytest.warns(
        UserWarning, match=r"optimize: the index of y has the rows of proba in .* pass y\.loc\[proba\.ind"
    ):
        solve(proba, y.iloc[shuffled])
    with pytest.warns(UserWarning, match="optimize: the index of sample_weight has the rows of y"):
        solve(PROBA, y, sample_weight=pd.Series(1.0, index=shuffled))
    with pytest.warns(UserWarning, match="the index of y has the rows of proba"):
        solve([proba, proba], pd.DataFrame({"a": CODES, "b": CODES}).iloc[shuffled])
    with pytest.warns(UserWarning, match=r"Kappa\.score: the index of y_pred has the rows of y_true"):
        mw.metrics.Kappa().score(y, y.iloc[shuffled])
    model = mw.FixedRuleClassifier(LogisticRegression(), None)
    with pytest.warns(UserWarning, match="FixedRuleClassifier: the index of y has the rows of X"):
        model.fit(proba, y.iloc[shuffled])


def test_rows_that_are_the_same_or_others_do_not_warn():
    shuffled = RNG.permutation(200)
    y, proba = pd.Series(CODES), pd.DataFrame(PROBA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        aligned = solve(proba.iloc[shuffled], y.iloc[shuffled], sample_weight=pd.Series(1.0, index=shuffled))
        assert aligned.value == pytest.approx(solve(proba, y).value)
        solve(proba, y.set_axis(range(1000, 1200)))
        solve(proba, y.set_axis(range(1, 201)))
        solve(PROBA, y.iloc[shuffled])
        solve(proba, CODES.tolist())


# -------------------------------------------------------------------------------------------------------------- one row


def test_one_row_says_what_to_do():
    rule = solve(PROBA, CODES).rule
    for row in (PROBA[0], PROBA[0].tolist(), pd.DataFrame(PROBA).loc[0], pl.Series(PROBA[0])):
        with pytest.raises(ValueError, match=r"predict: proba must have shape \(N, 3\), .* row\.reshape\(1, 3\)"):
            rule.predict(row)
    assert rule.predict(PROBA[0].reshape(1, 3)).tolist() == rule.predict(PROBA)[:1].tolist()
    y = (RNG.random((200, 3)) < PROBA).astype(int)
    labels = solve(PROBA, y, "f1", average="macro").rule
    with pytest.raises(ValueError, match=r"shape \(N, 3\) or \(N, 3, 2\), .* got shape \(3,\); .*row\.reshape\(1, 3\)"):
        labels.predict(PROBA[0])
    with pytest.raises(ValueError, match=r"got shape \(3, 2\); a single row must have shape"):
        labels.predict(np.column_stack([1 - PROBA[0], PROBA[0]]))
    cube = np.stack([PROBA, PROBA, PROBA], axis=1)
    outputs = solve(cube, np.column_stack([CODES] * 3)).rule
    with pytest.raises(ValueError, match=r"shape \(N, 3, 3\), .* pass row\.reshape\(1, 3, 3\)"):
        outputs.predict(cube[0])
    unequal = solve(
        [PROBA, PROBA[:, :2] / PROBA[:, :2].sum(1, keepdims=True)], np.column_stack([CODES, CODES > 1]), average="macro"
    ).rule
    with pytest.raises(
        ValueError,
        match=r"got shapes \[\(3,\), \(2,\)\], which look like a single row; .*: \[p\[None\] for p in proba\]",
    ):
        unequal.predict([PROBA[0], np.array([0.5, 0.5])])


def test_one_row_of_two_classes_warns_where_it_may_be_two_rows():
    rule = solve(PROBA[:, 0], np.where(CODES == 0, "yes", "no"), "accuracy", pos_label="yes").rule
    row = np.array([0.3, 0.7])
    with pytest.warns(
        UserWarning, match=r"read as two rows, each the probability of 'yes', .* proba\.reshape\(1, -1\)"
    ):
        assert rule.predict(row).shape == (2,)
    with pytest.warns(UserWarning, match="read as two rows"):
        rule.distribution(row.astype(np.float32))
    assert rule.predict(row.reshape(1, -1)).tolist() == ["yes"]
    for rows in ([0.3, 0.7], np.array([0.3, 0.6]), np.array([0.3, 0.7, 0.0])):
        assert rule.predict(rows).shape == (len(rows),)
    frame = pd.DataFrame({"no": [0.3, 0.8], "yes": [0.7, 0.2]})
    with pytest.raises(ValueError, match=r"got one row of a data frame, .* frame\.loc\[\[row\]\]"):
        rule.predict(frame.loc[0])
    assert rule.predict(frame.loc[[0]]).tolist() == ["yes"]


def test_one_row_of_two_binary_outputs_warns():
    y = np.column_stack([CODES > 0, CODES > 1]).astype(int)
    rule = solve(PROBA[:, :2], y, "f1", average="macro").rule
    with pytest.warns(UserWarning, match=r"read as two rows of two outputs, .* pass proba\[None\]"):
        rule.predict(np.array([[0.3, 0.7], [0.6, 0.4]]))
