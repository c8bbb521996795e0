"""Whatever is wrong is said in one sentence with a remedy, by the right exit code, and nothing is written."""

import re

import numpy as np
import pandas as pd
import pytest

import metricwise as mw
from cli.shared import MULTICLASS, SINGLE, done, run, table, write
from metricwise.cli.options import in_options
from metricwise.core.errors import InvalidParameter, argument


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to stand in, with a table of each kind and rules for them."""
    monkeypatch.chdir(tmp_path)
    for kind, name in ((SINGLE, "binary"), (MULTICLASS, "three")):
        frame, _ = table(kind, 60)
        write(frame, tmp_path / f"{name}.csv")
        rule = mw.WeightedRule.from_thresholds(0.4) if kind == SINGLE else None
        rule = rule or mw.WeightedRule.from_weights({"low": 1, "mid": 2, "urgent": 3})
        rule.to_json(tmp_path / f"{name}.json")
    return tmp_path


def refused(folder, line, code=2):
    """Run a line of words, and return the sentence that it was refused with."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = run(*line.split()) if isinstance(line, str) else run(*line)
    assert result.code == code, result.out + result.err
    assert result.out == ""
    *notes, sentence = result.err.splitlines()
    assert all(re.match(r"metricwise: (probabilit|labels|positive|metric|\d+ of)", note) for note in notes)
    assert "Traceback" not in result.err
    assert sentence.startswith("metricwise: ")
    assert sentence.endswith((".", "--help."))
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return sentence.removeprefix("metricwise: ")


