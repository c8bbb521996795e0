"""What users hand in: every way to write the same problem is the same problem, and odd labels survive the journey."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import metricwise as mw

LABELS = {"confusion": "labels", "recalibrate": False}
RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet(np.ones(3), size=24)
Y = np.arange(24) % 3
POSITIVE = RNG.random(24)
BINARY = np.arange(24) % 2
MULTILABEL = RNG.random((24, 3))
LABELLED = (RNG.random((24, 3)) < MULTILABEL).astype(int)
LABELLED[:2] = [[0], [1]]
NAMES = np.array(["a", "b", "c"])


def solve(proba, y, metric="kappa", **options):
    return mw.optimize(proba, y, metric, strategy=mw.Strategy(**LABELS), **options)


REFERENCE = solve(PROBA, Y)
GAPS = np.where(np.arange(24) % 5 == 0, -1, Y)
WITH_GAPS = solve(PROBA[GAPS >= 0], Y[GAPS >= 0])


def gappy(values, gap):
    return [gap if code < 0 else values[code] for code in GAPS]


# ------------------------------------------------------------------------------------------------ labels, one output


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (Y.tolist(), [0, 1, 2]),
        (tuple(Y.tolist()), [0, 1, 2]),
        (Y.astype(np.uint8), [0, 1, 2]),
        (Y.astype(float), [0.0, 1.0, 2.0]),
        (Y + 7, [7, 8, 9]),
        (Y - 1, [-1, 0, 1]),
        (NAMES[Y].tolist(), ["a", "b", "c"]),
        (NAMES[Y], ["a", "b", "c"]),
        (NAMES[Y].astype(object), ["a", "b", "c"]),
        (np.array([b"x", b"y", b"z"])[Y], [b"x", b"y", b"z"]),
        ([1, 2, "a"] * 8, [1, 2, "a"]),
        (pd.Series(NAMES[Y], index=range(50, 74)), ["a", "b", "c"]),
        (pd.Series(NAMES[Y], dtype="category"), ["a", "b", "c"]),
        (pl.Series(NAMES[Y].tolist()), ["a", "b", "c"]),
    ],
)
def test_labels_of_any_type_come_back(y, labels):
    solution = solve(PROBA, y)
    assert solution.value == REFERENCE.value
    expected = [labels[code] for code in REFERENCE.rule.predict(PROBA)]
    predicted = solution.rule.predict(PROBA).tolist()
    assert predicted == expected
    assert [type(label) for label in predicted] == [type(label) for label in expected]


@pytest.mark.parametrize(
    ("y", "labels"),
    [
        (gappy([0, 1, 2], np.nan), [0.0, 1.0, 2.0]),
        (gappy([0, 1, 2], None), [0, 1, 2]),
        (gappy(NAMES.tolist(), None), ["a", "b", "c"]),
        (gappy(NAMES.tolist(), float("nan")), ["a", "b", "c"]),
        (np.array(gappy([0, 1, 2], None), dtype=object), [0, 1, 2]),
        (pd.Series(gappy([0, 1, 2], None), dtype="Int64"), [0, 1, 2]),
        (pd.Series(gappy(NAMES.tolist(), None), dtype="string"), ["a", "b", "c"]),
        (pd.Series(gappy(NAMES.tolist(), None), dtype="category"), ["a", "b", "c"]),
        (pd.Series(gappy(NAMES.tolist(), None), dtype=object), ["a", "b", "c"]),
        (pl.Series(gappy([0, 1, 2], None)), [0, 1, 2]),
        (pl.Series(gappy(NAMES.tolist(), None)), ["a", "b", "c"]),
        (np.ma.masked_array(Y, mask=GAPS < 0), [0, 1, 2]),
        (np.ma.masked_array(np.where(GAPS < 0, 99, Y), mask=GAPS < 0), [0, 1, 2]),
    ],
)
def test_missing_labels_of_any_kind_weigh_nothing(y, labels):
    solution = solve(PROBA, y)
    assert solution.value == pytest.approx(WITH_GAPS.value)
    assert solution.rule.classes[0].tolist() == labels
    assert all(type(a) is type(b) for a, b in zip(solution.rule.classes[0].tolist(), labels, strict=True))


@pytest.mark.parametrize(("gap", "values"), [(-1, [0, 1, 2]), (999, [0, 1, 2]), ("?", ["a", "b", "c"])])
def test_a_code_for_missing_labels_is_masked(gap, values):
    coded = gappy(values, gap)
    solution = solve(PROBA, np.ma.masked_array(coded, mask=np.asarray(coded) == gap))
    assert solution.value == pytest.approx(WITH_GAPS.value)
    assert solution.rule.classes[0].tolist() == values
    with pytest.raises(
        ValueError, match=r"optimize: y has 4 distinct labels .*, but proba has 3 classes; pass classes="
    ):
        solve(PROBA, gappy(values, gap))


def test_minus_one_is_a_class_unless_said_otherwise():
    assert solve(POSITIVE, 2 * BINARY - 1, "f1").rule.classes[0].tolist() == [-1, 1]
    with pytest.raises(ValueError, match="If -1 marks missing labels, mask them or make them None"):
        solve(PROBA, GAPS)
    with pytest.raises(ValueError, match=r"must hold only the classes \[0, 1, 2\], got -1; missing labels must be NaN"):
        solve(PROBA, GAPS, classes=[0, 1, 2])


@pytest.mark.parametrize(
    "y",
    [
        BINARY.astype(bool),
        BINARY.astype(bool).tolist(),
        pd.Series(BINARY.astype(bool)),
        pd.Series(BINARY.astype(bool), dtype="boolean"),
        pl.Series(BINARY.astype(bool).tolist()),
    ],
)
def test_bool_labels(y):
    solution = solve(POSITIVE, y, "f1")
    assert solution.value == solve(POSITIVE, BINARY, "f1").value
    assert solution.rule.predict(POSITIVE).dtype == bool


def test_classes_that_do_not_occur():
    """Integers within 0..K-1 mean range(K); anything else has to be named."""
    y = np.where(Y == 2, 1, Y)
    assert solve(PROBA, y).rule.classes[0].tolist() == [0, 1, 2]
    assert solve(PROBA, NAMES[y], classes=["a", "b", "c"]).value == solve(PROBA, y).value
    with pytest.raises(ValueError, match=r"y has 2 distinct labels \['a', 'b'\], but proba has 3 classes"):
        solve(PROBA, NAMES[y])


def test_classes_are_in_column_order():
    """Columns c, a, b with classes=[c, a, b]: the metric's scale is that order."""
    order = [2, 0, 1]
    solution = solve(PROBA[:, order], NAMES[Y], "kappa", classes=NAMES[order])
    plain = solve(PROBA, NAMES[Y], "kappa")
    assert solution.value == pytest.approx(plain.value)
    assert np.array_equal(solution.rule.predict(PROBA[:, order]), plain.rule.predict(PROBA))


