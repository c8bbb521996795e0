"""Commands about tables whose rows hold lists of labels, and --labels-per-row, do what the library does."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from pyarrow import feather

import metricwise as mw
from cli.shared import document, done, run
from metricwise.cli.app import app
from worlds.labels import label_world

N_LABELS = 30
LISTS = "--indices label --values p --n-labels 30 --target true"
NAMED = "fit rows.parquet --indices label --values p"
FIT = f"fit rows.parquet {LISTS} -m f1 --average macro"
NAMES = ["news", "sport", "music"]
COMMANDS = typer.main.get_command(app).commands


def lists(matrix, values):
    return pa.ListArray.from_arrays(matrix.indptr.astype(np.int32), pa.array(values))


def write_files():
    proba, y = label_world(300, N_LABELS, stored=6, missed=0.1)
    rows = pa.table(
        {
            "id": [f"{row:03d}" for row in range(300)],
            "label": lists(proba, proba.indices),
            "p": lists(proba, proba.data),
            "true": lists(y, y.indices),
            "w": np.arange(300) % 3 + 1.0,
            "g": np.arange(300) % 50,
        }
    )
    pq.write_table(rows, "rows.parquet", row_group_size=64)
    feather.write_feather(rows, "rows.feather")
    other = rows.append_column("q", lists(proba, np.sqrt(proba.data)))
    pq.write_table(other, "models.parquet")
    pq.write_table(rows.rename_columns(["id", "l", "v", "t", "w", "g"]), "renamed.parquet")
    worse = proba.copy()
    worse.data[-1] = 1.5
    pq.write_table(rows.set_column(2, "p", lists(worse, worse.data)), "worse.parquet")
    three, true = (matrix.toarray()[:, :3] for matrix in (proba, y))
    dense = pd.DataFrame({f"p_{name}": column for name, column in zip(NAMES, three.T, strict=True)})
    dense = dense.assign(**dict(zip(NAMES, true.T, strict=True)))
    dense.to_csv("dense.csv", index=False)
    dense.to_parquet("dense.parquet")
    dense.replace({name: {0: "no", 1: "yes"} for name in NAMES}).to_csv("texts.csv", index=False)
    both = {f"{name}={value}": abs(1 - value - dense[f"p_{name}"]) for name in NAMES for value in (0, 1)}
    pd.DataFrame(both).assign(**{name: dense[name] for name in NAMES}).to_csv("both.csv", index=False)
    done(*f"{FIT} --labels-per-row 1,3 -o rule.json".split())
    mw.WeightedRule.from_thresholds([0.5] * 3).to_json("weighted.json")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("files"))
        write_files()
        return Path.cwd()


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    """A copy of the files, to work in."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(path="rows.parquet", **options):
    return mw.Table(path, **{"indices": "label", "values": "p", "n_labels": N_LABELS, **options})


@pytest.mark.parametrize(("text", "labels_per_row"), [(None, None), ("3", 3), ("1,3", (1, 3)), ("2, 2", (2, 2))])
def test_fit_is_that_of_python(folder, text, labels_per_row):
    words = [*FIT.split(), "--weight", "w", "--groups", "g", "-o", "new.json"]
    result = done(*words, *(() if text is None else ("--labels-per-row", text)))
    assert "labels of rows: column 'label', their probabilities: column 'p'." in result.err
    options = {"average": "macro", "labels_per_row": labels_per_row, "sample_weight": "w", "groups": "g"}
    expected = mw.optimize(table(), "true", "f1", **options)
    rule = mw.load_rule(folder / "new.json")
    assert rule == expected.rule
    assert rule.metadata.targets == ["true"]
    assert rule.metadata.columns == [["label", "p"]]
    assert expected.rule.describe() in result.out


def test_feather_gives_the_same_rule(folder):
    done(*FIT.replace("parquet", "feather").split(), "--labels-per-row", "1,3", "-o", "new.json")
    assert (folder / "new.json").read_text() == (folder / "rule.json").read_text()