FIT = "--metric f1 --target fraud --proba score -o new.json"
WRONG = {
    "fit nowhere.csv " + FIT: "nowhere.csv: no such file or directory",
    "fit . " + FIT: "the name of a table must end in .csv",
    "fit binary.xlsx " + FIT: "the name of a table must end in .csv",
    "fit binary.csv --metric f1 -o new.json": "name the column of labels: --target",
    "fit binary.csv --metric f1 --target fraud -o new.json": "no columns hold the probabilities of 'fraud': .* --proba",
    "fit binary.csv --metric f1 --target Fraud -o new.json": "no column 'Fraud'; the columns are 'id'",
    "fit binary.csv --metric f1 --target fraud --proba p -o new.json": "no column 'p'",
    "fit binary.csv --metric f1 --target fraud --proba id -o new.json": "the probabilities must be at most 1",
    "fit binary.csv --metric f1 --target fraud --proba-prefix p_ -o new.json": "named like 'p_1'",
    "fit binary.csv --metric fone --target fraud --proba score -o new.json": "--metric: 'fone' is not known; see",
    "fit binary.csv --metric roc_auc --target fraud --proba score -o new.json": "evaluates the order of the scores",
    "fit binary.csv --metric f1 --metric recall --target fraud --proba score -o new.json": "use --record METRIC",
    "fit binary.csv " + FIT + " --weight nothing": "there is no column 'nothing'",
    "fit binary.csv " + FIT + " --weight-kind frequency": "--weight-kind needs --weight",
    "fit binary.csv " + FIT + " --dependence 20": "--dependence needs --time",
    "fit binary.csv " + FIT + " --time id --dependence 9999": "--dependence must be at most half of the number of rows",
    "fit binary.csv " + FIT + " --half-life 30d": "--half-life needs --time",
    "fit binary.csv " + FIT + " --time id --half-life 30d": "--half-life must be a number if times are numbers",
    "fit binary.csv " + FIT + " --time id --half-life soon": "--half-life must be a number, .* '30d', .* got 'soon'",
    "fit binary.csv " + FIT + " --time id --half-life -3": "--half-life must be positive and finite, got -3",
    "fit binary.csv "
    + FIT
    + " --time id --half-life 9 --weight id --weight-kind frequency": "--half-life gives fractions",
    "fit binary.csv " + FIT + " --time id --groups id": "--groups and --time cannot both be given",
    "fit binary.csv " + FIT + " --confidence 2": r"--confidence must be a number in \[0.5, 1\)",
    "fit binary.csv " + FIT + " --confidence often": "--confidence must be a number from 0.5 up to 1",
    "fit binary.csv " + FIT + " --abstain perhaps": "--abstain must be a cost, or yes, got 'perhaps'",
    "fit binary.csv " + FIT + " --abstain yes": "subject-to",
    "fit binary.csv " + FIT + " --seed -1": "--seed must be",
    "fit binary.csv " + FIT + " --average most": "average",
    "fit binary.csv " + FIT + " --pos-label 7": r"--pos-label must be one of \[0, 1\], got 7",
    "fit binary.csv "
    + FIT
    + " --pos-label 0 --pos-label 1": "--pos-label must be given once, or for each of the 1 targets",
    "fit binary.csv " + FIT + " --separator ;": "only one column|no column",
    "fit three.csv --metric f1 --target truth -o new.json": "name the class: --pos-label CLASS",
    "fit three.csv --metric ordinal --target truth -o new.json": "pass --order LOWEST,\\.\\.\\.,HIGHEST",
    "fit three.csv --metric accuracy --target truth --classes low,mid -o new.json": "of 'truth', but lacks 'urgent'",
    "fit three.csv --metric accuracy --target truth --target id -o new.json": "named like 'truth=urgent'",
    "fit three.csv --metric accuracy --target low -o new.json": "no columns hold the probabilities of 'low'",
    "fit three.csv --metric accuracy --target truth -o nowhere/new.json": "there is no folder .*nowhere",
    "fit three.csv --metric accuracy --target truth -o /proc/new.json": "the folder /proc cannot be written to",
    "fit three.csv --metric accuracy --target truth -o three.json": "the file exists; .* --force",
    "fit three.csv --metric accuracy --target truth -o .": "this is a folder",
    "fit three.csv --metric accuracy --target truth --subject-to recall>0.5 -o new.json": "--subject-to: .*'>=' or",
    "apply nowhere.json three.csv": "nowhere.json: there is no such file",
    "apply three.csv three.csv": "three.csv: this is not a metricwise rule: the rule must be JSON",
    "apply three.json binary.csv": "they must be named like the classes, 'low', 'mid', 'urgent', or",
    "apply binary.json three.csv": "no columns hold the probabilities",
    "apply three.json three.csv --keep nothing": "there is no column 'nothing'",
    "apply three.json three.csv -o three.csv": "three.csv: the file exists",
    "apply three.json three.csv -o new.doc": "the name of a table must end in",
    "apply three.json three.csv -o new.npy --keep id": "a .npy file has no names for the columns 'id'",
    "apply three.json three.csv --keep id --column id": "give them another name with --column",
    "apply three.json three.csv --column a --column b": "--column must be given once for each of the 1 outputs",
    "evaluate three.json three.csv --metric accuracy": "--target",
    "evaluate three.json three.csv --target truth": "does not name the metric that it was fitted for; pass --metric",
    "evaluate three.json three.csv --target id --metric accuracy": "must hold only the classes",
    "evaluate three.json three.csv --target truth --target id --metric accuracy": "each of the 1 outputs of the rule",
    "compare three.json three.csv --target truth --metric accuracy": "pass exactly one of --against",
    "compare three.json three.csv --target truth -m accuracy --threshold 0.5": "--threshold is only for two classes",
    "compare three.json three.csv --target truth -m accuracy --against binary.json": "--against must be a rule for",
    "compare three.json three.csv --target truth -m accuracy --class-weights low=x": "must hold numbers, got 'x'",
    "compare binary.json binary.csv --target fraud --proba score -m f1 --threshold 1.5": r"lie in \[0, 1\]",
    "explain binary.csv": "binary.csv: this is not a metricwise rule",
    "export three.json -o new.doc": "must end in .onnx, .sql or .py",
    "export three.json -o new.py --dialect sqlite": "--dialect is only for sql, not for python",
    "export three.json -o new.sql --column a": "--column must be given for each class, 3 times, got 1",
    "export three.json -o new.sql --dialect cobol": "dialect must be",
    "metrics fone": "'fone' is not known",
    "trade-off binary.csv -t fraud --proba score -m recall --against precision --points 1": "n_points must be",
    "fit": "missing (argument|option)",
    "fit binary.csv --nothing": "no such option: --nothing",
    "apply binary.json binary.csv --seed x": "no such option",
}


