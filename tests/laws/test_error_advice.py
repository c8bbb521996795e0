"""Advice in errors can be followed: parameters and options that a message names are taken by whoever raised it."""

import inspect
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import metricwise as mw
import worlds

RNG = np.random.default_rng(0)
P, Y = worlds.multiclass(120, [1.0, 1.0, 1.0], names=["a", "b", "c"], seed=RNG)
FRAME = pd.DataFrame(P, columns=list("abc"))
RULE = mw.WeightedRule.from_weights([1.0, 2.0, 3.0], classes=list("abc"))
MIXTURE = mw.MixtureRule((RULE, mw.WeightedRule.from_weights([1.0, 1.0, 1.0], classes=list("abc"))), [0.5, 0.5])
GROUPED = mw.GroupedRule((RULE, RULE), ("f", "m"))
GROUPS = ["f", "m"] * 60

# Each entry point that reads probabilities: the function that is called, and a call of it.
ENTRIES = {
    "optimize": (mw.optimize, lambda proba, y: mw.optimize(proba, y, "macro_f1")),
    "trade_off": (mw.trade_off, lambda proba, y: mw.trade_off(proba, y, "accuracy", "min_recall")),
    "evaluate": (mw.evaluate, lambda proba, y: mw.evaluate(RULE, proba, y, "accuracy")),
    "WeightedRule.predict": (mw.WeightedRule.predict, lambda proba, y: RULE.predict(proba)),
    "WeightedRule.distribution": (mw.WeightedRule.distribution, lambda proba, y: RULE.distribution(proba)),
    "MixtureRule.predict": (mw.MixtureRule.predict, lambda proba, y: MIXTURE.predict(proba)),
    "GroupedRule.predict": (mw.GroupedRule.predict, lambda proba, y: GROUPED.predict(proba, sensitive_features=GROUPS)),
    "FeasibleSetDisplay": (
        mw.displays.FeasibleSetDisplay.from_predictions,
        lambda proba, y: mw.displays.FeasibleSetDisplay.from_predictions(proba),
    ),
}
BAD = {
    "scores": (P * 3, Y),
    "negative": (P - 0.5, Y),
    "another column": (FRAME.assign(id=np.arange(120)), Y),
    "labels beside": (FRAME.assign(truth=Y), Y),
    "other names": (FRAME.rename(columns={"c": "z"}), Y),
    "too few columns": (FRAME[["a", "b"]], Y),
    "missing label as -1": (P, np.where(Y == "a", -1, 1)),
    "tags": (P, [["a"], ["a", "b"], []] * 40),
}


def named_parameters(text):
    """Parameters that a message names as ``name=``, with the function of ours that they are of where it says so."""
    found = []
    for function, name in re.findall(r"mw\.(\w+)\(\w+, (\w+)=", text):
        found.append((getattr(mw, function), name))
    rest = re.sub(r"mw\.\w+\([^)]*\)", "", text)
    return found + [(None, name) for name in re.findall(r"\b([a-z_]+)=", rest)]