def test_logits(folder):
    rows = pq.read_table("rows.parquet")
    p = rows["p"].combine_chunks()
    logits = pa.ListArray.from_arrays(p.offsets, pa.array(np.log(p.values.to_numpy() / (1 - p.values.to_numpy()))))
    pq.write_table(rows.set_column(2, "p", logits), "logits.parquet")
    words = FIT.replace("rows", "logits").split()
    done(*words, "--input", "logits", "--labels-per-row", "2", "-o", "new.json")
    expected = mw.optimize(table("logits.parquet"), "true", "f1", average="macro", labels_per_row=2, input="logits")
    assert mw.load_rule("new.json") == expected.rule
    assert (
        "--input must be logits, which the rule was fitted to"
        in run("apply", "new.json", "logits.parquet", "--input", "scores", "-o", "new.parquet").err
    )


def test_fit_in_json(folder):
    said = document(*FIT.split(), "--labels-per-row", "2", "-o", "new.json")
    assert (said["classes"], said["n_labels"], said["labels_per_row"]) == ([[0, 1]], N_LABELS, [0, 2])
    assert (said["targets"], said["columns"]) == (["true"], [["label", "p"]])
    assert said["value"] == mw.load_rule("new.json").metadata.value


def test_precision_at_3_sets_the_number_of_labels(folder):
    done(*f"fit rows.parquet {LISTS} -m precision@3 -o new.json".split())
    assert mw.load_rule("new.json").labels_per_row == (3, 3)
    said = run(*f"fit rows.parquet {LISTS} -m precision@3 --labels-per-row 2 -o other.json".split())
    assert said.code == 2
    assert "--labels-per-row" in said.err


# ---------------------------------------------------------------------------------------------------------- decisions


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_apply_writes_lists(folder, ending):
    result = done("apply", "rule.json", "rows.parquet", "--keep", "id", "-o", f"new.{ending}")
    assert f"300 rows decided; decisions written to new.{ending}." in result.err
    rule = mw.load_rule("rule.json")
    mw.predict_table(rule, table(), "expected.parquet", keep=["id"], column="true")
    read = feather.read_table if ending == "feather" else pq.read_table
    assert read(f"new.{ending}").to_pydict() == pq.read_table("expected.parquet").to_pydict()


def test_apply_to_columns_of_other_names(folder):
    done("apply", "rule.json", "rows.parquet", "-o", "first.parquet")
    words = ["--indices", "l", "--values", "v", "--column", "decided", "--keep-all"]
    done("apply", "rule.json", "renamed.parquet", *words, "-o", "second.parquet")
    second = pq.read_table("second.parquet")
    assert second.column_names == ["id", "l", "v", "t", "w", "g", "decided"]
    assert second["decided"].to_pylist() == pq.read_table("first.parquet")["true"].to_pylist()


def test_apply_in_json(folder):
    said = document("apply", "rule.json", "rows.parquet", "-o", "new.parquet")
    decided = mw.load_rule("rule.json").predict(_csr())
    labels, counts = np.unique(decided.indices, return_counts=True)
    assert said["rows"] == 300
    assert said["decisions"] == {"true": {str(label): int(count) for label, count in zip(labels, counts, strict=True)}}


def _csr():
    return label_world(300, N_LABELS, stored=6, missed=0.1)[0]


# --------------------------------------------------------------------------------------------------------- evaluation


def test_evaluate_is_that_of_python(folder):
    said = document("evaluate", "rule.json", "rows.parquet", "--weight", "w", "--groups", "g", "-m", "precision")
    rule = mw.load_rule("rule.json")
    expected = mw.evaluate(rule, table(), "true", ["precision"], sample_weight="w", groups="g")
    assert said["metrics"] == json.loads(json.dumps(expected.to_dict()))


