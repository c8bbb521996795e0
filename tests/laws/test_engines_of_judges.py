"""Engines: rows of tables and Dask collections are judged as the same rows in memory are."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import metricwise as mw
import worlds
from metricwise import report
from metricwise.data.sources import tables
from metricwise.monitoring.shares import estimate_shares

N_ROWS = 400
LABELS = np.array(["high", "low", "mid"])
ENGINES = ["table", "dask"]
METRICS = ["macro_f1", "accuracy", "mcc", "recall[low]"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Tables are read 70 rows at a time."""
    monkeypatch.setattr(tables, "batch_rows", lambda *_: 70)


def make_frame(n_rows=N_ROWS, seed=0, copies=1):
    """Return rows of three classes with weights, clusters, groups of two kinds and decisions of two models."""
    eta, codes = worlds.multiclass(n_rows, [0.5, 1.0, 0.3], sharpen=2, seed=seed)
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(eta, columns=LABELS).assign(
        grade=LABELS[codes],
        weight=rng.integers(0, 4, n_rows) / 2,
        count=rng.integers(0, 4, n_rows),
        patient=rng.integers(0, 60, n_rows),
        sex=rng.choice(["f", "m"], n_rows),
        age=rng.choice([20, 40, 60], n_rows),
    )
    return frame.loc[np.repeat(np.arange(n_rows), copies)].reset_index(drop=True)


class Served:
    """The same rows in memory, in a table or in a Dask collection: probabilities, labels and other columns."""

    def __init__(self, engine, frame, folder):
        self.engine, self.frame = engine, frame
        if engine == "table":
            frame.rename(columns={label: f"p_{label}" for label in LABELS}).to_parquet(folder / "rows.parquet")
            self.proba = mw.Table(folder / "rows.parquet", proba_prefix="p_")
        elif engine == "dask":
            self.frame = dd.from_pandas(frame, npartitions=3)
        if engine != "table":
            self.proba = self.frame[list(LABELS)]
        self.y = self["grade"]

    def __getitem__(self, names):
        """Return columns, or their names for a table."""
        return names if self.engine == "table" else self.frame[names]


def numbers(evaluation):
    """Return all numbers of an evaluation, those of groups as well, by what they are."""
    found = {"rows": evaluation.n_rows}
    for metric, values in evaluation.to_dict().items():
        found |= {(metric, name): value for name, value in values.items()}
    for group, part in evaluation.by_group.items():
        found |= {(group, name): value for name, value in numbers(part).items()}
    return found


RULE = mw.WeightedRule.from_weights([1.0, 2.0, 1.2], classes=LABELS)
OTHER = mw.WeightedRule.from_weights([1.5, 1.0, 1.0], classes=LABELS)


def fitted(**options):
    """Return a rule that is fitted to other rows, in memory."""
    frame = make_frame(seed=1)
    metric = options.pop("metric", "accuracy")
    options = {name: frame[value] if name == "groups_of" else value for name, value in options.items()}
    if "groups_of" in options:
        options["sensitive_features"] = options.pop("groups_of")
    return mw.optimize(frame[LABELS], frame["grade"], metric, **options).rule


MIXTURE = fitted(metric="min_recall", strategy=mw.Strategy(confusion="labels", recalibrate=False, randomized=True))
ABSTAINING = fitted(abstain=0.3)
GROUPED = fitted(groups_of="sex", subject_to="demographic_parity <= 0.3")
SEGMENTED = mw.optimize(
    make_frame(seed=1)[LABELS], make_frame(seed=1)["grade"], "macro_f1", segments=make_frame(seed=1)["age"]
).rule

