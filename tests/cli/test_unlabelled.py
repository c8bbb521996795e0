"""The commands about rows without labels say what Python says, and write the rules that Python makes."""

import numpy as np
import pandas as pd
import pytest

import metricwise as mw
import worlds
from cli.shared import (
    AVERAGES,
    KINDS,
    METRICS,
    MULTICLASS,
    OUTPUTS,
    SINGLE,
    arguments,
    document,
    done,
    read,
    run,
    table,
    write,
)
from metricwise.monitoring.adaptation import MIN_ROWS


def shifted(kind, n_rows, keep=0.3, seed=1):
    """Return rows of which those of the most frequent class of the first output have become rarer."""
    frame, options = table(kind, 4 * n_rows, seed)
    label = options[1]
    first = frame[label] == frame[label].mode()[0]
    drawn = np.random.default_rng(seed).random(len(frame)) < np.where(first, keep, 1.0)
    return frame[drawn].iloc[:n_rows].reset_index(drop=True)


def columns_of(options):
    """Return the options about columns of probabilities."""
    return [word for at, word in enumerate(options) if "--proba" in word or "--proba" in options[at - 1]]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """For each kind of target: the options of its table, and a rule that was fitted to 600 rows of it."""
    folder, rules = tmp_path_factory.mktemp("rules"), {}
    for at, kind in enumerate(KINDS):
        frame, options = table(kind, 600)
        average = ["--average", AVERAGES[kind]] if kind in AVERAGES else []
        path = folder / f"{at}.json"
        metric = "macro_f1" if kind == OUTPUTS else METRICS[kind]
        done("fit", write(frame, folder / f"{at}.csv"), *options, "-m", metric, *average, "-o", path)
        rules[kind] = options, path
    return rules


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to stand in, with tables of one score: labelled rows, and new rows with other class shares."""
    monkeypatch.chdir(tmp_path)
    write(table(SINGLE, 600)[0], tmp_path / "oof.csv")
    write(table(SINGLE, 500, seed=7)[0], tmp_path / "labelled.csv")
    write(shifted(SINGLE, 1200).drop(columns="fraud"), tmp_path / "new.csv")
    write(table(SINGLE, 1200, seed=2)[0].drop(columns="fraud"), tmp_path / "same.csv")
    return tmp_path


def fit(*words, metric="f1", path="rule.json"):
    done("fit", "oof.csv", "-t", "fraud", "--proba", "score", "-m", metric, *words, "-o", path)
    return mw.load_rule(path)


def score_of(path):
    return read(path)["score"].to_numpy()


# -------------------------------------------------------------------------------------------------------------- shares


@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_those_of_python(tmp_path, fitted, kind):
    options, path = fitted[kind]
    frame = shifted(kind, 500)
    source = write(frame, tmp_path / "new.parquet")
    expected = mw.estimate_shares(mw.load_rule(path), arguments(kind, frame)[0])
    report = document("shares", path, source)
    named = [dict(output, output=None) for output in report["outputs"]]
    nameless = [dict(output, output=None) for output in expected.to_dict()["outputs"]]
    assert named == nameless
    assert [output["output"] for output in report["outputs"]] == options[1 : 2 * len(named) : 2]
    assert report["rows"] == 500
    assert report["outputs"][0]["moved"]
    assert report["notes"] == list(expected.notes)
    assert "output" not in report
    text = done("shares", path, source, *columns_of(options)).out
    assert text.startswith("500 rows without labels, with 95 % intervals:\n")
    assert text.endswith(f"{expected.notes[-1]}\n")
    low, high = np.atleast_2d(expected.low)[0], np.atleast_2d(expected.high)[0]
    assert f"[{low[0]:.4f}, {high[0]:.4f}]" in text
    for output in report["outputs"]:
        result = "class shares have moved" if output["moved"] else "no sign that class shares have moved"
        title = f"{output['output']}: " if len(report["outputs"]) > 1 else ""
        assert f"\n{title}{result} (p = {output['p_value']:.3g})\n" in text


def test_shares_that_have_not_moved(folder):
    fit()
    report = document("shares", "rule.json", "same.csv")
    assert not report["outputs"][0]["moved"]
    for share in report["outputs"][0]["shares"]:
        assert share["estimate"] == share["old"]
    assert "no sign that class shares have moved" in done("shares", "rule.json", "same.csv").out


def test_the_moved_rule_is_that_of_python(folder):
    rule = fit()
    result = done("shares", "rule.json", "new.csv", "-o", "moved.json")
    moved = mw.load_rule("moved.json")
    assert moved == rule.with_prior(mw.estimate_shares(rule, score_of("new.csv")))
    assert moved.describe() in result.out
    assert "moved rule written to moved.json." in result.err
    assert "enough to fit it to them with --adapt." in result.err
    few = write(read("new.csv").iloc[: MIN_ROWS - 1], folder / "few.csv")
    assert "--adapt" not in done("shares", "rule.json", few, "-o", "moved.json", "--force").err


def test_the_adapted_rule_is_that_of_python_and_is_applied(folder):
    rule = fit()
    result = done("shares", "rule.json", "new.csv", "-o", "adapted.json", "--adapt")
    adapted = mw.load_rule("adapted.json")
    assert adapted == rule.adapted(score_of("new.csv"))
    assert adapted != rule
    assert "adapted rule written to adapted.json." in result.err
    done("apply", "adapted.json", "new.csv", "-o", "decisions.csv")
    assert (read("decisions.csv")["fraud"] == adapted.predict(score_of("new.csv"))).all()


@pytest.mark.parametrize("adapt", [[], ["--adapt"]])
def test_a_rule_that_nothing_moves_is_written_as_it_is(folder, adapt):
    fit("--subject-to", "precision >= 0.4", metric="recall")
    result = document("shares", "rule.json", "same.csv", "-o", "kept.json", *adapt)
    assert (folder / "kept.json").read_bytes() == (folder / "rule.json").read_bytes()
    assert (result["changed"], result["no_longer_promised"], result["output"]) == (False, [], "kept.json")
    fit(metric="balanced_accuracy", path="recalls.json")
    said = done("shares", "recalls.json", "new.csv", "-o", "same.json", *adapt)
    assert (folder / "same.json").read_bytes() == (folder / "recalls.json").read_bytes()
    assert "unchanged, because its metric does not depend on class shares; written to same.json" in said.err


def test_a_moved_rule_moves_back(folder):
    rule = fit()
    done("shares", "rule.json", "new.csv", "-o", "moved.json")
    done("shares", "moved.json", "same.csv", "-o", "back.json")
    assert mw.load_rule("back.json").threshold == pytest.approx(rule.threshold, rel=1e-9)


def test_constraints_on_precision_are_no_longer_promised(folder):
    fit("--subject-to", "precision >= 0.4", metric="recall")
    result = done("shares", "rule.json", "new.csv", "-o", "moved.json")
    assert "\nNo longer promised: precision >= 0.4.\n" in result.out
    report = document("shares", "rule.json", "new.csv", "-o", "moved.json", "--force")
    assert (report["changed"], report["no_longer_promised"]) == (True, ["precision >= 0.4"])
    assert mw.load_rule("moved.json").metadata.promises[0]["confidence"] is None


def test_the_rule_on_the_standard_output(folder):
    rule = fit()
    result = done("shares", "rule.json", "new.csv", "-o", "-")
    assert mw.load_rule(result.out) == rule.with_prior(mw.estimate_shares(rule, score_of("new.csv")))
    assert "moved rule written to the standard output." in result.err


def test_a_rule_for_costs_is_adapted_with_their_table(folder):
    pd.DataFrame({"true": [0, 1], "0": [0, 7], "1": [1, 0]}).to_csv("costs.csv", index=False)
    rule = fit("--cost", "costs.csv", metric="cost")
    words = ["shares", "rule.json", "new.csv", "-o", "adapted.json", "--adapt"]
    refused = run(*words)
    assert refused.code == 2
    assert "--adapt needs --cost FILE, because the rule was fitted for cost: a table with a row" in refused.err
    done(*words, "--cost", "costs.csv")
    cost = mw.metrics.Cost([[0, 1], [7, 0]])
    assert mw.load_rule("adapted.json") == rule.adapted(score_of("new.csv"), metric=cost)


def test_a_rule_for_costs_of_rows_is_moved_exactly(folder):
    rows = read("oof.csv")
    proba, y, rng = rows["score"].to_numpy(), rows["fraud"].to_numpy(), np.random.default_rng(3)
    costs = rng.uniform(0.5, 2.0, (len(rows), 2, 2)) * (1 - np.eye(2))
    rule = mw.optimize(proba, y, "cost", cost=costs).rule
    rule.to_json("rows.json")
    expected = rule.with_prior(mw.estimate_shares(rule, score_of("new.csv")))
    for words in ([], ["--adapt", "--force"]):
        done("shares", "rows.json", "new.csv", "--proba", "score", "-o", "moved.json", *words)
        assert mw.load_rule("moved.json") == expected
    refused = run("expect", "rows.json", "new.csv", "--reference", "labelled.csv", "-t", "fraud", "--proba", "score")
    assert refused.code == 2
    assert "rows.json: a CostRule needs more than probabilities" in refused.err


def test_metrics_that_a_file_does_not_say_all_of_are_adapted_in_python(folder):
    rows = read("oof.csv")
    metric = mw.metrics.from_function(lambda C: C[0, 0] * C[1, 1])
    mw.optimize(rows["score"].to_numpy(), rows["fraud"].to_numpy(), metric).rule.to_json("own.json")
    refused = run("shares", "own.json", "new.csv", "--proba", "score", "-o", "new.json", "--adapt")
    assert refused.code == 2
    assert "--adapt is only for rules whose metric has a name, and the rule was fitted for function" in refused.err
    assert "leave it out, or use rule.adapted in Python" in refused.err
    assert not (folder / "new.json").exists()
    done("shares", "own.json", "new.csv", "--proba", "score", "-o", "new.json")


def test_arrays_and_the_standard_input(folder):
    rule = fit()
    np.save("new.npy", score_of("new.csv"))
    expected = mw.estimate_shares(rule, score_of("new.csv")).to_dict()["outputs"][0]["shares"]
    assert document("shares", "rule.json", "new.npy")["outputs"][0]["shares"] == expected
    text = (folder / "new.csv").read_text()
    assert done("shares", "rule.json", "-", stdin=text).out == done("shares", "rule.json", "new.csv").out


def test_logits(folder):
    for name in ("oof", "new"):
        rows = read(f"{name}.csv")
        rows.assign(score=np.log(rows["score"] / (1 - rows["score"]))).to_csv(f"{name}.csv", index=False)
    rule = fit("--input", "logits")
    expected = mw.estimate_shares(rule, score_of("new.csv"))
    assert document("shares", "rule.json", "new.csv")["outputs"][0]["p_value"] == expected.p_value
    done("shares", "rule.json", "new.csv", "-o", "moved.json", "--adapt")
    assert mw.load_rule("moved.json") == rule.adapted(score_of("new.csv"))


# -------------------------------------------------------------------------------------------------------------- expect


@pytest.mark.parametrize("kind", KINDS)
def test_expected_values_are_those_of_python(tmp_path, fitted, kind):
    options, path = fitted[kind]
    labelled, new = table(kind, 400, seed=3)[0], shifted(kind, 300)
    sources = write(new, tmp_path / "new.csv"), write(labelled, tmp_path / "labelled.parquet")
    rule = mw.load_rule(path)
    expected = mw.expect(rule, arguments(kind, new)[0], reference=arguments(kind, labelled))
    report = document("expect", path, sources[0], "--reference", sources[1])
    assert report["metrics"] == {name: value.to_dict() for name, value in expected.items()}
    assert (report["rows"], report["reference_rows"], report["constraints"]) == (300, 400, {})
    assert report["notes"] == list(expected.notes)
    assert report["shares"][0]["shares"] == expected.shares.to_dict()["outputs"][0]["shares"]
    text = done("expect", path, sources[0], "--reference", sources[1], *options).out
    (value,) = expected.values()
    assert text.startswith("300 rows without labels, 400 with, 95 % intervals:\nmetric ")
    for estimate in (value, value.if_shares_moved, value.if_rows_moved):
        assert f"{estimate.estimate:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]" in text
    assert text.endswith(f"{expected.notes[-1]}\n")


def test_several_metrics_of_a_rule_by_hand(folder):
    rule = mw.WeightedRule.from_thresholds(0.4)
    rule.to_json("hand.json")
    labelled = read("labelled.csv")
    words = ["--reference", "labelled.csv", "-t", "fraud", "--proba", "score", "-m", "f1", "-m", "recall"]
    reference = labelled["score"].to_numpy(), labelled["fraud"].to_numpy()
    expected = mw.expect(rule, score_of("new.csv"), ["f1", "recall"], reference=reference)
    assert document("expect", "hand.json", "new.csv", *words)["metrics"] == expected.to_dict()


def test_constraints_are_expected_too(folder):
    rule = fit("--subject-to", "precision >= 0.4", metric="recall")
    labelled = read("labelled.csv")
    reference = labelled["score"].to_numpy(), labelled["fraud"].to_numpy()
    expected = mw.expect(rule, score_of("new.csv"), reference=reference)
    result = done("expect", "rule.json", "new.csv", "--reference", "labelled.csv")
    report = document("expect", "rule.json", "new.csv", "--reference", "labelled.csv")
    assert report["constraints"] == {"precision >= 0.4": expected.constraints["precision >= 0.4"].to_dict()}
    assert "\nprecision >= 0.4  " in result.out
    assert "This is no promise." in result.out


@pytest.mark.parametrize("kind", ["importance", "frequency"])
def test_weights_of_the_reference(folder, kind):
    rule = fit()
    rng = np.random.default_rng(5)
    labelled = read("labelled.csv").assign(times=rng.integers(1, 4, 500))
    labelled.to_csv("labelled.csv", index=False)
    weight = labelled["times"].to_numpy()
    weight = mw.Frequencies(weight) if kind == "frequency" else weight
    reference = labelled["score"].to_numpy(), labelled["fraud"].to_numpy(), weight
    expected = mw.expect(rule, score_of("new.csv"), reference=reference)
    words = ["--reference", "labelled.csv", "--weight", "times", "--weight-kind", kind]
    assert document("expect", "rule.json", "new.csv", *words)["metrics"] == expected.to_dict()


def test_costs_and_the_order_of_grades(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = ["low", "mid", "urgent"]
    write(table(MULTICLASS, 300)[0], tmp_path / "oof.csv")
    labelled, new = table(MULTICLASS, 320, seed=1)[0], table(MULTICLASS, 310, seed=2)[0]
    write(labelled, tmp_path / "labelled.csv"), write(new.drop(columns="truth"), tmp_path / "new.csv")
    costs = np.array([[0, 1, 2], [2, 0, 1], [9, 4, 0]])
    pd.DataFrame(costs, columns=labels).assign(true=labels)[["true", *labels]].to_csv("costs.csv", index=False)
    done("fit", "oof.csv", "-t", "truth", "-m", "macro_f1", "-o", "rule.json")
    words = ["expect", "rule.json", "new.csv", "--reference", "labelled.csv"]
    rule, reference = mw.load_rule("rule.json"), arguments(MULTICLASS, labelled)
    proba = arguments(MULTICLASS, new)[0]
    expected = mw.expect(rule, proba, mw.metrics.Cost(costs, classes=labels), reference=reference)
    assert document(*words, "-m", "cost", "--cost", "costs.csv")["metrics"] == expected.to_dict()
    expected = mw.expect(rule, proba, "quadratic_kappa", reference=reference, order=labels)
    assert document(*words, "-m", "quadratic_kappa", "--order", "low,mid,urgent")["metrics"] == expected.to_dict()
    expected = mw.expect(rule, proba, "recall", reference=reference, pos_label="urgent")
    assert document(*words, "-m", "recall", "--pos-label", "urgent")["metrics"] == expected.to_dict()


def test_tables_of_two_formats_and_one_separator(folder):
    fit()
    read("labelled.csv").to_parquet("labelled.parquet")
    read("new.csv").to_csv("semicolons.csv", sep=";", index=False)
    expected = done("expect", "rule.json", "new.csv", "--reference", "labelled.csv").out
    words = ["expect", "rule.json", "semicolons.csv", "--reference", "labelled.parquet", "--separator", ";"]
    assert done(*words).out == expected
    text = (folder / "new.csv").read_text()
    assert done("expect", "rule.json", "-", "--reference", "labelled.csv", stdin=text).out == expected


# -------------------------------------------------------------------------------------------------------------- errors

WRONG = {
    "shares rule.json new.csv --adapt": "--adapt needs --output, which is not given; pass it, or leave out --adapt.",
    "shares rule.json new.csv --cost c.csv": "--cost needs --adapt, which is not given; pass it, or leave out --cost.",
    "shares rule.json new.csv -o new.json --adapt --cost c.csv": "--cost is only for rules fitted for the cost, not "
    "for f1; leave it out.",
    "shares rule.json few.csv -o new.json --adapt": "--adapt needs at least 1,000 rows, because fewer say too little "
    "about the best rule, got 999; leave it out to move the rule by Bayes' rule.",
    "shares rule.json new.csv -o rule.json": "rule.json: the file exists; choose another name, or use --force to "
    "overwrite it.",
    "shares rule.json new.csv -o nowhere/new.json": "there is no folder",
    "shares rule.json new.csv -o - --json": "--json and --output - both write to the standard output; pass a file to "
    "--output.",
    "shares hand.json new.csv --proba score": "hand.json: the rule keeps no calibration of the rows that it was "
    "fitted to; rules by hand and files of earlier versions have none; fit it again with metricwise fit.",
    "shares grouped.json new.csv": "grouped.json: the rule decides by sensitive group, and how the class shares of "
    "each group move is not known; fit a rule without groups, or one for each group.",
    "shares rule.json new.csv --sensitive-features id": "--sensitive-features is only for rules by group, and this "
    "rule is not one; leave it out.",
    "shares rule.json empty.csv": "there are no rows",
    "shares rule.json nowhere.csv": "nowhere.csv: no such file or directory.",
    "shares rule.json new.csv --input logits": "--input must be probabilities, which the rule was fitted to, got "
    "logits; leave it out.",
    "shares rule.json other.csv": "there is no column 'score', which the rule was fitted to",
    "expect rule.json new.csv": "missing option '--reference'; see metricwise expect --help.",
    "expect rule.json new.csv --reference new.csv": "--reference must be another table than that of the rows without "
    "labels, got new.csv for both; if its rows have labels, use metricwise evaluate.",
    "expect rule.json - --reference -": "the table and --reference cannot both be read from the standard input; pass a "
    "file to one of them.",
    "expect rule.json new.csv --reference same.csv": "same.csv: name the column of labels: --target COLUMN.",
    "expect rule.json new.csv --reference same.csv -t fraud": "same.csv: there is no column 'fraud'",
    "expect rule.json new.csv --reference nowhere.csv": "nowhere.csv: no such file or directory.",
    "expect rule.json empty.csv --reference labelled.csv": "there are no rows",
    "expect rule.json new.csv --reference one.csv": "must have at least two classes, got only 0",
    "expect rule.json new.csv --reference labelled.csv -m fone": "--metric: 'fone' is not known; see metricwise "
    "metrics.",
    "expect rule.json new.csv --reference labelled.csv -m cost": "--metric cost needs --cost FILE",
    "expect rule.json new.csv --reference labelled.csv --cost c.csv": "--cost is only for the metric cost",
    "expect rule.json new.csv --reference labelled.csv --abstain 0.2": "--abstain is only for rules that may abstain",
    "expect rule.json new.csv --reference labelled.csv --weight-kind frequency": "--weight-kind needs --weight",
    "expect rule.json new.csv --reference labelled.csv --groups id": "no such option: --groups",
    "expect rule.json new.csv --reference labelled.csv --average instance -m f1": "average",
    "expect grouped.json new.csv --reference labelled.csv": "grouped.json: the rule decides by sensitive group",
    "expect hand.json new.csv --reference labelled.csv -t fraud --proba score": "the rule does not name the metric "
    "that it was fitted for; pass --metric.",
}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A folder with rules and tables of all kinds."""
    folder = tmp_path_factory.mktemp("wrong")
    frame, options = table(SINGLE, 300)
    source = write(frame, folder / "oof.csv")
    done("fit", source, *options, "-m", "f1", "-o", folder / "rule.json")
    mw.WeightedRule.from_thresholds(0.4).to_json(folder / "hand.json")
    groups = {"sensitive_features": worlds.draw_codes(np.full((300, 2), 0.5), np.random.default_rng(0))}
    grouped = mw.optimize(frame["score"], frame["fraud"], "accuracy", subject_to="demographic_parity <= 0.5", **groups)
    grouped.rule.to_json(folder / "grouped.json")
    new = shifted(SINGLE, 1200)
    write(new.drop(columns="fraud"), folder / "new.csv")
    write(new.iloc[:999], folder / "few.csv")
    write(new.drop(columns="fraud").iloc[:0], folder / "empty.csv")
    write(new.rename(columns={"score": "p"}), folder / "other.csv")
    write(new.assign(fraud=0), folder / "one.csv")
    write(table(SINGLE, 300, seed=4)[0], folder / "labelled.csv")
    write(table(SINGLE, 300, seed=5)[0].drop(columns="fraud"), folder / "same.csv")
    pd.DataFrame({"true": [0, 1], "0": [0, 7], "1": [1, 0]}).to_csv(folder / "c.csv", index=False)
    return folder


@pytest.mark.parametrize("line", WRONG)
def test_one_sentence_and_nothing_written(wrong, monkeypatch, line):
    monkeypatch.chdir(wrong)
    before = {path: path.read_bytes() for path in wrong.iterdir()}
    result = run(*line.split())
    assert result.code == 2, result.out + result.err
    assert result.out == ""
    *notes, sentence = result.err.splitlines()
    assert all(
        sentence.startswith(("metricwise: labels", "metricwise: metric", "metricwise: prob")) for sentence in notes
    )
    assert WRONG[line] in sentence
    assert {path: path.read_bytes() for path in wrong.iterdir()} == before