def test_evaluate_by_the_metric_and_the_columns_of_the_rule(folder):
    result = done("evaluate", "rule.json", "rows.parquet")
    assert "labels: column 'true', which the rule was fitted to." in result.err
    assert "metric: f1, which the rule was fitted for." in result.err
    assert "Argmax predicts the most probable labels of a row" in result.err
    expected = mw.evaluate(mw.load_rule("rule.json"), table(), "true")["f1"]
    assert f"{expected.value.estimate:.4f}" in result.out
    words = ["--indices", "l", "--values", "v", "--target", "t"]
    assert done("evaluate", "rule.json", "renamed.parquet", *words).out == result.out


def test_a_report_on_lists_is_that_of_python(folder):
    result = done("report", "rule.json", "rows.parquet", "-o", "report.html")
    assert "report written to report.html." in result.err
    text = Path("report.html").read_text(encoding="utf-8")
    expected = mw.report.render(mw.report.summarize(mw.load_rule("rule.json"), table(), "true"))
    assert "Largest labels" in text
    assert text == expected
    words = ["--indices", "l", "--values", "v", "--target", "t"]
    assert done("report", "rule.json", "renamed.parquet", *words, "-o", "-").out.strip() == text.strip()


def test_compare_with_a_threshold_and_with_another_rule(folder):
    rule = mw.load_rule("rule.json")
    said = document("compare", "rule.json", "rows.parquet", "--threshold", "0.3")
    assert said["metrics"] == json.loads(json.dumps(mw.evaluate(rule, table(), "true", against=0.3).to_dict()))
    done(*f"fit rows.parquet {LISTS} -m f1 --average macro --labels-per-row 1 -o one.json".split())
    said = document("compare", "rule.json", "rows.parquet", "--against", "one.json")
    expected = mw.evaluate(rule, table(), "true", against=mw.load_rule("one.json"))
    assert said["metrics"] == json.loads(json.dumps(expected.to_dict()))


def test_compare_two_models(folder):
    words = f"fit models.parquet {LISTS} -m f1 --average macro --labels-per-row 1,3".replace("values p", "values q")
    done(*words.split(), "-o", "other.json")
    result = done("compare", "rule.json", "models.parquet", "--against", "other.json")
    assert "the other rule uses the columns 'label', 'q', which it was fitted to." in result.err
    first, second = (table("models.parquet", values=name) for name in "pq")
    models = {"rule": (mw.load_rule("rule.json"), first), "other rule": (mw.load_rule("other.json"), second)}
    expected = mw.evaluate(models, "true", "f1", average="macro")["f1"]
    assert f"{expected.difference.estimate:+.4f}" in result.out


def test_trade_off_is_that_of_python(folder):
    words = "-m recall --against precision --points 3 --labels-per-row 3"
    said = document(*f"trade-off rows.parquet {LISTS} {words}".split())
    options = {"metric": "recall", "against": "precision", "n_points": 3, "labels_per_row": 3}
    expected = mw.trade_off(table(), "true", **options)
    assert said["points"] == {name: values.tolist() for name, values in expected.to_dict().items()}


def test_explain(folder):
    result = done("explain", "rule.json")
    assert mw.load_rule("rule.json").describe() in result.out
    assert "Columns of lists: 'label' of labels, 'p' of their probabilities." in result.out
    said = document("explain", "rule.json")
    assert (said["n_labels"], said["labels_per_row"], said["classes"]) == (N_LABELS, [1, 3], [[0, 1]])


# ---------------------------------------------------------------------------------------- a column for each label

DENSE = "--target news --target sport --target music --proba-prefix p_ -m f1 --average macro --labels-per-row 2"


