"""--input: rules on logits, log-probabilities and scores, from tables of any kind, and what is refused."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.special import log_softmax, softmax
from sklearn.metrics import f1_score

import metricwise as mw
import worlds
from cli.shared import document, done, read, run, write
from metricwise.cli import rows as cli_rows

LABELS = np.array(["low", "mid", "urgent"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to stand in, with a table of one column and of three classes in every form."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(300, 3)) * 2
    truth = LABELS[worlds.draw_codes(softmax(z, axis=1), rng)]
    odds = rng.normal(size=300) * 3 - 1.5
    fraud = (rng.random(300) < 1 / (1 + np.exp(-odds))).astype(int)
    forms = {"logits": z, "log_proba": log_softmax(z, axis=1), "scores": 5 * z, "probabilities": softmax(z, axis=1)}
    for kind, numbers in forms.items():
        frame = pd.DataFrame(numbers, columns=LABELS).assign(truth=truth, id=np.arange(300))
        write(frame, tmp_path / f"{kind}.csv")
        write(frame, tmp_path / f"{kind}.parquet")
    binary = pd.DataFrame({"z": odds, "score": 2 * odds + 8, "wrong": -odds, "p": 1 / (1 + np.exp(-odds))})
    write(binary.assign(fraud=fraud), tmp_path / "binary.csv")
    write(binary.assign(fraud=fraud), tmp_path / "binary.parquet")
    return tmp_path


def refused(*words):
    """Return the sentence that a command is refused with."""
    result = run(*words)
    assert result.code == 2, result.out + result.err
    assert "Traceback" not in result.err
    return result.err.splitlines()[-1].removeprefix("metricwise: ")


# ----------------------------------------------------------------------------------------------------------------- fit


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("kind", ["logits", "log_proba", "scores"])
def test_fit_and_apply_are_those_of_python(folder, kind, ending):
    table = folder / f"{kind}.{ending}"
    fitted = document("fit", table, "-t", "truth", "-m", "macro_f1", "--input", kind, "-o", "rule.json")
    frame = read(table)
    whole = mw.optimize(frame[LABELS], frame["truth"], "macro_f1", input=kind)
    assert (fitted["input"], fitted["value"]) == (kind, pytest.approx(whole.value, abs=1e-12))
    assert mw.load_rule("rule.json").input == kind
    done("apply", "rule.json", table, "-o", "decisions.csv")
    np.testing.assert_array_equal(pd.read_csv("decisions.csv")["truth"], whole.rule.predict(frame[LABELS]))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(("kind", "column"), [("logits", "z"), ("scores", "score")])
def test_single_columns(folder, kind, column, ending):
    table = folder / f"binary.{ending}"
    fit = ("fit", table, "-t", "fraud", "--proba", column, "-m", "f1", "--input", kind, "-o", "rule.json")
    noun = {"logits": "logit", "scores": "score"}[kind]
    assert f"{noun} of 1 of 'fraud': column '{column}'." in done(*fit).err
    frame = read(table)
    whole = mw.optimize(frame[column], frame["fraud"], "f1", input=kind)
    assert mw.load_rule("rule.json").threshold == pytest.approx(whole.rule.threshold, rel=1e-9)
    decided = document("apply", "rule.json", table, "-o", "decisions.csv")["decisions"]["fraud"]
    assert decided["1"] == np.count_nonzero(frame[column] > whole.rule.threshold)


def test_columns_that_are_read_are_named_for_what_they_are(folder):
    fit = ("fit", "logits.csv", "-t", "truth", "-m", "macro_f1", "-o", "rule.json")
    assert "logits of 'truth': columns 'low', 'mid', 'urgent'." in done(*fit, "--input", "logits").err
    assert "Columns of logits of truth: 'low', 'mid', 'urgent'." in done("explain", "rule.json").out
    assert document("explain", "rule.json")["input"] == "logits"
    assert json.loads((folder / "rule.json").read_text())["input"] == "logits"


@pytest.mark.parametrize("kind", ["logits", "scores"])
def test_large_tables_are_read_in_batches(folder, kind, monkeypatch):
    fit = ["fit", f"{kind}.parquet", "-t", "truth", "-m", "macro_f1", "--input", kind, "-o"]
    small = document(*fit, "small.json")
    done("apply", "small.json", f"{kind}.parquet", "-o", "small.csv")
    monkeypatch.setattr(cli_rows, "MEMORY_LIMIT", 1000)
    large = document(*fit, "large.json")
    assert "in batches" in done("apply", "large.json", f"{kind}.parquet", "-o", "large.csv").err
    assert (large["input"], large["value"]) == (kind, pytest.approx(small["value"], abs=1e-12))
    pd.testing.assert_frame_equal(pd.read_csv("large.csv"), pd.read_csv("small.csv"))
    assert "--input must be" in refused("apply", "large.json", f"{kind}.parquet", "--input", "log_proba", "-o", "x.csv")


def test_arrays_hold_logits_too(folder):
    frame = read(folder / "logits.parquet")
    codes = np.searchsorted(LABELS, frame["truth"])
    np.save("z.npy", frame[LABELS].to_numpy())
    np.save("y.npy", codes)
    np.savez("rows.npz", proba=frame[LABELS].to_numpy(), y=codes)
    whole = mw.optimize(frame[LABELS].to_numpy(), codes, "macro_f1", input="logits")
    for words in (("z.npy", "-t", "y.npy"), ("rows.npz", "-t", "y")):
        fitted = document("fit", *words, "-m", "macro_f1", "--input", "logits", "--force", "-o", "rule.json")
        assert fitted["value"] == pytest.approx(whole.value, abs=1e-12)
    assert "logits: the array 'proba' of rows.npz." in done("apply", "rule.json", "rows.npz", "-o", "decided.npy").err
    np.testing.assert_array_equal(np.load("decided.npy"), whole.rule.predict(frame[LABELS].to_numpy()))


def test_trade_offs_of_logits_are_those_of_probabilities(folder):
    words = ("trade-off", "binary.csv", "-t", "fraud", "-m", "recall", "--against", "precision", "--points", "4")
    by_logits = document(*words, "--proba", "z", "--input", "logits")
    by_probabilities = document(*words, "--proba", "p")
    assert by_logits["argmax"] == pytest.approx(by_probabilities["argmax"])
    for name, values in by_logits["points"].items():
        assert values == pytest.approx(by_probabilities["points"][name])


# ---------------------------------------------------------------------------------------------------------- with a rule


def test_evaluate_uses_the_input_of_the_rule(folder):
    done("fit", "logits.csv", "-t", "truth", "-m", "macro_f1", "--input", "logits", "-o", "rule.json")
    given = document("evaluate", "rule.json", "logits.parquet", "--metric", "macro_f1")["metrics"]["macro_f1"]
    frame = read(folder / "logits.csv")
    named = document("evaluate", "rule.json", "logits.csv", "--metric", "macro_f1", "--input", "logits")
    assert named["metrics"]["macro_f1"]["value"] == pytest.approx(given["value"])
    argmax = LABELS[frame[LABELS].to_numpy().argmax(axis=1)]
    rule = mw.load_rule("rule.json")
    for decisions, key in ((rule.predict(frame[LABELS]), "value"), (argmax, "baseline")):
        assert given[key] == pytest.approx(f1_score(frame["truth"], decisions, average="macro"))


@pytest.mark.parametrize("words", [("apply",), ("evaluate",), ("compare", "--class-weights", "low=1,mid=1,urgent=2")])
@pytest.mark.parametrize("kind", ["probabilities", "scores"])
def test_another_input_than_that_of_the_rule_is_refused(folder, words, kind):
    done("fit", "logits.csv", "-t", "truth", "-m", "macro_f1", "--input", "logits", "-o", "rule.json")
    command, *options = words
    sentence = refused(command, "rule.json", "logits.csv", *options, "--input", kind)
    assert sentence == f"--input must be logits, which the rule was fitted to, got {kind}; leave it out."


def test_a_rule_on_probabilities_refuses_logits(folder):
    mw.WeightedRule.from_weights({"low": 1, "mid": 2, "urgent": 3}).to_json("rule.json")
    sentence = refused("apply", "rule.json", "logits.csv", "--input", "logits")
    assert sentence == "--input must be probabilities, which the rule was fitted to, got logits; leave it out."
    sentence = refused("apply", "rule.json", "logits.csv")
    assert "must be non-negative" in sentence
    assert sentence.endswith("use a rule that was fitted to logits or scores, because this one takes probabilities.")


def test_class_weights_multiply_the_softmax_of_logits(folder):
    done("fit", "logits.csv", "-t", "truth", "-m", "macro_f1", "--input", "logits", "-o", "rule.json")
    words = ("--metric", "accuracy", "--class-weights", "low=1,mid=2,urgent=4")
    compared = document("compare", "rule.json", "logits.csv", *words)["metrics"]["accuracy"]["baseline"]
    frame = read(folder / "probabilities.csv")
    decided = LABELS[(frame[LABELS].to_numpy() * [1, 2, 4]).argmax(axis=1)]
    assert compared == pytest.approx((decided == frame["truth"]).mean())
    done("fit", "scores.csv", "-t", "truth", "-m", "macro_f1", "--input", "scores", "-o", "scores.json")
    sentence = refused("compare", "scores.json", "scores.csv", *words)
    assert sentence == "--class-weights multiplies probabilities, but the rule was fitted to scores; use --against."


def test_a_rule_on_two_columns_of_logits_takes_one(folder):
    frame = read(folder / "binary.csv")
    both = pd.DataFrame({"no": 0.0, "yes": frame["z"], "fraud": np.where(frame["fraud"] == 1, "yes", "no")})
    write(both, folder / "both.csv")
    done("fit", "both.csv", "-t", "fraud", "-m", "f1", "--pos-label", "yes", "--input", "logits", "-o", "rule.json")
    write(both[["yes", "fraud"]].rename(columns={"yes": "odds"}), folder / "one.csv")
    one, two = (
        document("evaluate", "rule.json", *words, "--pos-label", "yes")["metrics"]["f1"]["value"]
        for words in (("one.csv", "--proba", "odds"), ("both.csv",))
    )
    assert one == pytest.approx(two)


# -------------------------------------------------------------------------------------------------------------- errors

FIT = ("fit", "binary.csv", "-t", "fraud", "-m", "f1", "-o", "rule.json")
THREE = ("-t", "truth", "-m", "macro_f1", "-o", "rule.json")
WRONG = {
    (*FIT, "--proba", "z", "--input", "margins"): "--input must be one of 'probabilities', 'logits', 'log_proba', "
    "'scores', got 'margins'.",
    (*FIT, "--proba", "z", "--input", "log_proba"): "log-probabilities must be of all classes, "
    "shape (N, 2) or (N, M, 2), if --input log_proba, got a single column; pass both columns, or "
    "log-odds with --input logits.",
    (*FIT, "--proba", "wrong", "--input", "scores"): "larger must mean more of the class, but the scores are smaller "
    "for rows of the class; pass -scores.",
    ("fit", "probabilities.csv", *THREE, "--input", "logits"): "all numbers must be logits if --input logits, got "
    "rows from 0 to 1 that sum to 1, which are probabilities; leave --input out, or pass their logarithms with --input "
    "log_proba.",
    ("fit", "logits.csv", *THREE, "--input", "log_proba"): "log-probabilities must be logarithms of probabilities that "
    "sum to 1 (within 0.015) if --input log_proba, got a sum of * in row 0; pass --input logits "
    "for logits, whose softmax sums to 1.",
}


@pytest.mark.parametrize("words", WRONG)
def test_errors_name_options(folder, words):
    begin, _, end = WRONG[words].partition("*")
    sentence = refused(*words)
    assert sentence.startswith(begin)
    assert sentence.endswith(end)
    assert not (folder / "rule.json").exists()


@pytest.mark.parametrize("kind", ["logits", "scores"])
def test_missing_numbers_are_named_by_their_row(folder, kind):
    frame = read(folder / "binary.csv")
    frame.loc[7, "z"] = np.nan
    write(frame, folder / "missing.csv")
    pq.write_table(pa.table({"z": frame["z"].to_numpy(), "fraud": frame["fraud"].to_numpy()}), "missing.parquet")
    words = ("-t", "fraud", "--proba", "z", "-m", "f1", "--input", kind, "-o", "rule.json")
    sentence = "missing.csv: the column 'z' must hold a number in every row, got none in row 7."
    assert refused("fit", "missing.csv", *words) == sentence
    sentence = f"{kind} must not be NaN, got NaN in row 7; drop such rows, and their labels if there are any."
    assert refused("fit", "missing.parquet", *words) == sentence


def test_probabilities_in_a_single_column_of_logits_are_doubted(folder):
    result = done(*FIT, "--proba", "p", "--input", "logits")
    (warning,) = (line for line in result.err.splitlines() if "warning" in line)
    assert "all logits lie between 0 and 1" in warning
    assert warning.endswith("if they are probabilities, leave --input logits out.")


@pytest.mark.parametrize("command", ["fit", "trade-off", "apply", "evaluate", "compare", "report"])
def test_help_lists_the_kinds_of_input(command):
    said = " ".join(run(command, "--help").out.split())
    assert "--input KIND What the numbers are: probabilities (the default), logits, log_proba" in said
