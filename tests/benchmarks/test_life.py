"""The benchmark of a rule in use: what judges, what shifts, what peers get, and one small run of each part."""

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.datasets import load_digits, load_wine

BY_SCIKIT_LEARN = {
    "f1": lambda y, p, w: sk.f1_score(y == 1, p == 1, sample_weight=w),
    "macro_f1": lambda y, p, w: sk.f1_score(y, p, average="macro", sample_weight=w),
    "accuracy": lambda y, p, w: sk.accuracy_score(y, p, sample_weight=w),
    "kappa": lambda y, p, w: sk.cohen_kappa_score(y, p, sample_weight=w),
    "quadratic_kappa": lambda y, p, w: sk.cohen_kappa_score(y, p, weights="quadratic", sample_weight=w),
    "mcc": lambda y, p, w: sk.matthews_corrcoef(y, p, sample_weight=w),
    "balanced_accuracy": lambda y, p, w: sk.balanced_accuracy_score(y, p, sample_weight=w),
    "g_mean": lambda y, p, w: np.exp(np.log(sk.recall_score(y, p, average=None, sample_weight=w)).mean()),
    "min_recall": lambda y, p, w: sk.recall_score(y, p, average=None, sample_weight=w).min(),
}
PARTS = ("adaptation", "expectation", "streams", "watching", "equality")


@pytest.fixture
def life(load):
    """A function that imports a module of the benchmark."""
    return lambda name: load(f"benchmarks.life.{name}")


@pytest.fixture
def case(life):
    """Two classes of digits, and a model of few pixels."""
    cases = life("cases")
    X, y = load_digits(return_X_y=True)
    rows = cases.Rows(X[:, 18:22], (y < 3).astype(np.intp))
    return cases.fit_case(rows, cases.ALL_MODELS["logistic"](), "binary", 0)


@pytest.fixture
def run(life, case, monkeypatch):
    """A function that measures a part on the small case, without peers, and returns its rows and its page."""

    def run_part(name, **constants):
        part = life(name)
        for key, value in constants.items():
            monkeypatch.setattr(part, key, value)
        monkeypatch.setattr(part, "open_case", lambda _: case, raising=False)
        for key, value in {
            "quantifiers": lambda *_: {},
            "HAS": dict.fromkeys(("quapy", "nannyml", "mapie"), False),
        }.items():
            monkeypatch.setattr(part, key, value, raising=False)
        task = part.tasks(draws=2)[0]
        files = part.measure(task)
        others = [{**row, "set": "other"} for row in files[part.FILES[0]] if "set" in row]
        return files, part.report({**files, part.FILES[0]: files[part.FILES[0]] + others}, "")

    return run_part


@pytest.mark.parametrize("metric", BY_SCIKIT_LEARN)
def test_formulas_are_those_of_scikit_learn(life, metric):
    values, rng = life("values"), np.random.default_rng(0)
    assert set(BY_SCIKIT_LEARN) == set(values.FORMULAS)
    y, decided, weight = rng.integers(0, 3, 200), rng.integers(0, 3, 200), rng.random(200)
    C = values.count(y, decided, weight, 3)
    assert values.FORMULAS[metric](C) == pytest.approx(BY_SCIKIT_LEARN[metric](y, decided, weight))


def test_costs_are_highest_for_the_rarest_class(life, case):
    table = life("values").cost_table(case)
    assert np.argmax(case.shares) == 0
    np.testing.assert_allclose(table, [[0, 0.25], [1, 0]])


def test_probabilities_of_labelled_rows_are_out_of_fold(life):
    cases = life("cases")
    X, y = load_wine(return_X_y=True)
    rows = cases.Rows(X, y.astype(np.intp))
    made = cases.fit_case(rows, cases.ALL_MODELS["logistic"](), "multiclass", 0)
    assert len(made.y) == len(y) // 2
    assert len(made.pool_y) == len(y) - len(y) // 2
    labelled, pool = cases.split_set(rows, 0)
    assert not set(labelled) & set(pool)
    fitted = cases.ALL_MODELS["logistic"]().fit(X[labelled], y[labelled])
    np.testing.assert_allclose(made.pool, fitted.predict_proba(X[pool]))
    assert not np.allclose(made.proba, fitted.predict_proba(X[labelled]))