CASES = {
    "one rule": lambda rows: (RULE, METRICS, {}),
    "two rules": lambda rows: (RULE, METRICS, {"against": OTHER}),
    "decisions": lambda rows: (np.roll(LABELS[np.arange(N_ROWS) % 3], 1), METRICS, {"against": OTHER}),
    "weights": lambda rows: (RULE, METRICS, {"sample_weight": rows["weight"]}),
    "frequencies": lambda rows: (RULE, METRICS, {"sample_weight": mw.Frequencies(rows["count"])}),
    "clusters": lambda rows: (RULE, METRICS, {"groups": rows["patient"]}),
    "weighted clusters": lambda rows: (RULE, METRICS, {"groups": rows["patient"], "sample_weight": rows["weight"]}),
    "counted clusters": lambda rows: (
        RULE,
        METRICS,
        {"groups": rows["patient"], "sample_weight": mw.Frequencies(rows["count"])},
    ),
    "mixture": lambda rows: (MIXTURE, METRICS, {}),
    "abstention": lambda rows: (ABSTAINING, ["accuracy", "coverage"], {"against": RULE}),
    "sensitive features": lambda rows: (
        RULE,
        ["macro_f1", "demographic_parity", mw.worst_group("accuracy")],
        {"sensitive_features": rows["sex"], "sample_weight": rows["weight"]},
    ),
    "combined features": lambda rows: (RULE, ["accuracy"], {"sensitive_features": rows[["sex", "age"]]}),
    "features in memory": lambda rows: (MIXTURE, ["accuracy"], {"sensitive_features": make_frame()["age"]}),
    "rule by group": lambda rows: (GROUPED, ["accuracy", "equalized_odds[low]"], {"sensitive_features": rows["sex"]}),
    "segments": lambda rows: (SEGMENTED, METRICS, {"segments": rows["age"]}),
    "segments in memory": lambda rows: (SEGMENTED, METRICS, {"segments": make_frame()["age"], "against": RULE}),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_evaluate_is_that_of_rows_in_memory(case, engine, tmp_path):
    evaluations = []
    for served in ("memory", engine):
        rows = Served(served, make_frame(), tmp_path)
        rule, metrics, options = CASES[case](rows)
        evaluations.append(mw.evaluate(rule, rows.proba, rows.y, metrics, **options))
    whole, pieces = map(numbers, evaluations)
    assert pieces == {name: pytest.approx(value, abs=1e-9) for name, value in whole.items()}
    estimates = [name for name in whole if name[-1] in ("value", "baseline", "difference")]
    assert estimates
    assert [pieces[name] for name in estimates] == pytest.approx([whole[name] for name in estimates], abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_of_rows_belong_together(engine, tmp_path):
    frame = make_frame(200, copies=2)
    in_memory = mw.evaluate(RULE, frame[LABELS], frame["grade"], METRICS)
    rows = Served(engine, frame, tmp_path)
    pieces = mw.evaluate(RULE, rows.proba, rows.y, METRICS)
    assert numbers(pieces) == {name: pytest.approx(value, abs=1e-9) for name, value in numbers(in_memory).items()}
    once = mw.evaluate(RULE, make_frame(200)[LABELS], make_frame(200)["grade"], "accuracy")["accuracy"].value
    assert pieces["accuracy"].value.high == pytest.approx(once.high, abs=0.01)  # not as of twice as many rows


@pytest.mark.parametrize("engine", ENGINES)
def test_resamples_of_kinds_vary_as_those_of_rows_do(engine, tmp_path):
    frame = make_frame(4000)
    rows = Served(engine, frame, tmp_path)
    pieces = mw.evaluate(RULE, rows.proba, rows.y, "min_recall", sample_weight=rows["weight"])["min_recall"]
    codes = {label: k for k, label in enumerate(LABELS)}
    y, weight = frame["grade"].map(codes).to_numpy(), frame["weight"].to_numpy()
    right = RULE.predict(frame[LABELS]) == frame["grade"].to_numpy()
    share = np.array([weight[y == k] @ right[y == k] / weight[y == k].sum() for k in range(3)])
    worst = share.argmin()
    w = weight[y == worst]
    error = np.sqrt(np.sum((w * (right[y == worst] - share[worst])) ** 2)) / w.sum()  # of the recall of one class
    assert pieces.value.estimate == pytest.approx(share[worst], abs=1e-12)
    assert pieces.value.high - pieces.value.low == pytest.approx(2 * 1.96 * error, rel=0.25)


@pytest.mark.parametrize("engine", ENGINES)
def test_two_models_with_numbers_of_their_own(engine, tmp_path):
    frame = make_frame()
    noisy = make_frame(seed=3)
    y = frame["grade"]
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    first = Served(engine, frame, folders[0])
    second = Served(engine, noisy.assign(grade=y), folders[1])
    whole = mw.evaluate({"a": (RULE, frame[LABELS]), "b": (MIXTURE, noisy[LABELS])}, y, METRICS)
    pieces = mw.evaluate({"a": (RULE, first.proba), "b": (MIXTURE, second.proba)}, first.y, METRICS)
    assert numbers(pieces) == {name: pytest.approx(value, abs=1e-9) for name, value in numbers(whole).items()}


@pytest.mark.parametrize("average", ["micro", "macro", "instance"])
@pytest.mark.parametrize("engine", ENGINES)
def test_several_outputs(engine, average, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random((300, 8))
    y = (rng.random((300, 8)) < p).astype(int)
    rule = mw.WeightedRule.from_thresholds(np.linspace(0.2, 0.7, 8))
    whole = mw.evaluate(rule, p, y, ["f1", "recall"], average=average)
    if engine == "table":
        columns = {f"p{m}": p[:, m] for m in range(8)} | {f"y{m}": y[:, m] for m in range(8)}
        pd.DataFrame(columns).to_parquet(tmp_path / "rows.parquet")
        rows = mw.Table(tmp_path / "rows.parquet", proba=[f"p{m}" for m in range(8)])
        pieces = mw.evaluate(rule, rows, [f"y{m}" for m in range(8)], ["f1", "recall"], average=average)
    else:
        lazy = da.from_array(p, chunks=(70, 3)), da.from_array(y, chunks=(70, 8))
        pieces = mw.evaluate(rule, *lazy, ["f1", "recall"], average=average)
    assert numbers(pieces) == {name: pytest.approx(value, abs=1e-9) for name, value in numbers(whole).items()}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["logits", "scores"])
def test_logits_and_scores(engine, kind, tmp_path):
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    y = (rng.random(300) < 1 / (1 + np.exp(-2 * z))).astype(int)
    whole = mw.evaluate(0.3, z, y, ["f1", "accuracy"], input=kind, against=0.0)
    if engine == "table":
        pd.DataFrame({"z": z, "y": y}).to_parquet(tmp_path / "rows.parquet")
        pieces = (mw.Table(tmp_path / "rows.parquet", proba="z"), "y")
    else:
        pieces = (da.from_array(z, chunks=70), da.from_array(y, chunks=70))
    found = mw.evaluate(0.3, *pieces, ["f1", "accuracy"], input=kind, against=0.0)
    assert numbers(found) == {name: pytest.approx(value, abs=1e-9) for name, value in numbers(whole).items()}


# ------------------------------------------------------------------------------------------------------------ fitting


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "options",
    [
        {"metric": "accuracy", "subject_to": "demographic_parity <= 0.2", "confidence": 0.9},
        {"metric": mw.worst_group("accuracy"), "strategy": mw.Strategy(confusion="labels", recalibrate=True)},
    ],
)
def test_rules_by_group_are_those_of_rows_in_memory(engine, options, tmp_path):
    solutions = []
    for served in ("memory", engine):
        rows = Served(served, make_frame(), tmp_path)
        solutions.append(mw.optimize(rows.proba, rows.y, sensitive_features=rows["sex"], **options))
    whole, pieces = solutions
    assert (pieces.value, pieces.baseline) == pytest.approx((whole.value, whole.baseline), abs=1e-12)
    frame = make_frame(seed=5)
    decided = [solution.rule.predict(frame[LABELS], sensitive_features=frame["sex"]) for solution in solutions]
    np.testing.assert_array_equal(*decided)
    assert pieces.by_group.keys() == whole.by_group.keys() == {"f", "m"}


# ------------------------------------------------------------------------------------------------- rows without labels


def moved_rows():
    """Return rows among which one class has become more frequent."""
    frame = make_frame(2400, seed=7)
    rare = frame[frame["grade"] == "mid"]
    return pd.concat([frame, rare, rare]).sample(frac=1, random_state=0).reset_index(drop=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_shares_and_values_without_labels(engine, tmp_path):
    labelled, frame = make_frame(1500, seed=6), moved_rows()
    rule = mw.optimize(labelled[LABELS], labelled["grade"], "macro_f1").rule
    rows = Served(engine, frame, tmp_path)
    whole, pieces = estimate_shares(rule, frame[LABELS]), estimate_shares(rule, rows.proba)
    assert pieces.n_rows == whole.n_rows
    assert pieces.moved == whole.moved
    for name in ("estimate", "low", "high", "old"):
        np.testing.assert_allclose(getattr(pieces, name), getattr(whole, name), rtol=0, atol=1e-9)
    reference = (labelled[LABELS], labelled["grade"])
    values = [mw.expect(rule, proba, METRICS, reference=reference) for proba in (frame[LABELS], rows.proba)]
    assert values[1].notes == values[0].notes
    for metric in METRICS:
        expected = {name: pytest.approx(value, abs=1e-9) for name, value in values[0][metric].to_dict().items()}
        assert values[1][metric].to_dict() == expected
    adapted = [rule.adapted(proba).predict(frame[LABELS]) for proba in (frame[LABELS], rows.proba)]
    np.testing.assert_array_equal(*adapted)


@pytest.mark.parametrize("engine", ENGINES)
def test_reference_rows_need_not_be_in_memory(engine, tmp_path):
    labelled, frame = make_frame(1500, seed=6), moved_rows()
    rows = Served(engine, labelled, tmp_path)
    references = (labelled[LABELS], labelled["grade"]), (rows.proba, rows.y)
    whole, pieces = (mw.expect(RULE, frame[LABELS], METRICS, reference=reference) for reference in references)
    for metric in METRICS:
        expected = {name: pytest.approx(value, abs=1e-9) for name, value in whole[metric].to_dict().items()}
        assert pieces[metric].to_dict() == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_reports_are_those_of_rows_in_memory(engine, tmp_path):
    summaries = []
    for served in ("memory", engine):
        rows = Served(served, make_frame(), tmp_path)
        summaries.append(report.summarize(RULE, rows.proba, rows.y, METRICS, sample_weight=rows["weight"]))
    whole, pieces = map(leaves, summaries)
    assert pieces == {name: pytest.approx(value, abs=1e-9) for name, value in whole.items()}
    assert any(name.startswith("reliability") for name in whole)


def leaves(value, name=""):
    """Return the leaves of a nest of dicts and lists by their path."""
    if isinstance(value, dict):
        return {path: leaf for key, part in value.items() for path, leaf in leaves(part, f"{name}{key}.").items()}
    if isinstance(value, list):
        return {path: leaf for at, part in enumerate(value) for path, leaf in leaves(part, f"{name}{at}.").items()}
    return {name: value}


# ------------------------------------------------------------------------------------------------------------ refusals


def test_what_needs_all_rows_is_refused(tmp_path):
    rows = Served("dask", make_frame(), tmp_path)
    with pytest.raises(ValueError, match="evaluate: cost= gives costs per row, which need probabilities and labels in"):
        mw.evaluate(RULE, rows.proba, rows.y, "cost", cost=np.ones((N_ROWS, 3)))
    with pytest.raises(ValueError, match="evaluate: InTime needs all rows in memory, to sort them; pass groups"):
        mw.evaluate(RULE, rows.proba, rows.y, "accuracy", groups=mw.InTime(rows["age"]))
    with pytest.raises(ValueError, match="contain only groups that the rule was fitted to"):
        mw.evaluate(GROUPED, rows.proba, rows.y, "accuracy", sensitive_features=rows["age"])
    table = Served("table", make_frame(), tmp_path)
    with pytest.raises(ValueError, match="there is no column 'gender'; the columns are"):
        mw.evaluate(RULE, table.proba, "grade", "accuracy", sensitive_features="gender")
    one = Served("table", make_frame().assign(sex="f"), tmp_path)
    with pytest.raises(ValueError, match=r"sensitive_features must contain at least two groups, got only \['f'\]"):
        mw.optimize(one.proba, "grade", "accuracy", subject_to="demographic_parity <= 0.2", sensitive_features="sex")
    gone = Served("table", make_frame().assign(sex=[None, *["f", "m"] * (N_ROWS // 2 - 1), "m"]), tmp_path)
    with pytest.raises(ValueError, match="sensitive_features must be known for every row, got missing values; drop"):
        mw.evaluate(RULE, gone.proba, "grade", "accuracy", sensitive_features="sex")
