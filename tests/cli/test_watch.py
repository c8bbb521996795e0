"""The command that watches a rule: states, labels that come late, exit codes, and errors that leave the state alone."""

import json

import numpy as np
import pandas as pd
import pytest

import metricwise as mw
from cli.shared import MULTILABEL, OUTPUTS, document, done, run, table, write

KEPT, BAD, BROKEN = 0, 2, 4


def day(number, good=1.0, n_rows=150):
    rng = np.random.default_rng(number)
    score = rng.beta(1, 2, n_rows)
    fraud = (rng.random(n_rows) < good * score).astype(int)
    return pd.DataFrame({"id": [f"{number}-{row}" for row in range(n_rows)], "score": score, "fraud": fraud})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    day(0, n_rows=3000).to_csv("oof.csv", index=False)
    options = ["--target", "fraud", "--proba", "score", "--metric", "recall", "--subject-to", "precision >= 0.55"]
    done("fit", "oof.csv", *options, "-o", "rule.json")
    return tmp_path


STATE = ["--id", "id", "--state", "watch.json"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_days_one_after_another(folder, suffix):
    codes = []
    for number in range(1, 16):
        path = write(day(number, 1.0 if number < 8 else 0.5), folder / f"day{suffix}")
        result = run("watch", "rule.json", path, *STATE)
        codes.append(result.code)
    assert codes[0] == KEPT
    first = codes.index(BROKEN)
    assert 7 <= first < 14
    assert set(codes[first:]) == {BROKEN}
    assert "Broken: precision >= 0.55" in result.out
    assert "150 rows added from" in result.err
    watch = mw.load_watch(folder / "watch.json")
    assert (watch.n_batches, watch.broken) == (15, True)


def test_the_same_as_in_python(folder):
    watch = mw.watch(folder / "rule.json", ["precision >= 0.55", "kappa >= 0.1"], alpha=0.1)
    options = ["--subject-to", "precision >= 0.55", "--subject-to", "kappa >= 0.1", "--alpha", "0.1"]
    for number in (1, 2):
        rows = day(number)
        rows["fraud"] = rows["fraud"].astype(float).where(rows["score"] < 0.9)
        done("watch", "rule.json", write(rows, folder / "day.csv"), *STATE, *options)
        watch.update(rows["score"].to_numpy(), rows["fraud"], rows["id"])
    assert json.loads((folder / "watch.json").read_text()) == json.loads(watch.to_json())


def test_labels_that_come_late(folder):
    rows = day(1)
    write(rows.drop(columns="fraud"), folder / "day.parquet")
    assert "150 of which wait for their labels" in done("watch", "rule.json", "day.parquet", *STATE).out
    write(rows[["id", "fraud"]].iloc[:100], folder / "labels.csv")
    result = done("watch", "rule.json", "--labels", "labels.csv", *STATE)
    assert "100 labels added from labels.csv." in result.err
    both = day(2)
    write(both.drop(columns="fraud"), folder / "day2.csv")
    write(pd.concat([rows[["id", "fraud"]].iloc[100:], both[["id", "fraud"]].iloc[:1]]), folder / "labels2.csv")
    found = document("watch", "rule.json", "day2.csv", "--labels", "labels2.csv", *STATE)
    assert (found["batches"], found["rows"], found["labelled_rows"], found["waiting"]) == (4, 300, 151, 149)


def test_one_object_and_a_page(folder):
    write(day(1), folder / "day.csv")
    found = document("watch", "rule.json", "day.csv", *STATE, "--report", "watch.html")
    assert found["state"] == "watch.json"
    assert found["broken"] is False
    (promise,) = found["promises"]
    assert promise["name"] == "precision >= 0.55"
    assert "values" not in promise
    assert "history" not in found
    assert "No sign that a promise is broken." in (folder / "watch.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [OUTPUTS, MULTILABEL])
def test_several_outputs(kind, tmp_path):
    frame, options = table(kind)
    path = write(frame, tmp_path / "rows.parquet")
    metric = ["--metric", "accuracy" if kind == OUTPUTS else "f1", "--average", "macro"]
    done("fit", path, *options, *metric, "-o", tmp_path / "rule.json")
    bound = "recall[spam, yes] >= 0.01" if kind == OUTPUTS else "recall[news, 1] >= 0.01"
    columns = [option for option in options if option.startswith("--proba") or option == "p_"]
    found = document(
        "watch", tmp_path / "rule.json", path, *columns, "--subject-to", bound, "--state", tmp_path / "w.json"
    )
    assert found["labelled_rows"] == len(frame)
    assert 0 < found["promises"][0]["estimate"]["estimate"] <= 1


def test_errors_leave_the_state_alone(folder):
    write(day(1), folder / "day.csv")
    done("watch", "rule.json", "day.csv", *STATE)
    before = (folder / "watch.json").read_bytes()
    write(day(2).assign(fraud="x"), folder / "bad.csv")
    write(day(2).drop(columns="score"), folder / "no_scores.csv")
    write(day(2)[["id"]], folder / "no_labels.csv")
    write(day(2)[["id", "fraud"]], folder / "unknown.csv")
    write(day(2).assign(id=0.5), folder / "float_ids.parquet")
    write(day(2).assign(id="same"), folder / "same_ids.csv")
    (folder / "other.json").write_text(mw.WeightedRule.from_thresholds(0.5).to_json(), encoding="utf-8")
    cases = [
        (["rule.json", "day.csv", *STATE], "--id must be of rows that were not decided before, got '1-0'"),
        (["rule.json", "bad.csv", *STATE], "must hold only the classes"),
        (["rule.json", "no_scores.csv", *STATE], "there is no column 'score'"),
        (["rule.json", *STATE], "there is nothing to add; pass a table of rows, or --labels TABLE"),
        (["rule.json", "--labels", "unknown.csv", *STATE], "--id must be of rows that wait for their labels"),
        (["rule.json", "--labels", "no_labels.csv", *STATE], "name the column of labels: --target COLUMN"),
        (["rule.json", "--labels", "unknown.csv", "--state", "watch.json"], "--labels needs --id"),
        (["rule.json", "float_ids.parquet", *STATE], "--id must name a column of texts or integers"),
        (["rule.json", "same_ids.csv", *STATE], "--id must be distinct, got 'same' twice"),
        (["other.json", "day.csv", *STATE], "this watch was begun with another rule"),
        (["rule.json", "day.csv", *STATE, "--alpha", "0.2"], "this watch was begun with --alpha 0.05"),
        (["rule.json", "day.csv", *STATE, "--subject-to", "recall >= 0.5"], "was begun with the promises ['precision"),
        (["rule.json", "day.csv", "--id", "id", "--state", "rule.json"], "this is not the state of a watch"),
        (["rule.json", "day.csv", "--state", "no/folder/watch.json"], "no folder"),
    ]
    for words, message in cases:
        result = run("watch", *words)
        assert result.code == BAD, (words, result.out)
        assert message in result.err, result.err
        assert (folder / "watch.json").read_bytes() == before


def test_options_of_the_first_day_may_be_repeated(folder):
    options = ["--subject-to", "recall[1] >= 0.01", "--alpha", "0.1", "--labelled", "by_class", "--forget-after", "3"]
    for number in (1, 2):
        write(day(number), folder / "day.csv")
        done("watch", "rule.json", "day.csv", *STATE, *options)
    watch = mw.load_watch(folder / "watch.json")
    assert (watch.alpha, watch.labelled, watch.forget_after, watch.n_batches) == (0.1, "by_class", 3, 2)


def test_labels_of_some_decisions_alone_are_refused(folder):
    rows = day(1, n_rows=600)
    rows["fraud"] = rows["fraud"].astype(float).where(rows["score"] > 0.5)
    write(rows, folder / "day.csv")
    words = ["watch", "rule.json", "day.csv", "--state", "watch.json", "--subject-to"]
    result = run(*words, "accuracy >= 0.5")
    assert result.code == BAD
    assert "set --labelled by_decision if whether a label becomes known depends on the decision" in result.err
    assert not (folder / "watch.json").exists()
    done(*words, "precision >= 0.3", "--labelled", "by_decision")
    result = run(*words, "recall >= 0.3", "--labelled", "by_decision", "--state", "other.json")
    assert "'recall >= 0.3' cannot be known" in result.err


def test_text_classes_and_the_positive_one(folder):
    rows = day(1, n_rows=400)
    rows["fraud"] = np.where(rows["fraud"] == 1, "yes", "no")
    write(rows, folder / "words.csv")
    done(
        "fit",
        "words.csv",
        "--target",
        "fraud",
        "--proba",
        "score",
        "--pos-label",
        "yes",
        "--metric",
        "f1",
        "-o",
        "w.json",
    )
    found = document(
        "watch", "w.json", "words.csv", "--state", "s.json", "--subject-to", "precision >= 0.1", "--pos-label", "no"
    )
    decided = mw.load_rule(folder / "w.json").predict(rows["score"].to_numpy())
    assert found["promises"][0]["estimate"]["estimate"] == pytest.approx(
        np.mean(rows["fraud"][decided == "no"] == "no")
    )