# -------------------------------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize(
    "proba",
    [
        PROBA.tolist(),
        list(PROBA),
        np.asfortranarray(PROBA),
        PROBA.astype(object),
        pd.DataFrame(PROBA),
        pl.DataFrame({"0": PROBA[:, 0], "1": PROBA[:, 1], "2": PROBA[:, 2]}),
        pd.DataFrame(PROBA[:, [2, 0, 1]], columns=[2, 0, 1]),
        pd.DataFrame(PROBA[:, [2, 0, 1]], columns=["2", "0", "1"]),
    ],
)
def test_probabilities_of_any_container(proba):
    solution = solve(proba, Y)
    assert solution.value == REFERENCE.value
    assert np.array_equal(solution.rule.predict(proba), REFERENCE.rule.predict(PROBA))
    if getattr(proba, "columns", [0])[0] not in (2, "2"):  # else an array has its columns: see test_reading.py
        assert np.array_equal(solution.rule.predict(PROBA), REFERENCE.rule.predict(PROBA))


@pytest.mark.parametrize(
    "proba",
    [
        POSITIVE.tolist(),
        POSITIVE[:, None],
        np.column_stack([1 - POSITIVE, POSITIVE]),
        pd.Series(POSITIVE),
        pl.Series(POSITIVE),
        pd.DataFrame({"p": POSITIVE}),
        pd.DataFrame({1: POSITIVE, 0: 1 - POSITIVE}),
        [[1 - p, p] for p in POSITIVE],
    ],
)
def test_binary_probabilities_of_any_shape(proba):
    solution = solve(proba, BINARY, "f1")
    reference = solve(POSITIVE, BINARY, "f1")
    assert solution.value == reference.value
    assert solution.rule.threshold == reference.rule.threshold


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_positive_class_does_not_hang_on_the_order_of_columns(frame):
    y = np.where(BINARY == 1, "yes", "no")
    reference = solve(POSITIVE, y, "f1", pos_label="yes")  # of a single column
    for columns in ({"yes": POSITIVE, "no": 1 - POSITIVE}, {"no": 1 - POSITIVE, "yes": POSITIVE}):
        solution = solve(frame(columns), y, "f1", pos_label="yes")
        assert solution.rule.classes[0].tolist() == ["no", "yes"]
        assert solution.value == reference.value
        turned = frame(dict(reversed(columns.items())))
        assert np.array_equal(solution.rule.predict(turned), reference.rule.predict(POSITIVE))


