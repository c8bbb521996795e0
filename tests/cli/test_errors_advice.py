"""Advice on the command line: options that a message names are those of the command, and none of it is Python."""

import contextlib
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import metricwise as mw
import worlds
from cli.shared import document, done, run
from metricwise.cli.app import app

COMMANDS = typer.main.get_command(app).commands


def options_of(command):
    return {option for parameter in COMMANDS[command].params for option in parameter.opts}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Tables, and a rule that was fitted to one of them."""
    with contextlib.chdir(tmp_path_factory.mktemp("files")):
        write_files()
        return Path.cwd()


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    """A copy of the files, to work in."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def write_files():
    p, y = worlds.multiclass(150, [2.0, 1.0, 1.0], names=["a", "b", "c"])
    rows = pd.DataFrame(p, columns=list("abc")).assign(truth=y, id=np.arange(150))
    rows.to_csv("rows.csv", index=False)
    rows.assign(a=3 * p[:, 0], b=3 * p[:, 1], c=3 * p[:, 2]).to_csv("scores.csv", index=False)
    rows.rename(columns={"a": "x", "b": "y", "c": "z"}).to_csv("other.csv", index=False)
    rows.drop(columns="c").to_csv("lacking.csv", index=False)
    rows.to_csv("semicolons.csv", index=False, sep=";")
    rows.assign(p_a=p[:, 0], p_b=p[:, 1], p_c=p[:, 2]).drop(columns=list("abc")).to_csv("prefix.csv", index=False)
    rows.assign(truth=(y == "a").astype(int)).rename(columns={"a": "p"})[["p", "truth"]].to_csv(
        "binary.csv", index=False
    )
    write_costs(COSTS.assign(abstain=0.25))
    done("fit", "rows.csv", "-t", "truth", "-m", "macro_f1", "-o", "rule.json")


LINES = [
    *(f"fit {table}.csv -t truth -m accuracy -o new.json" for table in ("scores", "other", "lacking", "semicolons")),
    *(f"apply rule.json {table}.csv" for table in ("scores", "other", "lacking", "semicolons", "binary")),
    *(f"evaluate rule.json {table}.csv -t truth" for table in ("scores", "other", "lacking", "semicolons", "binary")),
    *(f"shares rule.json {table}.csv" for table in ("scores", "other", "lacking", "semicolons", "binary")),
    *(f"expect rule.json {table}.csv --reference rows.csv" for table in ("scores", "other", "lacking", "binary")),
    *(
        f"trade-off {table}.csv -t truth -m accuracy --against min_recall"
        for table in ("scores", "other", "semicolons")
    ),
    "fit binary.csv -t truth -m f1 -o new.json",
    "fit rows.csv -t truth -m f1 -o new.json",
    "fit rows.csv -t truth -m quadratic_kappa -o new.json",
    "fit rows.csv -t truth -m f1@3 -o new.json",
    "fit rows.csv -t truth -m accuracy --abstain yes -o new.json",
    "fit rows.csv -t truth -m accuracy --abstain-label none -o new.json",
    "fit rows.csv -t truth -m accuracy --confidence 2 -o new.json",
    "fit rows.csv -t truth -m cost --cost costs.csv -o new.json",
    "fit rows.csv -t truth -m accuracy --subject-to demographic_parity<=0.1 -o new.json",
    "evaluate rule.json rows.csv -t truth -m f1",
    "evaluate rule.json rows.csv -t truth -m cost",
    "shares rule.json rows.csv -o new.json --adapt",
    "shares rule.json rows.csv --cost costs.csv",
    "expect rule.json other.csv --reference other.csv",
    "expect rule.json other.csv --reference rows.csv -m f1",
    "expect rule.json other.csv --reference rows.csv -m cost",
]


@pytest.mark.parametrize("line", LINES)
def test_options_in_messages_are_those_of_the_command(folder, line):
    command, *_ = words = line.split()
    result = run(*words)
    assert result.code == 2, result.out
    advised = set(re.findall(r"--[a-z][a-z-]*", result.err))
    assert advised <= options_of(command), result.err
    assert not re.search(r"\bmw\.|metrics\.\w|(?<!')\b[a-z_]+=", result.err), result.err


def test_a_table_without_the_columns_that_a_rule_was_fitted_to(folder):
    said = run("apply", "rule.json", "other.csv").err
    assert "other.csv: there is no column 'a', 'b', 'c', which the rule was fitted to; the columns are 'x', 'y'" in said
    assert "set --proba-prefix" in said
    done("apply", "rule.json", "prefix.csv", "--proba-prefix", "p_")


def test_columns_that_may_be_those_of_a_rule_are_asked_about(folder):
    rows = pd.read_csv("rows.csv")
    both = [rows[list("abc")].add_prefix(prefix) for prefix in ("old_", "new_")]
    pd.concat(both, axis=1).to_csv("both.csv", index=False)
    said = run("apply", "rule.json", "both.csv").err
    assert "may be in the columns that begin with 'new_' or 'old_'; choose one with --proba-prefix" in said


