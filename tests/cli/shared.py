"""Tables to try commands on, and how commands are run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from metricwise.cli.app import app
from worlds import draw_codes

SINGLE, MULTICLASS, OUTPUTS, MULTILABEL = "single column", "multiclass", "several outputs", "multilabel"
KINDS = (SINGLE, MULTICLASS, OUTPUTS, MULTILABEL)

# Versions of pandas before 3.1 read some numbers with an error in the last digit; later ones warn of the option.
EXACTLY = {} if [int(part) for part in pd.__version__.split(".")[:2]] >= [3, 1] else {"float_precision": "round_trip"}


def run(*words, stdin=None):
    """Run a command in this process; `code`, `out` and `err` are what became of it."""
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    result.code, result.out, result.err = result.exit_code, result.stdout, result.stderr
    return result


def done(*words, stdin=None):
    """Run a command that must succeed."""
    result = run(*words, stdin=stdin)
    assert result.code == 0, result.err
    return result


def document(*words):
    """Run a command that must succeed, and read the one object that it prints."""
    (line,) = done(*words, "--json").out.splitlines()
    return json.loads(line)


def table(kind, n_rows=160, seed=0):
    """Return a frame of probabilities and labels, and the options that say what is what."""
    rng = np.random.default_rng(seed)
    ids = [f"{row:05d}" for row in range(n_rows)]
    three, two, other = rng.dirichlet([3, 1, 1], n_rows), rng.beta(1, 2, n_rows), rng.beta(1, 3, n_rows)
    if kind == SINGLE:
        frame = pd.DataFrame({"id": ids, "score": two, "fraud": draw_codes(np.c_[1 - two, two], rng)})
        return frame, ["--target", "fraud", "--proba", "score"]
    if kind == MULTICLASS:
        labels = np.array(["low", "mid", "urgent"])
        frame = pd.DataFrame(
            {"id": ids, **dict(zip(labels, three.T, strict=True)), "truth": labels[draw_codes(three, rng)]}
        )
        return frame, ["--target", "truth"]
    if kind == OUTPUTS:
        frame = pd.DataFrame({"id": ids, **{f"grade={k + 1}": three[:, k] for k in range(3)}})
        frame = frame.assign(**{"spam=no": 1 - two, "spam=yes": two, "grade": 1 + draw_codes(three, rng)})
        frame["spam"] = np.array(["no", "yes"])[draw_codes(np.c_[1 - two, two], rng)]
        return frame, ["--target", "grade", "--target", "spam"]
    frame = pd.DataFrame({"id": ids, "p_news": two, "p_sport": other})
    frame["news"], frame["sport"] = (draw_codes(np.c_[1 - p, p], rng) for p in (two, other))
    return frame, ["--target", "news", "--target", "sport", "--proba-prefix", "p_"]


def arguments(kind, frame):
    """Return probabilities and labels of a frame as a user of Python would give them."""
    if kind == SINGLE:
        return frame["score"].to_numpy(), frame["fraud"].to_numpy()
    if kind == MULTICLASS:
        return frame[["low", "mid", "urgent"]].to_numpy(), frame["truth"].to_numpy()
    if kind == OUTPUTS:
        parts = [frame[["grade=1", "grade=2", "grade=3"]].to_numpy(), frame[["spam=no", "spam=yes"]].to_numpy()]
        return parts, frame[["grade", "spam"]]
    return frame[["p_news", "p_sport"]].to_numpy(), frame[["news", "sport"]]


METRICS = {SINGLE: "f1", MULTICLASS: "macro_f1", OUTPUTS: "balanced_accuracy", MULTILABEL: "f1_macro"}
AVERAGES = {OUTPUTS: "macro"}


def write(frame, path):
    """Write a frame by the ending of a path."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)
    return path


def read(path):
    """Read a table with pandas, text as text and numbers exactly, as Arrow does."""
    path = Path(path)
    if path.suffix in (".csv", ".tsv"):
        separator = "," if path.suffix == ".csv" else "\t"
        return pd.read_csv(path, sep=separator, dtype={"id": str}, **EXACTLY)
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_feather(path)
