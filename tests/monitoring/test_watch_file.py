"""A watch in a file goes on as if it had never stopped; a file that was edited or damaged gives one sentence."""

import json

import numpy as np
import pytest

import metricwise as mw
from fuzz.mangled_text import damaged, edited
from fuzz.mangling import assert_sentence

PROMISES = ["precision >= 0.5", "0.1 <= share <= 0.9", "kappa >= 0.1", "macro_f1 >= 0.4", "share within 0.3 of prior"]
THRESHOLD = mw.WeightedRule.from_thresholds(0.5)
GROUPED = mw.GroupedRule((THRESHOLD, mw.WeightedRule.from_thresholds(0.4)), ("a", "b"))
OUTPUTS = mw.WeightedRule.from_thresholds({"news": 0.3, "sport": 0.6})


def batch(rule, seed, n=31):
    """Rows, labels some of which are missing, ids and what else a rule needs."""
    rng = np.random.default_rng(seed)
    shape = (n, 2) if rule.multioutput else (n,)
    proba = rng.beta(1, 2, shape)
    y = np.where(rng.random(shape) < 0.7, rng.random(shape) < proba, np.nan)
    options = {"sensitive_features": rng.choice(["a", "b"], n)} if rule.needs else {}
    return proba, y, [f"{seed}/{row}" for row in range(n)], options


def go_on(watch, rule, seeds):
    for seed in seeds:
        proba, y, ids, options = batch(rule, seed)
        watch.update(proba, y, ids, **options)
        late = [name for name in watch._state.waiting.rows if name.endswith("3")][:2]
        labels = np.ones((len(late), 2)) if rule.multioutput else np.ones(len(late))
        if late:
            watch.update_labels(late, labels)
    return watch


def begin(rule, promises, **options):
    return mw.watch(rule, promises, forget_after=9, alpha=0.1, **options)