@pytest.mark.parametrize("name", ["dense.csv", "dense.parquet", "both.csv"])
def test_labels_per_row_of_columns(folder, name):
    words = DENSE.replace(" --proba-prefix p_", "") if name == "both.csv" else DENSE
    done(*f"fit {name} {words} -o new.json".split())
    frame = pd.read_csv("dense.csv")
    proba, y = frame[[f"p_{label}" for label in NAMES]].to_numpy(), frame[NAMES]
    expected = mw.optimize(pd.DataFrame(proba, columns=NAMES), y, "f1", average="macro", labels_per_row=2)
    rule = mw.load_rule("new.json")
    assert rule.output_names == (tuple(NAMES))
    np.testing.assert_allclose(rule.scale, expected.rule.scale, rtol=1e-6)
    done("apply", "new.json", name, "-o", "decisions.csv")
    np.testing.assert_array_equal(pd.read_csv("decisions.csv")[NAMES], rule.predict(proba))
    said = document("evaluate", "new.json", name)
    value = said["metrics"]["f1"]["value"]
    assert value == pytest.approx(mw.evaluate(rule, proba, y)["f1"].value.estimate, rel=1e-12)


def test_large_tables_are_read_too(folder, monkeypatch):
    monkeypatch.setattr("metricwise.cli.rows.MEMORY_LIMIT", 1)
    result = done(*f"fit dense.parquet {DENSE} -o new.json".split())
    assert "is read in batches" in result.err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    done(*f"fit dense.parquet {DENSE} -o other.json".split())
    assert mw.load_rule("new.json") == mw.load_rule("other.json")


# ------------------------------------------------------------------------------------------------------------- errors