def test_integer_probabilities_are_certainties():
    assert solve(np.eye(3, dtype=int)[Y], Y).value == 1.0
    assert solve(BINARY, BINARY, "f1").value == 1.0


def test_float32_and_float64_of_the_same_numbers_agree():
    short = PROBA.astype(np.float32)
    assert solve(short, Y).value == solve(short.astype(np.float64), Y).value


def test_scores_are_to_be_divided_by_their_sums():
    scores = PROBA * RNG.integers(1, 9, size=(24, 1))
    with pytest.raises(ValueError, match=r"proba must sum to 1 .*; divide scores by their sum"):
        solve(scores, Y)
    assert solve(scores / scores.sum(axis=1, keepdims=True), Y).value == pytest.approx(REFERENCE.value)


# -------------------------------------------------------------------------------------------------- several outputs


@pytest.mark.parametrize(
    "y",
    [
        LABELLED,
        LABELLED.tolist(),
        LABELLED.astype(bool),
        sp.csr_matrix(LABELLED),
        sp.csc_array(LABELLED),
        pd.DataFrame(LABELLED, columns=list("xyz")),
        pl.DataFrame(LABELLED, schema=list("xyz")),
    ],
)
def test_multilabel_targets_of_any_container(y):
    solution = solve(MULTILABEL, y, "f1")
    reference = solve(MULTILABEL, LABELLED, "f1")
    assert solution.value == reference.value
    assert np.array_equal(solution.rule.predict(MULTILABEL), reference.rule.predict(MULTILABEL))


def test_multilabel_columns_are_matched_by_name():
    y = pd.DataFrame(LABELLED, columns=list("xyz"))
    proba = pd.DataFrame(MULTILABEL, columns=list("xyz"))
    reference = solve(MULTILABEL, LABELLED, "f1", average="macro")
    solution = solve(proba[list("zxy")], y, "f1", average="macro")
    assert solution.value == reference.value
    assert np.array_equal(solution.rule.predict(proba[list("yzx")]), reference.rule.predict(MULTILABEL))
    with pytest.raises(ValueError, match="optimize: the columns of proba must be named like"):
        solve(proba.rename(columns={"x": "w"}), y, "f1")


