"""Names with a class in them: what is written is what is meant, and errors point at what is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

import metricwise as mw
import worlds
from metricwise.metrics.class_names import read_name

NAMES = np.array(["low", "on hold", "urgent"])


@pytest.fixture(scope="module")
def rows():
    return worlds.multiclass(400, [3, 1, 1], names=NAMES)


def quoted(label, quote):
    escaped = label.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return f"{quote}{escaped}{quote}"


@given(label=st.text(), quote=st.sampled_from("'\""), space=st.sampled_from(["", " ", "  "]))
def test_any_text_can_be_quoted(label, quote, space):
    assert read_name(f"recall{space}[{space}{quoted(label, quote)}{space}]") == ("recall", label)


@given(label=st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_are_numbers_unless_they_are_quoted(label):
    found = read_name(f"f1[{label!r}]").label
    assert found == label
    assert type(found) is type(label)
    assert read_name(f"f1['{label!r}']").label == repr(label)


@given(label=st.from_regex(r"[A-Za-z_]\w*", fullmatch=True).filter(lambda word: word not in ("True", "False")))
def test_words_need_no_quotes(label):
    assert read_name(f"f1[{label}]").label == label


def test_a_number_beyond_all_doubles_is_no_class():
    with pytest.raises(mw.InvalidParameter, match=r"must have a class that is a finite number at character 8"):
        read_name("recall[1e999]")


def test_a_refusal_is_one_line_whatever_the_class_holds():
    with pytest.raises(mw.InvalidParameter, match=r"quotes around a class that is not one word, 'on hold',") as caught:
        read_name("recall[on\nhold]")
    assert "\n" not in caught.value.sentence


def test_values_are_those_of_the_class(rows):
    proba, y = rows
    record = ["recall[urgent]", "precision['on hold']", "share[urgent]", "fpr[urgent]"]
    solution = mw.optimize(
        proba, y, "f1[urgent]", record=record, strategy=mw.Strategy(confusion="labels", recalibrate=False)
    )
    decided = solution.rule.predict(proba)
    assert solution.value == pytest.approx(sk.f1_score(y == "urgent", decided == "urgent"))
    values = {name: one.value for name, one in solution.recorded.items()}
    assert values == pytest.approx(
        {
            "recall[urgent]": sk.recall_score(y == "urgent", decided == "urgent"),
            "precision['on hold']": sk.precision_score(y == "on hold", decided == "on hold", zero_division=0),
            "share[urgent]": np.mean(decided == "urgent"),
            "fpr[urgent]": np.mean(decided[y != "urgent"] == "urgent"),
        }
    )
    by_parameter = mw.optimize(
        proba, y, "f1", pos_label="urgent", strategy=mw.Strategy(confusion="labels", recalibrate=False)
    )
    np.testing.assert_array_equal(by_parameter.rule.predict(proba), decided)


def test_estimators_and_scorers_take_them(rows):
    proba, y = rows
    model = mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1[urgent]", cv=3).fit(proba, y)
    expected = sk.f1_score(y, model.predict(proba), labels=["urgent"], average="macro")
    assert model.score(proba, y) == pytest.approx(expected)
    assert mw.make_scorer("f1[urgent]")(model, proba, y) == pytest.approx(expected)


def test_labels_of_several_outputs():
    rng = np.random.default_rng(1)
    proba = rng.beta(1, 2, (300, 3))
    y = np.where(rng.random((300, 3)) < proba, "yes", "no")
    solution = mw.optimize(
        proba, y, "f1[yes]", average="macro", strategy=mw.Strategy(confusion="labels", recalibrate=False)
    )
    decided = solution.rule.predict(proba)
    each = [sk.f1_score(y[:, m], decided[:, m], pos_label="yes") for m in range(3)]
    assert solution.value == pytest.approx(np.mean(each))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f1[urgent", r"must have '\]' at character 10, got the end:\n    f1\[urgent\n             \^"),
        ("f1[]", r"must have a class: a word, a number, or anything in quotes at character 4, got '\]'"),
        ("f1 urgent]", r"must have '\[' at character 4, got 'u'"),
        ("f1['on hold]", "must have a class that ends with ' at character 4"),
        ("f1[urgent] >= 3", "must have nothing more at character 12, got '>'"),
        ("[urgent]", "must have the name of a metric, such as recall at character 1"),
        ("f1[urgnt]", r"pos_label must be one of the classes \['low', 'on hold', 'urgent'\], got 'urgnt'"),
        ("macro_f1[urgent]", "'macro_f1' is not about one class; leave the brackets out"),
        ("recal[urgent]", "'recal' is not known; did you mean 'recall'"),
    ],
)
def test_errors_point_at_what_is_wrong(rows, text, message):
    with pytest.raises(ValueError, match=message):
        mw.optimize(*rows, text)


def test_a_class_that_is_named_twice_is_refused(rows):
    with pytest.raises(ValueError, match="pos_label"):
        mw.optimize(*rows, "f1[urgent]", pos_label="low")