@pytest.mark.parametrize("line", WRONG)
def test_one_sentence_exit_code_2_and_nothing_written(folder, line):
    assert re.search(WRONG[line], refused(folder, line))


FILES = {
    "empty.csv": (b"", "the file is empty"),
    "rowless.csv": (b"score,fraud\n", "there are no rows"),
    "ragged.csv": (b"score,fraud\n0.1,0\n0.2\n", "this is not valid CSV: .*Expected 2 columns, got 1"),
    "semicolons.csv": (b"score;fraud\n0.1;0\n0.9;1\n", "separated by ';', set --separator"),
    "twice.csv": (b"score,score,fraud\n0.1,0.1,1\n", "must be distinct, got 'score' twice"),
    "latin.csv": ("score,fraud\n0.1,è\n".encode("latin-1"), "must be in UTF-8"),
    "words.csv": (b"score,fraud\n0.1,0\nhigh,1\n", "the column 'score' must hold numbers, got 'high' in row 1"),
    "comma.csv": (
        b'score,fraud\n"0,1",0\n0.5,1\n',
        "must hold numbers, got '0,1' in row 0; write decimals with a point, 0.1",
    ),
    "german.csv": (b"score;fraud\n0,1;0\n0,5;1\n", "separated by ';', set --separator"),
    "wide.csv": ("score,fraud\n0.1,0\n0.9,1\n".encode("utf-16"), "text must be in UTF-8, got UTF-16"),
    "gap.csv": (b"score,fraud\n0.1,0\n,1\n", "must hold a number in every row, got none in row 1"),
    "nan.csv": (b"score,fraud\n0.1,0\nnan,1\n", "the probabilities must be finite"),
    "one.csv": (b"score,fraud\n0.1,1\n0.2,1\n", "'fraud' has only one class, 1"),
    "none.csv": (b"score,fraud\n0.1,\n0.2,\n", "'fraud' has no label"),
    "letters.csv": (b"score,fraud\n0.1,a\n0.2,b\n", "single column .* is ambiguous: 'a' or 'b'; set --pos-label"),
    "three.csv": (b"score,fraud\n0.1,1\n0.2,2\n0.1,3\n", "a single column of probabilities is for two classes"),
    "text.parquet": (b"PAR1 or not PAR1", "this is not a complete Parquet file"),
    "text.feather": (b"ARROW1 or not ARROW1", "this is not a complete Feather file"),
    "text.npy": (b"no array at all", "this is not a NumPy array file"),
    "text.npz": (b"PK no archive at all", "this is not a NumPy array file"),
}


@pytest.mark.parametrize("name", FILES)
def test_broken_files(folder, name):
    content, said = FILES[name]
    (folder / name).write_bytes(content)
    assert re.search(said, refused(folder, f"fit {name} " + FIT))