def test_unequal_outputs_keep_their_labels():
    parts = [RNG.dirichlet(np.ones(k), size=24) for k in (2, 3)]
    y = np.empty((24, 2), dtype=object)
    y[:, 0], y[:, 1] = np.where(BINARY, "yes", "no"), Y
    solution = solve(parts, y, "kappa", average="macro")
    assert [names.tolist() for names in solution.rule.classes] == [["no", "yes"], [0, 1, 2]]
    predicted = solution.rule.predict(parts)
    assert set(predicted[:, 0]) <= {"no", "yes"}
    assert set(predicted[:, 1]) <= {0, 1, 2}
    mixed = solve(parts, y.tolist(), "kappa", average="macro")
    assert mixed.value == solution.value
    frames = [pd.DataFrame(parts[0], columns=["no", "yes"])[["yes", "no"]], pd.DataFrame(parts[1])]
    classes = [["no", "yes"], [0, 1, 2]]
    assert solve(frames, y, "kappa", average="macro", classes=classes).value == solution.value


def test_padding_that_classes_reveal():
    parts = [RNG.dirichlet(np.ones(k), size=24) for k in (2, 3)]
    padded = np.zeros((24, 2, 3))
    padded[:, 0, :2], padded[:, 1] = parts
    y = np.column_stack([BINARY, Y])
    listed = solve(parts, y, "kappa", average="macro")
    whole = solve(padded, y, "kappa", average="macro", classes=[[0, 1], [0, 1, 2]])
    assert whole.value == listed.value
    assert np.array_equal(whole.rule.predict(padded), listed.rule.predict(parts))
    padded[0, 0] = [0.5, 0.4, 0.1]
    with pytest.raises(ValueError, match="optimize: proba of output 0 must be 0 beyond its 2 classes"):
        solve(padded, y, "kappa", average="macro", classes=[[0, 1], [0, 1, 2]])


def test_classes_given_once_are_every_outputs():
    solution = solve(MULTILABEL, np.where(LABELLED, "y", "n"), "f1", classes=["n", "y"], pos_label="y")
    assert solution.value == solve(MULTILABEL, LABELLED, "f1").value
    cube = np.stack([PROBA, PROBA, PROBA], axis=1)
    y = np.column_stack([Y, Y, Y])
    assert solve(cube, y, "kappa", classes=[0, 1, 2]).value == solve(cube, y, "kappa").value


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_integer_labels_of_any_type_are_told_apart(dtype):
    low, high = (-128, 127) if np.issubdtype(dtype, np.signedinteger) else (0, 255)
    y = np.array([low, high, 5, high, low, 5], dtype=dtype)
    proba = np.full((6, 3), 1 / 3)
    solution = mw.optimize(proba, y, "accuracy", strategy=mw.Strategy(confusion="labels", recalibrate=False))
    assert solution.rule.classes[0].tolist() == sorted({low, 5, high})
    assert solution.value == pytest.approx(np.mean(y == low))


# ------------------------------------------------------------------------------------------- what cannot be guessed


def test_numbered_columns_beside_the_same_classes_in_another_order_are_refused():
    """Columns 0, 1, 2 are those of a frame without names, or the classes 2, 1, 0 by name: nobody can tell."""
    rule = solve(PROBA, Y, classes=[2, 1, 0]).rule
    frame = pd.DataFrame(PROBA)
    message = r"the columns of proba are named \[0, 1, 2\], which may be positions, or the classes \[2, 1, 0\]"
    with pytest.raises(ValueError, match=rf"WeightedRule\.predict: {message}"):
        rule.predict(frame)
    with pytest.raises(ValueError, match=f"optimize: {message}"):
        solve(frame, Y, classes=[2, 1, 0])
    assert rule.predict(frame[[2, 1, 0]]).tolist() == rule.predict(frame[[2, 1, 0]].to_numpy()).tolist()
    assert rule.predict(frame.to_numpy()).tolist() == rule.predict(PROBA).tolist()


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([0, 1, 1], r"classes must be distinct, got \[0, 1, 1\]"),
        ([0, 1, None], "classes must not be missing, got NaN, None or NA as class 2"),
        (np.array([[0], [1], [2]]), "classes must hold the labels of each of 1 outputs"),
        (np.array(3), r"classes must be a list of labels in column order, .* got ndarray of shape \(\)"),
        (7, "classes must be a list of labels in column order"),
    ],
)
def test_classes_are_checked_for_scores_as_for_rules(classes, message):
    for call in (lambda: solve(PROBA, Y, classes=classes), lambda: mw.metrics.Accuracy().score(Y, Y, classes=classes)):
        with pytest.raises((ValueError, TypeError), match=rf"(optimize|Accuracy\.score): {message}"):
            call()