@pytest.mark.slow
def test_a_case_is_fitted_once(life, monkeypatch, tmp_path):
    cases = life("cases")
    monkeypatch.setattr(cases, "CACHE", tmp_path)
    task = cases.Task("digits_eight", "logistic")
    made = cases.open_case(task)
    monkeypatch.setattr(cases, "fit_case", None)
    again = cases.open_case(task)
    np.testing.assert_array_equal(made.pool, again.pool)
    assert again.kind == "binary"


@pytest.mark.parametrize(("name", "ratio"), [("none", 1), ("slight", 2), ("mild", 3), ("strong", 12)])
def test_label_shifts_move_the_odds_of_classes_alone(life, case, name, ratio):
    shift = life("shifts").make_shift(case, name, np.random.default_rng(1))
    odds, old = shift.shares[1] / shift.shares[0], case.shares[1] / case.shares[0]
    assert max(odds / old, old / odds) == pytest.approx(ratio)
    assert shift.weight.sum() == pytest.approx(1)
    for k in range(2):
        assert np.ptp(shift.weight[case.pool_y == k]) == 0
    drawn = case.pool_y[shift.draw(np.random.default_rng(0), 50_000)]
    np.testing.assert_allclose(np.bincount(drawn) / len(drawn), shift.shares, atol=0.01)


@pytest.mark.parametrize(
    ("name", "worth"),
    [("covariate 1", 0.75), ("covariate 2", 0.75), ("covariate 1, further", 0.5), ("covariate 2, further", 0.5)],
)
def test_covariate_shifts_depend_on_features_alone(life, case, name, worth):
    shifts = life("shifts")
    shift = shifts.make_shift(case, name, np.random.default_rng(0))
    assert shifts.worth(shift.weight) == pytest.approx(worth)
    feature = case.direction if name.startswith("covariate 1") else case.cluster
    for value in np.unique(feature)[:5]:
        assert np.ptp(shift.weight[feature == value]) == 0
    assert shift.shares == pytest.approx(np.bincount(case.pool_y, shift.weight))


def test_the_standard_error_of_a_mean_is_that_of_sets(life):
    summaries, rng = life("summaries"), np.random.default_rng(0)
    values = rng.normal(size=12)
    rows = [{"set": name, "stale": 0.0, "new": value} for name, value in enumerate(values)]
    error = summaries.jackknife(summaries.mean_change("new"), rows)
    assert error == pytest.approx(100 * values.std(ddof=1) / np.sqrt(12))
    doubled = summaries.jackknife(summaries.mean_change("new"), rows * 2)  # more rows of the same sets say no more
    assert doubled == pytest.approx(error)


def test_changes_are_counted_in_points(life):
    summaries = life("summaries")
    rows = [
        {"set": name, "stale": 0.5, "true shares": 0.5 + best, "new": 0.5 + gain}
        for name, best, gain in [("a", 0.04, 0.03), ("b", 0.02, -0.02), ("c", 0.02, 0.03)]
    ]
    line = summaries.change_line(rows, "new")
    assert line["change"].startswith("+1.33 ±")
    assert line["below -1"] == "33.3%"
    assert line["of true shares, %"].startswith("+50 ±")


@pytest.mark.slow
def test_part_a_from_rows_to_the_page(run):
    files, page = run("adaptation", SIZES=(100, 1_000))
    strong = [row for row in files["adaptation"] if (row["shift"], row["rows"]) == ("strong", 1_000)]
    assert {row["moved"] for row in strong} == {1}
    gains = [row["metricwise"] - row["stale"] for row in strong if row["metric"] == "f1"]
    assert np.mean(gains) > 0.01
    assert all("adapted" not in row for row in files["adaptation"] if row["rows"] == 100)
    unmoved = [row for row in files["adaptation"] if not row["moved"] and "adapted" in row]
    assert all(row["adapted"] == row["stale"] for row in unmoved)
    assert "| strong, 1,000 rows: of true shares, % | >= 85 |" in page
    assert {row["shift"] for row in files["shares"]} == {"none", "slight", "mild", "strong"}


