"""Sensitive groups on the command line: what Python finds, and sentences where that cannot be."""

import numpy as np
import pandas as pd
import pytest

import metricwise as mw
import worlds
from cli.shared import done, run

PROMISE = "demographic_parity <= 0.1"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    p, y = worlds.binary(240, b=2, decimals=4, names=["no", "yes"], seed=rng)
    frame = pd.DataFrame({"p_yes": p, "y": y})
    frame["sex"] = np.where(rng.random(240) < 0.4 + 0.4 * p, "f", "m")
    folder = tmp_path_factory.mktemp("groups")
    frame.to_csv(folder / "rows.csv", index=False)
    return frame, folder


@pytest.fixture(scope="module")
def fitted(rows):
    _, folder = rows
    words = ["--target", "y", "--proba", "p_yes", "--pos-label", "yes", "--metric", "accuracy", "--confidence", "none"]
    words = ["fit", folder / "rows.csv", *words, "--subject-to", PROMISE]
    done(*words, "--sensitive-features", "sex", "-o", folder / "rule.json")
    done(*words, "--sensitive-features", "sex", "--group-blind", "-o", folder / "blind.json")
    return words


def test_fit_apply_and_evaluate(rows, fitted):
    frame, folder = rows
    rule = mw.load_rule(folder / "rule.json")
    assert isinstance(rule, mw.GroupedRule)
    assert rule.features == ("sex",)
    proba = frame["p_yes"].to_numpy()
    ours = mw.optimize(
        proba,
        frame["y"],
        "accuracy",
        subject_to=PROMISE,
        sensitive_features=frame[["sex"]],
        confidence=None,
        pos_label="yes",
    ).rule
    assert rule == ours
    done("apply", folder / "rule.json", folder / "rows.csv", "-o", folder / "out.csv")
    assert (
        pd.read_csv(folder / "out.csv")["y"].tolist() == ours.predict(proba, sensitive_features=frame["sex"]).tolist()
    )
    assert "accuracy" in done("evaluate", folder / "rule.json", folder / "rows.csv").out
    other = ["--against", folder / "blind.json"]
    assert "accuracy" in done("compare", folder / "rule.json", folder / "rows.csv", *other).out
    assert not isinstance(mw.load_rule(folder / "blind.json"), mw.GroupedRule)


def test_columns_by_another_name(rows, fitted):
    frame, folder = rows
    frame.rename(columns={"sex": "gender"}).to_csv(folder / "other.csv", index=False)
    asked = run("apply", folder / "rule.json", folder / "other.csv", "-o", "-")
    assert asked.code != 0
    assert "name its column: --sensitive-features" in asked.err
    words = ["apply", folder / "rule.json", folder / "other.csv", "--sensitive-features", "gender"]
    decided = (
        mw.load_rule(folder / "rule.json").predict(frame["p_yes"].to_numpy(), sensitive_features=frame["sex"]).tolist()
    )
    assert done(*words, "-o", "-").out.split()[1:] == decided


def test_refusals(rows, fitted):
    _, folder = rows
    table = folder / "rows.csv"
    blind = run(*fitted[:-2], "--group-blind", "-o", folder / "no.json")
    named = run("apply", folder / "blind.json", table, "--sensitive-features", "sex", "-o", "-")
    absent = run(*fitted, "--sensitive-features", "age", "-o", folder / "no.json")
    page = run("report", folder / "rule.json", table, "-o", folder / "page.html")
    for asked, words in (
        (blind, "--group-blind needs --sensitive-features"),
        (named, "is only for rules by group"),
        (absent, "age"),
        (page, "can only be reported in Python"),
    ):
        assert asked.code != 0
        assert words in " ".join(asked.err.split())
    assert not (folder / "no.json").exists()
    assert not (folder / "page.html").exists()


def test_rows_of_other_groups(rows, fitted):
    frame, folder = rows
    new = frame.assign(sex=np.resize(["f", "x", "m", ""], len(frame)))
    new.to_csv(folder / "new.csv", index=False)
    words = [*fitted, "--sensitive-features", "sex"]
    done(*words, "--unknown-group", "blind", "-o", folder / "any.json")
    rule = mw.load_rule(folder / "any.json")
    done("apply", folder / "any.json", folder / "new.csv", "-o", folder / "any.csv")
    groups = new["sex"].replace({"": None})
    assert (
        pd.read_csv(folder / "any.csv")["y"].tolist()
        == rule.predict(frame["p_yes"].to_numpy(), sensitive_features=groups).tolist()
    )
    assert "accuracy" in done("evaluate", folder / "any.json", folder / "new.csv").out
    assert "In any other group" in done("explain", folder / "any.json").out
    assert "use mw" not in run("apply", folder / "rule.json", folder / "new.csv").err
    done(*words, "--unknown-group", "abstain", "--abstain", "0.3", "-o", folder / "asking.json")
    done("apply", folder / "asking.json", folder / "new.csv", "-o", folder / "asking.csv")
    assert (pd.read_csv(folder / "asking.csv")["y"][1::4] == "abstain").all()


def test_numbers_of_groups_beside_others(rows, fitted):
    frame, folder = rows
    frame.assign(sex=frame["sex"].map({"f": 1, "m": 2})).to_csv(folder / "numbers.csv", index=False)
    words = [fitted[0], folder / "numbers.csv", *fitted[2:], "--sensitive-features", "sex", "--unknown-group", "blind"]
    done(*words, "-o", folder / "numbers.json")
    new = frame.assign(sex=np.resize(["1", "x", "2"], len(frame)))
    new.to_csv(folder / "new.csv", index=False)
    done("apply", folder / "numbers.json", folder / "new.csv", "-o", folder / "numbers_out.csv")
    groups = new["sex"].map({"1": 1, "2": 2, "x": 3})
    expected = mw.load_rule(folder / "numbers.json").predict(
        frame["p_yes"].to_numpy(), sensitive_features=groups.to_numpy()
    )
    assert pd.read_csv(folder / "numbers_out.csv")["y"].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--unknown-group", "blind"], "--unknown-group needs --sensitive-features"),
        (["--sensitive-features", "sex", "--unknown-group", "guess"], "must be refuse, abstain or blind, got 'guess'"),
        (["--sensitive-features", "sex", "--group-blind", "--unknown-group", "blind"], "left out with --group-blind"),
        (
            ["--sensitive-features", "sex", "--unknown-group", "abstain"],
            "--unknown-group abstain needs a rule that may",
        ),
    ],
)
def test_unknown_groups_that_cannot_be(rows, fitted, more, said):
    result = run(*fitted, *more, "-o", rows[1] / "never.json")
    assert result.code == 2
    assert said in result.err
    assert "abstain=" not in result.err