@pytest.mark.parametrize(
    "weight", [np.ones(24, dtype=complex), np.full(24, "1"), np.ma.masked_all(24), [10**400] + [1] * 23]
)
def test_weights_are_never_converted_by_force(weight):
    with pytest.raises(ValueError, match="optimize: sample_weight must be an array of numbers, got"):
        solve(PROBA, Y, sample_weight=weight)


def test_labels_that_are_lists_are_refused():
    y = Y.astype(object)
    y[3] = [1, 2]
    with pytest.raises(TypeError, match=r"optimize: y must hold labels, such as text and numbers, got \[1, 2\]"):
        solve(PROBA, y)
    with pytest.raises(TypeError, match=r"optimize: y must hold labels, such as text and numbers, got \[1, 2\]"):
        solve(pd.DataFrame(PROBA, columns=["a", "b", "c"]), y)
    for pair, name in (((y, Y), "y_true"), ((Y, y), "y_pred")):
        with pytest.raises(TypeError, match=rf"Accuracy\.score: output 0 of {name} must hold labels, .* got \[1, 2\]"):
            mw.metrics.Accuracy().score(*pair)


@pytest.mark.parametrize("proba", [PROBA, pd.DataFrame(PROBA), pd.DataFrame(PROBA, columns=["a", "b", "c"])])
def test_classes_that_are_lists_are_refused(proba):
    with pytest.raises(
        ValueError, match=r"optimize: classes must be text, numbers or other plain labels, got \[0, 1, "
    ):
        solve(proba, Y, classes=[[0, 1, [2]]])
    with pytest.raises(TypeError, match=r"optimize: classes must be labels, or a list of labels for each output"):
        solve(proba, Y, classes=["a", ["b"], "c"])


def test_a_type_is_no_array():
    """NumPy's types have a shape, which is no tuple."""
    rule = solve(PROBA, Y).rule
    with pytest.raises(ValueError, match=r"optimize: y must have shape \(N,\) or \(N, M\), got \(\)"):
        mw.optimize(PROBA, np.float32, "accuracy")
    for call, who in ((rule.predict, "WeightedRule.predict"), (lambda p: solve(p, Y[:, None]), "optimize")):
        with pytest.raises(TypeError, match=f"{who}: proba must be an array of numbers, got type"):
            call(np.float32)


@pytest.mark.parametrize("unit", ["D", "ns"])
def test_dates_are_shown_as_dates(unit):
    days = np.array(["2024-03-01", "2025-01-31", "2026-12-24"], dtype=f"datetime64[{unit}]")
    with pytest.raises(
        ValueError, match=r"y must hold only the classes \[2024-03-01[^,]*, 2025-01-31[^,]*, 2026.*, got 0"
    ):
        solve(PROBA, Y, classes=days)
    with pytest.raises(ValueError, match=r"classes must be distinct, got \[2024-03-01[^,]*, 2024-03-01"):
        solve(PROBA, Y, classes=days[[0, 0, 1]])


def test_columns_of_y_have_names_of_their_own():
    frame = pd.DataFrame(np.column_stack([Y, Y]) % 2, columns=["a", "a"])
    with pytest.raises(ValueError, match=r"optimize: the columns of y must have distinct names, got \['a', 'a'\]"):
        solve(PROBA[:, :2], frame)


# --------------------------------------------------------------------------------------------- common slips, and words


def three_classes(n_rows=60):
    """Probabilities of three classes, and labels of which all occur."""
    proba = np.random.default_rng(2).dirichlet([1, 1, 1], n_rows)
    return proba, np.array(["a", "b", "c"])[np.arange(n_rows) % 3]