def test_objects_are_not_unpickled(folder):
    np.save(folder / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "Python objects, which are not supported" in refused(folder, "apply binary.json objects.npy")


def test_columns_of_a_parquet_file_that_are_no_numbers(folder):
    pd.DataFrame({"score": ["a", "b"], "fraud": [0, 1]}).to_parquet(folder / "text.parquet")
    assert "'score' must hold numbers, got type" in refused(folder, "fit text.parquet " + FIT)


def test_a_rule_that_takes_more_than_probabilities(folder):
    mw.CostRule((np.array([0, 1]),)).to_json(folder / "costs.json")
    assert "needs more than probabilities; apply it in Python" in refused(folder, "apply costs.json binary.csv")
    assert done("explain", "costs.json").out


def test_two_prefixes_are_asked_about(folder):
    frame, _ = table(SINGLE, 40)
    both = {f"{model}_{k}": [0.5] * len(frame) for model in ("forest", "boosted") for k in (0, 1)}
    write(frame.drop(columns="score").assign(**both), folder / "both.csv")
    said = refused(folder, "fit both.csv --metric f1 --target fraud -o new.json")
    assert "begin with 'boosted_' or 'forest_'; choose one with --proba-prefix" in said
    done("fit", "both.csv", "--metric", "f1", "--target", "fraud", "--proba-prefix", "forest_", "-o", "new.json")


def test_constraints_that_no_rule_keeps_have_a_code_of_their_own(folder):
    line = ["fit", "binary.csv", *FIT.split(), "--subject-to", "precision >= 0.99", "--subject-to", "recall >= 0.99"]
    assert "no rule satisfies" in refused(folder, line, code=3)
    trade = ["trade-off", "binary.csv", "-t", "fraud", "--proba", "score", "-m", "recall", "--against", "share"]
    trade += ["--subject-to", "precision >= 0.99 and recall >= 0.99"]
    assert "no rule satisfies" in refused(folder, trade, code=3)


def test_a_fault_of_ours_has_code_1_and_asks_for_a_report(folder, monkeypatch):
    def broken(*_, **__):
        raise KeyError("nobody expects this")

    monkeypatch.setattr("metricwise.rules.load.load_rule", broken)
    assert "bug in metricwise: please report it" in refused(folder, "explain binary.json", code=1)


def test_an_error_of_another_library_is_no_bad_input(folder, monkeypatch):
    monkeypatch.setattr("metricwise.rules.load.load_rule", lambda path: np.zeros(3) + np.zeros(2))
    assert "unexpected ValueError: operands could not be broadcast" in refused(folder, "explain binary.json", code=1)


def test_the_traceback_is_there_for_those_who_ask(folder, monkeypatch):
    monkeypatch.setenv("METRICWISE_TRACEBACK", "1")
    result = run("explain", "binary.csv")
    assert result.code == 2
    assert "Traceback (most recent call last)" in result.err


def test_warnings_are_sentences_too(folder):
    line = "fit binary.csv --metric recall --target fraud --proba score -o new.json"
    assert "metricwise: warning: Recall of the positive class alone" in done(*line.split()).err


def about(problem, owner=""):
    return InvalidParameter("", problem=problem, owner=owner)


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (about(f"pass {argument('classes')} with the label"), "pass --classes with the label."),
        (
            about(f"{argument('classes', range(3))} or {argument('classes', range(1, 4))}"),
            "--classes 0,1,2 or --classes 1,2,3.",
        ),
        (about(f"pass {argument('n_jobs', -1)}"), "pass n_jobs=-1."),
        (
            about(f"give {argument('randomized', True)} to have it", "subject_to"),
            "--subject-to: give --randomized to have it.",
        ),
        (InvalidParameter("sample_weight", "be finite"), "--weight must be finite."),
        (InvalidParameter("y", "hold labels"), "the column of labels must hold labels."),
        (InvalidParameter("tol", "be positive", -1), "tol must be positive, got -1."),
        (
            about(f"name it, {argument('pos_label', 'a b')} or {argument('pos_label', 'c')}"),
            "name it, --pos-label 'a b' or --pos-label c.",
        ),
        (about(f"set {argument('Table.separator')}", "rows.csv"), "rows.csv: set --separator."),
        (
            about(f"fit with {argument('Sensitive.unknown', 'blind')}"),
            "fit with --unknown-group blind.",
        ),
        (
            about(f"pass {argument('order', text='[lowest, ..., highest], to the call')}"),
            "pass --order LOWEST,...,HIGHEST.",
        ),
    ],
)
def test_parameters_are_options(refusal, said):
    refusal.entry_point = "optimize"  # is not said: nobody calls it here
    assert in_options(refusal) == said