# ------------------------------------------------------------------------------------------------------------- costs

COSTS = pd.DataFrame([[0.0, 1.0, 2.0], [5.0, 0.0, 1.0], [9.0, 3.0, 0.0]], index=list("abc"), columns=list("abc"))


def write_costs(frame=COSTS, path="costs.csv", **options):
    frame.rename_axis("true").to_csv(path, **options)


def test_a_table_of_costs_in_any_order_of_rows_and_columns(folder):
    write_costs(COSTS.loc[["c", "a", "b"], ["b", "c", "a"]])
    words = ["-t", "truth", "-m", "cost", "--cost", "costs.csv"]
    done("fit", "rows.csv", *words, "--record", "accuracy", "-o", "cheap.json")
    rows = pd.read_csv("rows.csv")
    proba, y = rows[list("abc")], rows["truth"]
    expected = mw.optimize(proba, y, mw.metrics.Cost(COSTS.to_numpy())).rule
    rule = mw.load_rule("cheap.json")
    assert (rule.predict(proba) == expected.predict(proba)).all()
    done("apply", "cheap.json", "rows.csv", "-o", "decided.csv")
    decided = pd.read_csv("decided.csv")["truth"]
    mean = np.mean([COSTS.loc[true, said] for true, said in zip(y, decided, strict=True)])
    report = document("evaluate", "cheap.json", "rows.csv", *words)
    assert report["metrics"]["cost"]["value"] == pytest.approx(-mean)
    document("trade-off", "rows.csv", *words, "--against", "accuracy")
    document("trade-off", "rows.csv", "-t", "truth", "-m", "accuracy", "--against", "cost", "--cost", "costs.csv")


def test_a_table_of_costs_with_that_of_abstaining(folder):
    write_costs(COSTS.assign(abstain=0.25))
    done("fit", "rows.csv", "-t", "truth", "-m", "cost", "--cost", "costs.csv", "--abstain", "yes", "-o", "new.json")
    rows = pd.read_csv("rows.csv")
    table = mw.metrics.Cost(COSTS.assign(abstain=0.25).to_numpy())
    expected = mw.optimize(rows[list("abc")], rows["truth"], table, abstain=True).rule
    assert (mw.load_rule("new.json").predict(rows[list("abc")]) == expected.predict(rows[list("abc")])).all()


def test_costs_of_classes_that_are_numbers(folder):
    rows = pd.read_csv("rows.csv")
    rows.assign(truth=rows["truth"].map({"a": 1, "b": 2, "c": 3})).rename(
        columns={"a": "1", "b": "2", "c": "3"}
    ).to_csv("numbers.csv", index=False)
    write_costs(COSTS.set_axis([1, 2, 3]).set_axis([1, 2, 3], axis=1))
    done("fit", "numbers.csv", "-t", "truth", "-m", "cost", "--cost", "costs.csv", "-o", "new.json")
    assert mw.load_rule("new.json").classes[0].tolist() == [1, 2, 3]


FIT = ["fit", "rows.csv", "-t", "truth", "-o", "new.json"]


@pytest.mark.parametrize(
    ("frame", "words", "said"),
    [
        (COSTS, ["-m", "cost"], "--metric cost needs --cost FILE, a table with a row for each true class"),
        (COSTS, ["-m", "accuracy", "--cost", "costs.csv"], "--cost is only for the metric cost; pass --metric cost"),
        (COSTS, ["-m", "fbeta"], "'fbeta' needs beta, which can only be given in Python; use f2, f0.5"),
        (COSTS, ["-m", "weighted_accuracy"], "needs class_weight, which can only be given in Python"),
        (
            COSTS.drop(index="b"),
            None,
            "costs.csv: there is no row of costs for the class 'b'; there are rows for 'a', 'c'",
        ),
        (
            COSTS.drop(columns="c"),
            None,
            "there is no column of costs for the class 'c'; there are columns for 'a', 'b'",
        ),
        (COSTS.assign(x=1, z=2), None, "at most one more with the cost of abstaining, got also 'x', 'z'"),
        (COSTS.assign(x=1), None, "the cost of abstaining, but the rule may not abstain; set --abstain yes"),
        (pd.concat([COSTS, COSTS]), None, "every class must have one row of costs, got 'a' twice"),
        (COSTS.assign(b="much"), None, "the column 'b' must hold numbers, got 'much' in row 0"),
    ],
)
def test_wrong_tables_of_costs(folder, frame, words, said):
    write_costs(frame)
    result = run(*FIT, *(["-m", "cost", "--cost", "costs.csv"] if words is None else words))
    assert result.code == 2
    assert said in result.err
    assert set(re.findall(r"--[a-z][a-z-]*", result.err)) <= options_of("fit")