CASES = {
    "binary": (THRESHOLD, PROMISES),
    "by group": (GROUPED, ["recall >= 0.2 in every group", "accuracy >= 0.5"]),
    "outputs": (OUTPUTS, ["f1 >= 0.2", "precision[news, 1] >= 0.2"]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stop", [0, 1, 6])
def test_saving_and_loading_changes_nothing(case, stop, tmp_path):
    rule, promises = CASES[case]
    never = go_on(begin(rule, promises), rule, range(12))
    stopped = go_on(begin(rule, promises), rule, range(stop))
    stopped.to_json(tmp_path / "watch.json")
    again = go_on(mw.load_watch(tmp_path / "watch.json"), rule, range(stop, 12))
    assert again.to_json() == never.to_json()
    assert again.promises == never.promises
    assert again.summary() == never.summary()
    assert (again.alpha, again.labelled, again.forget_after) == (0.1, "random", 9)
    assert again.rule == rule


def test_loading_from_text_and_path(tmp_path):
    watch = go_on(begin(THRESHOLD, PROMISES), THRESHOLD, range(2))
    text = watch.to_json(tmp_path / "watch.json")
    assert (tmp_path / "watch.json").read_text(encoding="utf-8") == text
    assert mw.load_watch(text).to_json() == mw.load_watch(str(tmp_path / "watch.json")).to_json() == text


def test_ids_of_both_kinds_and_broken_promises_survive():
    watch = mw.watch(THRESHOLD, "accuracy >= 0.9").update([0.6, 0.7], ids=[7, "7"])
    watch.update(np.ones(60), np.zeros(60))
    again = mw.load_watch(watch.to_json())
    assert again.broken
    assert again.promises == watch.promises
    assert again.update_labels(["7", 7], [1, 0]).n_waiting == 0


def test_a_state_that_lost_its_counts_is_kept(monkeypatch):
    from metricwise.monitoring import e_process

    monkeypatch.setattr(e_process, "MAX_PAIRS", 1)
    watch = go_on(begin(THRESHOLD, PROMISES[:1]), THRESHOLD, range(3))
    assert (watch.promises[0].estimate.low, watch.promises[0].estimate.high) == (0.0, 1.0)
    assert mw.load_watch(watch.to_json()).to_json() == watch.to_json()


def test_metrics_without_limits_are_kept():
    metric = mw.metrics.FractionalLinear([[0, 0], [0, 2]], [[0, 1], [1, 0]], zero_division=0.0)
    watch = go_on(begin(THRESHOLD, mw.at_least(metric, 0.1)), THRESHOLD, range(3))
    assert watch.promises[0].estimate.high == np.inf
    assert watch.summary()["promises"][0]["running_high"] == [None] * watch.n_batches
    assert mw.load_watch(watch.to_json()).to_json() == watch.to_json()


# -------------------------------------------------------------------------------------------------------- refused files


def changed(change):
    document = json.loads(go_on(begin(THRESHOLD, PROMISES), THRESHOLD, range(4)).to_json())
    change(document)
    return json.dumps(document)


def set_at(*path, value):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_at("format", value="metricwise-rule"), "load_watch: format must be 'metricwise-watch'"),
        (set_at("version", value=2), "version must be at most 1"),
        (set_at("more", value=1), "the watch must have only the fields"),
        (set_at("rule", "kind", value="magic"), "kind"),
        (set_at("alpha", value=1.0), "alpha must be a number between 0 and 1, got 1"),
        (set_at("labelled", value="never"), "labelled must be one of"),
        (set_at("forget_after", value=0), "forget_after must be an integer from 1, got 0"),
        (set_at("promises", value=[]), "promises must be a non-empty list"),
        (set_at("promises", 0, "low", value=None), "must be bounded from below or from above"),
        (set_at("promises", 0, "output", value=3), r"promises\[0\].output must be null or an integer below 1, got 3"),
        (set_at("promises", 0, "group", value=0), r"promises\[0\].group must be null or an integer below 0"),
        (
            set_at("promises", 0, "form", "kind", value="rank"),
            "form.kind must be 'rows', 'pairs' or 'mean', got 'rank'",
        ),
        (set_at("promises", 0, "form", "A", value=[[1, 2]]), r"form.A must be an array of shape \(2, 2\)"),
        (set_at("promises", 0, "form", "n_outputs", value=2), "form.n_outputs must be 1, got 2"),
        (set_at("promises", 3, "form", "mean", value="rms"), "form.mean must be one of"),
        (set_at("promises", 0, "state", "processes", value=[]), "processes must be a list of 1"),
        (
            set_at("promises", 0, "state", "processes", 0, "log_wealth", value=[0.0]),
            "log_wealth must be an array of shape",
        ),
        (set_at("promises", 0, "state", "restarts", 0, "tallies", 0, "counts", value=[1]), "a count for each pair"),
        (
            set_at("promises", 0, "state", "restarts", 0, "tallies", 0, "n_rows", value=1),
            "a count for each pair, n_rows in",
        ),
        (set_at("promises", 3, "state", "restarts", value=[]), "restarts must be a list of"),
        (set_at("promises", 0, "state", "found", value=3), "with both or neither of found and since"),
        (
            set_at("promises", 2, "state", "left_over", value=[0, 5, 1]),
            "the class, the decision and the batch of a row",
        ),
        (
            set_at("promises", 0, "state", "left_over", value=[0, 0, 1]),
            "the class, the decision and the batch of a row",
        ),
        (set_at("n_rows", value=-1), "n_rows must be an integer from 0, got -1"),
        (set_at("n_batches", value=2), "promises"),
        (set_at("waiting", 0, "batch", value=99), "of a batch up to"),
        (set_at("waiting", 0, "decisions", 0, value=[2]), "with decisions of the rule"),
        (set_at("waiting", 0, "groups", value=[0]), "groups must be an array of shape"),
        (set_at("waiting", 0, "ids", 0, value=1.5), "must be text or an integer, got 1.5"),
        (set_at("labelled_ids", value=["a", "a"]), "labelled_ids must be distinct ids"),
        (set_at("batches", 0, "first", value=2), "batches must be records of the batches 1 to"),
        (set_at("batches", 0, "decided", value=[[1, 2]]), "labelled must be at most the rows decided"),
        (set_at("batches", 0, "decided", value=[[1.5, 99]]), "decided must be made of integers from 0"),
        (set_at("batches", 0, "sums", 0, value=[[1.0, 2.0]]), r"sums\[0\] must be an array of shape \(2, 1\)"),
        (set_at("batches", 0, "estimates", 0, value=[1.0]), "must be a list of 3"),
    ],
)
def test_a_wrong_field_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        mw.load_watch(changed(change))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="load_watch: format must be 'metricwise-watch', got 'metricwise-rule'"):
        mw.load_watch(THRESHOLD.to_json())
    with pytest.raises(ValueError, match="the watch must be JSON, got text that is truncated"):
        mw.load_watch("{")
    with pytest.raises(FileNotFoundError):
        mw.load_watch(tmp_path / "none.json")


@pytest.mark.parametrize("mangle", [edited, damaged])
@pytest.mark.parametrize("case", CASES)
def test_a_mangled_file_is_refused_or_a_watch(mangle, case):
    rule, promises = CASES[case]
    text = go_on(begin(rule, promises), rule, range(3)).to_json()
    for seed in range(120):
        mangled = mangle(text, np.random.default_rng(seed))
        try:
            watch = mw.load_watch(mangled)
            assert mw.load_watch(watch.to_json()).to_json() == watch.to_json()
            assert isinstance(repr(watch), str)
        except Exception as error:
            error.add_note(f"with seed {seed}: {mangled}")
            assert_sentence(error)
