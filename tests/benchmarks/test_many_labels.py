"""The benchmark of very many labels: what judges, what is drawn, what peers get, and one small run of each part."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn import metrics as sk

BY_SCIKIT_LEARN = {
    "f1": sk.f1_score,
    "precision": sk.precision_score,
    "recall": sk.recall_score,
}


@pytest.fixture
def many(load):
    """A function that imports a module of the benchmark."""
    return lambda name: load(f"benchmarks.many_labels.{name}")


@pytest.fixture
def rows(many):
    """Rows of a small world, and fresh ones."""
    data, synthetic = many("data"), many("synthetic")
    world = synthetic.World(n_labels=60, n_draws=20, shift=2.0)
    return data.Split(*(data.Rows(*synthetic.draw_rows(world, 300, fresh=number)) for number in (0, 1)))


@pytest.fixture
def peers(many):
    """The module of peers, where xcolumns is installed."""
    pytest.importorskip("xcolumns")
    return many("peers")


def draw_matrices(seed):
    rng = np.random.default_rng(seed)
    return (csr_matrix(random_array((80, 12), density=0.2, rng=rng) > 0).astype(np.int8) for _ in range(2))


# ---------------------------------------------------------------------------------------------------------------------
# the judge


@pytest.mark.parametrize("metric", BY_SCIKIT_LEARN)
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_values_are_those_of_scikit_learn(many, metric, average):
    values = many("values")
    decided, y = draw_matrices(0)
    expected = BY_SCIKIT_LEARN[metric](y.toarray(), decided.toarray(), average=average, zero_division=0)
    assert values.judge(values.Goal(metric, average, 3), decided, y)[0] == pytest.approx(expected)


def test_labels_without_positives_or_predictions_count_as_zero(many):
    values = many("values")
    decided, y = csr_matrix([[1, 0, 0, 0]]), csr_matrix([[1, 0, 1, 0]])
    found = {metric: values.judge(values.Goal(metric, "macro", 1), decided, y, 1)[0] for metric in values.METRICS}
    assert found == {"f1": 0.25, "precision": 0.25, "recall": 0.25, "label_coverage": 0.25}


def test_stored_zeros_are_no_decisions(many):
    values = many("values")
    decided, y = draw_matrices(1)
    padded = decided.copy()
    padded.data[::2] = 0
    pruned = padded.copy()
    pruned.eliminate_zeros()
    np.testing.assert_array_equal(values.count(padded, y), values.count(pruned, y))


def test_blocks_are_left_out_one_at_a_time(many):
    values, (decided, y) = many("values"), draw_matrices(2)
    goal = values.Goal("f1", "macro", 3)
    _, left_out = values.judge(goal, decided, y, blocks=4)
    assert left_out[0] == pytest.approx(values.value(goal, values.count(decided[20:], y[20:])))
    numbers = np.random.default_rng(0).normal(size=30)
    means = (numbers.sum() - numbers) / 29
    assert values.jackknife(means) == pytest.approx(numbers.std(ddof=1) / np.sqrt(30))


def test_goals_have_titles(many):
    values = many("values")
    titles = [goal.title for goal in values.GOALS]
    assert {"macro-F1@3", "label coverage@5", "micro-recall@1", "macro-F1, no budget"} < set(titles)
    assert len(set(titles)) == len(titles) == 23


# ---------------------------------------------------------------------------------------------------------------------
# sets


def test_fresh_rows_are_other_rows_of_the_same_world(many, rows):
    for part in (rows.fit, rows.fresh):
        assert part.proba.dtype == np.float32
        assert part.proba.has_canonical_format
        assert part.y.has_canonical_format
        assert 0 < part.proba.data.min() <= part.proba.data.max() < 1
        assert (part.y.data == 1).all()
    assert rows.fit.proba.nnz != rows.fresh.proba.nnz
    counts = [np.bincount(part.y.indices, minlength=60) for part in (rows.fit, rows.fresh)]
    assert np.corrcoef(*counts)[0, 1] > 0.9


def test_drawn_rows_do_not_depend_on_how_many_are_drawn(many, monkeypatch):
    synthetic = many("synthetic")
    monkeypatch.setattr(synthetic, "BLOCK_ROWS", 100)
    world = synthetic.World(n_labels=60, n_draws=20, shift=2.0)
    few, more = (synthetic.draw_rows(world, n_rows) for n_rows in (200, 300))
    for small, large in zip(few, more, strict=True):
        assert (small != large[:200]).nnz == 0


def test_probabilities_are_slightly_miscalibrated_and_some_positives_are_not_stored(many):
    data, synthetic = many("data"), many("synthetic")
    drawn = data.Rows(*synthetic.draw_rows(synthetic.World(n_labels=3_000), 3_000))
    figures = data.describe(drawn)
    assert 0.01 < figures["positives not stored"] < 0.2
    assert 40 < figures["stored a row"] < 66
    assert drawn.proba.data.sum() / drawn.y.nnz == pytest.approx(0.9, abs=0.15)


def test_a_set_is_split_into_halves_and_survives_a_file(many, rows, monkeypatch, tmp_path):
    data = many("data")
    monkeypatch.setenv("METRICWISE_DATA", str(tmp_path))
    monkeypatch.setattr(data, "CACHE", tmp_path / "cache")
    data.write("depends", rows.fit, tmp_path / "many_labels")
    read = data.read("depends")
    assert (read.proba != rows.fit.proba).nnz == (read.y != rows.fit.y).nnz == 0
    split = data.open_split("depends", 1)
    assert split.fit.y.shape[0] + split.fresh.y.shape[0] == 300
    assert split.fit.y.nnz + split.fresh.y.nnz == rows.fit.y.nnz
    with pytest.raises(FileNotFoundError, match=r"debtags.*python -m benchmarks\.many_labels data"):
        data.read("debtags")


def test_paragraphs_of_the_archive_are_read(many, monkeypatch, tmp_path):
    sources = many("sources")
    text = b"Package: a\nTag: x::y, x::z,\n u::v\nDescription-en: b: c\n d\n\nPackage: e\nDescription-en: f\n\n"
    monkeypatch.setattr(sources, "run", lambda *_: text)
    monkeypatch.setattr(sources, "package_lists", lambda _: dict.fromkeys(("index", "descriptions"), tmp_path))
    assert sources.debtags(tmp_path) == (["a  b: c d"], [["u::v", "x::y", "x::z"]])


def test_nouns_have_all_that_lies_above_them(many):
    lines = [
        "01 03 n 01 entity 0 001 ~ 02 n 0000 | that which is",
        "02 03 n 01 living_thing 0 002 @ 01 n 0000 ~ 03 n 0000 | it lives",
        "03 05 n 02 dog 0 domestic_dog 0 002 @ 02 n 0000 %p 04 n 0000 | it barks",
        "04 05 n 01 Laika 0 001 @i 03 n 0000 | a dog in space",
    ]
    texts, labels = many("sources").read_nouns(lines)
    assert texts == ["living thing it lives", "dog domestic dog it barks", "Laika a dog in space"]
    assert labels == [["01"], ["01", "02"], ["01", "02", "03"]]


@pytest.mark.slow
def test_probabilities_are_out_of_fold(many):
    pytest.importorskip("omikuji")
    sources, rng = many("sources"), np.random.default_rng(0)
    features = csr_matrix(random_array((100, 30), density=0.3, rng=rng)).astype(np.float32)
    y = csr_matrix((features[:, :8].toarray() > 0.5).astype(np.int8))
    proba = sources.out_of_fold(features, y)
    assert proba.shape == y.shape
    assert proba.has_canonical_format
    assert 0 < proba.data.min() <= proba.data.max() < 1


# ---------------------------------------------------------------------------------------------------------------------
# peers


@pytest.mark.parametrize("k", [2, None])
def test_rows_of_a_mixture_draw_as_xcolumns_draws(many, peers, rows, k):
    goal = many("values").Goal("f1", "macro", k)
    rule = peers.frank_wolfe(rows.fit, goal, counted="expected", iterations=5)
    decided = peers.decide_mixture(rule, rows.fresh.proba, goal)
    theirs = rule.predict(rows.fresh.proba, seed=peers.SEED)
    theirs.prune()
    assert (decided != theirs).nnz == 0


def test_everybody_decides_every_goal(many, rows, monkeypatch):
    cases, values = many("cases"), many("values")
    monkeypatch.setattr(many("peers"), "LONG", 2)
    monkeypatch.setattr(many("peers"), "SHORT", 1)
    for goal in [goal for goal in values.GOALS if goal.k in (2, 3, None)]:
        for one in cases.contestants(goal, 300):
            decided = one.decide(one.fit(rows.fit, goal), rows.fresh.proba, goal)
            assert decided.shape == rows.fresh.y.shape, (goal, one.name)
            if goal.k:
                assert (decided.sum(axis=1) == goal.k).all(), (goal, one.name)


# ---------------------------------------------------------------------------------------------------------------------
# runs


@pytest.fixture
def small(many, rows, monkeypatch):
    """The command, whose sets are the small one, for one goal and few contestants."""
    for name in ("value", "speed", "memory"):
        monkeypatch.setattr(many(name), "open_split", lambda *_: rows)
    monkeypatch.setattr(many("growth"), "STORED_A_ROW", 10)
    return many("run")


def test_a_small_run_from_rows_to_tables(small, tmp_path):
    common = ["--goals", "macro-F1@3", "--contestants", "fixed recipe", "--output", str(tmp_path), "--tries", "1"]
    small.main(["value", "--sets", "synthetic", "depends", "--splits", "2", *common])
    lines = small.read(tmp_path, "value")
    assert len(lines) == 2 * (1 + 2)
    assert all(0.1 < line["value"] < 0.9 for line in lines)
    assert len(lines[0]["left_out"].split()) == 20
    small.main(["value", "--sets", "depends", "--splits", "1", *common])
    assert len(small.read(tmp_path, "value")) == len(lines)  # replaced, not added
    text = (tmp_path / "tables.md").read_text()
    assert "| macro-F1@3 | metricwise | fixed recipe | 0." in text
    assert "- value: " in text


@pytest.mark.slow
def test_times_memory_and_growth_of_a_small_run(many, small, tmp_path, monkeypatch):
    common = ["--goals", "macro-F1@3", "--output", str(tmp_path), "--tries", "1", "--sets", "synthetic"]
    monkeypatch.setattr(many("growth"), "World", partial(many("synthetic").World, n_labels=300))
    for part, some in (("value", "metricwise"), ("speed", "metricwise"), ("memory", "fixed recipe")):
        small.main([part, "--contestants", some, *common])
    small.main(["growth", "--entries", "20000", "--output", str(tmp_path), "--tries", "1"])
    assert all(line["fit"] >= 0 and line["decide"] > 0 for line in small.read(tmp_path, "speed"))
    assert {"fixed recipe", "default", "together"} < {line["contestant"] for line in small.read(tmp_path, "speed")}
    assert all(line["input"] > 0 for line in small.read(tmp_path, "memory"))
    text = (tmp_path / "tables.md").read_text()
    for heading in ("What is asked for", "Values on fresh rows", "Times\n", "Peak memory", "Times by stored entries"):
        assert f"## {heading}" in text


def line_of(name, library, value, split=0, left_out="", kind="rule", goal=("f1", "macro", 3), **columns):
    head = dict(zip(("metric", "average", "k"), goal, strict=True))
    return (
        {"set": "depends", "library": library, "contestant": name, "kind": kind, "split": split}
        | head
        | {
            "value": value,
            "left_out": left_out,
            **columns,
        }
    )


def test_claims_are_about_named_contestants_against_the_best_of_theirs(many):
    report = many("report")
    lines = [line_of("fixed recipe", "metricwise", 0.5 + 0.01 * split, split) for split in range(3)]
    lines += [line_of("fixed recipe, recalibrated", "metricwise", 0.9, split) for split in range(3)]
    lines += [line_of("Frank-Wolfe 15, expected", "xcolumns", 0.4, split) for split in range(3)]
    lines += [line_of("Frank-Wolfe 15, labels", "xcolumns", 0.49 + 0.01 * split, split) for split in range(3)]
    ((what, where, asked, measured, kept),) = report.value_claims(report.value_cells(lines))
    assert what == "macro-F1@3: fixed recipe minus Frank-Wolfe 15, labels"
    assert (where, asked, measured, kept) == ("depends", ">= +2 %", "+0.0100 ± 0.0000 (+2.0 %)", True)


def test_errors_of_blocks_are_those_of_differences(many):
    report, rng = many("report"), np.random.default_rng(0)
    blocks = rng.normal(0.5, 0.01, 20)
    texts = [" ".join(map(str, blocks + shift)) for shift in (0, -0.1)]
    lines = [
        line_of("fixed recipe", "metricwise", 0.5, left_out=texts[0]) | {"set": "synthetic"},
        line_of("Frank-Wolfe 15, expected", "xcolumns", 0.4, left_out=texts[1]) | {"set": "synthetic"},
    ]
    (values,) = report.value_cells(lines).values()
    assert values.difference("fixed recipe", "Frank-Wolfe 15, expected") == pytest.approx((0.1, 0), abs=1e-12)
    assert values.error(values.parts["fixed recipe"]) > 0.01


def test_rules_are_compared_by_fits_and_batches_by_decisions(many):
    report = many("report")
    cell = {
        "metricwise fixed recipe": {"fit": 0.5, "decide": 0.1, "kind": "rule"},
        "metricwise together": {"fit": 0.5, "decide": 0.25, "kind": "together"},
        "xcolumns Frank-Wolfe 15, expected": {"fit": 20.0, "decide": 2.0, "kind": "rule"},
        "xcolumns block coordinates": {"fit": 0.0, "decide": 30.0, "kind": "together"},
    }
    assert report.speed_ratio(cell, "fixed recipe", "Frank-Wolfe 15, expected") == 40
    assert report.speed_ratio(cell, "together", "block coordinates") == 120
    assert report.speed_ratio(cell, "default", "block coordinates") is None


def test_slow_calls_are_tried_less_often(many):
    speed = many("speed")
    tries = [speed.enough_tries([{"fit": fit, "decide": 0.0}]) for fit in (0.1, 5, 50)]
    assert tries == [speed.TRIES, 2, 1]
    assert speed.enough_tries([]) == 1


def test_a_worker_answers_in_json(many, rows, tmp_path):
    worker, values = many("worker"), many("values")
    worker.save_split(tmp_path, rows)
    goal = values.Goal("f1", "macro", 3)
    one = next(one for one in many("cases").contestants(goal, 300) if one.name == "fixed recipe")
    answers = worker.Worker(tmp_path, goal, one)
    assert set(json.loads(json.dumps(answers.time()))) == {"fit", "decide"}


def test_the_page_says_what_the_lines_say(many):
    run, report = many("run"), many("report")
    path = run.RESULTS / "tables.md"
    if not path.exists():
        pytest.skip("the benchmark has not been run")
    files = {part: run.read(run.RESULTS, part) for part in (*run.PARTS, "versions")}
    assert path.read_text(encoding="utf-8") == report.page(files)


def test_options_choose_goals_and_contestants(many):
    cases, value = many("cases"), many("value")
    assert [goal.title for goal in cases.goals_of("macro-F1@")] == ["macro-F1@1", "macro-F1@3", "macro-F1@5"]
    names = {one.library for one in cases.contestants(cases.goals_of("macro-F1@3")[0], 300, "metricwise")}
    assert names == {"metricwise"}
    options = SimpleNamespace(sets=["synthetic", "depends"], splits=None, goals="macro-F1@3", contestants="", rows=None)
    assert [(task.set, task.split) for task in value.tasks(options)] == [
        ("synthetic", 0),
        *(("depends", split) for split in range(value.SPLITS)),
    ]
