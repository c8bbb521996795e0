"""The sign of life: with a clock that is set by hand, on a terminal and elsewhere."""

import io
import itertools
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import metricwise as mw
from metricwise.core.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds, as the progress sees them."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr("metricwise.core.progress.time", SimpleNamespace(perf_counter=lambda: now.seconds))
    return now


def work(clock, stream, verbose=None, seconds=2.0):
    """Three stages of so long each, in five steps, as the stream shows them before and after the end."""
    with Progress("optimize", 3, verbose, stream) as progress:
        for name in ("reading", "fitting", "judging"):
            progress.stage(name)
            for _ in range(5):
                clock.seconds += seconds / 5
                progress.tick()
        during = stream.getvalue()
    return during, stream.getvalue()


def screen(text):
    """What a line of a terminal shows after a text of carriage returns."""
    line = []
    for part in text.split("\r"):
        line[: len(part)] = part
    return "".join(line).rstrip()


@pytest.mark.parametrize("verbose", [None, True])
def test_a_second_is_silent(clock, verbose):
    for stream in (Terminal(), io.StringIO()):
        assert work(clock, stream, verbose, seconds=0.3) == ("", "")


@pytest.mark.parametrize("verbose", [None, True])
def test_a_terminal_has_one_line_that_is_written_over_and_wiped(clock, verbose):
    during, after = work(clock, Terminal(), verbose)
    assert "\n" not in after
    assert screen(during) == "[=============       ] optimize: judging, 6 s"
    assert screen(after) == ""
    shown = [screen(during[: at + 1]) for at, letter in enumerate(during) if during[at + 1 : at + 2] in ("\r", "")]
    assert any("reading, 1 s" in line for line in shown)
    assert any(line.startswith("[======              ] optimize: fitting") for line in shown)


def test_a_long_line_is_wiped_by_a_short_one(clock):
    stream = Terminal()
    with Progress("optimize", 2, None, stream) as progress:
        clock.seconds += 2
        progress.stage("fitting resamples, recalibrated + expected")
        clock.seconds += 1
        progress.stage("done")
        assert screen(stream.getvalue()) == "[==========          ] optimize: done, 3 s"


def test_elsewhere_every_stage_has_a_line(clock):
    during, after = work(clock, io.StringIO(), True)
    assert during == after
    assert after.splitlines() == [
        "optimize: reading (stage 1 of 3, 1 s)",
        "optimize: fitting (stage 2 of 3, 2 s)",
        "optimize: judging (stage 3 of 3, 4 s)",
    ]


def test_elsewhere_nothing_is_said_unasked(clock):
    assert work(clock, io.StringIO()) == ("", "")


def test_no_means_no(clock):
    for stream in (Terminal(), io.StringIO()):
        assert work(clock, stream, False) == ("", "")


def test_the_line_is_not_written_more_often_than_it_can_be_read(clock):
    stream = Terminal()
    with Progress("optimize", 1, None, stream) as progress:
        progress.stage("fitting")
        clock.seconds += 1
        for _ in range(1_000):
            clock.seconds += 0.001
            progress.tick()
        assert 5 <= stream.getvalue().count("\r") <= 11


def test_the_line_is_wiped_after_an_error(clock):
    stream = Terminal()

    def fail():
        with Progress("optimize", 1, None, stream) as progress:
            clock.seconds += 2
            progress.stage("fitting")
            raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        fail()
    assert screen(stream.getvalue()) == ""


def test_a_stream_that_cannot_tell_is_no_terminal(clock):
    said = []
    stream = SimpleNamespace(write=said.append, flush=lambda: None)
    with Progress("optimize", 1, None, stream) as progress:
        clock.seconds += 2
        progress.stage("fitting")
    assert said == []


class Ticking:
    """A clock that is a second later whenever it is asked."""

    def __init__(self):
        self.seconds = 0.0

    def perf_counter(self):
        self.seconds += 1.0
        return self.seconds


def stages(verbose, monkeypatch, capsys, **options):
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, 200)
    monkeypatch.setattr("metricwise.core.progress.time", Ticking())
    mw.optimize(proba, rng.random(200) < proba, "f1", verbose=verbose, **options)
    told = capsys.readouterr()
    assert told.out == ""
    return [line.partition(" (stage")[0] for line in told.err.splitlines()]


