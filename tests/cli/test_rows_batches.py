"""Tables larger than the memory limit: the same rule and decisions as smaller ones, read in batches unasked."""

import numpy as np
import pandas as pd
import pytest

import worlds
from cli.shared import document, done, run
from metricwise.cli import rows as cli_rows


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.4, 0.7, 1.0], 300).round(4)
    p /= p.sum(axis=1, keepdims=True)
    y = worlds.draw_codes(p, rng)
    table = pd.DataFrame(p, columns=["p_high", "p_low", "p_mid"]).assign(
        grade=np.array(["high", "low", "mid"])[y], id=np.arange(300), w=rng.integers(1, 3, 300)
    )
    for ending, write in {"csv": lambda path: table.to_csv(path, index=False), "parquet": table.to_parquet}.items():
        write(tmp_path / f"rows.{ending}")
    return tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_fit_and_apply_are_those_of_small_tables(rows, ending, monkeypatch):
    table = rows / f"rows.{ending}"
    fit = ["fit", table, "-t", "grade", "--metric", "macro_f1", "--weight", "w", "--force", "-o"]
    apply = ["apply", "RULE", table, "--keep", "id", "--force", "-o"]
    small = document(*fit, rows / "small.json")
    decided = document(*[rows / "small.json" if word == "RULE" else word for word in apply], rows / f"small.{ending}")
    monkeypatch.setattr(cli_rows, "MEMORY_LIMIT", 1000)
    big = document(*fit, rows / "big.json")
    assert big["value"] == pytest.approx(small["value"], abs=1e-12)
    again = document(*[rows / "big.json" if word == "RULE" else word for word in apply], rows / f"big.{ending}")
    assert {**again, "output": None} == {**decided, "output": None}
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    pd.testing.assert_frame_equal(read(rows / f"big.{ending}"), read(rows / f"small.{ending}"))
    assert "read in batches" in done(*fit, rows / "big.json").err


def test_options_mean_the_same(rows, monkeypatch):
    monkeypatch.setattr(cli_rows, "MEMORY_LIMIT", 1000)
    table = rows / "rows.parquet"
    words = ["fit", table, "-t", "grade", "--metric", "recall", "--force", "-o", rows / "rule.json"]
    assert document(*words, "--pos-label", "mid", "--classes", "mid,low,high")["value"] > 0
    assert "InTime needs all rows in memory" in run(*words[:-3], "--pos-label", "mid", "--time", "id", *words[-3:]).err
    assert "name the column of labels" in run("fit", table, "--metric", "recall", "-o", rows / "x.json").err
    assert "there is no column 'stars'" in run("fit", table, "-t", "stars", "-m", "f1", "-o", rows / "x.json").err
    assert not (rows / "x.json").exists()
    # Decisions to the standard output, or as an array, are made in memory.
    assert done("apply", rows / "rule.json", table).out.count("\n") == 301


@pytest.mark.parametrize("options", [[], ["--keep-all"], ["--keep", "p"], ["--proba", "p", "--keep-all"]])
def test_apply_finds_the_columns_that_it_finds_in_small_tables(rows, options, monkeypatch):
    p = np.random.default_rng(0).random(300)
    pd.DataFrame({"id": np.arange(300), "p": p, "fraud": (p > 0.4).astype(int)}).to_parquet(rows / "one.parquet")
    done("fit", rows / "one.parquet", "-t", "fraud", "--proba", "p", "-m", "f1", "-o", rows / "rule.json")
    words = ["apply", rows / "rule.json", rows / "one.parquet", "--column", "decided", *options, "-o"]
    done(*words, rows / "small.parquet")
    monkeypatch.setattr(cli_rows, "MEMORY_LIMIT", 1000)
    assert "in batches" in done(*words, rows / "big.parquet").err
    pd.testing.assert_frame_equal(pd.read_parquet(rows / "big.parquet"), pd.read_parquet(rows / "small.parquet"))