def test_what_does_not_fit_is_said_before_what_it_sums_to():
    proba, y = three_classes()
    with pytest.raises(ValueError, match=r"^optimize: proba has 3 rows, y has 60 labels; pass proba\.T\?$"):
        mw.optimize(proba.T, y, "accuracy")
    with pytest.raises(ValueError, match=r"y has 3 distinct labels .*, but proba has 2 classes") as raised:
        mw.optimize(proba[:, :2], y, "accuracy")
    assert raised.value.__suppress_context__
    with pytest.raises(ValueError, match="must sum to 1"):
        mw.optimize(2 * proba, y, "accuracy")


def test_argmax_that_is_always_right_is_doubted():
    proba, _ = three_classes()
    likeliest = np.array(["a", "b", "c"])[proba.argmax(axis=1)]
    words, fixed = (
        "The most probable class is correct in every row",
        {"strategy": mw.Strategy(confusion="labels", recalibrate=False)},
    )
    assert words in mw.optimize(proba, likeliest, "accuracy", **fixed).status
    positive = proba[:, 0]
    assert words in mw.optimize(positive, (positive > 0.5).astype(int), "f1", **fixed).status
    one_wrong = np.append(likeliest[:-1], "a" if likeliest[-1] != "a" else "b")
    for few, labels in ((proba, one_wrong), (proba[:49], likeliest[:49])):
        assert words not in mw.optimize(few, labels, "accuracy", **fixed).status


def test_a_table_of_costs_is_no_metric_by_itself():
    proba, y = three_classes()
    for costs in ([[0, 1, 2], [5, 0, 1], [1, 1, 0]], np.eye(3)):
        with pytest.raises((ValueError, TypeError), match=r"for a table of costs, use mw\.metrics\.Cost\(\.\.\.\)"):
            mw.optimize(proba, y, costs)


def test_a_missing_folder_is_named_with_the_path_given(tmp_path):
    proba, y = three_classes()
    solution = mw.optimize(proba, y, "accuracy", strategy=mw.Strategy(confusion="labels", recalibrate=False))
    path = tmp_path / "nowhere" / "report.html"
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere: '.*report.html'"):
        solution.report(path)


def test_probabilities_that_are_missing_when_predicting():
    proba, y = three_classes()
    rule = mw.optimize(proba, y, "accuracy", strategy=mw.Strategy(confusion="labels", recalibrate=False)).rule
    proba[3, 0] = np.nan
    with pytest.raises(ValueError, match=r"in row 3; .* drop such rows, and their labels if there are any"):
        rule.predict(proba)


def test_the_question_for_the_positive_class_offers_both_ways():
    proba, y = three_classes()
    pair = np.where(y == "a", "on hold", "yes")
    with pytest.raises(ValueError, match=r"pos_label='yes', or name the class in the metric, such as 'f1\[yes\]'\.$"):
        mw.optimize(np.c_[1 - proba[:, 0], proba[:, 0]], pair, "f1")


def test_masked_arrays_without_a_masked_entry_are_arrays():
    assert solve(np.ma.array(PROBA), np.ma.array(Y)).value == solve(PROBA, Y).value
    rule = mw.WeightedRule.from_weights([1, 2, 3])
    assert rule.predict(np.ma.array(PROBA)).tolist() == rule.predict(PROBA).tolist()


def test_costs_are_never_read_from_behind_a_mask():
    costs, rule = np.ones((24, 3)), mw.CostRule((np.arange(3),))
    assert rule.predict(PROBA, cost=np.ma.array(costs)).tolist() == rule.predict(PROBA, cost=costs).tolist()
    with pytest.raises(TypeError, match=r"CostRule\.predict: cost must not have masked entries"):
        rule.predict(PROBA, cost=np.ma.array(costs, mask=np.arange(3) == 1 + 0 * costs))
    with pytest.raises(ValueError, match=r"CostRule\.predict: cost must hold numbers of up to 1\.8e308"):
        rule.predict(PROBA, cost=[[10**400, 1, 1]] * 24)