def test_optimize_says_what_it_is_doing(monkeypatch, capsys):
    told = stages(True, monkeypatch, capsys)
    assert told[0] == "optimize: recalibrating resamples"
    assert "optimize: fitting rules to resamples" in told
    assert told[-2:] == ["optimize: evaluating rules on rows left out", "optimize: fitting all rows"]
    assert stages(True, monkeypatch, capsys, strategy=mw.Strategy(confusion="labels", recalibrate=False)) == [
        "optimize: fitting all rows"
    ]
    assert stages(False, monkeypatch, capsys) == []
    assert stages(None, monkeypatch, capsys) == []  # captured, so no terminal
    for yes in (1, np.True_):
        assert stages(yes, monkeypatch, capsys) == told


def test_stages_are_as_many_as_were_announced(monkeypatch, capsys):
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, 200)
    monkeypatch.setattr("metricwise.core.progress.time", Ticking())
    for options in (
        {},
        {"strategy": mw.Strategy(confusion="labels")},
        {"strategy": mw.Strategy(confusion="labels", recalibrate=True)},
    ):
        mw.optimize(proba, rng.random(200) < proba, "f1", verbose=True, **options)
        last = capsys.readouterr().err.splitlines()[-1]
        done, _, announced = last.partition("(stage ")[2].partition(",")[0].partition(" of ")
        assert done == announced


FIXED = {"confusion": "labels", "recalibrate": False}


@pytest.mark.parametrize(
    ("others", "unknown", "options"),
    [
        *itertools.product([[], ["recall >= 0.5"]], ["refuse", "blind"], [{"strategy": mw.Strategy(**FIXED)}]),
        (["recall >= 0.5"], "blind", {}),
        pytest.param(["recall >= 0.5"], "refuse", {}, marks=pytest.mark.slow),
        pytest.param([], "blind", {}, marks=pytest.mark.slow),
        pytest.param([], "refuse", {}, marks=pytest.mark.slow),
    ],
)
def test_stages_of_constraints_are_as_many_as_were_announced(others, unknown, options, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, 200)
    groups = mw.Sensitive(np.resize(["a", "b"], 200), unknown=unknown)
    monkeypatch.setattr("metricwise.core.progress.time", Ticking())
    mw.optimize(
        proba,
        rng.random(200) < proba,
        "accuracy",
        subject_to=["demographic_parity <= 0.3", *others],
        sensitive_features=groups,
        verbose=True,
        **options,
    )
    last = capsys.readouterr().err.splitlines()[-1]
    done, _, announced = last.partition("(stage ")[2].partition(",")[0].partition(" of ")
    assert done == announced


@pytest.mark.parametrize("verbose", ["yes", 0.5, []])
def test_verbose_is_yes_or_no(verbose):
    with pytest.raises(ValueError, match=r"^optimize: verbose must be True, False or None, got "):
        mw.optimize([0.2, 0.7], [0, 1], "f1", verbose=verbose)


# ------------------------------------------------------------------------------------------------ nested, notebooks


def test_of_two_at_a_time_one_is_shown(clock):
    outer, inner = Terminal(), Terminal()
    with Progress("trade-off", 2, None, outer) as progress:
        progress.stage("tracing")
        with Progress("optimize", 2, None, inner) as nested:
            clock.seconds += 2
            nested.stage("fitting")
        assert screen(outer.getvalue()) == "[                    ] trade-off: tracing, 2 s"
    assert inner.getvalue() == ""
    assert work(clock, Terminal())[0] != ""  # the next one is


def test_a_long_stage_without_a_tick_is_shown(monkeypatch):
    monkeypatch.setattr("metricwise.core.progress._DELAY", 0.05)
    monkeypatch.setattr("metricwise.core.progress._WATCH_INTERVAL", 0.01)
    stream = Terminal()
    with Progress("fit", 1, None, stream) as progress:
        progress.stage("fitting 5 folds")
        end = time.monotonic() + 5
        while not stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        assert screen(stream.getvalue()) == "[                    ] fit: fitting 5 folds, 0 s"
    assert screen(stream.getvalue()) == ""


def watchers():
    return sum(thread.name.endswith("(_watch)") and thread.is_alive() for thread in threading.enumerate())