def test_part_b_from_rows_to_the_page(run):
    files, page = run("expectation", SIZES=(300,), SHIFTS=("none", "strong"))
    rows = files["expectation"]
    assert len(rows) == 2 * 2 * 3
    assert all(row["metricwise low"] <= row["metricwise"] <= row["metricwise high"] for row in rows)
    assert {row["NannyML"] for row in rows} == {None}
    assert "NannyML is not installed" in page
    assert "| coverage, all shifts | 300 | >= 91% |" in page


def test_part_c_from_rows_to_the_page(run):
    files, page = run("streams", JUDGED=(3,), BATCH_SIZES=(200,))
    assert len(files["streams"]) == 2 * 2 * 2
    assert all(0 < row["half-life 400 rows"] < 1 for row in files["streams"])
    assert "Where nothing drifts, half-lives of 400 and 1,000 rows change the metric by" in page


def test_streams_drift_to_the_strong_shift(life, case):
    streams = life("streams")
    stream = streams.draw_stream(case, "shares", 200, np.random.default_rng(0))
    odds = np.array([shift.shares[1] / shift.shares[0] for shift in stream.shifts])
    np.testing.assert_allclose(np.diff(np.log(odds)), np.log(12) / 13 * np.sign(odds[-1] - odds[0]))
    still = streams.draw_stream(case, "none", 200, np.random.default_rng(0))
    np.testing.assert_allclose([shift.shares for shift in still.shifts], np.tile(case.shares, (14, 1)))


def test_part_e_from_rows_to_the_page(run):
    files, page = run("equality", SHARE_ROWS=500, EXPECT_ROWS=300)
    assert {row["what"] for row in files["times"]} == {"shares", "expect"}
    assert "QuaPy is not installed" in page


def test_streams_of_part_d_have_the_accuracy_that_they_say(life):
    watching = life("watching")
    scenario = watching.Scenario("x", 40_000, 0.8, 80_000, 0.75)
    _, decided, y = scenario.draw(np.random.default_rng(0))
    for part, accuracy in ((slice(0, 40_000), 0.8), (slice(40_000, None), 0.75)):
        values = [sk.accuracy_score(y[part], decided[part]), sk.precision_score(y[part], decided[part])]
        np.testing.assert_allclose([*values, sk.f1_score(y[part], decided[part])], accuracy, atol=0.01)


def test_delays_of_part_d(life):
    watching = life("watching")
    name = "broken after 2,000 rows on the promise"
    found = [2_300, 2_500, 2_900, None, 1_900]
    rows = [{"scenario": name, "method": "m", "promise": "accuracy", "found": at} for at in found]
    line = watching.delay_table(rows).splitlines()[-1]
    assert line == f"| {name} | m | 5 | 500 | 300, 900 | 20.0% | 20.0% |"


@pytest.mark.filterwarnings("default")  # of its imports
def test_shares_of_quapy_are_found(life, case):
    pytest.importorskip("quapy")
    peers = life("peers")
    rng = np.random.default_rng(0)
    shift = life("shifts").make_shift(case, "strong", rng)
    for estimate in peers.quantifiers(case.proba, case.y).values():
        error = np.abs(estimate(case.pool[shift.draw(rng, 20_000)]) - shift.shares).max()
        assert error < 0.5 * np.abs(case.shares - shift.shares).max()


@pytest.mark.filterwarnings("default")  # of its imports
def test_values_of_nannyml_are_found(life, case):
    pytest.importorskip("nannyml")
    peers = life("peers")
    decided = (case.pool[:, 1] > 0.4).astype(int)
    method = peers.ConfidenceBased(case.proba, case.y, (case.proba[:, 1] > 0.4).astype(int))
    estimates = method.estimate(case.pool, decided)
    assert estimates["f1"].estimate == pytest.approx(sk.f1_score(case.pool_y, decided), abs=0.05)
    assert estimates["accuracy"].low < estimates["accuracy"].estimate < estimates["accuracy"].high


@pytest.mark.parametrize("name", PARTS)
def test_the_page_says_what_the_file_says(life, name):
    command, part = life("command"), life(name)
    page = command.RESULTS / f"{part.FILES[0]}.md"
    if not page.exists():
        pytest.skip("the benchmark has not been run")
    files = command.read_files(part)
    assert part.report(files, command.stored_versions(page)) == page.read_text(encoding="utf-8")
