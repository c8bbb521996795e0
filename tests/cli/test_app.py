"""Commands say and write what the library does in Python, whatever format the table has."""

import json
import runpy
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, f1_score

import metricwise as mw
from cli.shared import (
    AVERAGES,
    KINDS,
    METRICS,
    MULTICLASS,
    MULTILABEL,
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
from worlds import draw_codes

ENDINGS = (".csv", ".tsv", ".parquet", ".feather")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """For each kind of target: the frame, its options, the rule that Python finds, and the file of a command's."""
    folder, found = tmp_path_factory.mktemp("rules"), {}
    for at, kind in enumerate(KINDS):
        frame, options = table(kind)
        proba, y = arguments(kind, frame)
        rule = mw.optimize(proba, y, METRICS[kind], average=AVERAGES.get(kind)).rule
        path = folder / f"{at}.json"
        average = ["--average", AVERAGES[kind]] if kind in AVERAGES else []
        done("fit", write(frame, folder / f"{at}.csv"), *options, "--metric", METRICS[kind], *average, "-o", path)
        found[kind] = frame, options, rule, path
    return found


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_fit_and_apply_are_those_of_python_to_the_last_bit(tmp_path, fitted, kind, ending):
    frame, options, rule, _ = fitted[kind]
    source, target = write(frame, tmp_path / f"rows{ending}"), tmp_path / f"decisions{ending}"
    average = ["--average", AVERAGES[kind]] if kind in AVERAGES else []
    done("fit", source, *options, "--metric", METRICS[kind], *average, "-o", tmp_path / "rule.json")
    loaded = mw.load_rule(tmp_path / "rule.json")
    assert loaded.to_dict()["loss"] == rule.to_dict()["loss"]
    assert loaded.to_dict()["link"] == rule.to_dict()["link"]
    done("apply", tmp_path / "rule.json", source, "--keep", "id", "-o", target)
    decided, expected = read(target), rule.predict(arguments(kind, frame)[0])
    assert decided["id"].tolist() == frame["id"].tolist()
    names = [options[at + 1] for at, word in enumerate(options) if word == "--target"]
    assert list(decided) == ["id", *names]
    for column, own in zip(names, expected.reshape(len(frame), -1).T, strict=True):
        assert decided[column].tolist() == own.tolist()


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_arrays(tmp_path, fitted, ending):
    frame, _, rule, _ = fitted[MULTICLASS]
    proba, y = arguments(MULTICLASS, frame)
    codes = np.unique(y, return_inverse=True)[1]
    if ending == ".npz":
        np.savez(tmp_path / "rows.npz", proba=proba, y=codes, weight=np.ones(len(y)))
        options = ["--target", "y", "--weight", "weight"]
    else:
        np.save(tmp_path / "rows.npy", proba)
        np.save(tmp_path / "y.npy", codes)
        options = ["--target", tmp_path / "y.npy"]
    source, target = tmp_path / f"rows{ending}", tmp_path / f"decisions{ending}"
    done("fit", source, *options, "--metric", "macro_f1", "-o", tmp_path / "rule.json")
    done("apply", tmp_path / "rule.json", source, "-o", target)
    expected = np.searchsorted(np.unique(y), rule.predict(proba))
    found = np.load(target) if ending == ".npy" else np.load(target)["y"]
    np.testing.assert_array_equal(found, expected)


def test_standard_input_and_output(tmp_path, fitted):
    frame, _, rule, path = fitted[MULTICLASS]
    text = frame.to_csv(index=False)
    decided = done("apply", path, "-", "--keep", "id", stdin=text)
    lines = [
        "id,truth",
        *(f"{row},{label}" for row, label in zip(frame["id"], rule.predict(frame.iloc[:, 1:4]), strict=True)),
    ]
    assert decided.out.splitlines() == lines
    printed = done("fit", "-", "--target", "truth", "--metric", "macro_f1", "-o", "-", stdin=text)
    assert mw.load_rule(printed.out) == mw.load_rule(path)


def test_a_rule_remembers_its_columns_and_others_are_found_by_name(tmp_path, fitted):
    frame, _, rule, path = fitted[MULTICLASS]
    shuffled = frame[["urgent", "id", "low", "mid"]]
    expected = rule.predict(frame[["low", "mid", "urgent"]].to_numpy()).tolist()
    for renamed in (shuffled, shuffled.rename(columns={name: f"p.{name}" for name in ("low", "mid", "urgent")})):
        source = write(renamed, tmp_path / "rows.csv")
        said = done("apply", path, source, "-o", tmp_path / "out.csv", "--force")
        assert read(tmp_path / "out.csv")["truth"].tolist() == expected
    assert "prefix 'p.': a guess" in said.err
    rule.to_json(tmp_path / "python.json")  # which knows no columns
    done(
        "apply", tmp_path / "python.json", write(shuffled, tmp_path / "rows.csv"), "-o", tmp_path / "out.csv", "--force"
    )
    assert read(tmp_path / "out.csv")["decision"].tolist() == expected


def test_evaluate_is_that_of_python_and_the_values_are_those_of_scikit_learn(tmp_path, fitted):
    _, options, rule, path = fitted[MULTICLASS]
    new, _ = table(MULTICLASS, seed=1)
    proba, y = arguments(MULTICLASS, new)
    found = document("evaluate", path, write(new, tmp_path / "new.parquet"), "-m", "macro_f1", "-m", "accuracy")
    assert found["metrics"] == mw.evaluate(rule, proba, y, ["macro_f1", "accuracy"]).to_dict()
    for name, score in (("macro_f1", lambda a, b: f1_score(a, b, average="macro")), ("accuracy", accuracy_score)):
        assert found["metrics"][name]["value"] == pytest.approx(score(y, rule.predict(proba)), abs=1e-12)
    shown = done("evaluate", path, tmp_path / "new.parquet", *options, "-m", "accuracy").out
    assert f"{found['metrics']['accuracy']['value']:.4f}" in shown


def test_compare_with_a_rule_a_threshold_and_weights(tmp_path, fitted):
    frame, _, rule, path = fitted[SINGLE]
    proba, y = arguments(SINGLE, frame)
    source = write(frame, tmp_path / "rows.feather")
    by_hand = mw.WeightedRule.from_thresholds(0.3)
    by_hand.to_json(tmp_path / "hand.json")
    expected = mw.evaluate(rule, proba, y, "f1", against=by_hand).to_dict()
    for other in (["--threshold", "0.3"], ["--against", tmp_path / "hand.json"]):
        assert document("compare", path, source, *other, "--target", "fraud")["metrics"] == expected
    frame, _, rule, path = fitted[MULTICLASS]
    source = write(frame, tmp_path / "more.csv")
    found = document("compare", path, source, "--class-weights", "low=1,mid=2,urgent=2.5", "-m", "accuracy")
    other = mw.WeightedRule.from_weights({"low": 1, "mid": 2, "urgent": 2.5})
    assert found["metrics"] == mw.evaluate(rule, *arguments(MULTICLASS, frame), "accuracy", against=other).to_dict()


def test_compare_two_models_by_the_columns_of_each(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    frame = pd.DataFrame({"p": p, "q": np.clip(p + rng.normal(0, 0.2, 400), 0, 1), "label": rng.random(400) < p})
    frame["label"] = frame["label"].astype(int)
    source = write(frame, tmp_path / "rows.csv")
    rules = {}
    for name in "pq":
        done("fit", source, "--target", "label", "--proba", name, "--metric", "f1", "-o", tmp_path / f"{name}.json")
        rules[name] = mw.load_rule(tmp_path / f"{name}.json"), frame[name].to_numpy()
    expected = mw.evaluate(rules, frame["label"].to_numpy(), "f1").to_dict()
    found = document("compare", tmp_path / "p.json", source, "--against", tmp_path / "q.json")
    assert found["metrics"] == expected
    said = done("compare", tmp_path / "p.json", source, "--against", tmp_path / "q.json").err
    assert "the other rule uses the columns 'q', which it was fitted to" in said
    same = document("compare", tmp_path / "p.json", source, "--against", tmp_path / "q.json", "--proba", "p")
    other = mw.evaluate(rules["p"][0], rules["p"][1], frame["label"].to_numpy(), "f1", against=rules["q"][0])
    assert same["metrics"] == other.to_dict()


def test_compare_thresholds_of_several_outputs(tmp_path, fitted):
    frame, _, rule, path = fitted[MULTILABEL]
    source = write(frame, tmp_path / "rows.csv")
    found = document("compare", path, source, "--threshold", "sport=0.2", "--threshold", "news=0.4")
    other = mw.WeightedRule.from_thresholds({"news": 0.4, "sport": 0.2})
    expected = mw.evaluate(rule, *arguments(MULTILABEL, frame), "f1_macro", against=other).to_dict()
    assert found["metrics"] == expected


def test_options_reach_the_library(tmp_path):
    frame, options = table(SINGLE, 400)
    frame["weight"] = np.arange(len(frame)) % 3 + 1
    frame["person"] = [f"person {row // 4}" for row in range(len(frame))]
    frame["day"] = pd.date_range("2024-01-01", periods=len(frame)).astype(str)
    frame["hour"] = 24 * np.arange(len(frame))
    source, (proba, y) = write(frame, tmp_path / "rows.csv"), arguments(SINGLE, frame)
    cases = [
        (["--weight", "weight"], {"sample_weight": frame["weight"]}),
        (
            ["--weight", "weight", "--weight-kind", "frequency"],
            {"sample_weight": mw.Frequencies(frame["weight"])},
        ),
        (["--groups", "person"], {"groups": frame["person"]}),
        (["--time", "day"], {"groups": mw.InTime(pd.to_datetime(frame["day"]))}),
        (["--time", "day", "--dependence", "20"], {"groups": mw.InTime(pd.to_datetime(frame["day"]), 20)}),
        (
            ["--time", "day", "--half-life", "90d"],
            {"groups": mw.InTime(pd.to_datetime(frame["day"]), half_life=pd.Timedelta(days=90))},
        ),
        (
            ["--time", "hour", "--half-life", "2160", "--weight", "weight"],
            {"groups": mw.InTime(frame["hour"], half_life=2160), "sample_weight": frame["weight"]},
        ),
        (["--record", "recall", "--seed", "3"], {"record": ["recall"], "random_state": 3}),
        (["--subject-to", "recall >= 0.6"], {"subject_to": "recall >= 0.6"}),
        (
            ["--subject-to", "recall >= 0.6", "--confidence", "none"],
            {"subject_to": "recall >= 0.6", "confidence": None},
        ),
        (["--pos-label", "0"], {"pos_label": 0, "classes": [0, 1]}),
    ]
    for words, arguments_ in cases:
        if "--pos-label" in words:
            frame["score"] = 1 - frame["score"]  # now that of class 0, the positive one
            source, proba, arguments_ = (
                write(frame, tmp_path / "rows.csv"),
                1 - proba,
                {"pos_label": 0, "classes": [1, 0]},
            )
        found = document("fit", source, *options, "-m", "f1", *words, "-o", tmp_path / "rule.json", "--force")
        expected = mw.optimize(proba, y, "f1", **arguments_)
        assert found["value"] == expected.value
        assert mw.load_rule(tmp_path / "rule.json") == expected.rule
        assert found["gain"] is None or found["gain"]["low"] == expected.gain.low
        assert [one["value"] for one in found["constraints"]] == [one.value for one in expected.constraints]


def test_evaluate_weights_rows_by_age_and_says_so(tmp_path, fitted):
    frame, options, rule, path = fitted[SINGLE]
    frame = frame.assign(day=pd.date_range("2024-01-01", periods=len(frame)).astype(str))
    words = [path, write(frame, tmp_path / "rows.csv"), *options, "-m", "f1", "--time", "day", "--half-life", "30d"]
    expected = mw.evaluate(
        rule, *arguments(SINGLE, frame), "f1", groups=mw.InTime(pd.to_datetime(frame["day"]), half_life="30d")
    )
    assert document("evaluate", *words)["metrics"] == expected.to_dict()
    said = done("evaluate", *words).err
    assert expected.notes[0] in said
    assert "Use a longer --half-life." in said


def test_a_metric_for_each_target(tmp_path, fitted):
    frame, options, _, _ = fitted[OUTPUTS]
    words = ["-m", "grade=quadratic_kappa", "-m", "spam=f1[yes]"]
    done("fit", write(frame, tmp_path / "rows.csv"), *options, *words, "-o", tmp_path / "rule.json")
    proba, y = arguments(OUTPUTS, frame)
    aims = {"grade": "quadratic_kappa", "spam": "f1[yes]"}
    expected = mw.optimize(proba, y, aims)
    assert mw.load_rule(tmp_path / "rule.json") == expected.rule
    judged = mw.evaluate(expected.rule, proba, y, [aims]).to_dict()
    assert document("evaluate", tmp_path / "rule.json", tmp_path / "rows.csv", *words)["metrics"] == judged
    said = run("evaluate", tmp_path / "rule.json", tmp_path / "rows.csv")
    assert (said.code, "pass --metric TARGET=METRIC for each output" in said.err) == (2, True)


def test_a_rule_is_judged_as_it_was_fitted(tmp_path, fitted):
    frame, _, rule, path = fitted[OUTPUTS]
    found = document("evaluate", path, write(frame, tmp_path / "rows.csv"))
    expected = mw.evaluate(rule, *arguments(OUTPUTS, frame), METRICS[OUTPUTS], average="macro")
    assert found["metrics"] == expected.to_dict()


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_a_rule_is_judged_by_the_average_that_is_asked_for(average, tmp_path, fitted):
    frame, _, rule, path = fitted[MULTILABEL]
    words = ["--metric", "f1", "--average", average]
    found = document("evaluate", path, write(frame, tmp_path / "rows.csv"), *words)
    assert found["metrics"] == mw.evaluate(rule, *arguments(MULTILABEL, frame), "f1", average=average).to_dict()


def test_the_order_of_words_is_an_option_and_kept_with_the_rule(tmp_path):
    frame, _ = table(MULTICLASS)
    proba, y = arguments(MULTICLASS, frame)
    order = ["urgent", "mid", "low"]
    words = ["--target", "truth", "-m", "quadratic_kappa", "--order", ",".join(order)]
    done("fit", write(frame, tmp_path / "rows.csv"), *words, "-o", tmp_path / "rule.json")
    rule = mw.optimize(proba, y, "quadratic_kappa", order=order).rule
    assert mw.load_rule(tmp_path / "rule.json") == rule
    assert mw.load_rule(tmp_path / "rule.json").metadata.order == [order]
    metric = mw.metrics.Kappa("quadratic", order=order)
    expected = mw.evaluate(rule, proba, y, {"quadratic_kappa": metric}).to_dict()
    assert document("evaluate", tmp_path / "rule.json", tmp_path / "rows.csv")["metrics"] == expected
    unordered = mw.optimize(proba, y, "accuracy").rule
    unordered.to_json(tmp_path / "python.json")  # which does not know the order
    words = ["evaluate", tmp_path / "python.json", tmp_path / "rows.csv", "--target", "truth", "-m", "quadratic_kappa"]
    expected = mw.evaluate(unordered, proba, y, {"quadratic_kappa": metric}).to_dict()
    assert document(*words, "--order", ",".join(order))["metrics"] == expected
    assert "pass --order LOWEST,...,HIGHEST" in run(*words).err


def test_classes_that_no_label_shows(tmp_path):
    frame, _ = table(MULTICLASS)
    seen = frame[frame["truth"] != "mid"].rename(columns={"low": "p1", "mid": "p2", "urgent": "p3"})
    seen["truth"] = np.where(seen["truth"] == "low", 1, 3)
    said = done(
        "fit", write(seen, tmp_path / "seen.csv"), "--target", "truth", "-m", "accuracy", "-o", tmp_path / "seen.json"
    )
    assert "columns 'p1', 'p2', 'p3' (by the prefix 'p': a guess)" in said.err
    assert mw.load_rule(tmp_path / "seen.json").classes[0].tolist() == [1, 2, 3]


def test_missing_labels_are_said_and_left_out(tmp_path):
    frame, options = table(SINGLE)
    proba, y = arguments(SINGLE, frame)
    kept = np.arange(len(frame)) >= 7
    expected = mw.optimize(proba, np.where(kept, y, np.nan), "f1").value
    frame["fraud"] = [str(label) if known else "" for label, known in zip(y, kept, strict=True)]
    source = write(frame, tmp_path / "rows.csv")
    said = run("fit", source, *options, "-m", "f1", "-o", tmp_path / "rule.json", "--force", "--json")
    assert "7 of 160 labels of 'fraud' are missing" in said.err
    assert json.loads(said.out)["value"] == expected
    assert mw.load_rule(tmp_path / "rule.json").classes[0].tolist() == [0, 1]


def test_ordered_categories_keep_their_order(tmp_path):
    frame, _ = table(MULTICLASS)
    order = ["mid", "low", "urgent"]
    frame["truth"] = pd.Categorical(frame["truth"], order, ordered=True)
    source = write(frame, tmp_path / "rows.parquet")
    done("fit", source, "--target", "truth", "-m", "quadratic_kappa", "-o", tmp_path / "rule.json")
    expected = mw.optimize(frame[["low", "mid", "urgent"]], frame["truth"], "quadratic_kappa").rule
    assert mw.load_rule(tmp_path / "rule.json") == expected


def test_abstentions(tmp_path):
    frame, options = table(MULTICLASS, 300)
    proba, y = arguments(MULTICLASS, frame)
    source = write(frame, tmp_path / "rows.csv")
    words = ["-m", "accuracy", "--abstain", "0.3", "--abstain-label", "ask"]
    done("fit", source, *options, *words, "-o", tmp_path / "cost.json")
    expected = mw.optimize(proba, y, "accuracy", abstain=mw.Abstention(0.3, label="ask")).rule
    assert mw.load_rule(tmp_path / "cost.json") == expected
    done("apply", tmp_path / "cost.json", source, "-o", tmp_path / "out.csv")
    decided = read(tmp_path / "out.csv")["truth"].tolist()
    assert decided == expected.predict(proba).tolist()
    assert "ask" in decided
    found = document("evaluate", tmp_path / "cost.json", source, "--abstain", "yes")
    assert found["metrics"] == mw.evaluate(expected, proba, y, ["accuracy"], abstain=True).to_dict()
    frame, options = table(SINGLE, 300)
    proba, y = arguments(SINGLE, frame)
    words = ["-m", "accuracy", "--abstain", "yes", "--subject-to", "abstained <= 0.2"]
    done("fit", write(frame, tmp_path / "rows.csv"), *options, *words, "-o", tmp_path / "share.json")
    expected = mw.optimize(proba, y, "accuracy", abstain=True, subject_to="abstained <= 0.2").rule
    done("apply", tmp_path / "share.json", tmp_path / "rows.csv", "-o", tmp_path / "out.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected.predict(proba))
    assert -1 in expected.predict(proba)


def test_trade_off_is_that_of_python(tmp_path):
    frame, options = table(SINGLE)
    words = ["-m", "recall", "--against", "precision", "--points", "4"]
    source = write(frame, tmp_path / "rows.csv")
    found = document("trade-off", source, *options, *words)
    expected = mw.trade_off(*arguments(SINGLE, frame), "recall", "precision", n_points=4)
    assert found["points"] == {name: values.tolist() for name, values in expected.to_dict().items()}
    assert done("trade-off", source, *options, *words).out.splitlines()[0].split() == ["bound", "recall", "precision"]


def test_explain(fitted):
    _, _, _, path = fitted[SINGLE]
    rule = mw.load_rule(path)
    assert done("explain", path).out.startswith(rule.describe())
    found = document("explain", path)
    assert found["words"] == rule.describe()
    assert found["threshold"] == rule.threshold
    assert found["facts"]["columns"] == [["score"]]


def test_metrics_are_those_of_the_registry():
    listed = {one["name"]: one for one in document("metrics")["metrics"]}
    assert sorted(listed) == mw.metrics.metric_names()
    assert "(1 + beta^2) C[k, k]" in listed["f1"]["about"]
    assert {listed[name]["solver"] for name in ("accuracy", "quadratic_kappa", "g_mean", "min_recall", "mcc")} == {
        "closed_form",
        "path",
        "frank_wolfe",
        "column_generation",
        "ascent",
    }
    shown = done("metrics").out
    assert all(name in shown for name in listed)
    assert "zero_division" in done("metrics", "f1").out


@pytest.mark.filterwarnings("ignore:optimize:UserWarning")  # some are degenerate aims
def test_solvers_of_the_catalogue_are_those_that_serve():
    """With expected confusion, where no labels let a solver off its guarantee."""
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 30)
    for one in document("metrics")["metrics"]:
        if "Needs" in one["about"]:
            continue
        options = {"pos_label": 1} if mw.metrics.get_metric(one["name"]).traits.needs_positive else {}
        mw.optimize(proba, None, one["name"], strategy=mw.Strategy(solver=one["solver"]), **options)


def test_export_to_sql_and_python_decide_alike(tmp_path, fitted):
    for kind in (SINGLE, MULTICLASS):
        frame, _, rule, path = fitted[kind]
        expected = rule.predict(arguments(kind, frame)[0]).tolist()
        done("export", path, "--to", "python", "-o", tmp_path / "rule.py", "--force")
        names = runpy.run_path(str(tmp_path / "rule.py"))
        assert names["decide_all"](arguments(kind, frame)[0].tolist()) == expected
        text = done("export", path, "--to", "sql", "--dialect", "sqlite", "-o", "-").out
        with closing(sqlite3.connect(":memory:")) as database:
            frame.to_sql("rows", database)
            decided = [row[0] for row in database.execute(f"SELECT {text} FROM rows")]
        assert decided == expected


def test_export_to_onnx(tmp_path, fitted):
    runtime = pytest.importorskip("onnxruntime")
    frame, _, rule, path = fitted[MULTICLASS]
    done("export", path, "-o", tmp_path / "rule.onnx")
    proba = arguments(MULTICLASS, frame)[0]
    decided = runtime.InferenceSession(tmp_path / "rule.onnx").run(None, {"probabilities": proba})[0]
    assert decided.tolist() == rule.predict(proba).tolist()
    done("export", path, "-o", tmp_path / "single.onnx", "--dtype", "float32")
    single = proba.astype(np.float32)
    decided = runtime.InferenceSession(tmp_path / "single.onnx").run(None, {"probabilities": single})[0]
    assert decided.tolist() == rule.predict(single).tolist()
    columns = ["--column", "a", "--column", "b", "--column", "c"]
    assert '"b"' in done("export", path, "-o", "-", "--to", "sql", *columns).out


def test_counts_of_decisions_and_names_of_columns(tmp_path, fitted):
    frame, _, rule, path = fitted[MULTILABEL]
    source = write(frame, tmp_path / "rows.csv")
    words = ["--column", "a", "--column", "b", "--keep-all"]
    found = document("apply", path, source, *words, "-o", tmp_path / "out.parquet")
    decided = rule.predict(arguments(MULTILABEL, frame)[0])
    assert found["decisions"]["b"] == {str(k): int((decided[:, 1] == k).sum()) for k in (0, 1)}
    out = pd.read_parquet(tmp_path / "out.parquet")
    assert list(out) == [*frame, "a", "b"]
    assert out["a"].tolist() == decided[:, 0].tolist()
    assert out["id"].tolist() == frame["id"].tolist()


def test_names_and_labels_are_no_markup_and_no_escape_codes(tmp_path):
    rng = np.random.default_rng(0)
    labels = ["[bold]a[/bold]", "\x1b[31mb", "c,d"]
    p = rng.dirichlet(np.ones(3), 90)
    frame = pd.DataFrame(p, columns=labels).assign(**{"[red]y": np.array(labels)[draw_codes(p, rng)]})
    said = done(
        "fit", write(frame, tmp_path / "rows.csv"), "-t", "[red]y", "-m", "macro_f1", "-o", tmp_path / "rule.json"
    )
    assert "'[bold]a[/bold]'" in said.out
    assert "'[red]y'" in said.err
    assert "\x1b" not in said.out + said.err
    out = done("apply", tmp_path / "rule.json", tmp_path / "rows.csv", "--column", "[i]x", "-o", tmp_path / "out.csv")
    assert "\x1b" not in out.out + out.err
    assert set(pd.read_csv(tmp_path / "out.csv")["[i]x"]) <= set(labels)


def test_json_takes_the_standard_output_alone(tmp_path, fitted):
    frame, options, _, path = fitted[SINGLE]
    source = write(frame, tmp_path / "rows.csv")
    for words in (
        ["fit", source, *options, "-m", "f1", "-o", tmp_path / "rule.json"],
        ["apply", path, source, "-o", tmp_path / "out.csv"],
        ["evaluate", path, source],
        ["compare", path, source, "--threshold", "0.5"],
        ["explain", path],
        ["metrics", "f1"],
    ):
        assert isinstance(document(*words), dict)
    for words in (["fit", source, *options, "-m", "f1"], ["apply", path, source]):
        result = run(*words, "-o", "-", "--json")
        assert (result.code, result.out) == (2, "")
        assert "both write to the standard output" in result.err


def test_a_rule_remembers_the_class_that_its_metric_is_of(tmp_path):
    rng = np.random.default_rng(5)
    p = rng.beta(1, 3, 200)
    frame = pd.DataFrame({"p_yes": p, "churn": np.where(rng.random(200) < p, "yes", "no")})
    path, rule = tmp_path / "two.csv", tmp_path / "rule.json"
    frame.to_csv(path, index=False)
    fit = ["fit", path, "--target", "churn", "--proba", "p_yes", "--force", "-o", rule]
    # The class in brackets says which class the column is of, and may be said again, but not contradicted.
    by_name = document(*fit, "--metric", "f1[yes]")
    assert by_name["value"] == document(*fit, "--metric", "f1[yes]", "--pos-label", "yes")["value"]
    assert "already names class 'yes'" in run(*fit, "--metric", "f1[yes]", "--pos-label", "no").err
    by_label = document(*fit, "--metric", "f1", "--pos-label", "yes")
    assert by_label["value"] == by_name["value"]
    assert by_label["words"].startswith("Rule for f1 of 'yes'.")
    loaded = mw.load_rule(rule)
    decided = loaded.predict(p)
    expected = f1_score(frame["churn"], decided, pos_label="yes")
    assert document("evaluate", rule, path)["metrics"]["f1"]["value"] == pytest.approx(expected)
    assert mw.evaluate(loaded, p, frame["churn"], "f1")["f1"].value.estimate == pytest.approx(expected)
    done("report", rule, path, "-o", tmp_path / "report.html")


def test_blanks_between_classes_and_after_a_question_mark(tmp_path):
    frame, options = table(MULTICLASS)
    path = tmp_path / "three.csv"
    frame.to_csv(path, index=False)
    fit = ["fit", path, *options, "--metric", "ordinal", "--force", "-o", tmp_path / "rule.json"]
    plain, spaced = (document(*fit, "--order", text) for text in ("low,mid,urgent", "low, mid , urgent"))
    assert plain == spaced
    assert "?;" not in run("reprt").err
