"""Advice on the command line: options that a message names are those of the command, and none of it is Python."""

import re

import numpy as np
import pandas as pd
import pytest
import typer

from cli.shared import done, run
from metricwise.cli.app import app

COMMANDS = typer.main.get_command(app).commands


def options_of(command):
    return {option for parameter in COMMANDS[command].params for option in parameter.opts}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2.0, 1.0, 1.0], 150)
    y = np.array(["a", "b", "c"])[(p.cumsum(axis=1)[:, :-1] < rng.random((150, 1))).sum(axis=1)]
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
    done("fit", "rows.csv", "-t", "truth", "-m", "macro_f1", "-o", "rule.json")
    return tmp_path


LINES = [
    *(f"fit {table}.csv -t truth -m accuracy -o new.json" for table in ("scores", "other", "lacking", "semicolons")),
    *(f"apply rule.json {table}.csv" for table in ("scores", "other", "lacking", "semicolons", "binary")),
    *(f"evaluate rule.json {table}.csv -t truth" for table in ("scores", "other", "lacking", "semicolons", "binary")),
    *(
        f"trade-off {table}.csv -t truth -m accuracy --against min_recall"
        for table in ("scores", "other", "semicolons")
    ),
    "fit binary.csv -t truth -m f1 -o new.json",
    "fit rows.csv -t truth -m f1 -o new.json",
    "fit rows.csv -t truth -m quadratic_kappa -o new.json",
    "fit rows.csv -t truth -m accuracy --abstain yes -o new.json",
    "fit rows.csv -t truth -m accuracy --abstain-label none -o new.json",
    "fit rows.csv -t truth -m accuracy --confidence 2 -o new.json",
    "evaluate rule.json rows.csv -t truth -m f1",
]


@pytest.mark.parametrize("line", LINES)
def test_options_in_messages_are_those_of_the_command(folder, line):
    command, *_ = words = line.split()
    result = run(*words)
    assert result.code == 2, result.out
    advised = set(re.findall(r"--[a-z][a-z-]*", result.err))
    assert advised <= options_of(command), result.err
    assert not re.search(r"\bmw\.|metrics\.\w|\b[a-z_]+=(?!\w)", result.err), result.err


def test_a_table_without_the_columns_that_a_rule_was_fitted_to(folder):
    said = run("apply", "rule.json", "other.csv").err
    assert "other.csv: there is no column 'a', 'b', 'c', which the rule was fitted to; the columns are 'x', 'y'" in said
    assert "set --proba-prefix" in said
    done("apply", "rule.json", "prefix.csv", "--proba-prefix", "p_")