def said_by(call):
    """The message of the error that a call ends in, empty without one: not all of it concerns every function."""
    try:
        call()
    except (ValueError, TypeError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("entry", ENTRIES)
def test_parameters_in_messages_are_taken_by_who_raises_them(entry, bad):
    function, call = ENTRIES[entry]
    text = said_by(lambda: call(*BAD[bad]))
    for owner, name in named_parameters(text):
        assert name in inspect.signature(owner or function).parameters, text


def test_parameters_in_messages_about_tables(tmp_path):
    binary = tmp_path / "binary.csv"
    pd.DataFrame({"p": P[:, 0], "y": (Y == "a").astype(int)}).to_csv(binary, index=False)
    scores = tmp_path / "scores.csv"
    (FRAME * 3).assign(y=Y).to_csv(scores, index=False)
    calls = {
        mw.optimize: lambda path: mw.optimize(path, "y", "accuracy"),
        mw.predict_table: lambda path: mw.predict_table(RULE, path, tmp_path / "out.csv"),
    }
    for function, call in calls.items():
        for path in (binary, scores):
            with pytest.raises(ValueError) as caught:
                call(path)
            for owner, name in named_parameters(str(caught.value)):
                assert name in inspect.signature(owner or function).parameters, str(caught.value)
    with pytest.raises(ValueError, match=r"mw\.Table\(path, proba=\.\.\.\)"):
        mw.optimize(binary, "y", "f1")
    assert mw.optimize(mw.Table(binary, proba="p"), "y", "f1").value > 0  # as advised


@pytest.mark.parametrize("call", [RULE.predict, MIXTURE.predict, lambda p: mw.evaluate(RULE, p, Y, "accuracy")])
def test_scores_for_a_rule_are_to_be_divided_by_their_sum(call):
    with pytest.raises(ValueError, match="got 3 in row 0; divide scores by their sum"):
        call(P * 3)
    call(P * 3 / (P * 3).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_that_are_no_class_are_named(kind):
    frame = FRAME.assign(id=np.arange(120))[["id", "a", "b", "c"]]
    if kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    elif kind == "arrow":
        frame = pa.Table.from_pandas(frame, preserve_index=False)
    selection = r"proba\.select\(\['a', 'b', 'c'\]\)" if kind == "arrow" else r"proba\[\['a', 'b', 'c'\]\]"
    with pytest.raises(ValueError, match=f"the column 'id' of proba is no label of y; pass {selection}"):
        mw.optimize(frame, Y, "macro_f1")
    with pytest.raises(ValueError, match=f"the column 'id' of proba is no class; pass {selection}"):
        mw.optimize(frame, None, "macro_f1")
    with pytest.raises(ValueError, match=f"the column 'id' of proba is no class; pass {selection}"):
        RULE.predict(frame)
    with pytest.raises(ValueError, match=f"the column 'id' of proba is no class; pass {selection}"):
        mw.optimize(frame, Y, "macro_f1", classes=["a", "b", "c"])


def test_columns_of_labels_among_the_probabilities_are_named():
    with pytest.raises(ValueError, match="the columns 'truth', 'id' of proba are no labels of y"):
        mw.optimize(FRAME.assign(truth=Y, id=np.arange(120)), Y, "macro_f1")


def test_a_class_that_no_label_shows_is_no_column_too_many():
    four = pd.DataFrame(np.column_stack([P * 0.9, np.full(120, 0.1)]), columns=list("abcd"))
    assert mw.optimize(four, Y, "accuracy").rule.classes[0].tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match=r"must sum to 1 .* divide scores by their sum"):
        mw.optimize(four * 3, Y, "accuracy")


def test_columns_of_outputs_are_called_so():
    y = pd.DataFrame({"news": [0, 1, 1], "sport": [1, 0, 1]})
    proba = pd.DataFrame({"id": [1, 2, 3], "news": [0.1, 0.9, 0.8], "sport": [0.8, 0.2, 0.7]})
    with pytest.raises(ValueError, match=r"the column 'id' of proba is no output; pass proba\[\['news', 'sport'\]\]"):
        mw.optimize(proba, y, "f1_macro")


@pytest.mark.parametrize(
    "y", [[["x"], ["x", "y"], []] * 40, pd.Series([["x"], ["x", "y"], []] * 40), [{"x"}, {"y"}] * 60]
)
def test_lists_of_tags_are_to_be_binarized(y):
    with pytest.raises((ValueError, TypeError), match=r"MultiLabelBinarizer\(\)\.fit_transform\(y\)"):
        mw.optimize(P, y, "f1_macro")


def test_files_of_another_encoding_separator_or_decimal_sign(tmp_path):
    path = tmp_path / "rows.csv"
    rows = FRAME.assign(y=Y)
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        rows.to_csv(path, index=False, encoding=encoding)
        with pytest.raises(ValueError, match=r"text must be in UTF-8, got UTF-(16|32)"):
            mw.optimize(path, "y", "macro_f1")
    rows.to_csv(path, index=False, sep=";", decimal=",")
    with pytest.raises(ValueError, match=r"separated by ';', set mw\.Table\(path, separator=\.\.\.\)"):
        mw.optimize(path, "y", "macro_f1")
    with pytest.raises(
        ValueError, match=r"'a' must hold numbers, got '0,\d+' in row 0; write decimals with a point, 0\."
    ):
        mw.optimize(mw.Table(path, separator=";"), "y", "macro_f1")