def test_threads_share_one_line_and_leave_no_watcher(monkeypatch):
    monkeypatch.setattr("metricwise.core.progress._DELAY", 0.0)
    monkeypatch.setattr("metricwise.core.progress._WATCH_INTERVAL", 0.01)
    interval, errors = sys.getswitchinterval(), []

    def work():
        try:
            for _ in range(200):
                with Progress("optimize", 1, True, Terminal()) as progress:
                    for _ in range(20):
                        progress.stage("fitting")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    assert Progress._first is None
    end = time.monotonic() + 5
    while watchers() and time.monotonic() < end:
        time.sleep(0.01)
    assert watchers() == 0


def test_a_progress_that_ends_without_being_the_first_ends_its_watcher(clock):
    progress = Progress("optimize", 1, True, Terminal())
    with progress:
        Progress._first = None  # as a race of two threads would leave it
    assert progress._done.is_set()


def test_without_threads_the_ticks_show_the_line(clock, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    during, after = work(clock, Terminal())
    assert screen(during) == "[=============       ] optimize: judging, 6 s"
    assert screen(after) == ""
    assert Progress._first is None


class Failing(Terminal):
    def write(self, text):
        raise BrokenPipeError("nobody reads this")


@pytest.mark.parametrize("kind", ["failing", "closed", "closed meanwhile", "none"])
def test_a_screen_that_fails_does_not_stop_the_work(kind, clock, monkeypatch):
    stream = Failing() if kind == "failing" else None if kind == "none" else Terminal()
    if kind == "closed":
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("optimize", 2, True) as progress:
        clock.seconds += 2
        progress.stage("fitting")
        if kind == "closed meanwhile":
            stream.close()
        clock.seconds += 2
        progress.stage("judging")
    assert Progress._first is None


class Shell:
    """What IPython has in a notebook: a shell with a kernel, and outputs that can be replaced."""

    def __init__(self, kernel):
        self.kernel, self.shown = kernel, []

    def get_ipython(self):
        return self

    @property
    def display(self):
        return SimpleNamespace(display=self.show)

    def show(self, content, *, raw, display_id):
        assert (raw, display_id) == (True, True)
        self.shown.append([content["text/plain"]])
        output = self.shown[-1]
        return SimpleNamespace(update=lambda content, raw: output.append(content["text/plain"]))


def test_a_notebook_has_one_output_that_is_replaced_and_empty_in_the_end(clock, monkeypatch, capsys):
    shell = Shell(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", shell)
    with Progress("optimize", 2) as progress:
        progress.stage("fitting")
        assert shell.shown == []
        for _ in range(3):
            clock.seconds += 1
            progress.tick()
        assert shell.shown[0][-1] == "[                    ] optimize: fitting, 3 s"
    assert len(shell.shown) == 1
    assert shell.shown[0][-1] == ""
    assert capsys.readouterr().err == ""


def test_ipython_without_a_kernel_is_no_notebook(clock, monkeypatch, capsys):
    shell = Shell(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    with Progress("optimize", 1) as progress:
        clock.seconds += 3
        progress.stage("fitting")
    assert shell.shown == []
    assert capsys.readouterr().err == ""


def test_other_calls_say_what_they_are_doing(monkeypatch, capsys, tmp_path):
    rng = np.random.default_rng(0)
    proba = rng.beta(1, 3, 200)
    y = (rng.random(200) < proba).astype(int)
    monkeypatch.setattr("metricwise.core.progress.time", Ticking())
    mw.trade_off(proba, y, "precision", "recall", n_points=3, verbose=True)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("trade_off: looking for the ends (stage 1 of 3")
    assert told[-1].startswith("trade_off: point 2 of 3")
    mw.trade_off(proba, y, "precision", "recall", n_points=3)
    assert capsys.readouterr().err == ""
    LogisticRegression = pytest.importorskip("sklearn.linear_model").LogisticRegression
    mw.MetricOptimalClassifierCV(LogisticRegression(), metric="f1", cv=2, verbose=1).fit(rng.random((200, 2)), y)
    told = capsys.readouterr().err
    assert "MetricOptimalClassifierCV: fitting 2 folds (stage 1 of 2" in told
    assert "optimize: fitting all rows" in told
    with pytest.raises(ValueError, match=r"^trade_off: verbose must be True, False or None, got 'yes'"):
        mw.trade_off(proba, y, "precision", "recall", verbose="yes")