WRONG = {
    "fit rows.parquet -t true -m f1 -o new.json": "'true' must hold one label in every row, .* with --indices and",
    "fit rows.parquet --indices label -t true -m f1 -o new.json": "--indices needs --values, which is not given",
    "fit rows.parquet --values p -t true -m f1 -o new.json": "--values needs --indices, which is not given",
    "fit rows.parquet --n-labels 30 -t true -m f1 -o new.json": "--n-labels needs --indices, which is not given",
    f"{NAMED} -t true -m f1 -o new.json": "--n-labels, the number of labels, must be",
    f"{NAMED} --n-labels 30 -m f1 -o new.json": "name the column of lists of true lab",
    f"{FIT} --target id -o new.json": "--target must be given once, for the lists of true labels, got 'true', 'id'",
    "fit rows.parquet --indices nothing --values p --n-labels 30 -t true -m f1 -o new.json": "no column 'nothing'; ",
    "fit rows.parquet --indices id --values p --n-labels 30 -t true -m f1 -o new.json": "'id' must hold lists of",
    f"{NAMED} --n-labels 30 -t g -m f1 -o new.json": "'g' must hold lists of labels",
    f"{NAMED} --n-labels 9 -t true -m f1 -o new.json": "labels from 0 to 8, got label",
    f"{NAMED} --n-labels 0 -t true -m f1 -o new.json": "invalid value for '--n-labels'",
    f"{FIT} -o new.json".replace(
        "rows.", "worse."
    ): "probabilities from 0 to 1, got 1.5 .* row 299; pass --input logits",
    f"{FIT} -o new.json".replace("rows.parquet", "dense.csv"): "dense.csv: lists of labels need a .parquet, .feather",
    f"{FIT} -o new.json".replace("rows.parquet", "-"): "standard input: lists of labels need a .parquet, .feather",
    f"{FIT} -o new.json".replace("rows.", "nowhere."): "nowhere.parquet: no such file",
    f"{FIT} --proba p -o new.json": "--proba must be left out with --indices",
    f"{FIT} --proba-prefix p -o new.json": "--proba-prefix must be left out with --indices",
    f"{FIT} --sensitive-features g -o new.json": "--sensitive-features must be left out with --indices",
    f"{FIT} --classes 0,1 -o new.json": "--classes must be left out with --indices",
    f"{FIT} --order 0,1 -o new.json": "--order must be left out with --indices",
    f"{FIT} --abstain yes -o new.json": "--abstain must be left out with --indices",
    f"{FIT} --pos-label 1 -o new.json": "--pos-label must be left out with --indices",
    f"{FIT} --time g -o new.json": "--time is not for very many labels; name the period of each row with --groups",
    f"{FIT} --weight w --weight-kind frequency -o new.json": "--weight must not be Frequencies",
    f"{FIT} --randomized -o new.json": "leave --randomized at its default",
    f"{FIT} --input log_proba -o new.json": "--input must be one of 'probabilities', 'logits', 'scores'",
    f"{FIT} --labels-per-row many -o new.json": "--labels-per-row must be a number of labels, .* got 'many'; pass 3",
    f"{FIT} --labels-per-row 3,1 -o new.json": "--labels-per-row must be a number of labels, .* got '3,1'",
    f"{FIT} --labels-per-row 0 -o new.json": "--labels-per-row must be a number of labels, .* got '0'",
    f"{FIT} --labels-per-row 1,2,3 -o new.json": "--labels-per-row must be a number of labels, .* got '1,2,3'",
    f"{FIT} --labels-per-row 31 -o new.json": "--labels-per-row must be at most the number of labels, 30, got 31",
    f"fit rows.parquet {LISTS} -m recall@2 --labels-per-row 3 -o new.json": "--labels-per-row",
    f"fit texts.csv {DENSE} --pos-label yes -o new.json": "labels must be 0 or 1, or False or True, .* got the classes",
    "fit dense.csv -t news --proba p_news -m f1 --labels-per-row 1 -o new.json": "--labels-per-row needs several tar",
    "apply rule.json rows.parquet": "standard output: decisions about lists of labels are lists, which need a .parquet",
    "apply rule.json rows.parquet -o new.csv": "new.csv: decisions about lists of labels are lists, which need",
    "apply rule.json rows.parquet -o new.npy": "new.npy: decisions about lists of labels are lists, which need",
    "apply rule.json rows.parquet -o rule.json": "rule.json: the file exists",
    "apply rule.json renamed.parquet -o new.parquet": "no column 'label', 'p', which the rule was fitted to; if the",
    "apply rule.json renamed.parquet --indices l --values nothing -o new.parquet": "there is no column 'nothing'",
    "apply rule.json rows.parquet --keep nothing -o new.parquet": "there is no column 'nothing'",
    "apply rule.json rows.parquet --keep true -o new.parquet": "give them another name with --column",
    "apply rule.json rows.parquet --column a --column b -o new.parquet": "--column must be given once, for the column",
    "apply rule.json rows.parquet --n-labels 7 --indices label --values p -o new.parquet": "--n-labels must be 30, ",
    "apply rule.json worse.parquet -o new.parquet": "got 1.5 for label .* in row 299; use a rule that was fitted to lo",
    "apply weighted.json rows.parquet --indices label --values p -o new.parquet": "--indices is only for rules for",
    "evaluate rule.json renamed.parquet --indices l --values v": "name the column of lists of true labels: --target",
    "evaluate rule.json rows.parquet --order 0,1": "--order must be left out with lists of labels",
    "evaluate rule.json rows.parquet --time g": "--time is not for very many labels",
    "compare rule.json rows.parquet --threshold 0.2 --threshold 0.3": "--threshold must be given once for very many",
    "compare rule.json rows.parquet --class-weights 0=1,1=2": "--class-weights is only for rules with a single output",
    "shares rule.json rows.parquet": "class shares are not estimated for rules of very many labels",
    "expect rule.json rows.parquet --reference renamed.parquet": "rule.json|lists of labels",
}


@pytest.mark.parametrize("line", WRONG)
def test_one_sentence_and_nothing_written(folder, line):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    command, *words = line.split()
    options = {option for parameter in COMMANDS[command].params for option in parameter.opts} | {"--help"}
    result = run(command, *words)
    assert result.code == 2, result.out
    assert re.search(WRONG[line], result.err), result.err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert set(re.findall(r"--[a-z][a-z-]*", result.err)) <= options, result.err
